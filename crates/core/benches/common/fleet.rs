//! Many agents at work, each turn a reply and a tool that does nothing, all in process: what
//! the engine itself costs. Beside it the same model and tool in a loop without an engine.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{
    CallTraits, Changes, Clock, ModelFactory, Observer, Output, Progress, RealClock, Request, Returned, Tool,
    ToolCall, ToolError, ToolSpec, Toolbox, Workplace,
};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts};
use midturn_core::engine::{AgentSpec, Coordinator};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Entry, Injected, Reply, ToolResult, ToolStatus, ToolUse};
use midturn_core::rules::id::{AgentName, CallId, RunId};
use midturn_core::rules::settings::Settings;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Case, Row, cpu};

pub const AGENTS: u32 = 100;
pub const TURNS: u32 = 20;

/// About as long as what a model says between two calls.
const SAYS: &str = "I have looked at the five call sites; next I change the one in the parser, because the \
                    others follow from it, and then I run the tests of that module to see that nothing broke.";

/// About as long as a small result.
const RESULT: usize = 1_024;

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Settings under which as many agents as are asked for may be open.
pub fn settings() -> Settings {
    Settings { max_agents: u32::MAX, ..Settings::default() }
}

fn name(i: u32) -> AgentName {
    AgentName::new(format!("agent-{i}")).unwrap()
}

pub fn name_only(i: u32) -> AgentSpec {
    AgentSpec { model: None, ..AgentSpec::new(name(i), "") }
}

pub fn with_model(i: u32) -> AgentSpec {
    AgentSpec::new(name(i), "scripted")
}

pub fn prompted(i: u32) -> AgentSpec {
    AgentSpec { prompt: Some("Rename the five call sites.".to_owned()), ..with_model(i) }
}

/// A session in which nobody works.
pub async fn idle() -> Coordinator {
    session(Arc::new(RealClock::start()), Scripts::new(), Arc::new(Bench)).await
}

async fn session(clock: Arc<dyn Clock>, scripts: Scripts, workplace: Arc<dyn Workplace>) -> Coordinator {
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts));
    let builder = Coordinator::builder(models, workplace).settings(settings()).clock(clock);
    builder.start().await.unwrap()
}

/// A session with these models, whose events somebody is told.
pub async fn observed(models: Arc<dyn ModelFactory>, observer: Arc<dyn Observer>) -> Coordinator {
    let builder = Coordinator::builder(models, Arc::new(Bench)).settings(settings()).observer(observer);
    builder.start().await.unwrap()
}

/// `turns` turns with a call of `tool` each, then a last word.
pub fn script(turns: u32, tool: &str) -> Arc<[ScriptedReply]> {
    let reply = |i| ScriptedReply {
        text: SAYS.to_owned(),
        tools: vec![Arc::new(call(format!("c{i}"), tool))],
        ..ScriptedReply::default()
    };
    let last = ScriptedReply { text: "Done.".to_owned(), ..ScriptedReply::default() };
    (0..turns).map(reply).chain([last]).collect()
}

pub fn call(id: String, tool: &str) -> ScriptedCall {
    ScriptedCall::new(&id, tool, serde_json::json!({"path": "src/parser.rs", "offset": 120}))
}

/// A workplace whose tools take no time: `noop` returns a small result, `wait` waits until it
/// is told to end.
pub struct Bench;

#[async_trait]
impl Workplace for Bench {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(Bench))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}

impl Toolbox for Bench {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        Vec::new()
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        match &*call.name {
            "noop" => Some(Arc::new(Noop)),
            "wait" => Some(Arc::new(Waits)),
            _ => None,
        }
    }
}

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> Arc<ToolSpec> {
        spec("noop")
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, _: ToolCall) -> Returned {
        Output::ok("x".repeat(RESULT)).into()
    }
}

struct Waits;

#[async_trait]
impl Tool for Waits {
    fn spec(&self) -> Arc<ToolSpec> {
        spec("wait")
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, call: ToolCall) -> Returned {
        call.cancel.cancelled().await;
        Output::default().into()
    }
}

fn spec(name: &str) -> Arc<ToolSpec> {
    let input_schema = serde_json::json!({"type": "object"});
    Arc::new(ToolSpec { name: name.into(), description: "for measuring".into(), input_schema })
}

/// So many agents take so many turns each, then all are done.
pub async fn work(agents: u32, turns: u32) {
    let script = script(turns, "noop");
    let scripts = (0..agents).map(|i| (name(i), script.clone())).collect();
    let coordinator = session(Arc::new(RealClock::start()), scripts, Arc::new(Bench)).await;
    for i in 0..agents {
        coordinator.spawn_agent(prompted(i)).await.unwrap();
    }
    coordinator.quiet().await;
    let worst = coordinator.agents().into_iter().map(|agent| agent.turn).min();
    assert_eq!(worst, Some(turns + 1), "every agent came to its last word");
}

