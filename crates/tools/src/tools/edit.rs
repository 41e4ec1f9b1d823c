//! `edit`: a text in a file, replaced by another one.

use std::borrow::Cow;
use std::sync::Arc;

use midturn_core::engine::ports::{Output, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::on_files::{Does, FileTool};
use super::read::text_of;
use crate::context::ToolContext;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file: relative to your working folder, or absolute within it. (`file_path` is understood too.)
    #[serde(alias = "file_path")]
    path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. (`old_string` is understood too.)
    #[serde(alias = "old_string")]
    old: String,
    /// What comes in its place. (`new_string` is understood too.)
    #[serde(alias = "new_string")]
    new: String,
    /// Replace it wherever it is; else it must be there exactly once.
    #[serde(default)]
    replace_all: bool,
}

/// `edit` in the root of this agent.
pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = "Replaces a text in a file of your working folder, in one step. `old` has to be there exactly once \
                (take more of the lines around it until it is), or wherever it is with `replace_all`. Line \
                endings and the file's mode stay.";
    FileTool::make(("edit", text), context, Does::Edit, edit)
}

fn edit(context: &ToolContext, arguments: &Arguments, _: &CancellationToken) -> Result<Output, String> {
    let path = &arguments.path;
    let seen = context.seen(path);
    let count = context.root.place(path, false, |place| {
        let (file, was) = place.read()?;
        let old = text_of((file, was), path)?;
        if let Some((seen, name)) = &seen {
            seen.may_change(name, Some(((&was).into(), old.as_bytes())), false)?;
        }
        let (text, count) = replaced(&old, arguments)?;
        let new = place.replace(text.as_bytes(), Some(&was))?;
        if let Some((seen, name)) = &seen {
            seen.has_written(name, (&new).into(), text.as_bytes());
        }
        Ok::<_, String>(count)
    })?;
    context.edited(path);
    let times = if count == 1 { String::new() } else { format!(" in {count} places") };
    Ok(Output::ok(format!("Edited {path}{times}.")))
}

/// The text after the edit, and in how many places it was made.
fn replaced(text: &str, arguments: &Arguments) -> Result<(String, usize), String> {
    let Arguments { path, old, new, replace_all } = arguments;
    if old.is_empty() {
        return Err("`old` is empty: say what to replace, or use write for the whole file".to_owned());
    }
    let (old, new) = as_in(text, old, new);
    if old == new {
        return Err("`old` and `new` are the same, so there is nothing to change".to_owned());
    }
    match (occurrences(text, &old), *replace_all) {
        (0, _) => Err(format!("`old` is not in `{path}`{}", hint(text, &old))),
        (1, _) | (_, true) => Ok((text.replace(&*old, &new), text.matches(&*old).count())),
        (count, false) => Err(format!(
            "`old` is in `{path}` {count} times: include more of the lines around the place you mean, or set replace_all"
        )),
    }
}

/// Old and new with the line endings that the file has: a model sees and writes none of CRLF.
fn as_in<'a>(text: &str, old: &'a str, new: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    let ending = Ending::of(text);
    let adapted = ending.applied_to(old);
    if text.contains(&*adapted) { (adapted, ending.applied_to(new)) } else { (old.into(), new.into()) }
}

/// Places that overlap count each: which of them is meant can't be known.
fn occurrences(text: &str, old: &str) -> usize {
    text.char_indices().filter(|(at, _)| text[*at..].starts_with(old)).count()
}

/// What may have gone wrong.
fn hint(text: &str, old: &str) -> &'static str {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if squeezed(text).contains(&squeezed(old)) {
        "; it is there with different white space or line breaks: read the file again and copy the text exactly"
    } else {
        ": read it again, it may have changed"
    }
}

/// How a text's lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    /// What most lines have.
    pub(super) fn of(text: &str) -> Self {
        let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
        if crlf * 2 > all { Self::CrLf } else { Self::Lf }
    }

    /// The text with these endings.
    pub(super) fn applied_to(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Lf if text.contains("\r\n") => text.replace("\r\n", "\n").into(),
            Self::CrLf if text.contains('\n') => text.replace("\r\n", "\n").replace('\n', "\r\n").into(),
            Self::Lf | Self::CrLf => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, old: &str, new: &str, replace_all: bool) -> Result<(String, usize), String> {
        replaced(text, &Arguments { path: "f".into(), old: old.into(), new: new.into(), replace_all })
    }

    #[test]
    fn an_edit_replaces_what_is_meant_and_keeps_line_endings() {
        let rows = [
            ("a b c", "b", "x", false, "a x c", 1),
            ("a a", "a", "b", true, "b b", 2),
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", 1),
            ("a\r\nb\r\n", "b", "x\ny", false, "a\r\nx\r\ny\r\n", 1),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", 1),
            ("a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n", 1),
            ("a\nb\r\nc\n", "b\r\n", "x\r\n", false, "a\nx\r\nc\n", 1),
            ("é\n", "é", "è", false, "è\n", 1),
            ("aaaa", "aa", "b", true, "bb", 2),
            ("a", "a", "", false, "", 1),
        ];
        for (text, old, new, all, expected, count) in rows {
            assert_eq!(run(text, old, new, all), Ok((expected.to_owned(), count)), "{text:?}");
        }
    }

    #[test]
    fn an_edit_that_is_not_clear_fails_and_says_why() {
        let rows = [
            ("a b a", "a", "x", false, "is in `f` 2 times"),
            ("aaa", "aa", "x", false, "is in `f` 2 times"),
            ("a b", "c", "x", false, "is not in `f`: read it again"),
            ("a   b", "a b", "x", false, "different white space"),
            ("a", "", "x", false, "`old` is empty"),
            ("a", "a", "a", false, "nothing to change"),
            ("a b", "c", "x", true, "is not in `f`"),
        ];
        for (text, old, new, all, says) in rows {
            let error = run(text, old, new, all).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
