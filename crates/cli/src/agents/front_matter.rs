//! The front matter of a definition file: YAML between two lines of three dashes. Keys that
//! we don't know are told with their place, never an error: other programs read these files too.

use std::collections::HashMap;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::lenient;
use crate::files::{Misplaced, Spot};

/// The keys that we know.
pub(super) const KEYS: [&str; 6] = ["name", "description", "tools", "disallowedTools", "model", "isolation"];

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

/// What a front matter says; a key without a value says nothing.
#[derive(Debug, Default)]
pub(super) struct FrontMatter {
    pub(super) name: Option<Placed<String>>,
    pub(super) description: Option<Placed<String>>,
    pub(super) tools: Option<Placed<ToolList>>,
    pub(super) disallowed: Option<Placed<ToolList>>,
    pub(super) model: Option<Placed<String>>,
    pub(super) isolation: Option<Placed<String>>,
    /// The keys that we don't know after their lines, in the file's order.
    pub(super) unknown: Vec<(usize, String)>,
    /// Why it is no YAML, if it was read line by line.
    pub(super) refused: Option<(usize, String)>,
}

/// The same as YAML has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "keys with values, such as `name: reviewer`")]
struct Yaml {
    name: Option<Spanned<String>>,
    description: Option<Spanned<String>>,
    tools: Option<Spanned<ToolList>>,
    #[serde(rename = "disallowedTools")]
    disallowed: Option<Spanned<ToolList>>,
    model: Option<Spanned<String>>,
    isolation: Option<Spanned<String>>,
}

/// Tools as files write them: a list, one text with commas or blanks between, or a table of yes and no.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolList {
    /// These and no others; `None` is all.
    pub(super) only: Option<Vec<String>>,
    /// None of these.
    pub(super) never: Vec<String>,
}

impl ToolList {
    /// The names in a text; what stands in parentheses belongs to its name.
    pub(super) fn of_text(text: &str) -> Self {
        let mut depth = 0_u32;
        let parts = text.split(|sign: char| {
            match sign {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (sign == ',' || sign.is_whitespace())
        });
        Self::only(parts.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    fn only(names: Vec<String>) -> Self {
        Self { only: Some(names), never: Vec::new() }
    }

    fn of_table(table: &Map<String, Value>) -> Self {
        let said = |word| {
            let names = table.iter().filter(move |(name, said)| **said == Value::Bool(word) && *name != "*");
            names.map(|(name, _)| name.clone()).collect()
        };
        let only = (table.get("*") == Some(&Value::Bool(false))).then(|| said(true));
        Self { only, never: said(false) }
    }
}

impl<'de> Deserialize<'de> for ToolList {
    /// What can't be understood is taken as a name, which no tool has: it is told then.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self::of_text(&text),
            Value::Array(items) => Self::only(items.iter().map(name_of).collect()),
            Value::Object(table) => Self::of_table(&table),
            other => Self::only(vec![name_of(&other)]),
        })
    }
}

fn name_of(item: &Value) -> String {
    item.as_str().map_or_else(|| item.to_string(), |name| name.trim().to_owned())
}

/// Splits a file into front matter and body and reads the first; `None` where there is none.
///
/// # Errors
/// It has no end, or nothing in it can be understood.
pub(super) fn read(source: &str) -> Result<Option<(FrontMatter, &str)>, Misplaced> {
    let Some((yaml, body)) = split(source)? else { return Ok(None) };
    if yaml.lines().skip(1).all(|line| line.trim().is_empty()) {
        return Ok(Some((FrontMatter::default(), body)));
    }
    let front = of_yaml(yaml).or_else(|(at, why)| {
        let front = lenient::read(yaml).ok_or_else(|| (at, why.clone()))?;
        Ok(FrontMatter { refused: Some((at.line, why)), ..front })
    })?;
    Ok(Some((front, body)))
}

fn of_yaml(yaml: &str) -> Result<FrontMatter, Misplaced> {
    let Yaml { name, description, tools, disallowed, model, isolation } = parsed(yaml)?;
    // A second look: what serde hands a struct of the keys that it doesn't name has lost its place.
    let all: HashMap<Spanned<String>, IgnoredAny> = parsed(yaml)?;
    let mut unknown: Vec<_> = all.into_keys().filter(|key| !KEYS.contains(&key.value.as_str())).collect();
    unknown.sort_by_key(|key| (key.referenced.line(), key.referenced.column()));
    Ok(FrontMatter {
        name: name.map(placed),
        description: description.map(placed),
        tools: tools.map(placed),
        disallowed: disallowed.map(placed),
        model: model.map(placed),
        isolation: isolation.map(placed),
        unknown: unknown.into_iter().map(|key| (spot(key.referenced).line, key.value)).collect(),
        refused: None,
    })
}

fn placed<T>(value: Spanned<T>) -> Placed<T> {
    Placed { line: spot(value.referenced).line, value: value.value }
}

fn parsed<T: DeserializeOwned>(yaml: &str) -> Result<T, Misplaced> {
    // The first line of dashes is YAML's own mark for a document's beginning, so lines count as in the file.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(yaml, options)
        .map_err(|error| (error.location().map_or(Spot::START, spot), message(&error)))
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

fn split(source: &str) -> Result<Option<(&str, &str)>, Misplaced> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut at = 0;
    for (number, line) in source.split_inclusive('\n').enumerate() {
        if number == 0 && !is_fence(line) {
            return Ok(None);
        }
        if number > 0 && is_fence(line) {
            return Ok(Some((&source[..at], &source[at + line.len()..])));
        }
        at += line.len();
    }
    match source.is_empty() {
        true => Ok(None),
        false => Err((Spot::START, "the front matter has no end: expected a second line `---`".to_owned())),
    }
}
