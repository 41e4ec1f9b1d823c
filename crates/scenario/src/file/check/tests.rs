//! What is refused about ends: of processes, and of scripted work.

use super::super::parse;
use super::super::tests::{each_is_told, message, with};

#[test]
fn bad_ends_of_processes_and_raises_are_told_with_line_and_column() {
    let real = |item: &str| with(&format!("tools: real\nworkspace: x\nmessages:\n  - {item}\n"));
    each_is_told(vec![
        (real("{at: 1s, crash: 2s}"), (12, 21), "`crash` with `tools: real`", "simulated"),
        (real("{at: 1s, shutdown: 2s}"), (12, 24), "`shutdown` with `tools: real`", "simulated"),
        (message("{at: 1s, crash: soon}"), (10, 21), "`soon`", "a duration"),
        (message("{at: 1s, crash: 2s, by: lead}"), (10, 29), "`by` beside `crash`", "no `by`"),
        (message("{at: 1s, crash: 2s, shutdown: 1s}"), (10, 35), "a second action, `shutdown`", "one action"),
        (message("{at: 1s, raise: w}"), (10, 21), "a raise of nothing", "`limits`"),
        (message("{at: 1s, raise: w, limits: {}}"), (10, 21), "a raise of nothing", "max_turns"),
        (
            message("{at: 1s, raise: w, limits: {max_turn: 3}}"),
            (10, 33),
            "key `max_turn`",
            "`max_turns` perhaps",
        ),
        (message("{at: 1s, raise: x, limits: {max_turns: 3}}"), (10, 21), "agent `x`", "lead, w"),
        (
            message("{at: 1s, by: lead, raise: w, limits: {max_turns: 3}}"),
            (10, 18),
            "a raise by `lead`",
            "a person",
        ),
        (
            message("{at: 1s, stop: w, limits: {max_turns: 3}}"),
            (10, 31),
            "`limits` beside `stop`",
            "with raise",
        ),
        (message("{at: 1s, resume: al}"), (10, 22), "agent `al`", "lead, w"),
        (
            message("{at: 1s, from: lead, to: w, text: x, if_queued: true}"),
            (10, 53),
            "`if_queued` without `supersedes`",
            "`supersedes: MESSAGE`",
        ),
    ]);
    for item in ["{at: 1s, raise: session, limits: {max_cost: 2.50}}", "{at: 1s, resume: all}"] {
        assert!(parse("good.yaml".into(), message(item).as_bytes()).is_ok(), "{item}");
    }
}

#[test]
fn bad_crashes_upon_an_event_are_told_with_line_and_column() {
    each_is_told(vec![
        (
            message("{upon: {agent: w, tool_started: e1}, stop: w}"),
            (10, 12),
            "`upon` beside `stop`",
            "`upon` with crash",
        ),
        (
            message("{upon: {agent: w, tool_started: e1}, from: lead, to: w, text: x}"),
            (10, 12),
            "`upon` without an action",
            "a message",
        ),
        (
            message("{at: 1s, upon: {agent: w, tool_started: e1}, crash: 1s}"),
            (10, 20),
            "both `at` and `upon`",
            "one of",
        ),
        (
            message("{after: {agent: w, tool_started: e1}, upon: {agent: w, tool_started: e1}, crash: 1s}"),
            (10, 49),
            "both `after` and `upon`",
            "one of",
        ),
        (
            message("{upon: {agent: w, tool_started: e1, plus: 1s}, crash: 1s}"),
            (10, 12),
            "`plus` in `upon`",
            "the event alone",
        ),
        (message("{upon: {agent: w, tool_started: e9}, crash: 1s}"), (10, 37), "call of w `e9`", "`e1`"),
    ]);
}

#[test]
fn bad_ends_of_scripted_work_are_told_with_line_and_column() {
    let reply = |keys: &str| format!("midturn: 1\nagents:\n  - name: w\n    model:\n      - {{{keys}}}\n");
    let after = "ends_after: {agent: w, model_started: 1}";
    each_is_told(vec![
        (reply(&format!("takes: 1s, {after}")), (5, 33), "both `takes` and `ends_after`", "one of"),
        (reply("ends_after: {agent: w}"), (5, 22), "no event type", "{agent, EVENT"),
        (reply("ends_after: {model_started: 1}"), (5, 22), "no `agent`", "{agent, EVENT"),
        (reply("ends_after: {agent: w, tool_finished: x}"), (5, 48), "call of w `x`", "none here"),
        (reply("ends_after: {agent: w, run_finished: last}"), (5, 47), "`last`", "a number"),
        (
            format!(
                "{}tools: real\nworkspace: x\n",
                reply(&format!("tools: [{{id: x, name: edit, {after}}}]"))
            ),
            (5, 50),
            "`ends_after` with `tools: real`",
            "simulated",
        ),
    ]);
}
