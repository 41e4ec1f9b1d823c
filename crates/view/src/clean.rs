//! Text of models, tools and names, made inert: nothing in it acts on a terminal, and nothing in it looks
//! like something else.
//!
//! What they say as they work is read for what it says, so what acts goes, whole sequences of it. What a
//! person decides on is read for what it is, so what hides in it is shown.

pub use midturn_core::rules::characters::hides;
use midturn_core::rules::characters::{JOINER, is_unseen};
use vte::{Parser, Perform};

/// Given before each line's end: a sequence that was never ended hides nothing beyond its line.
const CANCEL: &[u8] = b"\x18";

/// Cleans a stream of text, of which a piece may end anywhere, inside a sequence, too.
#[derive(Default)]
pub struct Cleaner {
    parser: Parser,
    line: Line,
}

/// Where a stream is.
#[derive(Default)]
struct Line {
    /// The line starts over with the next character.
    returned: bool,
    /// The last character joins the next one to what is before it.
    joins: bool,
    /// What is joined is left out, and what changes its colour with it.
    left_out: bool,
}

/// What of the stream is shown.
struct Page<'a> {
    line: &'a mut Line,
    shown: &'a mut String,
}

impl Cleaner {
    /// Adds the next piece of the stream to what is shown of it.
    pub fn add(&mut self, text: &str, shown: &mut String) {
        for (n, line) in text.split('\n').enumerate() {
            let mut page = Page { line: &mut self.line, shown: &mut *shown };
            if n > 0 {
                self.parser.advance(&mut page, CANCEL);
                page.execute(b'\n');
            }
            self.parser.advance(&mut page, line.as_bytes());
        }
    }
}

impl Page<'_> {
    /// Whether a character belongs to a picture of which only the first part is shown: terminals disagree on
    /// how wide the whole is.
    fn is_left_out(&mut self, c: char) -> bool {
        let joined = std::mem::take(&mut self.line.joins);
        let follows = std::mem::take(&mut self.line.left_out) && is_skin(c);
        self.line.left_out = follows || joined && is_picture(c);
        self.line.left_out
    }
}

impl Perform for Page<'_> {
    fn print(&mut self, c: char) {
        if c == JOINER {
            self.line.joins = true;
            return;
        }
        if is_unseen(c) || c.is_control() || self.is_left_out(c) {
            return;
        }
        if std::mem::take(&mut self.line.returned) {
            self.shown.truncate(self.shown.rfind('\n').map_or(0, |end| end + 1));
        }
        self.shown.push(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                *self.line = Line::default();
                self.shown.push('\n');
            }
            b'\t' if !self.line.returned => self.shown.push('\t'),
            b'\r' => self.line.returned = true,
            _ => {}
        }
    }
}

/// A whole text, cleaned.
pub fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    Cleaner::default().add(text, &mut shown);
    shown
}

/// A name or a path: what acts or hides in it is named. Without line feeds, so that it can't look like a line
/// of ours.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "")
}

/// A text that a person decides on: what acts or hides in it is named (`‹U+202E›`). Line feeds and tabs stay.
pub fn visible(text: &str) -> String {
    visible_in(text, ["‹", "›"])
}

/// The same with other marks around what is named: for terminals that have not got those.
pub fn visible_in(text: &str, [open, close]: [&str; 2]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match matches!(c, '\n' | '\t') || !hides(c) {
            true => shown.push(c),
            false => shown.push_str(&format!("{open}U+{:04X}{close}", u32::from(c))),
        }
    }
    shown
}

/// Whether a joiner before it makes a picture of it. Letters that are joined stay letters.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether it changes the colour of the picture before it.
fn is_skin(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_sequences_go_and_what_they_surround_stays() {
        for (text, expected) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2Jx\u{7}", "x"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x/\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\x", "x"),
            ("a\u{9b}b\u{7f}", "ab"),
            ("a\u{202e}b\u{200b}c\u{e0041}d\u{61c}", "abcd"),
            ("tab\tstays\u{b}", "tab\tstays"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_return_starts_the_line_over_and_before_a_line_feed_it_is_nothing() {
        for (text, expected) in [
            ("10 %\r20 %\r100 %\n", "100 %\n"),
            ("first\r\nsecond\r\n", "first\nsecond\n"),
            ("kept\n10 %\r\r20 %", "kept\n20 %"),
            ("done\r", "done"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing_beyond_its_line() {
        assert_eq!(clean("a\u{1b}]0;hidden\nrm -rf x"), "a\nrm -rf x");
        assert_eq!(clean("a\u{1b}[\nb"), "a\nb");
        assert_eq!(clean(&format!("\u{1b}]0;{}\nb", "x".repeat(10 << 20))), "\nb");
    }

    #[test]
    fn of_a_joined_picture_the_first_part_is_shown_and_letters_stay() {
        assert_eq!(clean("👩\u{200d}👩\u{1f3fb}\u{200d}👧 x"), "👩 x");
        assert_eq!(clean("❤\u{fe0f}\u{200d}🔥"), "❤");
        assert_eq!(clean("क\u{94d}\u{200d}ष"), "क\u{94d}ष");
    }

    #[test]
    fn what_hides_in_a_decision_is_named() {
        assert_eq!(visible("rm \u{202e}x\u{1b}[8m\n\ty\u{200d}"), "rm ‹U+202E›x‹U+001B›[8m\n\ty‹U+200D›");
        assert_eq!(one_line("a\n\u{202e}b"), "a‹U+202E›b");
    }

    proptest! {
        /// However a stream is split, the same is shown, and nothing of it acts.
        #[test]
        fn splits_change_nothing(text in "[a-z\u{1b}\\[\\];0-9m\r\n\t\u{7}\u{9b}\u{200d}\u{202e}👩é]{0,60}", at in 0..60_usize) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (mut cleaner, mut shown) = (Cleaner::default(), String::new());
            cleaner.add(&text[..at], &mut shown);
            cleaner.add(&text[at..], &mut shown);
            prop_assert_eq!(&shown, &clean(&text));
            prop_assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_unseen(c))));
        }
    }
}
