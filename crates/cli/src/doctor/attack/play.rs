//! Runs the rows, each by the tool `bash` of an agent that works in the project folder, and looks afterwards what is
//! really there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use midturn_core::engine::ports::{OutputSink, Returned, ToolCall, Toolbox, Workplace as _};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::{AgentName, CallId, SessionId};
use midturn_tools::workplace::{AgentPlace, Isolation};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::met::Met;
use super::promise::Promise;
use super::rows::{After, ROWS, Row, Tried};
use super::scene::Scene;
use crate::config::Config;
use crate::env::Env;
use crate::failure::Failure;
use crate::host::carry::Ground;
use crate::host::safety::Safety;

/// How long one command may take.
const COMMAND_MAX: Duration = Duration::from_secs(5);

/// And all of them.
const ALL_MAX: Duration = Duration::from_secs(60);

/// What all commands begin with: whoever reads what the system says reads English, and what root runs is found.
const FIRST: &str = "export LC_ALL=C PATH=\"$PATH:/usr/sbin:/sbin\"; ";

/// Nobody watches.
struct Nobody;

impl OutputSink for Nobody {
    fn write(&self, _: &str) {}
    fn tell(&self, _: &str) {}
}

/// The agent whose commands these are.
struct Agent {
    name: AgentName,
    toolbox: Arc<dyn Toolbox>,
    patience: Duration,
}

/// Every row, with what is promised of it and what was met.
///
/// # Errors
/// The project or the agent's place can't be made.
pub(super) async fn all(
    config: &Config,
    safety: &Safety,
    env: &Env,
) -> Result<Vec<(&'static str, Promise, Met)>, Failure> {
    let force = safety.sandbox().in_force();
    let scene = Scene::make(force, safety.sandbox().wanted().limits, env)?;
    let hidden = [scene.at("state")];
    let (folder, state) = (scene.at("project"), scene.at("state"));
    let ground = Ground { folder: &folder, state: &state, config, safety, hidden: &hidden };
    let workplace = ground.workplace(&SessionId::new("attack"), |_| AgentPlace::new(Isolation::None));
    let name = AgentName::new("lead").map_err(Failure::failed)?;
    let toolbox = workplace.open(&name).await.map_err(Failure::failed)?;
    let patience = COMMAND_MAX.min(config.general.timeouts.command_max.duration());
    let agent = Agent { name, toolbox, patience };
    let is_root = rustix::process::geteuid().is_root();
    let (begun, mut played) = (Instant::now(), Vec::new());
    for row in &ROWS {
        let met = match begun.elapsed() < ALL_MAX {
            true => agent.play(row, &scene).await,
            false => Met::Untried("the minute for all of it was over".to_owned()),
        };
        played.push((row.what, row.by.promise(&scene.force, is_root), met));
    }
    Ok(played)
}

impl Agent {
    async fn play(&self, row: &Row, scene: &Scene) -> Met {
        let met = match (row.tried)(scene) {
            Tried::Command(command) => self.run(&command).await,
            Tried::Not(met) => return met,
        };
        match &row.after {
            // What it says it couldn't do is looked at as well: it may be wrong.
            After::Look(is_so, otherwise) => match (is_so(scene), met) {
                (true, _) => Met::Can,
                (false, Met::Can) => (*otherwise).clone(),
                (false, met) => met,
            },
            After::Next(command) if met == Met::Can => self.run(&command(scene)).await,
            After::Next(_) | After::Nothing => met,
        }
    }

    async fn run(&self, command: &str) -> Met {
        let input = json!({"command": format!("{FIRST}{command}"), "timeout": self.patience.as_secs_f64()});
        let call = ToolUse { id: CallId::new("attack"), name: "bash".into(), input };
        let Some(tool) = self.toolbox.find(&call) else {
            return Met::Unclear("its agent has no tool `bash`".to_owned());
        };
        let (agent, cancel, output) = (self.name.clone(), CancellationToken::new(), Arc::new(Nobody));
        let call = ToolCall { agent, agent_index: 0, run: 1, call, index: 0, cancel, output };
        let output = match tool.call(call).await {
            Returned::Done(output) => output,
            Returned::Continues(rest) => rest.await,
        };
        Met::of(&output.text)
    }
}
