//! Each element of markdown has its lines, at any length and depth.

use super::super::tests::{ASCII, BOTH, shown};
use super::*;

#[test]
fn each_element_has_its_lines() {
    for (text, expected) in [
        ("One\ntwo.\n\nThree  \nfour.", "One two.\n\nThree\nfour."),
        ("# Title\nText\n## Part\n", "Title\n\nText\n\nPart"),
        ("- one\n- two\n  - deep\n- three\n\nEnd", "• one\n• two\n  • deep\n• three\n\nEnd"),
        ("- one\n\n- two", "• one\n\n• two"),
        ("- a\n  - b\n\n  c\n- d", "• a\n  • b\n  \n  c\n\n• d"),
        ("1. a\n   ```\n   b\n   ```\n2. c", "1. a\n     b\n2. c"),
        ("9. nine\n1. ten\n   more", "9. nine\n10. ten more"),
        ("-\n- x", "• \n• x"),
        ("- - x\n", "• • x"),
        ("- [x] done\n- [ ] open", "• [x] done\n• [ ] open"),
        ("> said\n> > before\n\nme", "│ said\n│ \n│ │ before\n\nme"),
        ("```rust\nfn f() {\n    x\n```\nend", "  fn f() {\n      x\n\nend"),
        ("- a\n\n      code\n", "• a\n  \n    code"),
        ("a `b` *c* **d** ~~e~~", "a b c d e"),
        ("<b>x</b> y\n\n<div>\n<p>z\n</div>", "<b>x</b> y\n\n<div>\n<p>z\n</div>"),
        ("[text](http://a/b) <http://c/> [](d)", "text (http://a/b) http://c/ d"),
        ("[http://a](http://a) ![alt](p.png)", "http://a alt (p.png)"),
        ("a\n\n---\nb", "a\n\n──────────────────────────────\n\nb"),
        ("| a | bb |\n|---|---:|\n| ccc | d |\n| e |\n", "a   │ bb\n────┼───\nccc │  d\ne"),
        ("&#27;[31mred &#x202e;&lt;", "[31mred <"),
        ("", ""),
    ] {
        assert_eq!(shown(&markdown(text, 30, BOTH)), expected, "{text:?}");
    }
}

#[test]
fn what_is_too_wide_is_wrapped_under_its_beginning() {
    for (text, expected) in [
        ("- one two three", "• one two\n  three"),
        ("> one two three", "│ one two\n│ three"),
        ("```\nlet x = 12345;\n```", "  let x = \n  12345;"),
        (
            "| name | what it is |\n|-|-|\n| a | some words |\n| b | |",
            "a\n  what it\n    is:\n    some\n    words\nb",
        ),
        ("| name | what it is |\n|-|-|\n", "name |\n  what it\n  is"),
        ("1. 1. 1. x", "1. 1.\n   1. x"),
    ] {
        assert_eq!(shown(&markdown(text, 10, BOTH)), expected, "{text:?}");
    }
}

#[test]
fn a_text_that_is_still_written_is_laid_out_as_far_as_it_is() {
    for (text, expected) in [
        ("see\n```sh\ncargo te", "see\n\n  cargo te"),
        ("**bo", "**bo"),
        ("[text](http://", "[text](http://"),
        ("| a | b |\n|--", "| a | b | |--"),
        ("- ", "• "),
    ] {
        assert_eq!(shown(&markdown(text, 30, BOTH)), expected, "{text:?}");
    }
}

#[test]
fn without_colours_and_beyond_ascii_signs_it_reads_as_well() {
    let text = "- `x`\n> y\n\n---\n\n|a|b|\n|-|-|\n|c|d|";
    let expected = "- `x`\n\n| y\n\n----------\n\na | b\n--+--\nc | d";
    assert_eq!(shown(&markdown(text, 10, ASCII)), expected);
}

#[test]
fn styles_tell_what_a_text_is() {
    let styled = |text: &str| {
        let lines = markdown(text, 30, BOTH);
        lines[0].spans.iter().find(|span| span.content == "x").unwrap().style
    };
    let strong = BOTH.style(Tone::Strong);
    for (text, style) in [
        ("# x", strong.add_modifier(Modifier::UNDERLINED)),
        ("### x", strong),
        ("**x**", strong),
        ("*x*", Style::new().add_modifier(Modifier::ITALIC)),
        ("~~x~~", Style::new().add_modifier(Modifier::CROSSED_OUT)),
        ("`x`", BOTH.style(Tone::Code)),
        ("x", Style::new()),
        ("|x|\n|-|\n", strong),
    ] {
        assert_eq!(styled(text), style, "{text:?}");
    }
}

/// Each of these grew with the square of its length somewhere, or overflowed a stack.
#[test]
fn what_is_nested_or_repeated_without_end_takes_lines_and_no_time() {
    let many = 20_000;
    for text in [
        format!("{}deep", ">".repeat(3_000)),
        format!("{}deep", "> ".repeat(many)),
        format!("{}deep\n{}", "- ".repeat(3_000), "deep\n".repeat(3_000)),
        format!("{}deep", "[".repeat(many)),
        format!("{}x{}", "![".repeat(3_000), "](x)".repeat(3_000)),
        format!("{}x", "**a ".repeat(many)),
        format!("|{}\n|{}\n{}", "a|".repeat(200), "-|".repeat(200), "|\n".repeat(many)),
        format!("|{}|b|\n|-|-|\n{}", "a".repeat(many), "|x|y|\n".repeat(many)),
        "x".repeat(1 << 20),
        "word ".repeat(200_000),
    ] {
        let lines = markdown(&text, 40, BOTH);
        assert!(lines.iter().all(|line| line.width() <= 40) && !lines.is_empty());
    }
}
