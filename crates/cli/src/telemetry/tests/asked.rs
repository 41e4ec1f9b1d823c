//! What a person is asked, and a compaction: events of the run, without their texts.

use axum::http::StatusCode;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::view::View;
use serde_json::json;

use super::collector::Collector;
use super::{event, telemetry};

#[test]
fn requests_and_compactions_are_events_of_the_run_and_tell_no_text_unasked() {
    for (more, told) in [(vec![], false), (vec![(super::super::genai::CAPTURE, "true")], true)] {
        let collector = Collector::start(StatusCode::OK);
        let telemetry = telemetry(&collector, &more);
        let observer = telemetry.observer(&SessionId::new("s1"), View::default());
        let at = |kind: &str, more: serde_json::Value| {
            let mut fields = json!({"t": 1.0, "agent": "w", "run": 1, "turn": 1, "type": kind});
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fields
        };
        let sizes = json!({"before": 9, "after": 2});
        let usage = json!({"input": 1, "output": 1, "cached": 0});
        for fields in [
            at("run_started", json!({"trigger": "prompt"})),
            at(
                "approval_requested",
                json!({"tool": "c1", "name": "bash", "input": {"command": "zebra"}, "always": "zebra"}),
            ),
            at(
                "approval_resolved",
                json!({"tool": "c1", "decision": "denied", "by": "user", "reason": "zebra"}),
            ),
            at("compacted", json!({"messages": sizes, "tokens": sizes})),
            at("run_finished", json!({"outcome": "finished", "turns": 1, "usage": usage})),
        ] {
            observer.event(&event(fields));
        }
        telemetry.shutdown(false);
        let spans = collector.spans();
        let of = |name: &str, key: &str| {
            let (_, attributes) = spans[0].events.iter().find(|(what, _)| what == name).unwrap();
            attributes[key].clone()
        };
        assert_eq!(of("midturn.approval.requested", "gen_ai.tool.name"), "bash");
        assert_eq!(of("midturn.approval.resolved", "midturn.approval.decision"), "denied");
        assert_eq!(of("midturn.compacted", "midturn.tokens.after"), "2");
        assert_eq!(format!("{:?}", spans[0].events).contains("zebra"), told);
    }
}
