//! What comes into a session with a secret in it: nobody gets it, neither the model nor the
//! store nor who watches, from whichever side it came and however it was cut into pieces.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::store::MemoryStore;
use midturn_core::engine::ports::*;
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply};
use midturn_core::engine::{AgentSpec, Coordinator, ToolSet, VirtualClock};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::{Block, Reply, StopReason, ToolUse};
use midturn_core::rules::event::{Event, LiveEvent, LiveKind};
use midturn_core::rules::id::{AgentName, CallId, RunId};
use midturn_core::rules::secrets::Secrets;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-canary-0123456789";
const MARK: &str = "[redacted: API_KEY]";

/// All that left the engine, as texts.
#[derive(Default)]
struct Outside {
    requests: Mutex<Vec<String>>,
    records: Mutex<Vec<String>>,
    events: Mutex<Vec<String>>,
    /// What was said live: the text, the thinking, the tool's output, the setup's.
    live: Mutex<[String; 4]>,
}

impl Observer for Outside {
    fn event(&self, event: &Event) {
        self.events.lock().push(serde_json::to_string(event).unwrap());
    }

    fn live(&self, event: &LiveEvent) {
        let (at, text) = match &event.kind {
            LiveKind::TextDelta { text } => (0, text),
            LiveKind::ThinkingDelta { text } => (1, text),
            LiveKind::ToolOutput { text, .. } => (2, text),
            LiveKind::SetupOutput { text } => (3, text),
            LiveKind::CallDelta { .. } => return,
        };
        assert!(!text.is_empty(), "nothing is told of nothing");
        self.live.lock()[at].push_str(text);
    }
}

impl Store for Outside {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        self.records.lock().push(format!("{transaction:?}"));
        MemoryStore.submit(transaction)
    }
}

/// Says the key letter by letter, calls a tool with it, then fails with it, then ends with it.
struct Talker(Arc<Outside>);

#[async_trait]
impl ModelFactory for Talker {
    async fn model(&self, _: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

#[async_trait]
impl Model for Talker {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        self.0.requests.lock().push(format!("{} {:?}", request.system, request.entries));
        let text = format!("I say {KEY}, sk-can");
        for letter in text.split_inclusive("") {
            request.progress.text(letter);
            request.progress.thinking(letter);
        }
        let said = Block::Text(text.clone());
        let call = |id: &str| {
            let input = json!({"command": format!("echo {KEY}"), KEY: 1});
            Block::ToolUse(ToolUse { id: CallId::new(id), name: "leak".into(), input })
        };
        let reply = |blocks, stop_reason| Reply { blocks, stop_reason, ..Reply::default() };
        match request.call {
            1 => Ok(reply(vec![said, call("a"), call("b")], StopReason::ToolUse)),
            2 => Err(ModelFailure::new(ErrorKind::InvalidRequest, format!("the key {KEY} is wrong"))),
            _ => Ok(reply(vec![said], StopReason::EndTurn)),
        }
    }

    fn jitters(&self) -> bool {
        false
    }
}

/// A tool that tells the key in two pieces and returns it.
struct Leak;

#[async_trait]
impl Tool for Leak {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec { name: "leak".into(), description: "".into(), input_schema: json!({}) })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, call: ToolCall) -> Returned {
        assert!(!call.call.input.to_string().contains(KEY), "a call runs with what stands in its place");
        call.output.write(&KEY[..9]);
        call.output.write(&format!("{} and sk-c", &KEY[9..]));
        match call.call.id.as_str() {
            "a" => Output::ok(format!("the key is {KEY}\n[… 7 bytes left out …]\n0123456789!")).into(),
            _ => panic!("{KEY}"),
        }
    }
}

/// Tells the key in two pieces while it is made ready, and leaves it in the name of a file.
struct Place(ToolSet);

#[async_trait]
impl Workplace for Place {
    async fn open(&self, agent: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        self.0.open(agent).await
    }

    async fn settle(&self, _: &AgentName, _: &CancellationToken, output: &dyn OutputSink) -> String {
        output.tell(&KEY[..9]);
        output.tell(&format!("{} and sk-c", &KEY[9..]));
        format!(" Its folder has {KEY}.")
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes { branch: None, files: vec![KEY.to_owned()], notes: vec![format!("git: {KEY}")] })
    }
}

