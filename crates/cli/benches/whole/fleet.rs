//! Many agents over HTTP with a tool in process that does nothing, and one long conversation.
//! The agents live in a process of their own; its instructions are counted by callgrind where
//! time would say little.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{
    CallTraits, Changes, Output, Returned, Tool, ToolCall, ToolError, ToolSpec, Toolbox, Workplace,
};
use midturn_core::engine::{AgentSpec, Coordinator};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::settings::Settings;
use midturn_providers::{Config, Dialect, Endpoint, Providers};
use serde_json::json;

use super::server::{Answer, Server, turns};
use super::stats::{Figures, millis, of_children};

/// The word that makes this program the process of the agents.
pub(crate) const CHILD: &str = "fleet-child";

const AGENTS: usize = 100;
const TURNS: usize = 20;

pub(crate) fn table() {
    let server = Server::start(|body| {
        let most = body.split("turns: ").nth(1).and_then(|rest| rest.split('.').next());
        let most: usize = most.unwrap().parse().unwrap();
        if turns(body) < most {
            Answer::Calls(vec![("noop", json!({"path": "src/parser.rs"}))])
        } else {
            Answer::Says("Done.")
        }
    });
    println!("\na turn over HTTP with a tool in process that does nothing  (median, minimum, maximum)");
    let used = (0..9).map(|_| {
        let before = of_children();
        assert!(agents(&server, AGENTS, TURNS).status().unwrap().success());
        millis(of_children() - before) / (AGENTS * TURNS) as f64
    });
    Figures::new(used).print("processor time of a turn, 100 agents × 20 turns", "ms", "target 0.15");
    growth(&server);
}

fn agents(server: &Server, agents: usize, turns: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([CHILD, &server.url, &agents.to_string(), &turns.to_string()]);
    command
}

/// Ten turns around the tenth and around the thousandth, in instructions of user space.
fn growth(server: &Server) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("  valgrind is not installed: turn 1,000 is not compared with turn 10");
        return;
    }
    let count = |turns| counted(&agents(server, 1, turns)).map(|count| count as f64);
    let between = |from, to| Some((count(to)? - count(from)?) / (to - from) as f64);
    let (Some(early), Some(late)) = (between(5, 25), between(995, 1_015)) else {
        println!("  valgrind could not count the instructions of a conversation");
        return;
    };
    println!("  {:<58} {early:>9.0}", "instructions of turn 10");
    println!("  {:<58} {late:>9.0}   {:.2} ×, target 1.5", "instructions of turn 1,000", late / early);
}

fn counted(command: &Command) -> Option<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args());
    let output = valgrind.output().ok().filter(|output| output.status.success())?;
    let told = String::from_utf8(output.stderr).ok()?;
    let line = told.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The process of the agents: URL, how many, how many turns each.
pub(crate) fn child(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let [url, agents, turns] = &words[..] else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(url, agents.parse().unwrap(), turns));
    ExitCode::SUCCESS
}

async fn work(url: &str, agents: usize, turns: &str) {
    let anthropic = ("anthropic".to_owned(), Endpoint::new(Dialect::Anthropic, url));
    let models = Arc::new(Providers::new(Config([anthropic].into())));
    let settings = Settings { max_agents: u32::MAX, ..Settings::default() };
    let coordinator = Coordinator::builder(models, Arc::new(Noop)).settings(settings).start().await.unwrap();
    for i in 0..agents {
        let name = AgentName::new(format!("agent-{i}")).unwrap();
        let prompt = Some(format!("Do so many turns: {turns}."));
        let spec = AgentSpec { prompt, ..AgentSpec::new(name, "anthropic/bench") };
        coordinator.spawn_agent(spec).await.unwrap();
    }
    coordinator.quiet().await;
    let last: Vec<_> = coordinator.agents().into_iter().filter_map(|agent| agent.last_end).collect();
    assert!(last.len() == agents && last.iter().all(|end| &*end.text == "Done."), "{:?}", last.first());
}

struct Noop;

#[async_trait]
impl Workplace for Noop {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(Noop))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

impl Toolbox for Noop {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![self.spec()]
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        (&*call.name == "noop").then(|| Arc::new(Noop) as Arc<dyn Tool>)
    }
}

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        Arc::new(ToolSpec { name: "noop".into(), description: "Does nothing.".into(), input_schema })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, _: ToolCall) -> Returned {
        Output::ok("x".repeat(1_024)).into()
    }
}