/// So many agents that have taken `turns` turns and wait in a tool.
pub async fn working(agents: u32, turns: u32) -> Coordinator {
    let mut script: Vec<ScriptedReply> = script(turns, "noop").to_vec();
    script[turns as usize] =
        ScriptedReply { tools: vec![Arc::new(call("last".to_owned(), "wait"))], ..script[0].clone() };
    let script: Arc<[ScriptedReply]> = script.into();
    let scripts = (0..agents).map(|i| (name(i), script.clone())).collect();
    let coordinator = session(Arc::new(RealClock::start()), scripts, Arc::new(Bench)).await;
    for i in 0..agents {
        coordinator.spawn_agent(prompted(i)).await.unwrap();
    }
    while coordinator.agents().iter().any(|agent| agent.turn <= turns) {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    coordinator
}

pub fn row() -> Row {
    Row {
        name: "a turn: scripted reply, tool that does nothing",
        target: None,
        per_round: u64::from(AGENTS * TURNS),
        countable: true,
        cases: vec![one("100 agents, 20 turns each", AGENTS), one("1 agent, 20 turns", 1), bare()],
    }
}

fn one(name: &'static str, agents: u32) -> Case {
    let runtime = runtime();
    Case::measured(name, move |n| {
        let sessions = n.div_ceil(u64::from(agents * TURNS));
        let used = cpu::measure(|| (0..sessions).for_each(|_| runtime.block_on(work(agents, TURNS))));
        // What was asked for, not what had to be done to fill the last session.
        let share = n as f64 / (sessions * u64::from(agents * TURNS)) as f64;
        used.mul_f64(share)
    })
}

/// The same model and the same tool, and nothing that could be steered, recorded or asked.
fn bare() -> Case {
    let runtime = runtime();
    Case::measured("the same model and tool in a bare loop", move |n| {
        let conversations = n.div_ceil(u64::from(TURNS));
        let used = cpu::measure(|| (0..conversations).for_each(|_| runtime.block_on(bare_conversation())));
        used.mul_f64(n as f64 / (conversations * u64::from(TURNS)) as f64)
    })
}

struct Silent;

impl Progress for Silent {
    fn sent(&self) {}
    fn text(&self, _: &str) {}
    fn thinking(&self, _: &str) {}
    fn thinking_done(&self) {}
    fn tokens(&self, _: u64) {}
}

/// What an agent's conversation is made of after so many turns, each text a copy of its own.
pub fn conversation(turns: u32) -> Vec<Entry> {
    let turn = |i| {
        let reply = reply(u64::from(i));
        let results = reply.calls().map(result).collect();
        [Entry::Assistant(reply.into()), Entry::ToolResults { results, mail: None }]
    };
    (0..turns).flat_map(turn).collect()
}

async fn bare_conversation() {
    let scripts: Scripts = HashMap::from([(name(0), script(TURNS, "noop"))]);
    let models = ScriptedModels::new(Arc::new(RealClock::start()), scripts);
    let mut model = models.model(&name(0), "scripted").await.unwrap();
    let mut entries = vec![Arc::new(Entry::User(Injected::prompt("Rename the five call sites.")))];
    for call in 1.. {
        let cancel = CancellationToken::new();
        let request = Request {
            messages: 1,
            purpose: Purpose::Turn,
            compactions: 0,
            agent_index: 0,
            call,
            system: "",
            tools: &[],
            entries: &entries,
            max_output: None,
            cancel: &cancel,
            progress: &Silent,
        };
        let reply = model.call(request).await.unwrap();
        let results: Vec<ToolResult> = reply.calls().map(result).collect();
        entries.push(Arc::new(Entry::Assistant(reply.into())));
        if results.is_empty() {
            break;
        }
        entries.push(Arc::new(Entry::ToolResults { results, mail: None }));
    }
    black_box(entries);
}

fn result(call: &ToolUse) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        status: ToolStatus::Completed,
        is_error: false,
        text: "x".repeat(RESULT).into(),
        messages: Arc::default(),
        cost: Default::default(),
    }
}

/// The bare reply of a script, for whoever needs a model that is not the scripted one.
pub fn reply(call: u64) -> Reply {
    use midturn_core::rules::conversation::{Block, StopReason};
    let input = serde_json::json!({"path": "src/parser.rs", "offset": 120});
    let tool = ToolUse { id: CallId::new(format!("c{call}")), name: "noop".into(), input };
    Reply {
        blocks: vec![Block::Text(SAYS.to_owned()), Block::ToolUse(tool)],
        stop_reason: StopReason::ToolUse,
        ..Reply::default()
    }
}
