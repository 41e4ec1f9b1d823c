//! What seldom happens: sessions that can't be exported, orders that hang on a microsecond,
//! texts that look like something else.

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::record::Line;
use midturn_core::rules::time::Micros;
use midturn_scenario::export::{ExportError, scenario as export};
use midturn_scenario::scenario::{Act, Scenario};
use midturn_scenario::{check_text, file};
use serde_json::json;

use crate::recorded::{Recorded, played, played_slowly};

/// Two calls, and a correction at this time.
fn two_calls(at: &str) -> Recorded {
    let text = format!(
        "midturn: 1\nagents:\n  - {{name: lead, role: lead}}\n  - name: worker\n    prompt: Go.\n    model:\n      \
         - takes: 1s\n        tools: [{{id: a, name: edit, takes: 1s, result: done}}, {{id: b, name: edit, takes: 1s}}]\n      \
         - text: Done.\nmessages:\n  - {{id: fix, at: {at}, from: lead, to: worker, text: Wait.}}\n"
    );
    let scenario = file::parse("two.yaml".into(), text.as_bytes()).unwrap();
    played_slowly(&scenario, Vec::new()).unwrap()
}

fn position(session: &Recorded, wanted: impl Fn(&EventKind) -> bool) -> usize {
    session.events.iter().position(|event| wanted(&event.kind)).unwrap()
}

fn starts(kind: &EventKind, call: &str) -> bool {
    matches!(kind, EventKind::ToolStarted { tool, .. } if tool.as_str() == call)
}

fn ends(kind: &EventKind, call: &str) -> bool {
    matches!(kind, EventKind::ToolFinished { tool, .. } if tool.as_str() == call)
}

/// The message is told of at another place of the session, and at another time.
fn moved(mut session: Recorded, to: usize, micros: u64) -> Recorded {
    let from = position(&session, |kind| matches!(kind, EventKind::MessageQueued { .. }));
    let event = session.events.remove(from);
    session.events.insert(to, Event { t: Micros(micros), ..event });
    for (seq, event) in (1..).zip(&mut session.events) {
        event.seq = seq;
    }
    session
}

#[test]
fn what_was_seen_just_after_an_end_is_there_before_it_and_the_end_waits_for_it() {
    let session = two_calls("1500ms");
    let after_a = position(&session, |kind| ends(kind, "a"));
    let session = moved(session, after_a, 2_000_800);
    let text = export(&session.journal, &session.events).unwrap();
    assert!(text.contains("ends_after:\n        agent: worker\n        message_queued: fix"), "{text}");
    assert!(text.contains("b: skipped") && text.contains("point: C"), "{text}");
    assert!(check_text("-", &text).unwrap().is_empty(), "{text}");
}

#[test]
fn what_was_not_seen_at_a_look_comes_behind_it() {
    let session = two_calls("2500ms");
    let before_b = position(&session, |kind| starts(kind, "b"));
    let session = moved(session, before_b, 2_000_000);
    let text = export(&session.journal, &session.events).unwrap();
    assert!(text.contains("tool_finished: a\n  from: lead"), "{text}");
    assert!(text.contains("b: completed") && text.contains("point: D"), "{text}");
    assert!(check_text("-", &text).unwrap().is_empty(), "{text}");
}

#[test]
fn a_session_in_which_somebody_works_is_not_finished() {
    let mut session = two_calls("1500ms");
    let end = position(&session, |kind| matches!(kind, EventKind::RunFinished { .. }));
    session.events.truncate(end);
    let error = export(&session.journal, &session.events).unwrap_err();
    assert!(matches!(error, ExportError::Unfinished { run: 1, .. }), "{error}");
    assert!(error.to_string().contains("worker is in run 1"), "{error}");
}

