//! Bad files and good ones: what the reader says of each.

use super::*;
use crate::scenario::{Act, Claim, When};

/// A whole file around some lines of a list or map of its own.
pub(super) fn with(rest: &str) -> String {
    format!(
        "midturn: 1\nagents:\n  - {{name: lead, role: lead}}\n  - name: w\n    model:\n      - text: Hi.\n        tools:\n          - {{id: e1, name: edit}}\n{rest}"
    )
}

pub(super) fn error(text: &str) -> Error {
    match parse("bad.yaml".into(), text.as_bytes()) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error,
    }
}

pub(super) fn message(item: &str) -> String {
    with(&format!("messages:\n  - {item}\n"))
}

pub(super) fn expectation(item: &str) -> String {
    with(&format!("expect:\n  - {item}\n"))
}

#[test]
fn the_example_of_the_format_is_read_as_written() {
    let example = include_str!("../../../../scenarios/boundaries/a-correction-between-two-edits.yaml");
    let scenario = parse("example.yaml".into(), example.as_bytes()).unwrap();
    assert_eq!(scenario.agents.len(), 2);
    assert_eq!(scenario.agents[1].parent.as_ref().unwrap().as_str(), "lead");
    assert_eq!(scenario.items[0].when, When::at(midturn_core::rules::time::Micros(1_500_000)));
    assert!(matches!(scenario.items[0].act, Act::Send(_)));
    assert!(matches!(scenario.expect[3].claim, Claim::Never(_)));
}

/// A row: the file, line and column, what the error finds, what it expects.
pub(super) type Row = (String, (usize, usize), &'static str, &'static str);

