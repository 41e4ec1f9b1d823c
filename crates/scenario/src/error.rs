//! What is wrong with a file, shown where it is wrong.
//!
//! An error names file, line and column, what was found and what was expected, and shows the
//! line with a caret (scenarios.md, section 1). The rendering is small and our own: it needs
//! no colours and no second line, and must never print what could drive a terminal.

use std::fmt;
use std::sync::Arc;

/// The widest piece of a line that is shown, in characters.
const SHOWN: usize = 100;

/// Why a file could not be replayed: exit status 2. `Display` is the whole rendering.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
    position: Option<(usize, usize)>,
}

impl Error {
    /// An error about a path as a whole: what is wrong with it, and what to do.
    pub fn of(path: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self { text: format!("{path}: {why}"), position: None }
    }

    /// The place in the file, if the error has one: line and column, both from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

/// The piece of a line around a column (from 0), and the column within it.
fn window(line: &str, column: usize) -> (String, usize) {
    let skipped = column.saturating_sub(SHOWN / 2);
    let text = line.chars().skip(skipped).take(SHOWN).map(printable).collect();
    (text, column - skipped)
}

fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// A place in a file, as the YAML reader gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How many characters it spans.
    pub len: usize,
}

impl Place {
    /// The file's first character.
    pub const START: Self = Self { line: 1, column: 1, len: 1 };
}

impl From<serde_saphyr::Location> for Place {
    fn from(location: serde_saphyr::Location) -> Self {
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            line: number(location.line()).max(1),
            column: number(location.column()).max(1),
            len: number(location.span().len()).max(1),
        }
    }
}

/// A file's path and text: what errors are shown in.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as given.
    pub path: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

impl Source {
    /// An error at a place.
    pub fn fault(&self, place: Place, found: impl Into<String>, expected: impl Into<String>) -> Error {
        let Place { line, column, len } = place;
        let (path, number) = (&self.path, line.to_string());
        let gutter = " ".repeat(number.len());
        let (text, before) = window(self.text.lines().nth(line - 1).unwrap_or_default(), column - 1);
        let room = text.chars().count().saturating_sub(before).max(1);
        let carets = format!("{}{}", " ".repeat(before), "^".repeat(len.clamp(1, room)));
        let (found, expected) = (found.into(), expected.into());
        let text = format!(
            "{path}:{line}:{column}: found {found}\n{gutter} |\n{number} | {text}\n{gutter} | {carets}\n{gutter} = \
             expected {expected}"
        );
        Error { text, position: Some((line, column)) }
    }

    /// An error about a word that is none of the known ones; names the nearest.
    pub fn unknown<'a>(
        &self,
        place: Place,
        what: &str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Error {
        self.fault(place, format!("the unknown {what} `{}`", short(word)), one_of(word, known))
    }

    /// Where a key of a map stands, from where the map begins; there, if it can't be found.
    pub fn key_after(&self, map: Place, key: &str) -> Place {
        let lines = self.text.lines().enumerate().skip(map.line - 1);
        let found = lines.into_iter().find_map(|(index, line)| {
            let skipped = if index + 1 == map.line { map.column - 1 } else { 0 };
            let rest: String = line.chars().skip(skipped).collect();
            let at = rest.find(&format!("{key}:"))?;
            let column = skipped + rest[..at].chars().count() + 1;
            Some(Place { line: index + 1, column, len: key.chars().count() })
        });
        found.unwrap_or(map)
    }

    /// What stands at a place, in words.
    pub fn describe(&self, place: Place) -> String {
        let line = self.text.lines().nth(place.line - 1).unwrap_or_default();
        let rest: String = line.chars().skip(place.column - 1).collect();
        match rest.trim_start().chars().next() {
            None => "nothing".to_owned(),
            Some('[') => "a list".to_owned(),
            Some('{') => "a map".to_owned(),
            Some('-') if rest.trim_start().starts_with("- ") => "a list".to_owned(),
            Some(_) => {
                let word: String = rest.chars().take(place.len.min(60)).collect();
                let after = rest.chars().nth(place.len);
                if after == Some(':') { "a map".to_owned() } else { format!("`{}`", word.trim_end()) }
            }
        }
    }
}

/// `one of a, b, c`, with the nearest to a misspelt word first.
pub(crate) fn one_of<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known
        .iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 2)
        .min_by_key(|(distance, _)| *distance);
    let listed = match known.as_slice() {
        [] => return "none here".to_owned(),
        [only] => format!("`{only}`"),
        several => format!("one of {}", several.join(", ")),
    };
    match nearest {
        Some((_, nearest)) if known.len() > 1 => format!("`{nearest}` perhaps: {listed}"),
        _ => listed,
    }
}

/// A text cut to what fits into a sentence.
pub(crate) fn short(text: &str) -> String {
    let kept: String = text.chars().take(120).map(printable).collect();
    if text.chars().nth(120).is_some() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "a.yaml".into(), text: text.into() }
    }

    #[test]
    fn an_error_shows_its_line_with_a_caret_under_it() {
        let source = source("midturn: 1\nnam: x\n");
        let place = Place { line: 2, column: 1, len: 3 };
        let error = source.unknown(place, "key", "nam", ["midturn", "name"]);
        assert_eq!(
            error.to_string(),
            "a.yaml:2:1: found the unknown key `nam`\n  |\n2 | nam: x\n  | ^^^\n  \
             = expected `name` perhaps: one of midturn, name"
        );
    }

    #[test]
    fn a_long_line_is_shown_around_the_place_and_no_control_character_gets_through() {
        let line = format!("{}\u{1b}[2J!{}", "a".repeat(300), "b".repeat(300));
        let place = Place { line: 1, column: 305, len: 500 };
        let shown = source(&line).fault(place, "x", "y").to_string();
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.lines().all(|line| line.chars().count() <= SHOWN + 8), "{shown}");
    }
}
