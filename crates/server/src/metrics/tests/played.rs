//! Figures of a session that the real engine plays on virtual time.

use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Phase};
use midturn_core::engine::scripted::{ScriptedCall, ScriptedModels, ScriptedReply, Scripts, SimulatedTools};
use midturn_core::engine::{AgentSpec, Coordinator, Message, VirtualClock};
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::event::Scope;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::{Micros, Span};
use serde_json::json;

use super::{Metrics, figure};

const SECOND: u64 = 1_000_000;

fn call(id: &str) -> Arc<ScriptedCall> {
    Arc::new(ScriptedCall { takes: Span::secs(1), ..ScriptedCall::new(id, "edit", json!({})) })
}

/// Two calls of a second each, and after the mail a reply of ten words in ten seconds.
fn script() -> Arc<[ScriptedReply]> {
    let usage = Usage { input: 50, output: 5, cached: 20 };
    let words = "one two three four five six seven eight nine ten";
    Arc::new([
        ScriptedReply { tools: vec![call("e1"), call("e2")], usage, ..ScriptedReply::default() },
        ScriptedReply { takes: Span::secs(10), ..ScriptedReply::says(words) },
    ])
}

/// Mail at 0.5 s, a stop in the middle of the reply, and what was still to be said 10 s later.
async fn correct_and_stop(coordinator: Coordinator, clock: Arc<VirtualClock>) {
    clock.until(Micros(SECOND / 2), Phase::Arrival(0)).await;
    coordinator.send(Message::new(Sender::User, "w", "Use the new name.")).await.unwrap();
    clock.until(Micros(6 * SECOND), Phase::Arrival(1)).await;
    coordinator.stop("w", Sender::User, Scope::Agent).await.unwrap();
    clock.until(Micros(16 * SECOND), Phase::Arrival(2)).await;
    coordinator.send(Message::new(Sender::User, "w", "Go on.")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_played_session_gives_its_figures() {
    let metrics = Metrics::default();
    let clock = Arc::new(VirtualClock::default());
    let scripts: Scripts = [(AgentName::new("w").unwrap(), script())].into();
    let models = Arc::new(ScriptedModels::new(clock.clone(), scripts.clone()));
    let tools = Arc::new(SimulatedTools::new(clock.clone(), scripts));
    let builder = Coordinator::builder(models, tools).clock(clock.clone()).observer(metrics.for_session());
    let coordinator = builder.start().await.unwrap();
    let mut worker = AgentSpec::new(AgentName::new("w").unwrap(), "scripted");
    worker.prompt = Some("Rename the call sites.".into());
    coordinator.spawn_agent(worker).await.unwrap();
    let corrections = tokio::spawn(correct_and_stop(coordinator.clone(), clock.clone()));
    clock.drive().await.unwrap();
    corrections.await.unwrap();

    for (path, expected) in [
        ("/calls/ended/completed", json!(1)),
        ("/calls/ended/skipped", json!(1)),
        ("/calls/skipped_by_mail", json!(1)),
        ("/messages/accepted", json!(2)),
        ("/messages/injected", json!(2)),
        // The reply after the first was stopped; the script ends before there is another.
        ("/messages/answered", json!(0)),
        ("/messages/wait_seconds_by_point/C/count", json!(1)),
        ("/messages/wait_seconds_by_point/start/count", json!(1)),
        ("/runs/started", json!(2)),
        ("/runs/ended/stopped", json!(1)),
        ("/runs/ended/failed", json!(1)),
        ("/stops/requested", json!(1)),
        ("/stops/stop_rate", json!(0.5)),
        ("/stops/follow_up_rate", json!(1.0)),
        ("/stops/cut_seconds/count", json!(1)),
        ("/stops/end_seconds/count", json!(1)),
        ("/stops/partial_tokens/count", json!(1)),
        ("/model/calls", json!(3)),
        ("/model/input_tokens", json!(50)),
        ("/model/cached_tokens", json!(20)),
        ("/agents/live", json!(1)),
        ("/agents/working", json!(0)),
    ] {
        assert_eq!(figure(&metrics, path), expected, "{path} in {:#?}", metrics.summary());
    }
    let page = metrics.prometheus();
    for line in [
        // Accepted at 0.5 s, injected when the call that ran had ended, at 1 s.
        "midturn_message_wait_seconds_sum{urgency=\"next_boundary\",point=\"C\"} 0.5\n",
        // Five seconds of ten, five words of ten.
        "midturn_partial_reply_tokens_sum{reason=\"user_cancelled\"} 5.0\n",
    ] {
        assert!(page.contains(line), "no {line}in\n{page}");
    }
    assert!(figure(&metrics, "/store/commit_seconds/count").as_u64().unwrap() > 10);
}
