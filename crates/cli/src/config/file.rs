//! Reads a configuration file and tells where in it something stands. It knows TOML, and
//! nothing of what the keys mean.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::files::{Misplaced, Spot};

/// A key of a file with its value and their places.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The segments of its dotted name.
    pub(super) key: Vec<String>,
    /// Where the last segment stands.
    pub(super) key_at: Spot,
    /// The value; a table only when it is empty.
    pub(super) value: Value,
    /// Where the value stands.
    pub(super) value_at: Spot,
    /// Where the entries of a list stand; none of another value.
    pub(super) items_at: Vec<Spot>,
}

/// All leaves of a file, in the file's order. An error names its place.
pub(super) fn leaves(source: &str) -> Result<Vec<Leaf>, Misplaced> {
    let table = DeTable::parse(source).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (spot(source, at), error.message().trim_end().to_owned())
    })?;
    let mut found = Vec::new();
    gather(source, &mut Vec::new(), table.get_ref(), &mut found)?;
    found.sort_by_key(|leaf| (leaf.key_at.line, leaf.key_at.column));
    Ok(found)
}

fn gather(
    source: &str,
    path: &mut Vec<String>,
    table: &DeTable<'_>,
    found: &mut Vec<Leaf>,
) -> Result<(), Misplaced> {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() => gather(source, path, inner, found)?,
            other => found.push(Leaf {
                key: path.clone(),
                key_at: spot(source, key.span().start),
                value: plain(other).map_err(|what| (spot(source, value.span().start), what))?,
                value_at: spot(source, value.span().start),
                items_at: items_at(source, other),
            }),
        }
        path.pop();
    }
    Ok(())
}

fn items_at(source: &str, value: &DeValue<'_>) -> Vec<Spot> {
    let items = match value {
        DeValue::Array(items) => &items[..],
        _ => &[],
    };
    items.iter().map(|item| spot(source, item.span().start)).collect()
}

/// The value as JSON, which is what the keys' types are read from.
fn plain(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(on) => Value::from(*on),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::from)
            .map_err(|_| "the number is too large".to_owned())?,
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().map(Value::from).map_err(|error| error.to_string())?
        }
        DeValue::Datetime(_) => return Err("no key takes a date or a time".to_owned()),
        DeValue::Array(items) => items.iter().map(|item| plain(item.get_ref())).collect::<Result<_, _>>()?,
        DeValue::Table(table) => {
            let fields =
                table.iter().map(|(key, item)| Ok((key.get_ref().to_string(), plain(item.get_ref())?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
    })
}

/// The one way to write a key that a person writes in words of a command: with quotes it is read as a file has it.
pub(super) fn one_key(text: &str) -> Result<String, String> {
    if !text.contains(['"', '\'']) {
        return Ok(text.to_owned());
    }
    let refuse =
        |why: &str| format!("`{text}` is no key as a file has it, such as models.\"a/b\".input: {why}");
    let leaves = leaves(&format!("{text} = 0")).map_err(|(_, why)| refuse(&why))?;
    match &leaves[..] {
        [leaf] => Ok(leaf.key.join(".")),
        _ => Err(refuse("it is more than one")),
    }
}

/// One value as it would stand in a file; `None` when the text is not a value.
pub(super) fn one_value(text: &str) -> Option<Value> {
    DeValue::parse(text).ok().and_then(|value| plain(value.get_ref()).ok())
}

fn spot(source: &str, at: usize) -> Spot {
    let before = source.get(..at).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Spot { line: 1 + before.matches('\n').count(), column: 1 + before[line_start..].chars().count() }
}
