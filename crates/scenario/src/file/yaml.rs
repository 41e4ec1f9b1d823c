//! The YAML reader: budgets against bombs, and its errors in this format's words.

use serde_saphyr::Error as Yaml;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::raw::RawFile;
use crate::error::{Error, Place, Source, one_of, short};

/// How deep a file may nest. The format itself needs eight; the rest is for `input`.
const DEPTH: usize = 48;

/// Reads a file's text.
pub(super) fn read(source: &Source) -> Result<RawFile, Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_documents: 1,
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_recorded_anchor_events: 10_000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        no_schema: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(&source.text, options).map_err(|error| translated(source, &error))
}

fn translated(source: &Source, error: &Yaml) -> Error {
    let place = error.location().map_or(Place::START, Place::from);
    if let Yaml::AliasError { error, .. } = error {
        return translated(source, error);
    }
    let (found, expected) =
        in_words(source, place, error).unwrap_or_else(|| (first_line(&error.render()), "valid YAML".into()));
    source.fault(place, found, expected)
}

/// What was found and what was expected; `None` leaves it to the reader's own words.
fn in_words(source: &Source, place: Place, error: &Yaml) -> Option<(String, String)> {
    let here = || source.describe(place);
    let words = match error {
        Yaml::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        Yaml::SerdeUnknownVariant { variant, expected, .. } => unknown("word", variant, expected),
        Yaml::SerdeMissingField { field, .. } => (format!("no `{field}` here"), format!("the key `{field}`")),
        Yaml::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map(short).unwrap_or_default();
            (format!("the key `{key}` a second time"), "each key once".into())
        }
        Yaml::InvalidScalar { ty, .. } => (here(), type_name(ty)),
        Yaml::InvalidBooleanStrict { .. } => (here(), "true or false".into()),
        Yaml::Unexpected { expected, .. } => (here(), spoken(expected)),
        Yaml::SerdeInvalidType { unexpected, expected, .. }
        | Yaml::SerdeInvalidValue { unexpected, expected, .. } => (spoken(unexpected), spoken(expected)),
        Yaml::SerdeInvalidLength { len, expected, .. } => (format!("a list of {len}"), spoken(expected)),
        Yaml::NullIntoString { .. } => ("nothing".into(), "a text".into()),
        Yaml::QuotingRequired { value, .. } => {
            (format!("`{}`, which is a number or a boolean", short(value)), "a text: put it in quotes".into())
        }
        Yaml::Message { msg, .. } => match msg.strip_prefix("expected ") {
            Some(expected) => (here(), expected.into()),
            None => a_types_own_words(msg),
        },
        Yaml::Eof { .. } => ("the end of the file".into(), "a scenario: `midturn: 1` and `agents`".into()),
        Yaml::InvalidUtf8Input => ("bytes that are no UTF-8".into(), "UTF-8".into()),
        other => return refused(other),
    };
    Some(words)
}

/// What YAML has and this format refuses.
fn refused(error: &Yaml) -> Option<(String, String)> {
    use serde_saphyr::budget::BudgetBreach as Breach;
    let (found, expected) = match error {
        Yaml::Budget { breach: Breach::Aliases { .. }, .. } | Yaml::UnknownAnchor { .. } => {
            ("an alias", "the value itself: aliases are refused")
        }
        Yaml::MergeKeyNotAllowed { .. } => ("a merge key", "the keys themselves: merge keys are refused"),
        Yaml::Budget { breach: Breach::Documents { .. }, .. } | Yaml::MultipleDocuments { .. } => {
            ("a second document", "one document a file")
        }
        Yaml::Budget { breach: Breach::Depth { .. }, .. } => {
            ("lists and maps too deep in each other", "at most 48 levels")
        }
        Yaml::Budget { .. } => ("more than a scenario may have", "a smaller file"),
        Yaml::UnsupportedTag { .. } => ("a YAML tag", "a plain value"),
        Yaml::NonFiniteFloat { .. } => ("a number that JSON doesn't have", "a finite number"),
        _ => return None,
    };
    Some((found.into(), expected.into()))
}

fn unknown(what: &str, word: &str, expected: &[&'static str]) -> (String, String) {
    (format!("the unknown {what} `{}`", short(word)), one_of(word, expected.iter().copied()))
}

fn type_name(ty: &str) -> String {
    match ty {
        "bool" => "true or false",
        "f32" | "f64" => "a number",
        _ => "a whole number",
    }
    .into()
}

/// What the reader names otherwise than people do.
fn spoken(name: &str) -> String {
    match name {
        "string scalar" => "a text",
        "sequence start" | "sequence" => "a list",
        "mapping start" => "a map of keys and values",
        "map" => "a map",
        "unit value" | "null" => "nothing",
        "a tuple of size 2" => "[when, text]",
        other => other,
    }
    .into()
}

/// Durations and names say "`X` is no Y: ADVICE"; that has both halves of the sentence.
fn a_types_own_words(message: &str) -> (String, String) {
    let halves = message.split_once(": ").and_then(|(head, advice)| {
        let (found, what) = head.split_once(" is no ").or_else(|| head.split_once(" is "))?;
        let expected = if what == "reserved" { "another name" } else { what };
        Some((found, format!("{} ({advice})", with_article(expected))))
    });
    match halves {
        Some((found, expected)) => (short_sentence(found), expected),
        None => (short_sentence(message), "a valid value".into()),
    }
}

fn with_article(what: &str) -> String {
    match what.chars().next() {
        _ if what.starts_with("another") => what.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {what}"),
        _ => format!("a {what}"),
    }
}

fn short_sentence(text: &str) -> String {
    text.chars().take(200).collect()
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.rsplit_once(" at line ").map_or(line, |(head, _)| head);
    short_sentence(line)
}
