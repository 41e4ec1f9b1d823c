//! What the tools of one agent share: its root, its limits, how its commands run, and a list of
//! what was edited.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::Output;
use midturn_core::rules::conversation::ToolUse;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::arguments::parse;
use crate::process::Supervisor;
use crate::root::Root;

/// The bounds of what a tool takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How much of a command's output, of a file or of a list of matches one result holds, in
    /// bytes; more is cut in the middle (commands) or at the end.
    pub output_bytes: usize,
    /// The largest file that is read or edited, in bytes.
    pub file_bytes: u64,
    /// How many lines `read` gives when it isn't told.
    pub read_lines: usize,
    /// Where a long line is cut, in characters.
    pub line_chars: usize,
    /// How many matches or files one search gives when it isn't told.
    pub search_results: usize,
    /// How long a command may run when it isn't told.
    pub timeout: Duration,
    /// The longest a command may ask for.
    pub timeout_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 32 << 10,
            file_bytes: 16 << 20,
            read_lines: 2_000,
            line_chars: 2_000,
            search_results: 500,
            timeout: Duration::from_secs(120),
            timeout_max: Duration::from_secs(600),
        }
    }
}

/// How many edited files are remembered for the report.
const EDITED_MAX: usize = 10_000;

/// What the tools of one agent share.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) root: Root,
    pub(crate) limits: Limits,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) environment: Arc<[(OsString, OsString)]>,
    edited: Mutex<BTreeSet<String>>,
}

impl Ground {
    pub(crate) fn new(
        root: Root,
        limits: Limits,
        supervisor: Arc<Supervisor>,
        environment: Arc<[(OsString, OsString)]>,
    ) -> Self {
        Self { root, limits, supervisor, environment, edited: Mutex::default() }
    }

    /// Remembers that a file was edited.
    pub(crate) fn edited(&self, text: &str) {
        let mut edited = self.edited.lock();
        if edited.len() < EDITED_MAX {
            edited.insert(self.root.normal(text).unwrap_or_else(|| text.to_owned()));
        }
    }

    /// The files edited since the last time this was asked.
    pub(crate) fn take_edited(&self) -> Vec<String> {
        std::mem::take(&mut *self.edited.lock()).into_iter().collect()
    }
}

/// Files are read and written by threads that may wait for a disk.
pub(crate) async fn off_the_runtime<F>(work: F) -> Output
where
    F: FnOnce() -> Output + Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => Output::error(format!("The tool failed, which is a fault of its own: {error}")),
    }
}

/// What every tool that works on files does with a call: reads its arguments, does the work
/// off the runtime, and tells the model what went wrong.
pub(crate) async fn on_ground<A, F>(ground: &Arc<Ground>, call: &ToolUse, work: F) -> Output
where
    A: DeserializeOwned + Send + 'static,
    F: FnOnce(&Ground, &A) -> Result<Output, String> + Send + 'static,
{
    let arguments: A = match parse(call) {
        Ok(arguments) => arguments,
        Err(output) => return output,
    };
    let ground = ground.clone();
    off_the_runtime(move || work(&ground, &arguments).unwrap_or_else(Output::error)).await
}

/// Names whose values commands don't get to see.
const SECRET_ENDINGS: [&str; 8] = [
    "_API_KEY",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    // Where OpenTelemetry has its keys.
    "_HEADERS",
];

/// What would make git work on another repository than the one it is in.
const GIT_PLACES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// An environment without keys, and without what would lead commands elsewhere.
pub fn command_environment(
    all: impl IntoIterator<Item = (OsString, OsString)>,
) -> Arc<[(OsString, OsString)]> {
    all.into_iter().filter(|(name, value)| may_be_seen(name) && !has_a_password(value)).collect()
}

/// Whether it is a URL with a password in it: `postgres://user:password@host`.
fn has_a_password(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'))
}

fn may_be_seen(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let secret = SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending));
    !secret && !GIT_PLACES.contains(&name.as_str()) && name != "BASH_ENV" && name != "ENV"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_what_leads_git_astray_are_not_handed_to_commands() {
        let rows = [
            ("PATH", true),
            ("HOME", true),
            ("TOKENIZERS", true),
            ("GIT_AUTHOR_NAME", true),
            ("ANTHROPIC_API_KEY", false),
            ("OPENAI_API_KEY", false),
            ("my_api_key", false),
            ("GITHUB_TOKEN", false),
            ("CLIENT_SECRET", false),
            ("PGPASSWORD", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("OTEL_EXPORTER_OTLP_HEADERS", false),
            ("GIT_DIR", false),
            ("BASH_ENV", false),
        ];
        for (name, seen) in rows {
            let environment = command_environment([(name.into(), "x".into())]);
            assert_eq!(!environment.is_empty(), seen, "{name}");
        }
    }

    #[test]
    fn urls_with_passwords_are_not_handed_to_commands() {
        for (value, seen) in [
            ("postgres://ann:secret@db.example.org/x", false),
            ("https://ann:secret@proxy.example.org", false),
            ("postgres://ann@db.example.org/x?a=b:c@d", true),
            ("http://localhost:8080/a:b@c", true),
            ("not a url: a@b", true),
        ] {
            let environment = command_environment([("DATABASE_URL".into(), value.into())]);
            assert_eq!(!environment.is_empty(), seen, "{value}");
        }
    }
}
