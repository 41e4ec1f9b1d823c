//! What the programs are told to go for, and what they may have left in the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::json;

use crate::canary::contains;
use crate::case::evidence;
use crate::daemon::Interface;
use crate::doors::{Doors, own_address};
use crate::snapshot::OF_THE_MACHINE;
use crate::world::{KEPT, World};

/// Writes `targets.json` for programs/common.py: `neighbour` are the processes of another agent's
/// command, and the model server's port.
pub(crate) fn write(
    world: &World,
    interface: &Interface,
    doors: &Doors,
    (neighbour, model): (&[i32], u16),
) -> Result<()> {
    let near = world.worktree("neighbour").context("the neighbour has a worktree")?;
    let state = world.state().context("the daemon has a state folder")?;
    let secrets = secrets(world, interface, &near, &state);
    let inodes: Vec<u64> = secrets.iter().filter_map(|path| Some(path.metadata().ok()?.ino())).collect();
    let ports: Vec<u16> = [doors.tcp_port()?, model].into_iter().chain(interface.tcp).collect();
    let addresses: Vec<String> = own_address().iter().map(ToString::to_string).collect();
    let targets = json!({
        "mark": world.mark,
        "daemon": interface.pid,
        "others": neighbour,
        "outside": world.path("outside"),
        "evidence": evidence(world),
        "folders": folders(world, &near, &state),
        "files": files(world, &near, &state),
        "secrets": secrets,
        "inodes": inodes,
        "hidden": [world.path("home"), state.clone()],
        "covered": [world.path("home/.ssh"), world.path("home/.aws"), state, near],
        "tcp": ports,
        "udp": [doors.udp_port()?],
        "addresses": addresses,
        "sockets": [interface.api.door.socket.clone(), doors.stream_path()],
        "datagrams": [doors.datagram_path()],
        "abstract": doors.name,
        "key": key(&world.mark),
        "setuid": [world.path("setuid/id")],
    });
    Ok(fs::write(world.path("programs/targets.json"), targets.to_string())?)
}

fn folders(world: &World, near: &Path, state: &Path) -> Vec<PathBuf> {
    let ours = ["home", "home/.ssh", "outside", "run", "main", "main/.git", "main/.git/hooks"];
    let ours = ours.into_iter().map(|below| world.path(below));
    let beside = [Some(near), near.parent(), Some(state)].into_iter().flatten().map(Path::to_owned);
    ours.chain(beside).chain(OF_THE_MACHINE.map(PathBuf::from)).collect()
}

fn files(world: &World, near: &Path, state: &Path) -> Vec<PathBuf> {
    let ours = ["home/.bashrc", "home/.ssh/authorized_keys", "outside/canary.txt", "main/README"];
    let ours = ours.into_iter().chain(["main/.git/config", "main/.git/HEAD"]).map(|below| world.path(below));
    ours.chain([near.join("README"), near.with_extension("json"), state.join("store.db")]).collect()
}

fn secrets(world: &World, interface: &Interface, near: &Path, state: &Path) -> Vec<PathBuf> {
    let kept = KEPT.iter().map(|file| world.path("home").join(file));
    let stored = ["store.db", "store.db-wal"].map(|file| state.join(file));
    kept.chain([interface.path.clone(), near.join("word.txt")]).chain(stored).collect()
}

/// A key for what programs leave in the kernel.
fn key(mark: &str) -> u32 {
    mark.bytes().fold(0x4d49_0000, |key, byte| (key ^ u32::from(byte)).rotate_left(5)) & 0x7fff_ffff
}

/// Shared memory, queues, semaphores and keys that carry the mark.
pub(crate) fn left_in_the_kernel(mark: &str) -> Vec<String> {
    let read = |path: &str| fs::read(path).unwrap_or_default();
    let wanted = key(mark).to_string();
    let by_key = ["shm", "msg", "sem"].into_iter().filter(|kind| {
        let table = String::from_utf8_lossy(&read(&format!("/proc/sysvipc/{kind}"))).into_owned();
        table.lines().any(|line| line.split_whitespace().next() == Some(wanted.as_str()))
    });
    let mut left: Vec<String> = by_key.map(|kind| format!("a {kind} was left in the kernel")).collect();
    if !left.is_empty() {
        take_from_the_kernel(mark);
    }
    if contains(&read("/proc/keys"), format!("hostile-{mark}").as_bytes()) {
        left.push("a key was left in a keyring".to_owned());
    }
    left
}

/// Takes away what was found, for whoever works here next.
fn take_from_the_kernel(mark: &str) {
    let key = key(mark).to_string();
    let words = ["-M", &key, "-Q", &key, "-S", &key];
    // Where there is none it complains.
    let _ = Command::new("ipcrm").args(words).stderr(Stdio::null()).status();
}
