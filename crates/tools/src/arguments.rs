//! Schemas out, arguments in: one struct per tool is both. And the notes on what comes back, with
//! the names that they list.

use std::sync::{Arc, Weak};

use midturn_core::engine::ports::{Output, ToolSpec};
use midturn_core::rules::characters::quoted;
use midturn_core::rules::conversation::ToolUse;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// How many names a sentence lists.
const NAMES_MAX: usize = 5;

/// What the model is told of a tool whose arguments are an `A`. Agents who are told the same share it:
/// the schemas of one agent's tools have 27 KB. A tool's name says which arguments it has.
pub(crate) fn spec<A: JsonSchema>(name: &str, description: &str) -> Arc<ToolSpec> {
    static TOLD: Mutex<Vec<Weak<ToolSpec>>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock();
    let same = |spec: &Arc<ToolSpec>| *spec.name == *name && *spec.description == *description;
    if let Some(known) = told.iter().filter_map(Weak::upgrade).find(same) {
        return known;
    }
    let made = Arc::new(make_spec::<A>(name, description));
    told.retain(|other| other.strong_count() > 0);
    told.push(Arc::downgrade(&made));
    made
}

fn make_spec<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<A>();
    // Of no use to a model, and each byte is paid for in every request.
    schema.remove("$schema");
    schema.remove("title");
    schema.remove("description");
    ToolSpec { name: name.into(), description: description.into(), input_schema: schema.to_value() }
}

/// The arguments of a call, or a result that says what was wrong and where.
///
/// What the tool does not know costs no turn: models bring arguments along from the tools of other
/// programs. The result says so all the same, since a `cwd` that changed nothing may be missed.
pub(crate) fn parse<A: DeserializeOwned>(call: &ToolUse) -> Result<(A, Option<String>), Output> {
    let (mut track, mut names) = (serde_path_to_error::Track::new(), Vec::new());
    let located = serde_path_to_error::Deserializer::new(&call.input, &mut track);
    let parsed = serde_ignored::deserialize(located, |path| names.push(format!("`{path}`")));
    match parsed {
        Ok(arguments) => {
            let (tool, all) = (&call.name, names.join(", "));
            let note = format!("Ignored, since {tool} has no such argument: {all}");
            Ok((arguments, Some(note).filter(|_| !names.is_empty())))
        }
        Err(what) => {
            let place = match track.path().to_string() {
                all if all == "." => String::new(),
                place => format!("`{place}`: "),
            };
            Err(Output::error(format!("The arguments of {} don't fit: {place}{what}.", call.name)))
        }
    }
}

/// The result, with a note below it, if there is one.
pub(crate) fn noted(output: Output, note: Option<String>) -> Output {
    note.into_iter()
        .fold(output, |Output { text, is_error }, note| Output { text: with_note(text, &note), is_error })
}

/// A note is a line of its own, in brackets, below what it is about.
pub(crate) fn with_note(mut text: String, note: &str) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &format!("[{note}]")
}

/// Some names, for a sentence. `None`: there are none.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> Option<String> {
    let shown: Vec<_> = names.iter().take(NAMES_MAX).map(|name| quoted(name.as_ref())).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 if shown.is_empty() => None,
        0 => Some(shown.join(", ")),
        more => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    struct OneText {
        #[allow(dead_code, reason = "only its schema is wanted")]
        text: String,
    }

    #[test]
    fn agents_who_are_told_the_same_of_a_tool_share_it() {
        let [first, same, other] = ["a", "a", "b"].map(|text| spec::<OneText>("some", text));
        assert!(Arc::ptr_eq(&first, &same));
        assert_eq!((&*other.description, &other.input_schema), ("b", &first.input_schema));
    }

    #[test]
    fn a_sentence_lists_some_names_and_counts_the_others() {
        assert_eq!(listed(&["1", "2", "3", "4", "5", "6", "7"]).unwrap(), "1, 2, 3, 4, 5 and 2 more");
        assert_eq!(listed(&["1"]).unwrap(), "1");
        assert_eq!(listed(&["a\n[all is well]"]).unwrap(), r#""a\n[all is well]""#);
        assert_eq!(listed(&[""; 0]), None);
    }
}
