//! Words that tell how something stands are whole at any width that has room for them.

use midturn_tui::draw::talk;
use midturn_tui::settings::Settings;
use ratatui::layout::Size;

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
