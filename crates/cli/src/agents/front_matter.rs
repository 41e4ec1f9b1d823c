//! The front matter of a definition file: YAML between two lines of three dashes. Keys that
//! we don't know are kept with their place, never an error: other programs read these files too.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::config::Names;
use crate::files::{Misplaced, Spot};

/// A value and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) at: Spot,
}

impl<T> From<Spanned<T>> for Placed<T> {
    fn from(spanned: Spanned<T>) -> Self {
        Self { at: spot(spanned.referenced), value: spanned.value }
    }
}

/// What a front matter says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<Placed<String>>,
    pub(super) description: Option<Placed<String>>,
    pub(super) tools: Option<Placed<Names>>,
    pub(super) model: Option<Placed<String>>,
    pub(super) isolation: Option<Placed<String>>,
    pub(super) unknown: Vec<(Placed<String>, Value)>,
}

/// Splits a file into front matter and body and reads the first.
pub(super) fn read(source: &str) -> Result<(FrontMatter, &str), Misplaced> {
    let (yaml, body) = split(source)?;
    if yaml.lines().skip(1).all(|line| line.trim().is_empty()) {
        return Ok((FrontMatter::default(), body));
    }
    // The first line of dashes is YAML's own mark for a document's beginning, so lines count as in the file.
    let options = serde_saphyr::options! { with_snippet: false };
    let front = serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let at = error.location().map_or(Spot::START, spot);
        (at, message(&error))
    })?;
    Ok((front, body))
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

impl<'de> Deserialize<'de> for FrontMatter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = FrontMatter;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("keys with values, such as `name: reviewer`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FrontMatter, A::Error> {
        let mut front = FrontMatter::default();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            match key.value.as_str() {
                "name" => front.name = placed(&mut map)?,
                "description" => front.description = placed(&mut map)?,
                "tools" => front.tools = placed(&mut map)?,
                "model" => front.model = placed(&mut map)?,
                "isolation" => front.isolation = placed(&mut map)?,
                _ => front.unknown.push((key.into(), map.next_value()?)),
            }
        }
        Ok(front)
    }
}

/// A value that may be left empty.
fn placed<'de, A: MapAccess<'de>, T: Deserialize<'de>>(map: &mut A) -> Result<Option<Placed<T>>, A::Error> {
    let spanned: Spanned<Option<T>> = map.next_value()?;
    let at = spot(spanned.referenced);
    Ok(spanned.value.map(|value| Placed { value, at }))
}
