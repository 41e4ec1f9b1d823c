//! Text measured, cut and wrapped, in the cells of a terminal.
//!
//! Whatever comes in, no line is wider than it may be and nothing in it acts on a terminal: what does, or hides,
//! is left out here. Who wants it seen names it first (`midturn_view::clean::visible`).

use std::borrow::Cow;

use midturn_view::clean::hides;
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::look::Look;

/// What stands for a tab.
const TAB: &str = "    ";

/// How many cells a text takes on one line.
pub fn width(text: &str) -> usize {
    let measured = |line: &str| -> usize { cells(line, usize::MAX).map(|(_, wide)| wide).sum() };
    inert(text).split('\n').map(measured).sum()
}

/// A text on one line that is at most that wide. Where something is left out it ends in a sign for that.
pub fn cut(text: &str, width: usize, look: Look) -> String {
    let text = inert(text).replace('\n', " ");
    if self::width(&text) <= width {
        return text;
    }
    let mut shown = head(&text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        shown.push_str(look.sign("…", "~"));
    }
    shown
}

/// A text on one line that is exactly that wide: cut, or filled with spaces.
pub fn pad(text: &str, width: usize, look: Look) -> String {
    let mut shown = cut(text, width, look);
    let missing = width.saturating_sub(self::width(&shown));
    shown.extend(std::iter::repeat_n(' ', missing));
    shown
}

/// Lines with the words of these spans, kept together where they fit. The lines that follow the first begin with
/// `indent`, which takes half of the width at most.
pub fn wrap(spans: Vec<Span<'static>>, width: u16, indent: &str) -> Vec<Line<'static>> {
    laid(spans, width, indent, Layout::words)
}

/// Lines as full as they can be, of which no space is left out: for code.
pub fn hard(spans: Vec<Span<'static>>, width: u16, indent: &str) -> Vec<Line<'static>> {
    laid(spans, width, indent, Layout::fill)
}

/// The lines of a text, each wrapped.
pub fn plain(text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    wrap(vec![Span::styled(text.to_owned(), style)], width, "")
}

/// A line as full as it can be behind a sign, and wherever it goes on a sign for that: no part of a text looks like a
/// line of its own.
pub(super) fn signed(
    sign: impl IntoIterator<Item = Span<'static>>,
    text: Span<'static>,
    width: u16,
    look: Look,
) -> Vec<Line<'static>> {
    let mut spans: Vec<Span> = sign.into_iter().filter(|span| !span.content.is_empty()).collect();
    let wide: usize = spans.iter().map(|span| self::width(&span.content)).sum();
    let indent = format!("{}{}", " ".repeat(wide.saturating_sub(2)), look.sign("┊ ", ": "));
    spans.push(text);
    hard(spans, width, &indent)
}

/// The text without what acts or hides. Line feeds stay, tabs become spaces.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    let goes = |c: char| c != '\n' && hides(c);
    if !text.contains(goes) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(TAB),
            c if goes(c) => {}
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// What is put on a line as one, with its width: graphemes. One wider than `most` comes apart: a few scripts make
/// graphemes without end.
fn cells(text: &str, most: usize) -> impl Iterator<Item = (&str, usize)> {
    let apart = move |grapheme| {
        let is_wide = measure(grapheme) > most;
        str::split_inclusive(grapheme, move |_: char| is_wide)
    };
    text.graphemes(true).flat_map(apart).map(move |cell| match measure(cell) {
        wide if wide > most => ("?", 1),
        wide => (cell, wide),
    })
}

/// As wide as the terminal's buffer takes it to be.
fn measure(grapheme: &str) -> usize {
    if grapheme.len() == 1 { 1 } else { grapheme.width().max(grapheme.cell_width().into()) }
}

/// As much of the beginning of a line as fits.
pub(super) fn head(line: &str, width: usize) -> &str {
    let (mut used, mut end) = (0, 0);
    for (cell, wide) in cells(line, usize::MAX) {
        used += wide;
        if used > width {
            break;
        }
        end += cell.len();
    }
    &line[..end]
}

/// Styled text that stands on one line.
#[derive(Default)]
struct Run {
    parts: Vec<(String, Style)>,
    width: usize,
}

impl Run {
    fn push(&mut self, text: &str, wide: usize, style: Style) {
        self.width += wide;
        match self.parts.last_mut() {
            Some((last, its)) if *its == style => last.push_str(text),
            _ => self.parts.push((text.to_owned(), style)),
        }
    }

    fn append(&mut self, other: &mut Run) {
        for (text, style) in other.parts.drain(..) {
            self.push(&text, 0, style);
        }
        self.width += std::mem::take(&mut other.width);
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.width = 0;
    }

    fn into_line(self) -> Line<'static> {
        self.parts.into_iter().map(|(text, style)| Span::styled(text, style)).collect::<Vec<_>>().into()
    }
}

