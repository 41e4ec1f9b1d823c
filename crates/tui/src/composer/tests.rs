//! What a person types, and what nothing takes from them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Position;

use super::*;

mod any;

const LOOK: Look = Look { colours: true, unicode: true };

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn composer() -> Composer {
    Composer::new(name("lead"), Saved::default())
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn press(composer: &mut Composer, keys: &str) {
    for key in keys.split(' ') {
        assert!(composer.edit(named(key)), "{key} did nothing");
    }
}

/// `C-w`, `M-b`, `left`, `x`, and `_` for a space.
fn named(name: &str) -> KeyEvent {
    let (held, name) = match name.split_at_checked(2) {
        Some(("C-", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("M-", rest)) => (KeyModifiers::ALT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "back" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        "space" => KeyCode::Char(' '),
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, held)
}

fn typed(composer: &mut Composer, text: &str) {
    text.chars().for_each(|c| assert!(composer.edit(key(KeyCode::Char(c)))));
}

#[test]
fn keys_edit_as_in_a_shell() {
    for (text, keys, expected) in [
        ("ab", "left x", "axb"),
        ("ab", "home x end y", "xaby"),
        ("one two", "C-w x", "one x"),
        ("one two", "C-a M-f x", "one xtwo"),
        ("one two", "M-b C-k", "one "),
        ("one two", "M-b C-u", "two"),
        ("one two", "M-b C-u end M-y", "twoone "),
        ("one two", "C-left C-del", "one "),
        ("one two", "C-w C-_", "one two"),
        ("one two", "C-w C-_ M-_", "one "),
        ("one two", "C-w C-7", "one two"),
        ("a", "back é 猫", "é猫"),
        ("a\nb", "up x", "ax\nb"),
        ("a\nb", "C-home x", "xa\nb"),
        ("a\nb", "C-a C-h", "ab"),
        ("ab", "left C-d", "a"),
    ] {
        let mut composer = composer();
        composer.paste(text).unwrap();
        press(&mut composer, keys);
        assert_eq!(composer.text(), expected, "{text:?} {keys}");
    }
}

#[test]
fn keys_that_are_not_the_editors_do_nothing() {
    let mut composer = composer();
    composer.paste("text").unwrap();
    let mut released = named("x");
    released.kind = crossterm::event::KeyEventKind::Release;
    let others = ["C-c", "C-x", "C-r", "C-j", "C-y", "M-x", "right", "down"].map(named);
    let codes = [KeyCode::Enter, KeyCode::Tab, KeyCode::Esc, KeyCode::F(1)].map(key);
    for key in others.into_iter().chain(codes).chain([released]) {
        assert!(!composer.edit(key), "{key:?}");
        assert_eq!(composer.text(), "text", "{key:?}");
    }
}

#[test]
fn each_agent_has_a_draft_with_its_cursor() {
    let mut composer = composer();
    typed(&mut composer, "to lead");
    press(&mut composer, "home");
    composer.choose(&name("tester"));
    assert!(composer.is_empty());
    typed(&mut composer, "to tester");
    composer.choose(&name("lead"));
    typed(&mut composer, "!");
    assert_eq!(composer.text(), "!to lead");
    assert_eq!(composer.drafted().map(AgentName::as_str).collect::<Vec<_>>(), ["lead", "tester"]);
    composer.choose(&name("tester"));
    assert_eq!(composer.text(), "to tester");
}

#[test]
fn what_is_pasted_is_inert() {
    for (pasted, expected) in [
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("\u{1b}[31mred\u{1b}[0m\u{7}", "red"),
        ("a\u{202e}b\tc", "ab\tc"),
        ("\u{1b}[201~x", "x"),
    ] {
        let mut composer = composer();
        composer.paste(pasted).unwrap();
        assert_eq!(composer.text(), expected, "{pasted:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_the_draft_stays() {
    let mut composer = composer();
    composer.paste(&"x".repeat(DRAFT_MAX - 1)).unwrap();
    let refused = composer.paste("yy").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a message has at most 262144 bytes, and with this it would have 262145: save it as a file and name the file"
    );
    assert!(composer.editor(&"y".repeat(DRAFT_MAX + 1)).is_err());
    assert!(!composer.edit(named("é")));
    assert_eq!(composer.text().len(), DRAFT_MAX - 1);
    assert!(composer.edit(named("y")));
    assert!(!composer.edit(named("y")));
    assert!(composer.newline().is_err());
}

#[test]
fn what_was_cleared_comes_back_by_undo_and_by_the_history() {
    let mut composer = composer();
    composer.paste("one\ntwo").unwrap();
    composer.clear();
    assert!(composer.is_empty());
    press(&mut composer, "C-_");
    assert_eq!(composer.text(), "one\ntwo");
    composer.clear();
    assert!(composer.history_older());
    assert_eq!(composer.text(), "one\ntwo");
}

#[test]
fn what_the_editor_gave_replaces_the_draft_and_undo_brings_it_back() {
    let mut composer = composer();
    typed(&mut composer, "draft");
    composer.editor("better\r\ndraft\n").unwrap();
    assert_eq!(composer.text(), "better\ndraft");
    press(&mut composer, "C-_ C-_");
    assert_eq!(composer.text(), "draft");
}

#[test]
fn what_comes_back_after_a_stop_is_drafts_of_their_own() {
    let mut composer = composer();
    typed(&mut composer, "mine");
    composer.give_back(&name("lead"), vec!["one".into(), "two".into()]);
    composer.give_back(&name("tester"), vec!["three".into(), "four".into()]);
    assert_eq!((composer.text().as_str(), composer.stacked()), ("mine", 2));
    composer.sent();
    assert_eq!((composer.text().as_str(), composer.stacked()), ("one", 1));
    composer.clear();
    assert_eq!((composer.text().as_str(), composer.stacked()), ("two", 0));
    composer.choose(&name("tester"));
    assert_eq!((composer.text().as_str(), composer.stacked()), ("three", 1));
    assert_eq!(composer.search(""), ["one", "mine"]);
}

#[test]
fn a_queued_message_is_edited_in_an_empty_composer_or_next() {
    let mut composer = composer();
    composer.put("queued");
    assert_eq!((composer.text().as_str(), composer.stacked()), ("queued", 0));
    composer.give_back(&name("lead"), vec!["last".into()]);
    composer.put("next");
    assert_eq!((composer.text().as_str(), composer.stacked()), ("queued", 2));
    composer.sent();
    assert_eq!(composer.text(), "next");
}

#[test]
fn what_was_refused_is_a_draft_again_and_replaces_nothing() {
    let mut composer = composer();
    typed(&mut composer, "refused");
    composer.sent();
    typed(&mut composer, "mine");
    composer.choose(&name("tester"));
    composer.refused(&name("lead"), "refused");
    assert!(composer.is_empty());
    composer.choose(&name("lead"));
    assert_eq!((composer.text().as_str(), composer.stacked()), ("mine", 1));
    composer.sent();
    assert_eq!(composer.text(), "refused");
    assert!(!composer.edit(named("C-_")), "undo takes out what was typed, not what came back");
}

#[test]
fn what_comes_into_an_emptied_draft_leaves_what_undo_can_bring_back() {
    let mut composer = composer();
    typed(&mut composer, "mine");
    press(&mut composer, "C-u");
    composer.give_back(&name("lead"), vec!["one".into()]);
    assert_eq!(composer.text(), "one");
    press(&mut composer, "C-_ C-_");
    assert_eq!(composer.text(), "mine");
    press(&mut composer, "M-_ M-_");
    assert_eq!(composer.text(), "one");
}

#[test]
fn a_look_into_the_history_keeps_the_draft() {
    let mut composer = composer();
    for text in ["one", "two", "two", "  "] {
        composer.put(text);
        composer.sent();
    }
    typed(&mut composer, "mine");
    press(&mut composer, "left");
    for (older, shown) in [(true, "two"), (true, "one"), (false, "two"), (false, "mine")] {
        assert!(if older { composer.history_older() } else { composer.history_newer() });
        assert_eq!(composer.text(), shown);
    }
    assert!(!composer.history_newer());
    typed(&mut composer, "!");
    assert_eq!(composer.text(), "min!e");
    assert!(composer.recall("one") && !composer.recall("three"));
    assert!(!composer.history_older());
    composer.clear();
    assert_eq!(composer.text(), "min!e", "to clear ends the look");
    assert_eq!(composer.search("O"), ["two", "one"]);
}

#[test]
fn an_entry_that_is_changed_or_sent_takes_nothing_from_the_draft() {
    let mut composer = composer();
    composer.put("old");
    composer.sent();
    typed(&mut composer, "mine");
    composer.history_older();
    composer.sent();
    assert_eq!((composer.text().as_str(), composer.stacked()), ("mine", 0));
    composer.history_older();
    typed(&mut composer, "er");
    assert_eq!((composer.text().as_str(), composer.stacked()), ("older", 1));
    assert!(!composer.history_newer());
    composer.sent();
    assert_eq!(composer.text(), "mine");
}

#[test]
fn the_history_has_bounds() {
    let mut composer = composer();
    for n in 0..600 {
        composer.put(&format!("{n}"));
        composer.sent();
    }
    assert_eq!((composer.search("").len(), composer.search("")[499]), (500, "100"));
    for n in 0..5 {
        composer.put(&format!("{n}{}", "x".repeat(DRAFT_MAX - 1)));
        composer.sent();
    }
    assert_eq!(composer.search("").len(), 4);
}

#[test]
fn names_and_actions_are_completed() {
    let agents = ["tester", "test2", "worker"].map(name);
    let actions = [("stop", "stop this agent"), ("soon", "at the next boundary")];
    for (text, words) in [
        ("@te", &["@tester", "@test2"][..]),
        ("ask @w", &["@worker"]),
        ("line\n@w", &["@worker"]),
        ("@", &["@tester", "@test2", "@worker"]),
        ("/s", &["/stop", "/soon"]),
        ("/so", &["/soon"]),
        ("/this a", &[]),
        ("/bound", &["/soon"]),
        ("/AGENT", &["/stop"]),
        ("see /s", &[]),
        ("a\n/s", &[]),
        ("a@w", &[]),
        ("@x", &[]),
        ("@worker ", &[]),
        ("", &[]),
    ] {
        let mut composer = composer();
        composer.paste(text).unwrap();
        let found = composer.completion(&agents, &actions).map_or(Vec::new(), |found| found.items);
        assert_eq!(found.iter().map(|item| item.word.as_str()).collect::<Vec<_>>(), words, "{text:?}");
    }
}

#[test]
fn what_is_chosen_takes_the_place_of_what_was_typed() {
    let agents = ["tester", "test2"].map(name);
    let mut composer = composer();
    typed(&mut composer, "@te");
    let mut open = composer.completion(&agents, &[]).unwrap();
    let mut chosen = Vec::new();
    for forward in [true, true, false] {
        if forward {
            open.next()
        } else {
            open.previous()
        }
        chosen.push(open.chosen);
    }
    assert_eq!(chosen, [1, 0, 1]);
    composer.accept(&open).unwrap();
    assert_eq!(composer.text(), "@test2 ");
    composer.accept(&open).unwrap();
    assert_eq!(composer.text(), "@test2 ", "what was open before is not put twice");
}

#[test]
fn an_action_is_found_by_what_it_does_behind_those_that_begin_so() {
    let actions =
        [("instead", "stop and send"), ("stop", "stop this agent"), ("soon", "at the next boundary")];
    let mut composer = composer();
    typed(&mut composer, "/sto");
    let open = composer.completion(&[], &actions).unwrap();
    assert_eq!(open.items.iter().map(|item| item.word.as_str()).collect::<Vec<_>>(), ["/stop", "/instead"]);
    let second = Completion { chosen: 1, ..open };
    composer.accept(&second).unwrap();
    assert_eq!(composer.text(), "/instead ");
    composer.accept(&second).unwrap();
    assert_eq!(composer.text(), "/instead ");
}

#[test]
fn a_draft_names_only_an_agent_that_there_is() {
    for (text, expected) in [
        ("@tester look here", Some("look here")),
        ("@tester\nlook", Some("look")),
        ("@tester ", Some("")),
        ("@tester", None),
        ("@testers look", None),
        ("ask @tester this", None),
        (" @tester look", None),
    ] {
        let mut composer = composer();
        composer.paste(text).unwrap();
        let addressed = completion::addressee(&composer.text(), &[name("tester")]);
        let expected =
            expected.map(|text| completion::Addressed { agent: name("tester"), text: text.into() });
        assert_eq!(addressed, expected, "{text:?}");
    }
}

#[test]
fn what_was_saved_is_there_again() {
    let mut composer = composer();
    assert!(composer.unsaved().is_none());
    composer.put("sent");
    composer.sent();
    composer.give_back(&name("tester"), vec!["one".into(), "two".into()]);
    typed(&mut composer, "mine");
    press(&mut composer, "left");
    composer.history_older();
    let saved = composer.unsaved().unwrap();
    assert!(composer.unsaved().is_none());
    composer.not_saved();
    assert_eq!(composer.unsaved().unwrap(), saved);
    let mut again = Composer::new(name("lead"), saved.clone());
    again.not_saved();
    assert_eq!(again.unsaved().unwrap(), saved);
    typed(&mut again, "!");
    assert_eq!(again.text(), "min!e");
}

/// The screen as text, and where its cursor is.
fn screen(composer: &Composer, width: u16, height: u16) -> (Vec<String>, Position) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| composer.draw(frame, frame.area(), LOOK, "Write to lead")).unwrap();
    let rows = terminal.backend().buffer().content.chunks(width.into());
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    (rows.collect(), terminal.get_cursor_position().unwrap())
}

#[test]
fn it_wraps_and_the_cursor_stands_where_the_next_letter_comes() {
    for (text, rows, cursor) in [
        ("", &["Write to l", ""][..], (0, 0)),
        ("abc", &["abc", ""], (3, 0)),
        ("one two three", &["one two", "three"], (5, 1)),
        ("123456789", &["123456789", ""], (9, 0)),
        ("1234567890", &["123456789", "0"], (1, 1)),
        ("猫猫猫猫猫", &["猫 猫 猫 猫", "猫"], (2, 1)),
        ("a\tb", &["a   b", ""], (5, 0)),
        ("e\u{301}x", &["e\u{301}x", ""], (2, 0)),
        ("1\n2\n3", &["2", "3"], (1, 1)),
    ] {
        let mut composer = composer();
        composer.paste(text).unwrap();
        assert_eq!(
            screen(&composer, 10, 2),
            (rows.iter().map(|row| row.to_string()).collect(), cursor.into()),
            "{text:?}"
        );
    }
}

#[test]
fn it_is_as_high_as_its_text_up_to_a_bound() {
    for (text, width, expected) in [
        ("", 10, 1),
        ("a", 10, 1),
        ("a\nb\n", 10, 3),
        ("one two three", 10, 2),
        ("a\nb\nc\nd\ne\nf", 10, 5),
        ("ab", 0, 2),
    ] {
        let mut composer = composer();
        composer.paste(text).unwrap();
        assert_eq!(composer.height(width, 5), expected, "{text:?}");
    }
}

#[test]
fn rows_move_only_when_the_cursor_leaves_them_and_none_is_left_blank() {
    let mut composer = composer();
    composer.paste("1\n2\n3\n4").unwrap();
    assert_eq!(screen(&composer, 10, 2).0, ["3", "4"]);
    press(&mut composer, "up");
    assert_eq!(screen(&composer, 10, 2).0, ["3", "4"]);
    press(&mut composer, "up");
    assert_eq!(screen(&composer, 10, 2).0, ["2", "3"]);
    assert_eq!(screen(&composer, 10, 6).0, ["1", "2", "3", "4", "", ""]);
}

#[test]
fn a_text_with_too_many_rows_to_show_is_kept_and_edited() {
    let mut composer = composer();
    let text = "\n".repeat(DRAFT_MAX);
    composer.paste(&text).unwrap();
    assert_eq!(screen(&composer, 60, 2).0[0], "262144 bytes, 262145 lines: kept, too long to show here");
    assert_eq!(composer.height(80, 5), 1);
    press(&mut composer, "back");
    assert_eq!(composer.text().len(), DRAFT_MAX - 1);
}
