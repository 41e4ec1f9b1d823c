//! What a tool says while it works is told at once; what of it is kept is the result of a call that
//! is cut and returns no text (semantics.md, section 4).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caller;

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::*;
use midturn_core::engine::{AgentSpec, Coordinator, ToolSet};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::event::{Event, LiveEvent, LiveKind};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::record::Line;
use parking_lot::Mutex;
use tokio::sync::Notify;

use caller::Caller;

/// Says its pieces, waits until it is cut and returns no text.
struct Say {
    pieces: Vec<String>,
    say: fn(&dyn OutputSink, &str),
    said: Arc<Notify>,
}

#[async_trait]
impl Tool for Say {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = serde_json::json!({});
        Arc::new(ToolSpec { name: "say".into(), description: "".into(), input_schema })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, call: ToolCall) -> Returned {
        self.pieces.iter().for_each(|piece| (self.say)(&*call.output, piece));
        self.said.notify_one();
        call.cancel.cancelled().await;
        Output::default().into()
    }
}

#[derive(Default)]
struct Heard(Mutex<String>);

impl Observer for Heard {
    fn event(&self, _: &Event) {}

    fn live(&self, event: &LiveEvent) {
        if let LiveKind::ToolOutput { text, .. } = &event.kind {
            self.0.lock().push_str(text);
        }
    }
}

/// What is told live, and the text of the result once an urgent message has cut the call.
async fn cut(pieces: &[&str], say: fn(&dyn OutputSink, &str)) -> [String; 2] {
    let (heard, said, store) =
        (Arc::<Heard>::default(), Arc::<Notify>::default(), Arc::<KeepingStore>::default());
    let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
    let tools = ToolSet::new(vec![Arc::new(Say { pieces, say, said: said.clone() })]);
    let builder = Coordinator::builder(Arc::new(Caller("say")), Arc::new(tools));
    let coordinator = builder.store(store.clone()).observer(heard.clone()).start().await.unwrap();
    let worker = AgentName::new("worker").unwrap();
    let spec = AgentSpec { prompt: Some("go".into()), ..AgentSpec::new(worker, "caller") };
    coordinator.spawn_agent(spec).await.unwrap();
    said.notified().await;
    coordinator.send_message("worker", "no", true).await.unwrap();
    coordinator.quiet().await;
    let (folder, title, memo) = (String::new(), String::new(), serde_json::Value::Null);
    let record = SessionRecord { id: SessionId::new("s"), began_at: 0, folder, title, memo };
    let mut rows = store.journal(record).agents.remove(0).rows.into_iter();
    let result = rows.find_map(|row| match row.line {
        Line::Result(result) => Some(result.text.to_string()),
        _ => None,
    });
    let heard = heard.0.lock().clone();
    [heard, result.unwrap()]
}

#[tokio::test]
async fn what_is_written_is_the_result_of_a_call_that_is_cut_and_what_is_only_told_is_not() {
    let [told, result] = cut(&["one ", "two"], |output, text| output.write(text)).await;
    assert_eq!(told, "one two");
    assert!(result.contains("one two"), "{result}");
    let [told, result] = cut(&["one ", "two"], |output, text| output.tell(text)).await;
    assert_eq!(told, "one two");
    assert!(!result.contains("one") && !result.contains("two"), "{result}");
}

#[tokio::test]
async fn of_long_output_the_head_and_the_tail_are_kept_32_kib_each() {
    let (head, tail) = ("h".repeat(32 << 10), "t".repeat(32 << 10));
    let pieces = [&head[..1_000], &head[1_000..], "middle", &tail[..30_000], &tail[30_000..]];
    let [_, result] = cut(&pieces, |output, text| output.write(text)).await;
    assert!(result.contains(&format!("{head}\n[… 6 bytes left out …]\n{tail}")), "{} bytes", result.len());
}
