//! A disk that a program fills, with the store on it: the daemon says so, answers, and ends.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;
use serde_json::json;

use crate::case::python;
use crate::daemon::{Daemon, Interface, Settings, Tier};
use crate::model::{Model, STEPS};
use crate::needs::{self, Need};
use crate::world::World;

/// How large the disk is.
const SIZE: &str = "size=96m";
/// How often it is looked whether the agent rests.
const PACE: Duration = Duration::from_millis(100);
/// How often at most.
const LOOKS: u32 = 600;

/// Mounts a small file system over the state folder and becomes what follows.
const SMALL: &str = "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";

pub(crate) async fn filled() -> Result<()> {
    let world = World::new(None)?;
    let model = Model::start(world.canaries.clone()).await?;
    let namespaces = if geteuid().is_root() { "--mount" } else { "--map-root-user" };
    let state = world.path("state").display().to_string();
    let through = ["/usr/bin/unshare", "--mount", namespaces, "/bin/sh", "-c", SMALL, "sh", SIZE, &state];
    let through = Some(through.map(str::to_owned).into());
    let settings = Settings { tier: Tier::None, namespaces: true, model: model.port, through };
    let mut daemon = Daemon::start(&world, &settings)?;
    let Some(interface) = daemon.ready().await else {
        println!("{:?}", daemon.said());
        let _ = needs::has(Need::Mount, false);
        return Ok(());
    };
    let task = json!({"task": format!("{STEPS}[]")});
    let begun = interface.api.post("/sessions", &task).await?;
    let session = begun["session"].as_str().context("a session has an id")?;
    let turns = python("full-disk", "full_disk.py").turns(&world);
    let agent = json!({"name": "filler", "prompt": format!("{STEPS}{turns}")});
    interface.api.post(&format!("/sessions/{session}/agents"), &agent).await?;
    let mut clock = tokio::time::interval(PACE);
    let mut looks = 0;
    // What happens may not be recorded any more, so nobody waits for an event.
    let ended = loop {
        clock.tick().await;
        interface.api.get("/health").await.context("with a full disk")?;
        let agent = interface.api.get(&format!("/sessions/{session}/agents/filler")).await?;
        if !agent["last_end"].is_null() {
            break agent["last_end"].clone();
        }
        looks += 1;
        ensure!(looks < LOOKS, "the agent goes on for ever: {agent}");
    };
    println!("with a full disk the agent's run ended so: {ended}");
    let conversation = interface.api.get(&format!("/sessions/{session}/agents/filler/conversation")).await?;
    ensure!(is_full(&interface, &state)?, "the disk was not filled: {conversation}");
    ensure!(daemon.lives(), "the daemon is gone");
    let ended = daemon.terminate().await?;
    ensure!(ended.is_some(), "the daemon does not end");
    Ok(())
}

/// Whether nothing can be written to the daemon's disk any more.
fn is_full(interface: &Interface, state: &str) -> Result<bool> {
    let seen = format!("/proc/{}/root{state}", interface.pid);
    Ok(rustix::fs::statvfs(seen)?.f_bavail < 64)
}
