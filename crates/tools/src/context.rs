//! What the tools of one agent share: its root, its limits, how its commands run, and a list of
//! what was edited.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::ToolCall;
use midturn_core::rules::approval::Unread;
use midturn_core::rules::conversation::ToolUse;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::confined::Confined;
use crate::network::Gate;
use crate::process::Supervisor;
use crate::root::Root;
use crate::seen::Seen;

/// How much of a command's output, of a file or of a list of matches one result holds, in bytes;
/// more is cut in the middle (commands) or at the end.
pub(crate) const OUTPUT_BYTES: usize = 32 << 10;

/// How long commands and searches may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a command may run when it isn't told.
    pub timeout: Duration,
    /// The longest a command may ask for.
    pub timeout_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(120), timeout_max: Duration::from_secs(600) }
    }
}

/// How many edited files are remembered for the report.
const EDITED_MAX: usize = 10_000;

/// What the tools of one agent share.
#[derive(Debug)]
pub(crate) struct ToolContext {
    pub(crate) root: Root,
    pub(crate) limits: Limits,
    pub(crate) supervisor: Supervisor,
    pub(crate) environment: Arc<[(OsString, OsString)]>,
    /// The way out of its commands' network, where they may reach some hosts.
    pub(crate) gate: Option<Arc<Gate>>,
    /// What commands are confined to. `None`: there is no sandbox.
    pub(crate) confined: Option<Confined>,
    pub(crate) edited: Mutex<BTreeSet<String>>,
    /// What is known of the files, where others work in the same folder.
    pub(crate) seen: Option<Seen>,
    /// The files that searches leave out.
    pub(crate) unread: Unread,
    /// Makes commits, for an agent that works in a repository's project folder.
    pub(crate) commits: Option<Arc<dyn Commits>>,
    /// Git's own folders where commands can only read them, and the agent can commit.
    pub(crate) read_only_git: Vec<PathBuf>,
}

/// What a commit is to hold and to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitOrder {
    pub(crate) message: String,
    /// Files and folders as seen from the agent's root, one name each; `None`: all that is there.
    pub(crate) paths: Option<Vec<String>>,
}

/// Makes commits in the place of an agent's commands.
#[async_trait]
pub(crate) trait Commits: Debug + Send + Sync {
    /// Commits; what there is to say of it.
    ///
    /// # Errors
    /// Nothing was committed; why, and what to do.
    async fn commit(
        &self,
        order: &CommitOrder,
        context: &Arc<ToolContext>,
        call: &ToolCall,
    ) -> Result<String, String>;

    /// Whether that runs programs that nothing holds: hooks, without a sandbox.
    fn runs_programs_that_nothing_holds(&self) -> bool;
}

impl ToolContext {
    /// Before anything is changed.
    pub(crate) fn run_begins(&self) -> Result<(), String> {
        let begins = self.confined.as_ref().map_or(Ok(()), Confined::run_begins);
        begins.map_err(|error| {
            format!("nothing was changed: what has to be looked at before can't be: {error}")
        })
    }

    /// What is known of the files where others work, too, and the name that a file has there.
    pub(crate) fn seen(&self, path: &str) -> Option<(&Seen, String)> {
        Some((self.seen.as_ref()?, self.root.meant(path)?))
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

/// Does what may wait for a disk on a thread that may wait.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    // One type of task for all of it: else tokio's are compiled for each.
    let done = Arc::new(Mutex::new(None));
    let task: Box<dyn FnOnce() + Send> = Box::new({
        let done = done.clone();
        move || {
            let result = work();
            *done.lock() = Some(result);
        }
    });
    spawn_blocking(task).await.map_err(io::Error::other)?;
    let done = done.lock().take();
    done.ok_or_else(|| io::Error::other("the work ended without a result"))
}
