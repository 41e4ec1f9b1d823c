//! What holds of a replay, and what a failure says.

use crate::replay::check_text;

/// A run with an edit, a skipped edit, a failed turn's worth of mail and a name that only waits.
const BASE: &str = r#"
midturn: 1
agents:
  - {name: lead, role: lead}
  - {name: peer, parent: lead}
  - name: worker
    parent: lead
    prompt: Two edits.
    model:
      - {text: Both., takes: 1s, tools: [{id: e1, name: edit, takes: 1s}, {id: e2, name: edit, takes: 1s}]}
      - {error: invalid_request, takes: 1s}
messages:
  - {id: fix, at: 1.5s, from: lead, to: worker, text: Use load.}
  - {id: kept, at: 1s, from: user, to: lead, text: Hello.}
  - {id: no, at: 1s, from: peer, to: worker, urgent: true, text: Now.}
  - {id: old, at: 1s, from: user, to: peer, expires_after: 1s, text: Hello.}
  - {id: never, after: {agent: worker, run_finished: 2}, from: user, to: worker, text: x}
expect:
  - "#;

fn told(expectation: &str) -> String {
    let failures = check_text("base.yaml", &format!("{}{expectation}\n", BASE.trim_start())).unwrap();
    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn what_is_true_of_a_replay_holds() {
    for expectation in [
        "{agent: worker, outcome: failed, error: invalid_request, model_calls: 2, turns: 2, ends_at: 3s}",
        "{agent: worker, run: 1, tools: {e1: completed, e2: skipped}}",
        "{agent: lead, outcome: waiting}",
        "{message: fix, injected: {point: C, run: 1, turn: 1, at: 2s}}",
        "{message: fix, injected: {}, queued: false}",
        "{message: kept, queued: true}",
        "{message: no, refused: urgent_not_allowed}",
        "{message: old, returned: expired}",
        "{prompt: {agent: worker, call: 2, messages: 3, last_message_contains: [\"[Message from lead: Use load.]\"]}}",
        "{prompt: {agent: worker, last_message_contains: Skipped}}",
        "{never: {agent: worker, event: tool_started, tool: e2}}",
        "{event: {agent: worker, event: tool_started, tool: e1, batch: 1, t: 1, input: {}}}",
        "{event: {agent: worker, event: model_finished, tools: [{id: e1}, {id: e2, name: edit}]}}",
        "{event: {event: session_started, virtual_time: true, session: s1}}",
    ] {
        assert_eq!(told(expectation), "", "{expectation}");
    }
}

/// Each row: an expectation that doesn't hold, what is said to be expected, what happened.
#[test]
fn a_failure_says_what_was_expected_and_what_happened() {
    for (expectation, expected, happened) in [
        ("{agent: worker, outcome: finished}", "worker run 1: outcome finished", "failed (invalid_request"),
        ("{agent: worker, outcome: waiting}", "outcome waiting", "failed"),
        ("{agent: worker, error: overloaded}", "an error with \"overloaded\"", "error \"invalid_request"),
        ("{agent: worker, ends_at: 2s}", "ends at 2.0 s", "at 3.0 s"),
        ("{agent: worker, model_calls: 1}", "1 model calls", "2 model calls"),
        ("{agent: worker, turns: 3}", "3 turns", "2 turns"),
        ("{agent: worker, run: 2, outcome: finished}", "run 2 of worker", "there was none"),
        ("{agent: lead, outcome: finished}", "a run of lead", "there was none"),
        ("{agent: peer, outcome: waiting}", "a run of peer", "there was none"),
        ("{agent: worker, tools: {e1: skipped}}", "worker: call e1 skipped", "completed at 2.0 s"),
        (
            "{message: fix, injected: {point: D}}",
            "fix to worker: injected at D",
            "injected at C, run 1, turn 1, 2.0 s",
        ),
        ("{message: fix, injected: {at: 3s}}", "injected, 3.0 s", "injected at C"),
        ("{message: fix, queued: true}", "still queued at the end", "injected at C"),
        ("{message: fix, to: peer, queued: true}", "message fix to peer", "it was never sent"),
        ("{message: kept, returned: closed}", "returned: closed", "it is still queued"),
        ("{message: no, injected: {}}", "injected", "refused: urgent_not_allowed"),
        ("{message: old, refused: empty}", "refused: empty", "returned: expired"),
        ("{message: never, queued: true}", "message never", "it was never sent"),
        ("{prompt: {agent: worker, call: 2, messages: 2}}", "worker call 2: 2 messages", "3 messages"),
        (
            "{prompt: {agent: worker, call: 1, last_message_contains: load}}",
            "a last message with \"load\"",
            "Two edits.",
        ),
        ("{prompt: {agent: worker, call: 9, messages: 2}}", "model call 9 of worker", "there was none"),
        (
            "{never: {agent: worker, event: tool_started}}",
            "never tool_started of worker",
            "tool_started e1 edit",
        ),
        (
            "{event: {agent: worker, event: tool_started, tool: e2}}",
            "with tool: \"e2\"",
            "the nearest differs in tool",
        ),
        ("{event: {agent: peer, event: tool_started}}", "tool_started of peer", "no tool_started at all"),
    ] {
        let told = told(expectation);
        let (head, tail) = told.split_once("\n    happened: ").expect(expectation);
        assert!(head.starts_with("  base.yaml:18\n    expected: ") && head.contains(expected), "{told}");
        assert!(tail.lines().next().unwrap().contains(happened), "{told}");
    }
}

#[test]
fn a_failure_shows_the_timeline_around_it() {
    let told = told("{agent: worker, tools: {e1: skipped}}");
    let marked: Vec<&str> = told.lines().filter(|line| line.starts_with("    > ")).collect();
    assert_eq!(marked.len(), 1, "{told}");
    assert!(marked[0].contains("tool_finished e1 edit"), "{told}");
    assert!(told.contains("message_queued fix from lead"), "{told}");
}

#[test]
fn an_instant_that_never_ends_fails_the_scenario() {
    let calls: Vec<String> = (0..10_050).map(|n| format!("{{id: c{n}, name: edit}}")).collect();
    let text = format!(
        "midturn: 1\nagents:\n  - name: a\n    prompt: Go.\n    model:\n      - tools: [{}]\n      - text: Done.\n",
        calls.join(", ")
    );
    let failures = check_text("loop.yaml", &text).unwrap();
    assert!(failures.iter().any(|failure| failure.happened.contains("10000 rounds")), "{failures:?}");
}
