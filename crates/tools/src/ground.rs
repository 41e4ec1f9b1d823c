//! What the tools of one agent share: its root, its limits, how its commands run, and a list of
//! what was edited.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::{Output, ToolCall};
use midturn_core::rules::conversation::ToolUse;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::arguments::parse;
use crate::confined::Confined;
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
    /// What commands are confined to. `None`: there is no sandbox.
    pub(crate) confined: Option<Confined>,
    edited: Mutex<BTreeSet<String>>,
}

impl Ground {
    pub(crate) fn new(
        root: Root,
        limits: Limits,
        supervisor: Arc<Supervisor>,
        environment: Arc<[(OsString, OsString)]>,
        confined: Option<Confined>,
    ) -> Self {
        Self { root, limits, supervisor, environment, confined, edited: Mutex::default() }
    }

    /// Remembers that a file was edited.
    pub(crate) fn edited(&self, text: &str) {
        let mut edited = self.edited.lock();
        if edited.len() < EDITED_MAX {
            edited.insert(self.root.normal(text).unwrap_or_else(|| text.to_owned()));
        }
    }

    /// What approval rules know a path by: relative to the root, and one name for all ways to
    /// write it. `None`: it leads out, and the call will be refused.
    pub(crate) fn subject(&self, call: &ToolUse, default: Option<&str>) -> Option<Arc<str>> {
        let path = call.input.get("path").or_else(|| call.input.get("file_path"));
        let path = path.and_then(Value::as_str).or(default)?;
        self.root.meant(path).map(Into::into)
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

/// As [`on_ground`], for a search: it changes nothing, so the thread may finish behind our back
/// when it is told to end, or when it waits for what an agent put where a list of ignored
/// files is meant to be.
pub(crate) async fn search_ground<A, F>(ground: &Arc<Ground>, call: &ToolCall, work: F) -> Output
where
    A: DeserializeOwned + Send + 'static,
    F: FnOnce(&Ground, &A) -> Result<Output, String> + Send + 'static,
{
    let patience = ground.limits.timeout_max;
    tokio::select! {
        biased;
        output = on_ground(ground, &call.call, work) => output,
        () = call.cancel.cancelled() => Output::error(""),
        () = tokio::time::sleep(patience) => {
            Output::error(format!("The search did not end within {} s: narrow it.", patience.as_secs()))
        }
    }
}

/// What every tool that works on files does with a call: reads its arguments, does the work
/// off the runtime, and tells the model what went wrong.
pub(crate) async fn on_ground<A, F>(ground: &Arc<Ground>, call: &ToolUse, work: F) -> Output
where
    A: DeserializeOwned + Send + 'static,
    F: FnOnce(&Ground, &A) -> Result<Output, String> + Send + 'static,
{
    let (arguments, ignored): (A, _) = match parse(call) {
        Ok(parsed) => parsed,
        Err(output) => return output,
    };
    let ground = ground.clone();
    let work = move || work(&ground, &arguments).unwrap_or_else(Output::error);
    ignored.noted(off_the_runtime(work).await)
}
