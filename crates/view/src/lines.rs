//! What models and tools say while it comes, made inert, as whole lines: where several speak at once a line is of
//! one of them.

use midturn_core::rules::id::AgentName;

use crate::clean::Cleaner;
use crate::words::{Line, Tone};

/// A line without an end is shown in parts of about so many characters.
const WIDTH: usize = 100;

/// What comes in pieces, as far as it was not given as a line yet.
#[derive(Default)]
pub struct Lines {
    cleaner: Cleaner,
    rest: String,
}

impl Lines {
    /// The lines that this piece completes, those that are blank left out.
    pub fn add(&mut self, piece: &str) -> Vec<String> {
        self.cleaner.add(piece, &mut self.rest);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.find('\n').map(|end| end + 1).or_else(|| long(&self.rest)) {
            let rest = self.rest.split_off(end);
            lines.extend(self.rest());
            self.rest = rest;
        }
        lines
    }

    /// What has no end yet.
    pub fn rest(&mut self) -> Vec<String> {
        let text = std::mem::take(&mut self.rest);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// How a line is marked: who speaks, and whether it is the model's text, its thinking, or the output of
/// a tool or a setup.
pub type Style = (Tone, char);

/// The model's text.
pub const SAYS: Style = (Tone::Plain, '|');

/// Its thinking.
pub const THINKS: Style = (Tone::Quiet, '~');

/// Output.
pub const PRINTS: Style = (Tone::Quiet, '$');

/// These lines with who says them, and what they are.
pub fn shown(name: &AgentName, lines: Vec<String>, (tone, mark): Style) -> Vec<Line> {
    lines.into_iter().map(|line| (tone, format!("{name} {mark} {line}"))).collect()
}

/// Where a long line without an end is broken: after a space, if there is one.
fn long(text: &str) -> Option<usize> {
    let (end, _) = text.char_indices().nth(WIDTH)?;
    Some(text[..end].rfind(' ').map_or(end, |space| space + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_whole_lines_that_no_terminal_obeys() {
        let mut lines = Lines::default();
        for (piece, whole) in [
            ("one\n\ntw", vec!["one"]),
            ("o\u{1b}[3", vec![]),
            ("1m three\r\n", vec!["two three"]),
            ("no end", vec![]),
        ] {
            assert_eq!(lines.add(piece), whole, "{piece:?}");
        }
        assert_eq!((lines.rest(), lines.rest()), (vec!["no end".to_owned()], vec![]));
        assert_eq!(lines.add(&"long ".repeat(30)), ["long ".repeat(20).trim_end()]);
        assert_eq!(lines.rest(), ["long ".repeat(10).trim_end()]);
    }
}
