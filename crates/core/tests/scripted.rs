//! Scripted models in a live run: each word is said at its time, and a reply can wait for an
//! event (scenarios.md, section 2). The clock is the machine's; the runtime's is paused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Observer, Phase, RealClock};
use midturn_core::engine::scripted::{
    Anchor, Anchors, EndsAfter, ScriptedModels, ScriptedReply, SimulatedTools,
};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::{Micros, Span};
use parking_lot::Mutex;

/// What was said, with the millisecond.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn event(&self, event: &Event) {
        let told = match &event.kind {
            EventKind::ModelInterrupted { text, partial_tokens, .. } => {
                format!("cut {text:?} {partial_tokens}")
            }
            EventKind::ModelFinished { text, .. } => format!("whole {text:?}"),
            _ => return,
        };
        self.0.lock().push(format!("{} {told}", event.t.0 / 1_000));
    }

    fn live(&self, event: &LiveEvent) {
        let told = match &event.kind {
            LiveKind::TextDelta { text } => format!("text {text:?}"),
            LiveKind::ThinkingDelta { text } => format!("thinking {text:?}"),
            LiveKind::CallDelta { .. } | LiveKind::ToolOutput { .. } => return,
        };
        self.0.lock().push(format!("{} {told}", event.t.0 / 1_000));
    }
}

fn worker() -> AgentName {
    AgentName::new("worker").unwrap()
}

async fn begun(clock: Arc<dyn Clock>, script: Vec<ScriptedReply>) -> (Coordinator, Arc<Heard>) {
    let scripts: HashMap<_, Arc<[ScriptedReply]>> = HashMap::from([(worker(), script.into())]);
    let (heard, anchors) = (Arc::new(Heard::default()), Arc::new(Anchors::default()));
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()).anchored(&anchors));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let builder = Coordinator::builder(models, tools).clock(clock).observer(heard.clone()).observer(anchors);
    let coordinator = builder.start().await.unwrap();
    let spec = AgentSpec { prompt: Some("Go.".into()), ..AgentSpec::new(worker(), "scripted") };
    coordinator.spawn_agent(spec).await.unwrap();
    (coordinator, heard)
}

fn reply() -> ScriptedReply {
    ScriptedReply {
        thinking: "So then".into(),
        text: "One,\n  two. ".into(),
        takes: Span::millis(400),
        ..ScriptedReply::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_live_run_hears_each_word_at_its_time() {
    let (coordinator, heard) = begun(Arc::new(RealClock::start()), vec![reply()]).await;
    coordinator.quiet().await;
    let expected = [
        r#"100 thinking "So""#,
        r#"200 thinking " then""#,
        r#"300 text "One,""#,
        r#"400 text "\n  two.""#,
        r#"400 text " ""#,
        r#"400 whole "One,\n  two. ""#,
    ];
    // The runtime's timers are those of milliseconds: a word may be heard with its neighbour's.
    let heard = heard.0.lock().join("\n");
    assert_eq!(heard.replace("401 ", "400 "), expected.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_live_reply_that_is_cut_ends_with_the_last_word_that_was_heard() {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let (coordinator, heard) = begun(clock.clone(), vec![reply(), ScriptedReply::says("Done.")]).await;
    clock.until(Micros(350_000), Phase::Caused).await;
    coordinator.send(Message::new(Sender::User, "worker", "Stop.").urgent(true)).await.unwrap();
    coordinator.quiet().await;
    let heard = heard.0.lock();
    assert_eq!(heard[2..4], [r#"300 text "One,""#, r#"350 cut "One," 3"#], "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_live_reply_can_wait_for_an_event() {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let anchor = Anchor { agent: Some(worker()), event: "message_queued", id: None };
    let after = EndsAfter { anchor, plus: Span::millis(50), at: (1, 1) };
    let waits = ScriptedReply { ends_after: Some(after), takes: Span::ZERO, ..reply() };
    let (coordinator, heard) = begun(clock.clone(), vec![waits, ScriptedReply::says("Done.")]).await;
    clock.until(Micros(250_000), Phase::Caused).await;
    assert_eq!(heard.0.lock().len(), 0);
    coordinator.send_message("worker", "Now.", false).await.unwrap();
    coordinator.quiet().await;
    let heard = heard.0.lock();
    assert_eq!(heard[0], r#"300 thinking "So then""#, "{heard:?}");
    assert_eq!(heard[3], r#"300 whole "One,\n  two. ""#, "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn where_time_jumps_a_reply_is_heard_at_its_end() {
    let clock = Arc::new(VirtualClock::default());
    let (_coordinator, heard) = begun(clock.clone(), vec![reply()]).await;
    clock.drive().await.unwrap();
    let heard = heard.0.lock();
    assert!(heard.iter().all(|heard| heard.starts_with("400 ")), "{heard:?}");
}
