//! Words that tell how something stands are whole at any width that has room for them.

use std::collections::BTreeMap;

use midturn_tui::draw::talk;
use midturn_tui::keys::Keymap;
use midturn_tui::settings::Settings;
use ratatui::layout::Size;

use crate::seen::seen;
use crate::states::state;

fn page(of: &str, width: u16) -> String {
    let play = state(of, Settings::default(), Size::new(width, 60));
    let (lines, _) = talk::page(&play.state, width, 60);
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

#[test]
fn no_word_for_a_call_is_cut() {
    let rows = [
        ("results", &["ok", "failed", "cut short", "denied", "skipped"][..]),
        ("injected", &["ok", "skipped"]),
        ("queue", &["running"]),
        ("asks_edit", &["asks you"]),
    ];
    for width in 20..=250 {
        for (of, words) in rows {
            let page = page(of, width);
            for word in words {
                assert!(page.contains(word), "{of} at {width}: no `{word}` in\n{page}");
            }
        }
    }
}

/// A word's beginning at a line's end, of one that is not whole there.
#[test]
fn no_line_ends_within_such_a_word() {
    for width in 20..=250 {
        for of in ["results", "injected", "queue", "asks_edit"] {
            let page = page(of, width);
            for line in page.lines().map(str::trim_end) {
                let cut = ["runnin", "skippe", "faile", "denie", "cut shor", "asks yo"];
                assert!(!cut.iter().any(|part| line.ends_with(part)), "{of} at {width}: {line}");
            }
        }
    }
}

#[test]
fn the_keys_that_are_shown_are_those_that_hold() {
    let chosen = [("stop", "f8"), ("help", "f6"), ("end", "f9"), ("soon", "f2"), ("send", "f5")];
    let chosen: BTreeMap<_, _> = chosen.map(|(action, key)| (action.to_owned(), vec![key.to_owned()])).into();
    for (of, shown) in [
        ("help", &["F8 closes", "F2 "][..]),
        ("plan", &["F8 closes", "F5 send", "F2 sooner", "F6 keys"]),
        ("scrolled", &["new below: F9 follows", "F8 stop"]),
    ] {
        // The scenes are played by the keys that are built in.
        let mut play = state(of, Settings::default(), Size::new(200, 60));
        play.state.settings.keys = Keymap::new(&chosen).unwrap();
        let screen = seen(&play.state);
        for word in shown {
            assert!(screen.contains(word), "{of}: no `{word}` in\n{screen}");
        }
        assert!(!screen.contains("Esc") && !screen.contains("Shift+Enter"), "{of}:\n{screen}");
    }
}
