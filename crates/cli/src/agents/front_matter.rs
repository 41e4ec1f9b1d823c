//! The front matter of a definition file: YAML between two lines of three dashes. Keys that
//! we don't know are told with their place, never an error: other programs read these files too.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_saphyr::Spanned;

use crate::config::Names;
use crate::files::{Misplaced, Spot};

/// The keys that we know.
const KEYS: [&str; 5] = ["name", "description", "tools", "model", "isolation"];

/// What a front matter says; a key without a value says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "keys with values, such as `name: reviewer`")]
pub(super) struct FrontMatter {
    pub(super) name: Option<Spanned<String>>,
    pub(super) description: Option<Spanned<String>>,
    pub(super) tools: Option<Spanned<Names>>,
    pub(super) model: Option<Spanned<String>>,
    pub(super) isolation: Option<Spanned<String>>,
    /// The keys that we don't know, in the file's order.
    #[serde(skip)]
    pub(super) unknown: Vec<Spanned<String>>,
}

/// Splits a file into front matter and body and reads the first.
pub(super) fn read(source: &str) -> Result<(FrontMatter, &str), Misplaced> {
    let (yaml, body) = split(source)?;
    if yaml.lines().skip(1).all(|line| line.trim().is_empty()) {
        return Ok((FrontMatter::default(), body));
    }
    let mut front: FrontMatter = parsed(yaml)?;
    // A second look: what serde hands a struct of the keys that it doesn't name has lost its place.
    let all: HashMap<Spanned<String>, IgnoredAny> = parsed(yaml)?;
    front.unknown = all.into_keys().filter(|key| !KEYS.contains(&key.value.as_str())).collect();
    front.unknown.sort_by_key(|key| (key.referenced.line(), key.referenced.column()));
    Ok((front, body))
}

fn parsed<T: DeserializeOwned>(yaml: &str) -> Result<T, Misplaced> {
    // The first line of dashes is YAML's own mark for a document's beginning, so lines count as in the file.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(yaml, options)
        .map_err(|error| (error.location().map_or(Spot::START, spot), message(&error)))
}

/// Where a value stands.
pub(super) fn at<T>(value: &Spanned<T>) -> Spot {
    spot(value.referenced)
}

fn spot(location: serde_saphyr::Location) -> Spot {
    let counted = |from_one: u64| usize::try_from(from_one).unwrap_or(usize::MAX).max(1);
    Spot { line: counted(location.line()), column: counted(location.column()) }
}

/// The text of an error without the place that is printed before it anyway.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).trim().to_owned()
}

fn split(source: &str) -> Result<(&str, &str), Misplaced> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut at = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        if number == 0 && !is_fence(line) {
            return Err((Spot::START, "expected `---`, the line that begins the front matter".to_owned()));
        }
        if number > 0 && is_fence(line) {
            return Ok((&source[..at], &source[at + line.len()..]));
        }
        at += line.len();
    }
    Err((Spot::START, "the front matter has no end: expected a second line `---`".to_owned()))
}