/// Lines in the making.
struct Layout {
    width: usize,
    indent: String,
    lines: Vec<Line<'static>>,
    /// The last line.
    line: Run,
    /// How much of it is indent.
    base: usize,
    /// The spaces behind it.
    gap: Run,
    /// The word behind those, which may go on.
    word: Run,
}

fn laid(
    spans: Vec<Span<'static>>,
    width: u16,
    indent: &str,
    put: fn(&mut Layout, &str, Style),
) -> Vec<Line<'static>> {
    let mut layout = Layout::new(width, indent);
    for span in spans {
        for (n, text) in inert(&span.content).split('\n').enumerate() {
            if n > 0 {
                layout.put_word();
                layout.feed();
            }
            put(&mut layout, text, span.style);
        }
    }
    layout.put_word();
    if layout.has_text() || layout.lines.is_empty() {
        layout.feed();
    }
    layout.lines
}

impl Layout {
    fn new(width: u16, indent: &str) -> Self {
        let width = usize::from(width.max(1));
        let (line, gap, word) = Default::default();
        let indent = head(&inert(indent).replace('\n', ""), width / 2).to_owned();
        Self { width, indent, lines: Vec::new(), line, base: 0, gap, word }
    }

    fn words(&mut self, text: &str, style: Style) {
        for (cell, wide) in cells(text, usize::MAX) {
            match (cell, wide) {
                (" ", _) => {
                    self.put_word();
                    self.gap.push(cell, wide, style);
                }
                // Scripts without spaces are wide, and break anywhere.
                (_, 2..) => {
                    self.put_word();
                    self.word.push(cell, wide, style);
                    self.put_word();
                }
                _ => self.word.push(cell, wide, style),
            }
        }
    }

    /// Puts the word that is complete on this line or the next.
    fn put_word(&mut self) {
        if self.word.parts.is_empty() {
            return;
        }
        if self.line.width + self.gap.width + self.word.width <= self.width {
            self.line.append(&mut self.gap);
            self.line.append(&mut self.word);
            return;
        }
        self.gap.clear();
        if self.has_text() {
            self.feed();
        }
        let word = std::mem::take(&mut self.word);
        for (part, style) in word.parts {
            self.fill(&part, style);
        }
    }

    /// Puts a text here, and goes on in the next line wherever this one is full.
    fn fill(&mut self, text: &str, style: Style) {
        for (cell, wide) in cells(text, self.width - width(&self.indent)) {
            if self.line.width + wide > self.width {
                self.feed();
            }
            self.line.push(cell, wide, style);
        }
    }

    fn has_text(&self) -> bool {
        self.line.width > self.base
    }

    fn feed(&mut self) {
        self.lines.push(std::mem::take(&mut self.line).into_line());
        self.gap.clear();
        self.base = width(&self.indent);
        if self.base > 0 {
            self.line.push(&self.indent, self.base, Style::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ASCII, BOTH, shown};
    use super::*;

    fn raw(text: &str) -> Vec<Span<'static>> {
        vec![Span::raw(text.to_owned())]
    }

    #[test]
    fn a_text_is_as_wide_as_a_terminal_draws_it() {
        for (text, cells) in
            [("", 0), ("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("👩", 2), ("a\u{1b}b\u{202e}", 2), ("\t", 4)]
        {
            assert_eq!(width(text), cells, "{text:?}");
        }
    }

    #[test]
    fn what_is_cut_says_so_and_no_grapheme_comes_apart() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字", 3, "漢…"),
            ("漢字", 2, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("a\nb", 3, "a b"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, width, BOTH), expected, "{text:?}");
        }
        assert_eq!(cut("abcd", 3, ASCII), "ab~");
        assert_eq!((pad("漢字", 3, BOTH), pad("a", 3, BOTH)), ("漢…".into(), "a  ".into()));
    }

    #[test]
    fn words_stay_together_where_they_fit() {
        for (text, width, expected) in [
            ("one two three", 8, "one two\n.three"),
            ("  one two", 5, "  one\n.two"),
            ("abcdefgh i", 4, "abcd\n.efg\n.h i"),
            ("a  b", 9, "a  b"),
            ("a\n\nb\n", 9, "a\n.\n.b"),
            ("漢字漢字", 5, "漢字\n.漢字"),
            ("漢", 1, "?"),
            ("", 9, ""),
            ("\u{1b}[1m\u{7}a\tb", 20, "[1ma    b"),
        ] {
            assert_eq!(shown(&wrap(raw(text), width, ".")), expected, "{text:?}");
        }
    }

    #[test]
    fn a_word_goes_on_where_its_style_changes() {
        let bold = Style::new().bold();
        let spans = vec![Span::raw("see "), Span::styled("this", bold), Span::raw(", please")];
        let lines = wrap(spans, 8, "");
        assert_eq!(shown(&lines), "see\nthis,\nplease");
        assert_eq!(lines[1].spans, [Span::styled("this", bold), Span::raw(",")]);
    }

    #[test]
    fn of_code_no_space_is_left_out() {
        assert_eq!(shown(&hard(raw("a   b\n    c"), 4, ".")), "a   \n.b\n.   \n. c");
    }
}
