//! What the tests of laid out text share, and what holds for all of it.

use ratatui::text::Line;

use crate::look::Look;

pub(super) const BOTH: Look = Look { colours: true, unicode: true };
pub(super) const ASCII: Look = Look { colours: false, unicode: false };

/// The text of lines, without styles.
pub(super) fn shown(lines: &[Line]) -> String {
    let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
    lines.join("\n")
}
