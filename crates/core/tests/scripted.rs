//! Scripted models in a live run: each word is said at its time, and a reply can wait for an
//! event (scenarios.md, section 2). The clock is the machine's; the runtime's is paused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Observer, Phase, RealClock};
use midturn_core::engine::scripted::{
    Anchor, Anchors, EndsAfter, ScriptedCall, ScriptedModels, ScriptedReply, SimulatedTools,
};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::conversation::StopReason;
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::{Micros, Span};
use parking_lot::Mutex;
use serde_json::{Value, json};

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
            EventKind::ToolFinished { tool, output, .. } => format!("{tool} gave {output}"),
            _ => return,
        };
        self.0.lock().push(format!("{} {told}", event.t.0 / 1_000));
    }

    fn live(&self, event: &LiveEvent) {
        let told = match &event.kind {
            LiveKind::TextDelta { text } => format!("text {text:?}"),
            LiveKind::ThinkingDelta { text } => format!("thinking {text:?}"),
            LiveKind::CallDelta { .. } | LiveKind::ToolOutput { .. } | LiveKind::SetupOutput { .. } => return,
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

/// C18: what nobody sees is no prompt and no part of an id, in a model's words either.
#[tokio::test(start_paused = true)]
async fn what_a_model_says_with_characters_that_cannot_be_seen_is_refused() {
    let calls = [
        ("spawn_agent", json!({"name": "x", "prompt": "\u{200b}"}), "Not spawned: the prompt is empty"),
        (
            "send_message",
            json!({"to": "worker", "text": "a", "id": "a\u{202e}b"}),
            "Not sent: an id has 1 to 128",
        ),
        ("send_message", json!({"to": "worker", "text": "a", "id": "a\nb"}), "Not sent: an id has 1 to 128"),
    ];
    let call = |(n, (name, input, _)): (usize, &(&str, Value, &str))| {
        Arc::new(ScriptedCall::new(&format!("c{n}"), name, input.clone()))
    };
    let turn =
        ScriptedReply { tools: calls.iter().enumerate().map(call).collect(), ..ScriptedReply::default() };
    let (coordinator, heard) =
        begun(Arc::new(RealClock::start()), vec![turn, ScriptedReply::says("Done.")]).await;
    coordinator.quiet().await;
    let heard = heard.0.lock().join("\n");
    for (n, (_, _, says)) in calls.iter().enumerate() {
        let line = heard.lines().find(|line| line.contains(&format!("c{n} gave"))).unwrap();
        assert!(line.contains(says), "{says}: {heard}");
    }
}

/// C17: a reply that is cut in the arguments of its only call costs a turn and not the run.
#[tokio::test(start_paused = true)]
async fn a_call_whose_arguments_are_cut_is_an_error_result_and_the_run_goes_on() {
    let call = |id: &str, text: &str| Arc::new(ScriptedCall::new(id, "send_message", json!(text)));
    let turn = ScriptedReply {
        tools: vec![
            call("cut", r#"{"to": "worker", "text": "on and o"#),
            call("wrong", "{text: 1}"),
            call("begun", ""),
        ],
        stop_reason: Some(StopReason::MaxTokens),
        ..ScriptedReply::default()
    };
    let (coordinator, heard) =
        begun(Arc::new(RealClock::start()), vec![turn, ScriptedReply::says("Done.")]).await;
    coordinator.quiet().await;
    let heard = heard.0.lock().join("\n");
    for says in [
        "cut gave [The arguments of send_message are no JSON object: they end in the middle, after 34 bytes. It did not run",
        "wrong gave [The arguments of send_message are no JSON object: key must be a string at line 1",
        "begun gave [The arguments of send_message are no JSON object: they end in the middle, after 0 bytes.",
        r#"whole "Done.""#,
    ] {
        assert!(heard.contains(says), "{says}: {heard}");
    }
}