async fn play(outside: &Arc<Outside>) {
    let tools = Arc::new(Place(ToolSet::new(vec![Arc::new(Leak)])));
    let coordinator = Coordinator::builder(Arc::new(Talker(outside.clone())), tools)
        .secrets(Secrets::new([("API_KEY", KEY)]).unwrap())
        .store(outside.clone())
        .observer(outside.clone())
        .start()
        .await
        .unwrap();
    let spec = AgentSpec {
        prompt: Some(format!("use {KEY}")),
        system: format!("You have {KEY}."),
        ..AgentSpec::new(AgentName::new("worker").unwrap(), "talker")
    };
    coordinator.spawn_agent(spec).await.unwrap();
    coordinator.quiet().await;
    let text = format!("no, use {KEY}");
    coordinator.send_message("worker", &text, false).await.unwrap();
    coordinator.quiet().await;
    let status = format!("{:?}", coordinator.agents());
    assert!(status.contains(MARK) && !status.contains("canary"), "{status}");
}

/// Writes files, and remembers which.
#[derive(Default)]
struct Editor(Mutex<Vec<String>>);

#[async_trait]
impl Tool for Editor {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec { name: "write".into(), description: "".into(), input_schema: json!({}) })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits { effect: Effect::Edits, ..CallTraits::SERIAL }
    }

    async fn call(&self, call: ToolCall) -> Returned {
        self.0.lock().push(call.call.id.to_string());
        Output::ok("written").into()
    }
}

/// C19: a model that writes back what it read would destroy the secret.
#[tokio::test]
async fn no_edit_writes_what_stands_in_a_secrets_place() {
    let (outside, editor) = (Arc::new(Outside::default()), Arc::new(Editor::default()));
    let texts = [
        ("kept", format!("KEY={MARK}\n")),
        ("said", format!("KEY={KEY}\n")),
        ("manual", "[redacted: NAME]".to_owned()),
        ("plain", "KEY=1".to_owned()),
    ];
    let call = |(id, text): &(&str, String)| {
        Arc::new(ScriptedCall::new(id, "write", json!({"path": "f", "content": text})))
    };
    let turn = ScriptedReply { tools: texts.iter().map(call).collect(), ..ScriptedReply::default() };
    let worker = AgentName::new("worker").unwrap();
    let script: Arc<[ScriptedReply]> = [turn, ScriptedReply::says("Done.")].into();
    let clock = Arc::new(VirtualClock::default());
    let models = Arc::new(ScriptedModels::new(clock.clone(), HashMap::from([(worker.clone(), script)])));
    let coordinator = Coordinator::builder(models, Arc::new(ToolSet::new(vec![editor.clone()])))
        .clock(clock.clone())
        .secrets(Secrets::new([("API_KEY", KEY)]).unwrap())
        .observer(outside.clone())
        .start()
        .await
        .unwrap();
    let spec = AgentSpec { prompt: Some("Go.".into()), ..AgentSpec::new(worker, "scripted") };
    coordinator.spawn_agent(spec).await.unwrap();
    clock.drive().await.unwrap();
    assert_eq!(*editor.0.lock(), ["manual", "plain"]);
    let events = outside.events.lock().join("\n");
    assert_eq!(events.matches("its arguments hold `[redacted: API_KEY]`").count(), 2, "{events}");
}

#[tokio::test]
async fn a_secret_reaches_nobody_from_whichever_side_it_comes() {
    let outside = Arc::new(Outside::default());
    play(&outside).await;
    let told = [&outside.requests, &outside.records, &outside.events].map(|texts| texts.lock().join("\n"));
    for text in &told {
        assert!(text.contains(MARK) && !text.contains("canary"), "{text}");
    }
    let [requests, _, events] = &told;
    for expected in [
        "use [redacted: API_KEY]",
        "You have [redacted: API_KEY]. Its folder has [redacted: API_KEY].",
        "echo [redacted: API_KEY]",
        "the key is [redacted: API_KEY]",
        r"left out …]\n[redacted: API_KEY]!",
        "[The tool failed: [redacted: API_KEY]]",
        "no, use [redacted: API_KEY]",
    ] {
        assert!(requests.contains(expected), "{expected}: {requests}");
    }
    assert!(events.contains("the key [redacted: API_KEY] is wrong"), "{events}");
    let [text, thinking, output, setup] = &*outside.live.lock();
    let said = "I say [redacted: API_KEY], sk-can";
    assert_eq!((text.as_str(), thinking.as_str()), (&*said.repeat(3), &*said.repeat(3)));
    assert_eq!(output, &"[redacted: API_KEY] and sk-c".repeat(2));
    assert_eq!(setup, "[redacted: API_KEY] and sk-c");
}
