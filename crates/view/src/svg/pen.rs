//! Writes SVG, every text escaped and of a width that is said.

use std::fmt::{self, Write};

use super::style::STYLE;
use crate::timeline::cells;

/// Each character is as wide as this, in tenths.
const TENTHS: usize = 72;

/// Who writes.
pub(super) struct Pen {
    out: String,
}

impl Pen {
    pub(super) fn new() -> Self {
        Self { out: String::new() }
    }

    /// Writing to a text can't fail.
    fn write(&mut self, words: fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(words);
    }

    pub(super) fn begins(&mut self, width: u64, height: u64, title: &str, told: &str) {
        self.write(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"title told\">\n<title id=\"title\">{}</title>\n<desc id=\"told\">{}</desc>\n{STYLE}",
            Escaped(title),
            Escaped(told),
        ));
        self.rect("ground", [0, 0, width, height], 0);
    }

    pub(super) fn ends(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// What is drawn says this when somebody points at it.
    pub(super) fn titled(&mut self, says: &str, draws: impl FnOnce(&mut Self)) {
        self.write(format_args!("<g><title>{}</title>", Escaped(says)));
        draws(self);
        self.out.push_str("</g>\n");
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [u64; 4], round: u64) {
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>"
        ));
    }

    pub(super) fn path(&mut self, class: &str, way: &str) {
        self.write(format_args!("<path class=\"{class}\" d=\"{way}\"/>"));
    }

    pub(super) fn circle(&mut self, class: &str, x: u64, y: u64, radius: u64) {
        self.write(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
    }

    /// A text, from its left end on.
    pub(super) fn text(&mut self, class: &str, x: u64, y: u64, text: &str) {
        let tenths = cells(text) * TENTHS;
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" textLength=\"{}.{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
            tenths / 10,
            tenths % 10,
            Escaped(text),
        ));
    }
}

/// How wide so many characters are, at most.
pub(super) fn width(cells: usize) -> usize {
    (cells * TENTHS).div_ceil(10)
}

/// As much of a text as takes so many columns: one that is longer ends in `…`. Nothing where not even two characters have room.
pub(super) fn fits(text: &str, room: usize) -> String {
    if cells(text) <= room {
        return text.to_owned();
    }
    if room < 3 {
        return String::new();
    }
    let mut left = room - 1;
    let is_in = |c: &char| {
        let mut buffer = [0; 4];
        let wide = cells(c.encode_utf8(&mut buffer));
        let has_room = wide <= left;
        left = left.saturating_sub(wide);
        has_room
    };
    text.chars().take_while(is_in).chain(['…']).collect()
}

/// Text that is nothing but text, and of characters that XML has.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\u{FFFE}' | '\u{FFFF}' => f.write_char('\u{FFFD}')?,
                c if c.is_control() => f.write_char('\u{FFFD}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