#[test]
fn a_record_that_lacks_something_is_refused_by_name() {
    let mut gap = two_calls("1500ms");
    gap.events.remove(6);
    let mut rows = two_calls("1500ms");
    rows.journal.agents.iter_mut().for_each(|agent| agent.rows.clear());
    for (session, named) in [(gap, "there is no event 7"), (rows, "no record of the reply")] {
        let error = export(&session.journal, &session.events).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn messages_of_models_keep_the_numbers_they_were_given_among_others() {
    let send = json!({"id": "s", "name": "send_message", "input": {"to": "worker", "text": "Hi."}});
    let ask = json!({"id": "r", "name": "receipts", "input": {"ids": ["auto-1"]}});
    let agents = json!([
        {"name": "lead", "role": "lead", "prompt": "Go.", "model": [{"tools": [send, ask]}, {"text": "Told."}]},
        {"name": "worker"}
    ]);
    let mail = |id: &str| json!([{"id": id, "at": "1s", "from": "user", "to": "worker", "text": "Hello."}]);
    for (id, named) in [("auto-7", true), ("own", false)] {
        let all = json!({"midturn": 1, "agents": agents, "messages": mail(id)});
        let scenario = file::parse("ids.yaml".into(), all.to_string().as_bytes()).unwrap();
        let session = played(&scenario).unwrap();
        let text = export(&session.journal, &session.events).unwrap();
        assert_eq!(text.contains("id: auto-1\n"), named, "{text}");
        assert!(check_text("-", &text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn results_that_would_make_the_file_too_long_are_shortened() {
    let long = "0123456789".repeat(100_000);
    let tools: Vec<_> =
        (0..6).map(|n| json!({"id": format!("r{n}"), "name": "read", "result": long})).collect();
    let model = json!([{"tools": tools[..3]}, {"tools": tools[3..]}, {"text": "Done."}]);
    let small = json!({"midturn": 1, "agents": [{"name": "worker", "prompt": "Go.", "model": model}]});
    // The file itself would be too long to be read, so its results are put in afterwards.
    let short = small.to_string().replace(&long, "short");
    let scenario = file::parse("long.yaml".into(), short.as_bytes()).unwrap();
    let mut session = played(&scenario).unwrap();
    for row in &mut session.journal.agents[0].rows {
        if let Line::Result(result) = &mut row.line {
            result.text = long.as_str().into();
        }
    }
    let text = export(&session.journal, &session.events).unwrap();
    assert!(text.len() <= file::MAX_BYTES && text.contains("more bytes are not in this export"));
    assert!(check_text("-", &text).unwrap().is_empty());
}

/// Texts that a careless writer of YAML would spoil.
const STRANGE: [&str; 24] = [
    "it's \"quoted\" and \\ back",
    "two\nlines",
    "two\r\nwindows lines\r\n",
    "ends in newlines\n\n\n",
    "\n\nbegins with them",
    "  begins with spaces",
    "   indented\n less\n      more\n",
    "\ttab\tand trailing space ",
    "- a list?",
    "key: value",
    "# no comment",
    "a # b",
    "{flow: [map]}",
    "[1, 2]",
    "true",
    "null",
    "~",
    "1.5e3",
    "0x1f",
    "*alias & &anchor !tag %directive @at `tick",
    "--- \n...\n",
    "emoji \u{1f600} and \u{fe0f}, bom \u{feff}, next line \u{85}, separators \u{2028}\u{2029}",
    "bell \u{7}, escape \u{1b}[31m, nul \u{0}, delete \u{7f}, high \u{9f}, last \u{ffff}",
    "one very long line that a careless writer would fold somewhere between its many words because it has more than eighty characters: and a colon",
];

fn strange_scenario(text: &str) -> Scenario {
    let tool = json!({"id": "r", "name": "read", "input": {"path": text, "n": 1.5, "deep": [{"x": text}]}, "result": text});
    let failed = json!({"id": "f", "name": "bash", "takes": "1s", "error": text});
    let cut = json!({"id": "c", "name": "bash", "takes": "9s", "output": [[0, text]]});
    let model = json!([
        {"text": text, "thinking": text, "tools": [tool, failed]},
        {"tools": [cut]},
        {"text": "Done."}
    ]);
    let messages =
        json!([{"id": "m", "at": "3s", "from": "user", "to": "worker", "text": text, "urgency": "urgent"}]);
    let agents = json!([{"name": "worker", "prompt": text, "model": model}]);
    let all = json!({"midturn": 1, "agents": agents, "messages": messages});
    // JSON is YAML, but for what YAML wants escaped.
    let escaped = |c: char| match c {
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{ffff}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    };
    let text: String = all.to_string().chars().map(escaped).collect();
    file::parse("strange.yaml".into(), text.as_bytes()).unwrap()
}

#[test]
fn strange_texts_come_through_whole() {
    for strange in STRANGE {
        // A prompt of spaces would be another one; the words around keep every other part.
        for text in [strange.to_owned(), format!("{strange}x"), format!("x{strange}")] {
            let scenario = strange_scenario(&text);
            let session = played(&scenario).unwrap();
            let written = export(&session.journal, &session.events).unwrap();
            let read = file::parse("export.yaml".into(), written.as_bytes()).unwrap();
            let (was, is) = (&scenario.agents[0], &read.agents[0]);
            assert_eq!(is.prompt, was.prompt, "{written}");
            let (was, is) = (was.model.as_ref().unwrap(), is.model.as_ref().unwrap());
            assert_eq!((&is[0].text, &is[0].thinking), (&was[0].text, &was[0].thinking), "{written}");
            assert_eq!(is[0].tools, was[0].tools, "{written}");
            assert_eq!(is[1].tools[0].output, was[1].tools[0].output, "{written}");
            let Act::Send(send) = &read.items[0].act else { panic!("{written}") };
            assert_eq!(send.text, text, "{written}");
            assert!(check_text("-", &written).unwrap().is_empty(), "{written}");
        }
    }
}
