//! What the tests of laid out text share, and what holds for all of it.

use midturn_view::clean::hides;
use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::json;

use super::call::whole;
use super::diff::change;
use super::diff::tests::diff;
use super::markdown::markdown;
use super::text::{cut, hard, pad, plain, wrap};
use crate::look::{Look, Tone};

pub(super) const BOTH: Look = Look { colours: true, unicode: true };
pub(super) const ASCII: Look = Look { colours: false, unicode: false };

/// The text of lines, without styles.
pub(super) fn shown(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
    lines.join("\n")
}

/// Every way to lay out a text.
fn all(text: &str, other: &str, width: u16, look: Look) -> Vec<(&'static str, Vec<Line<'static>>)> {
    let style = look.style(Tone::Code);
    let spans = || vec![Span::raw(text.to_owned()), Span::styled(other.to_owned(), style)];
    let call = |name, input| whole(name, &input, width, look);
    vec![
        ("markdown", markdown(text, width, look)),
        ("a patch", diff(text, width, look)),
        ("a hunk", diff(&format!("diff --git a/x b/x\n@@ -1,9 +1,9 @@\n{text}"), width, look)),
        ("change", change(text, other, width, look)),
        ("plain", plain(text, width, style)),
        ("wrap", wrap(spans(), width, other)),
        ("hard", hard(spans(), width, other)),
        ("bash", call("bash", json!({"command": text, "timeout": 1}))),
        ("edit", call("edit", json!({"path": other, "old": text, "new": other}))),
        ("write", call("write", json!({"path": text, "content": other}))),
        ("other", call("other", json!({text: other, "x": [text]}))),
        ("cut", vec![Line::raw(cut(text, width.into(), look)), Line::raw(pad(other, width.into(), look))]),
    ]
}

/// What a terminal would draw of a line: its graphemes, as wide as its buffer takes them to be.
fn drawn(line: &Line) -> usize {
    let graphemes = line.spans.iter().flat_map(|span| span.styled_graphemes(Style::new()));
    graphemes.map(|grapheme| usize::from(grapheme.symbol.cell_width())).sum()
}

/// Text that is likely to break what lays it out.
fn texts() -> impl Strategy<Value = String> {
    let odd = "[a-c \n\t\r\u{1b}\u{7}\u{202e}\u{200d}\u{301}\u{fe0f}漢👩🏽é한\u{1100}\u{600}\u{ff9e}\u{644}\u{627}🇩]{0,40}";
    let marks = "([#>|`*_~!<&=+@-]|\\[|\\]|\\(|\\)|- |> |1\\. |```|\\|-\\||    |\n|\n\n|word |漢|&#27;|@@ -1 \\+1 @@\n){0,40}";
    prop_oneof![any::<String>(), odd.prop_map(String::from), marks.prop_map(String::from)]
}

proptest! {
    #[test]
    fn no_line_is_too_wide_and_nothing_in_it_acts(
        text in texts(), other in texts(), width in 1..200_u16, narrow in 1..12_u16, ascii in any::<bool>()
    ) {
        let look = if ascii { ASCII } else { BOTH };
        for width in [width, narrow] {
            for (how, lines) in all(&text, &other, width, look) {
                for line in lines {
                    prop_assert!(line.width() <= usize::from(width), "{how} {width}: {line:?}");
                    prop_assert!(drawn(&line) <= usize::from(width), "{how} {width}: {line:?}");
                    prop_assert!(!line.to_string().chars().any(hides), "{how} {width}: {line:?}");
                }
            }
        }
    }

    /// At any width that holds a character beside its sign.
    #[test]
    fn nothing_of_a_command_is_left_out(text in "[a-e \n漢é]{0,60}", width in 4..60_u16) {
        let lines = whole("bash", &json!({"command": text}), width, BOTH);
        let texts = lines.iter().map(|line| {
            let line = line.to_string();
            let (sign, text) = line.split_at(line.find(' ').unwrap() + 1);
            if sign == "> " { format!("\n{text}") } else { text.to_owned() }
        });
        prop_assert_eq!(texts.collect::<String>(), text);
    }
}