pub(super) fn each_is_told(rows: Vec<Row>) {
    let wrong: Vec<String> = rows.iter().filter_map(misread).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_file_that_is_none_is_told_with_line_and_column() {
    each_is_told(vec![
        (String::new(), (1, 1), "end of the file", "midturn: 1"),
        ("- a\n".into(), (1, 1), "a list", "a map"),
        ("midturn: 2\nagents: [{name: a}]\n".into(), (1, 10), "version 2", "midturn: 1"),
        ("midturn: one\n".into(), (1, 10), "`one`", "a whole number"),
        ("name: x\n".into(), (1, 1), "no `midturn`", "`midturn`"),
        ("midturn: 1\n".into(), (1, 1), "no `agents`", "`agents`"),
        ("midturn: 1\nagents: []\n".into(), (2, 9), "no agents", "at least one"),
        ("midturn: 1\nagent: []\n".into(), (2, 1), "key `agent`", "`agents` perhaps"),
        ("midturn: 1\nmidturn: 1\n".into(), (2, 1), "`midturn` a second time", "once"),
        (
            "midturn: 1\nagents: [{name: a}]\n---\nmidturn: 1\n".into(),
            (3, 1),
            "a second document",
            "one document",
        ),
        ("midturn: 1\nname: [unclosed\n".into(), (2, 7), "a list", "a text"),
        ("midturn: 1\nname: 5\n".into(), (2, 7), "`5`", "quotes"),
        ("midturn: 1\nname: !x y\n".into(), (2, 10), "tag", "plain"),
        ("midturn: 1\nname: a: b\n".into(), (2, 8), "mapping values", "valid YAML"),
        ("midturn: 1\nagents: {a: 1}\n".into(), (2, 9), "a map", "a list"),
    ]);
}

#[test]
fn bad_agents_are_told_with_line_and_column() {
    each_is_told(vec![
        ("midturn: 1\nagents:\n  - {name: A}\n".into(), (3, 12), "`A`", "an agent's name"),
        ("midturn: 1\nagents:\n  - {name: user}\n".into(), (3, 12), "`user`", "another name"),
        ("midturn: 1\nagents:\n  - {name: a}\n  - {name: a}\n".into(), (4, 12), "second agent", "once"),
        ("midturn: 1\nagents:\n  - {nam: a}\n".into(), (3, 6), "key `nam`", "`name` perhaps"),
        ("midturn: 1\nagents:\n  - {name: a, role: leed}\n".into(), (3, 21), "`leed`", "`lead` perhaps"),
        (
            "midturn: 1\nagents:\n  - {name: a, parent: b}\n  - {name: b}\n".into(),
            (3, 23),
            "comes later",
            "before",
        ),
        ("midturn: 1\nagents:\n  - {name: a, parent: c}\n".into(), (3, 23), "agent `c`", "`a`"),
        ("midturn: 1\nagents:\n  - {name: a, prompt: Go.}\n".into(), (3, 23), "name only", "`model`"),
        (with("settings: {max_turn: 3}\n"), (9, 12), "key `max_turn`", "`max_turns` perhaps"),
        (with("settings: {max_turns: many}\n"), (9, 23), "`many`", "a whole number"),
        (with("settings: {max_parallel_tools: 0}\n"), (9, 12), "`max_parallel_tools: 0`", "1 or more"),
        (
            with("settings:\n  max_turns: 3\n  retry: {time: 1s, attempts: 0}\n"),
            (11, 21),
            "`retry.attempts: 0`",
            "1 or more",
        ),
        (
            "midturn: 1\nagents:\n  - {name: a, settings: {compact_at: 500}}\n".into(),
            (3, 26),
            "`compact_at: 500`",
            "1 to 100",
        ),
        (with("tools: real\n"), (9, 8), "without a workspace", "workspace"),
        (with("workspace: x\n"), (9, 12), "a workspace", "tools: real"),
        (with("tools: real\nworkspace: [x]\n"), (10, 12), "a list", "a folder's path or {clone: PATH}"),
        (with("tools: real\nworkspace: {clon: x}\n"), (10, 12), "a map", "a folder's path or {clone: PATH}"),
    ]);
}

/// A22: the table is the settings' own.
#[test]
fn every_setting_that_has_bounds_is_refused_beyond_them() {
    for (key, bounds) in midturn_core::rules::settings::Settings::bounds() {
        let last = key.rsplit('.').next().unwrap();
        for value in [bounds.least.checked_sub(1), bounds.most.checked_add(1)].into_iter().flatten() {
            let written =
                key.rsplit('.').fold(value.to_string(), |inner, name| format!("{{{name}: {inner}}}"));
            let error = error(&with(&format!("settings: {written}\n")));
            let column = format!("settings: {written}").find(last).unwrap() + 1;
            assert_eq!(error.position(), Some((9, column)), "{error}");
            assert!(error.to_string().ends_with(&format!("= expected {bounds}")), "{error}");
        }
    }
}

#[test]
fn bad_approvals_are_told_with_line_and_column() {
    let asks = |item: &str| with(&format!("approvals: {{mode: ask}}\nmessages:\n  - {item}\n"));
    let answer = "answer: w, tool: e1, decision";
    each_is_told(vec![
        (with("approvals: {mode: asks}\n"), (9, 19), "`asks`", "`ask` perhaps"),
        (with("approvals: {allows: [bash]}\n"), (9, 13), "key `allows`", "`allow` perhaps"),
        (with("approvals: {deny: [\"bash(\"]}\n"), (9, 20), "which is not a rule", "TOOL(PATTERN)"),
        (message(&format!("{{at: 1s, {answer}: once}}")), (10, 22), "nobody is asked", "mode: ask"),
        (asks(&format!("{{at: 1s, {answer}: yes}}")), (11, 45), "`yes`", "once"),
        (
            asks(&format!("{{at: 1s, by: lead, {answer}: once}}")),
            (11, 18),
            "an answer by `lead`",
            "only a person",
        ),
        (asks("{at: 1s, answer: w, tool: e1}"), (11, 22), "an answer to nothing", "decision"),
        (asks("{at: 1s, answer: w, tool: e2, decision: once}"), (11, 31), "call of w `e2`", "`e1`"),
        (
            asks(&format!("{{at: 1s, {answer}: once, text: Yes.}}")),
            (11, 57),
            "`text` beside `answer`",
            "denied",
        ),
        (
            asks(&format!("{{at: 1s, {answer}: once, rule: bash}}")),
            (11, 57),
            "`rule` beside `answer`",
            "session",
        ),
        (
            asks(&format!("{{at: 1s, {answer}: session, rule: ba sh}}")),
            (11, 60),
            "which is not a rule",
            "TOOL",
        ),
        (
            message("{at: 1s, from: user, to: w, text: x, decision: once}"),
            (10, 52),
            "`decision` without",
            "a message",
        ),
        (
            with(&format!(
                "approvals: {{mode: ask, attached: false}}\nmessages:\n  - {{at: 1s, {answer}: once}}\n"
            )),
            (11, 22),
            "nobody is attached",
            "attached: false",
        ),
    ]);
}

#[test]
fn somebody_is_attached_exactly_if_the_file_answers_or_says_so() {
    let answer = "messages:\n  - {at: 1s, answer: w, tool: e1, decision: once}\n";
    for (approvals, items, attached) in [
        ("", "", false),
        ("approvals: {mode: ask}\n", "", false),
        ("approvals: {mode: ask}\n", answer, true),
        ("approvals: {mode: ask, attached: true}\n", "", true),
        ("approvals: {mode: ask, attached: false}\n", "", false),
    ] {
        let scenario = parse("good.yaml".into(), with(&format!("{approvals}{items}")).as_bytes()).unwrap();
        assert_eq!(scenario.approvals.attached, attached, "{approvals}{items}");
    }
}

#[test]
fn bad_scripts_are_told_with_line_and_column() {
    each_is_told(vec![
        (
            "midturn: 1\nagents:\n  - name: a\n    model:\n      - {takes: fast}\n".into(),
            (5, 17),
            "`fast`",
            "a duration",
        ),
        ("midturn: 1\nagents:\n  - name: a\n    model:\n      - {takes: 5}\n".into(), (5, 17), "`5`", "a duration"),
        (
            "midturn: 1\nagents:\n  - name: a\n    model:\n      - {error: bad}\n".into(),
            (5, 17),
            "`bad`",
            "overloaded",
        ),
        (
            "midturn: 1\nagents:\n  - name: a\n    model:\n      - tools:\n          - {id: x, name: edit}\n      - tools:\n          - {id: x, name: edit}\n".into(),
            (8, 18),
            "second call `x`",
            "once",
        ),
        (
            "midturn: 1\nagents:\n  - name: a\n    model:\n      - tools: [{name: edit}]\n".into(),
            (5, 18),
            "no `id`",
            "`id`",
        ),
    ]);
}

#[test]
fn bad_messages_are_told_with_line_and_column() {
    each_is_told(vec![
        (message("{from: lead, to: w, text: x}"), (10, 5), "neither", "`at`"),
        (
            message("{at: 1s, after: {agent: w, tool_started: e1}, from: lead, to: w, text: x}"),
            (10, 21),
            "both",
            "one of",
        ),
        (message("{at: 1 s, from: lead, to: w, text: x}"), (10, 10), "`1 s`", "a duration"),
        (message("{at: 1s, from: leed, to: w, text: x}"), (10, 20), "agent `leed`", "`lead` perhaps"),
        (message("{at: 1s, from: lead, to: worker, text: x}"), (10, 30), "agent `worker`", "lead, w"),
        (message("{at: 1s, from: lead, to: w}"), (10, 5), "without `text`", "a message"),
        (message("{at: 1s, to: w, text: x}"), (10, 5), "without `from`", "a message"),
        (
            message("{at: 1s, from: lead, to: w, text: x, urgent: true, urgency: urgent}"),
            (10, 65),
            "both",
            "one of",
        ),
        (message("{at: 1s, from: lead, to: w, text: x, urgent: yes}"), (10, 50), "`yes`", "true or false"),
        (message("{at: 1s, from: lead, to: w, text: x, urgency: soon}"), (10, 51), "`soon`", "follow_up"),
        (message("{at: 1s, from: lead, to: w, text: x, supersedes: y}"), (10, 54), "message `y`", "m1"),
    ]);
}

#[test]
fn bad_actions_and_anchors_are_told_with_line_and_column() {
    each_is_told(vec![
        (message("{at: 1s, withdraw: y}"), (10, 24), "message `y`", "none"),
        (message("{at: 1s, stop: w, text: x}"), (10, 29), "`text` beside `stop`", "only"),
        (message("{at: 1s, stop: w, close: w}"), (10, 30), "a second action", "one action"),
        (message("{at: 1s, supersede: w}"), (10, 25), "without `text`", "text"),
        (message("{at: 1s, stop: x}"), (10, 20), "agent `x`", "lead, w"),
        (
            message("{at: 1s, by: lead, from: lead, to: w, text: x}"),
            (10, 18),
            "without an action",
            "a message",
        ),
        (
            message("{id: a, at: 1s, stop: w}\n  - {id: a, at: 2s, resume: w}"),
            (11, 10),
            "a second `a`",
            "once",
        ),
        (message("{id: any, at: 1s, stop: w}"), (10, 10), "`any`", "an id"),
        (
            message("{after: {agent: w, tool_start: e1}, stop: w}"),
            (10, 24),
            "key `tool_start`",
            "`tool_started` perhaps",
        ),
        (message("{after: {agent: w}, stop: w}"), (10, 13), "no event type", "{agent, EVENT"),
        (
            message("{after: {agent: w, tool_started: e1, tool_finished: e1}, stop: w}"),
            (10, 57),
            "a second event",
            "one event",
        ),
        (message("{after: {agent: w, tool_started: e9}, stop: w}"), (10, 38), "call of w `e9`", "`e1`"),
        (message("{after: {agent: x, tool_started: any}, stop: w}"), (10, 21), "agent `x`", "lead, w"),
        (message("{after: {agent: w, message_queued: z}, stop: w}"), (10, 40), "message `z`", "none"),
        (message("{after: {agent: w, agent_closed: z}, stop: w}"), (10, 38), "`z`", "`any`"),
        (message("{after: {agent: w, run_started: [1]}, stop: w}"), (10, 37), "a list", "an id, or `any`"),
        (
            message("{after: {agent: w, text_delta: any}, stop: w}"),
            (10, 24),
            "`text_delta`, which is live only",
            "recorded",
        ),
        (message("{after: {agent: w, tool_started: e1, plus: 5x}, stop: w}"), (10, 48), "`5x`", "a duration"),
    ]);
}

#[test]
fn bad_expectations_are_told_with_line_and_column() {
    each_is_told(vec![
        (expectation("{outcome: finished}"), (10, 5), "no kind", "exactly one"),
        (expectation("{agent: w, message: x}"), (10, 25), "`message` beside `agent`", "exactly one"),
        (expectation("{agent: w}"), (10, 5), "checks nothing", "outcome"),
        (expectation("{agent: w, outcome: done}"), (10, 25), "`done`", "finished"),
        (expectation("{agent: w, tools: {e2: completed}}"), (10, 24), "call of w `e2`", "`e1`"),
        (expectation("{agent: w, tools: {e1: complete}}"), (10, 28), "`complete`", "`completed` perhaps"),
        (expectation("{agent: w, queued: true, turns: 1}"), (10, 24), "`queued` beside `agent`", "`message`"),
        (expectation("{message: x, queued: true}"), (10, 15), "message `x`", "none"),
        (expectation("{prompt: {agent: w, call: 1}}"), (10, 14), "checks nothing", "last_message_contains"),
        (
            expectation("{never: {agent: w, event: tool_begun}}"),
            (10, 31),
            "event type `tool_begun`",
            "tool_started",
        ),
        (expectation("{never: {agent: w, event: text_delta}}"), (10, 31), "live only", "recorded"),
        (
            expectation("{never: {agent: w, event: tool_started, tol: e1}}"),
            (10, 45),
            "`tol`",
            "`tool` perhaps",
        ),
        (
            expectation("{never: {agent: w, event: tool_started, tool: e7}}"),
            (10, 51),
            "call of w `e7`",
            "`e1`",
        ),
        (expectation("{event: {agent: w}}"), (10, 13), "no `event`", "{agent"),
        (
            expectation("{prompt: {agent: w, last_message_contains: {a: b}}}"),
            (10, 48),
            "a map",
            "a text or a list of texts",
        ),
        (
            expectation("{prompt: {agent: w, last_message_contains: [a, 1]}}"),
            (10, 52),
            "`1`, which is a number",
            "put it in quotes",
        ),
        (
            expectation("{file: {agent: w, path: a, absent: {a: b}}}"),
            (10, 40),
            "a map",
            "true, a text or a list of texts",
        ),
        (expectation("{file: {agent: w, path: a, contains: b}}"), (10, 12), "simulated", "tools: real"),
    ]);
}

#[test]
fn what_yaml_has_and_the_format_has_not_is_told_with_line_and_column() {
    each_is_told(vec![
        ("midturn: 1\nname: &a x\ndescription: *a\n".into(), (3, 14), "an alias", "refused"),
        ("midturn: 1\n<<: {name: x}\n".into(), (2, 1), "a merge key", "refused"),
    ]);
}

/// What is wrong with the error of a row, if anything.
fn misread((text, position, found, expected): &Row) -> Option<String> {
    let error = error(text);
    let shown = error.to_string();
    let (head, tail) = shown.split_once("= expected ")?;
    let at = format!("bad.yaml:{}:{}: found ", position.0, position.1);
    let right = error.position() == Some(*position)
        && shown.starts_with(&at)
        && head.contains(found)
        && head.contains('^')
        && tail.contains(expected);
    (!right).then(|| format!("{shown}\nshould be at {position:?}, find {found} and expect {expected}"))
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let mut billion = String::from("midturn: 1\nname: x\na: &a [x, x]\n");
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c")] {
        billion.push_str(&format!("{name}: &{name} [*{of}, *{of}, *{of}]\n"));
    }
    assert!(error(&billion).position().is_some());
    let deep = format!(
        "midturn: 1\nagents:\n  - name: a\n    model: [{{tools: [{{id: x, name: y, input: {}1{}}}]}}]\n",
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let shown = error(&deep).to_string();
    assert!(shown.contains("bad.yaml:4:"), "{shown}");
    let blocks: String = (0..5_000).map(|n| format!("{}- \n", " ".repeat(n))).collect();
    assert!(error(&format!("midturn: 1\nagents:\n{blocks}")).position().is_some());
}

#[test]
fn four_mebibytes_are_read_and_one_byte_more_is_not() {
    let mut text = with("");
    text.push('#');
    text.push_str(&"x".repeat(MAX_BYTES - text.len()));
    assert!(parse("big.yaml".into(), text.as_bytes()).is_ok());
    text.push('x');
    let shown = error(&text).to_string();
    assert!(shown.contains("bad.yaml:9:") && shown.contains("more than 4 MiB"), "{shown}");
    assert!(shown.len() < 1_000, "the line is shown in part only");
}

#[test]
fn bytes_that_are_no_utf8_are_shown_where_they_are() {
    let mut bytes = b"midturn: 1\nname: caf".to_vec();
    bytes.extend([0xe9, b'\n']);
    let error = parse("latin1.yaml".into(), &bytes).unwrap_err();
    assert_eq!(error.position(), Some((2, 10)));
    assert!(error.to_string().contains("0xe9"), "{error}");
}

#[test]
fn messages_without_an_id_are_counted_around_the_ids_in_use() {
    let text = with(
        "messages:\n  - {at: 1s, from: lead, to: w, text: x}\n  - {id: m2, at: 1s, from: lead, to: w, text: y}\n  \
         - {at: 1s, stop: w}\n  - {at: 1s, from: lead, to: w, text: z}\n",
    );
    let scenario = parse("ids.yaml".into(), text.as_bytes()).unwrap();
    let ids: Vec<_> = scenario.items.iter().map(|item| item.id.as_ref().map(|id| id.as_str())).collect();
    assert_eq!(ids, [Some("m1"), Some("m2"), None, Some("m3")]);
}

#[test]
fn the_schema_names_every_key_of_the_format() {
    let schema = schema().to_string();
    for key in [
        "midturn",
        "abort_takes",
        "last_message_contains",
        "expires_after",
        "max_parallel_tools",
        "retry_after",
    ] {
        assert!(schema.contains(&format!("\"{key}\"")), "{key}");
    }
    assert!(schema.contains("\"additionalProperties\":false"));
    assert!(!schema.contains("\"Raw"), "{schema}");
}
