//! A draft as a person sends it: words of an action behind `/`, or text.

use super::table::{self, Action, Row, TABLE, Words};

/// What a draft is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draft<'a> {
    /// A message.
    Text(&'a str),
    /// An action, and the words behind its name.
    Command(Action, &'a str),
}

/// Why a line that begins with `/` can't be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No action has that name.
    #[error("there is no action `/{name}`{}; text that begins with / is written //", meant(nearest.as_ref()))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest one there is.
        nearest: Option<&'static str>,
    },
    /// It is written otherwise.
    #[error("it is written {0}")]
    Form(String),
}

fn meant(nearest: Option<&&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (the nearest is `/{name}`)"))
}

/// The longest name that is repeated in an error.
const NAME_MAX: usize = 40;

/// Reads a draft: `//` at its beginning is a `/` of the text.
///
/// # Errors
/// [`CommandError`]: it begins with `/` and is no action.
pub fn read(draft: &str) -> Result<Draft<'_>, CommandError> {
    match draft.strip_prefix('/') {
        None => Ok(Draft::Text(draft)),
        Some(text) if text.starts_with('/') => Ok(Draft::Text(text)),
        Some(_) => command(draft).map(|(action, words)| Draft::Command(action, words)),
    }
}

/// Reads `/word rest`.
///
/// # Errors
/// [`CommandError`]: no action has that name, or it wants other words.
pub fn command(line: &str) -> Result<(Action, &str), CommandError> {
    let line = line.strip_prefix('/').unwrap_or(line);
    let (name, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words = words.trim();
    let row = table::row_named(name).ok_or_else(|| CommandError::Unknown {
        name: name.chars().take(NAME_MAX).collect(),
        nearest: table::nearest(name),
    })?;
    let is_sound = match row.words {
        Words::None => words.is_empty(),
        Words::Some(_) => true,
        Words::Needed(_) => !words.is_empty(),
    };
    if is_sound { Ok((row.action, words)) } else { Err(CommandError::Form(row.written())) }
}

/// The actions to choose from, given what is typed behind `/`: those whose names begin so, then those that
/// have it in their name or help.
pub fn matching(typed: &str) -> impl Iterator<Item = &'static Row> {
    let typed = typed.trim().to_lowercase().replace('-', "_");
    let (first, second) = (typed.clone(), typed);
    // Nine rows that differ by a digit are on the screen of keys, as one.
    let rows = || TABLE.iter().filter(|row| !matches!(row.action, Action::AgentAt(_)));
    let begins = rows().filter(move |row| row.name.starts_with(&first));
    let has = rows().filter(move |row| {
        let text = second.replace('_', " ");
        !row.name.starts_with(&second)
            && (row.name.contains(&second) || row.help.to_lowercase().contains(&text))
    });
    begins.chain(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_text_or_an_action() {
        for (draft, expected) in [
            ("use tabs", Draft::Text("use tabs")),
            ("", Draft::Text("")),
            (" /stop", Draft::Text(" /stop")),
            ("//etc/hosts is wrong", Draft::Text("/etc/hosts is wrong")),
            ("//", Draft::Text("/")),
            ("/stop", Draft::Command(Action::Stop, "")),
            ("/Stop \n", Draft::Command(Action::Stop, "")),
            ("/no  use the\ntest database ", Draft::Command(Action::No, "use the\ntest database")),
            ("/no", Draft::Command(Action::No, "")),
            ("/now", Draft::Command(Action::Now, "")),
            ("/now wrong branch", Draft::Command(Action::Now, "wrong branch")),
            ("/instead\nread it", Draft::Command(Action::Instead, "read it")),
            ("/page-up", Draft::Command(Action::PageUp, "")),
            ("/limit max_turns=60", Draft::Command(Action::Limit, "max_turns=60")),
        ] {
            assert_eq!(read(draft), Ok(expected), "{draft:?}");
        }
    }

    #[test]
    fn what_is_no_action_is_told_with_what_was_meant() {
        for (draft, expected) in [
            (
                "/stpo",
                "there is no action `/stpo` (the nearest is `/stop`); text that begins with / is written //",
            ),
            ("/usr/bin", "there is no action `/usr/bin`; text that"),
            ("/", "there is no action `/`"),
            ("/ stop", "there is no action `/`"),
            ("/agnet x", "(the nearest is `/agent`)"),
            ("/diff worker", "it is written /diff"),
            ("/instead", "it is written /instead TEXT"),
            ("/agent ", "it is written /agent NAME"),
            ("/limit", "it is written /limit max_turns=60"),
        ] {
            let told = read(draft).unwrap_err().to_string();
            assert!(told.starts_with(expected) || told.contains(expected), "{draft:?}: {told}");
        }
        let long = read(&format!("/{}", "x".repeat(1_000))).unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn actions_are_found_by_their_names_first_and_by_what_they_do() {
        for (typed, first, also) in [
            ("st", Action::Stop, Some(Action::Instead)),
            ("queued", Action::EditQueued, Some(Action::Withdraw)),
            ("no", Action::Now, Some(Action::No)),
            ("PLAN", Action::Plan, None),
            ("edit-q", Action::EditQueued, None),
            ("", Action::Send, Some(Action::Palette)),
        ] {
            let found: Vec<Action> = matching(typed).map(|row| row.action).collect();
            assert_eq!(found.first(), Some(&first), "{typed}: {found:?}");
            assert!(also.is_none_or(|action| found.contains(&action)), "{typed}: {found:?}");
            assert!(!found.contains(&Action::AgentAt(1)), "{typed}");
        }
        assert_eq!(matching("zzz").count(), 0);
    }
}
