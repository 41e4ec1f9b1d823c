//! What may be said of events, and what never holds.

use super::super::parse;
use super::super::tests::{each_is_told, error, expectation, message};
use super::*;

#[test]
fn every_recorded_event_can_be_followed_and_no_other() {
    for event in type_names() {
        let agent = if is_of_session(event) { "" } else { "agent: w, " };
        let text = message(&format!("{{after: {{{agent}{event}: any}}, stop: w}}"));
        assert!(parse("good.yaml".into(), text.as_bytes()).is_ok(), "{text}");
    }
    assert!(type_names().count() >= 22);
    for live in ["text_delta", "thinking_delta", "call_delta", "tool_output", "setup_output"] {
        let shown = error(&message(&format!("{{after: {{agent: w, {live}: any}}, stop: w}}"))).to_string();
        assert!(shown.contains("live only"), "{shown}");
    }
}

/// A21: in `never` it would hold for ever.
#[test]
fn a_misspelt_field_of_any_event_is_told_and_so_is_a_value_that_it_never_has() {
    for event in type_names() {
        let shown = error(&expectation(&format!("{{never: {{event: {event}, colour: red}}}}"))).to_string();
        assert!(shown.contains(&format!("unknown field of {event} `colour`")), "{shown}");
    }
    let never = |fields: &str| expectation(&format!("{{never: {{event: {fields}}}}}"));
    each_is_told(vec![
        (never("tool_finished, status: complete"), (10, 44), "a `status`", "`completed` perhaps"),
        (never("tool_finished, is_error: yes"), (10, 46), "a `is_error`", "true or false"),
        (never("model_finished, usage: {inptu: 3}"), (10, 44), "a `usage`", "`input` perhaps"),
        (never("model_finished, thinking: [complete]"), (10, 47), "a `thinking`", "`completed` perhaps"),
        (never("model_finished, purpose: summery"), (10, 46), "a `purpose`", "`summary`"),
        (never("model_started, purpose: turn"), (10, 45), "a `purpose`", "`summary`"),
        (
            never("model_interrupted, reason: user_canceled"),
            (10, 48),
            "a `reason`",
            "`user_cancelled` perhaps",
        ),
        (never("model_retry, wait: soon"), (10, 40), "a `wait`", "a duration"),
        (never("model_started, call: one"), (10, 42), "a `call`", "a whole number"),
        (never("message_injected, point: E"), (10, 46), "a `point`", "stream"),
        (never("message_returned, reason: expire"), (10, 47), "a `reason`", "`expired` perhaps"),
        (
            never("message_refused, reason: mailbox_ful"),
            (10, 46),
            "reason `mailbox_ful`",
            "`mailbox_full` perhaps",
        ),
        (never("message_injected, messages: [x]"), (10, 49), "message `x`", "none"),
        (never("message_queued, from: leed"), (10, 43), "agent `leed`", "`lead` perhaps"),
        (never("tool_started, tool: e9"), (10, 41), "call `e9`", "`e1`"),
        (never("run_finished, outcome: ended"), (10, 44), "a `outcome`", "finished"),
        (never("stop_requested, reason: closed"), (10, 45), "a `reason`", "`close` perhaps"),
        (never("run_started, t: late"), (10, 37), "a `t`", "a number or"),
        (never("run_started, type: run_started"), (10, 34), "field of run_started `type`", "trigger"),
    ]);
}
