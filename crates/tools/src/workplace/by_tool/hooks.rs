//! The repository's hooks `pre-commit` and `commit-msg`, run where the agent's commands run and as they
//! do. They see copies: an index, a place for objects, a file with the message.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::ToolCall;
use tempfile::TempDir;

use super::staging::Staging;
use super::{ByTool, NoCommit, refused};
use crate::commands;
use crate::confined::private_folder;
use crate::context::{ToolContext, off_the_runtime};
use crate::process::{Cause, Command, Ended, ExitStatus, Streams};
use crate::protect::head_of;
use crate::workplace::git::GitError;
use crate::workplace::snapshot::copy;

/// What sees the files that are to be committed, and what sees the message.
pub(super) const STAGED: &str = "pre-commit";
pub(super) const MESSAGE: &str = "commit-msg";

/// The longest message that is taken from a hook, in bytes.
const MESSAGE_MAX: usize = 64 << 10;

/// The hooks for one commit.
pub(super) struct Hooks<'a> {
    pub(super) by: &'a ByTool,
    pub(super) context: &'a Arc<ToolContext>,
    pub(super) call: &'a ToolCall,
}

/// What came of the hooks that let it pass.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) message: String,
    /// What they said.
    pub(super) said: String,
    pub(super) notes: Vec<String>,
}

/// A hook that would be run: git runs none that isn't executable.
pub(super) fn program(by: &ByTool, name: &str) -> Option<PathBuf> {
    let path = by.repository.layout.hooks.join(name);
    let about = path.metadata().ok()?;
    (about.is_file() && about.permissions().mode() & 0o111 != 0).then_some(path)
}

impl Hooks<'_> {
    /// Runs them; what `pre-commit` staged is in the index afterwards.
    pub(super) async fn run(&self, staging: &mut Staging<'_>, message: &str) -> Result<Passed, NoCommit> {
        let mut passed = Passed { message: message.to_owned(), ..Passed::default() };
        let (staged, worded) = (program(self.by, STAGED), program(self.by, MESSAGE));
        if staged.is_none() && worded.is_none() {
            return Ok(passed);
        }
        let place = self.place(staging.index(), message).await.map_err(GitError::from)?;
        if let Some(program) = staged {
            self.one(STAGED, vec![program.into()], &place, &mut passed).await?;
            // Beside ours; what a hook put there instead is not followed.
            let (from, to) = (place.path().join("index"), staging.index().with_extension("hook"));
            let target = to.clone();
            let copied = off_the_runtime(move || copy(&from, &target)).await.flatten();
            match copied.map_err(GitError::from)? {
                true => staging.take_over(&to).await?,
                false => return refused(format!("the hook `{STAGED}` left no index behind")),
            }
        }
        if let Some(program) = worded {
            let file = place.path().join("message");
            self.one(MESSAGE, vec![program.into(), file.clone().into()], &place, &mut passed).await?;
            passed.message = off_the_runtime(move || read(&file)).await.flatten().map_err(GitError::from)?;
        }
        match passed.message.trim().is_empty() {
            true => refused(format!("the hook `{MESSAGE}` left no message")),
            false => Ok(passed),
        }
    }

    /// A folder of the agent's with what hooks see.
    async fn place(&self, index: &Path, message: &str) -> io::Result<TempDir> {
        let confined = self.context.confined.as_ref();
        let scratch = &self.by.repository.scratch;
        let beside =
            confined.map_or_else(|| scratch.clone(), |confined| confined.confinement.temporary.clone());
        let (index, message) = (index.to_owned(), format!("{message}\n"));
        let make = move || {
            private_folder(&beside)?;
            let place = tempfile::Builder::new().prefix("commit-").tempdir_in(beside)?;
            std::fs::create_dir(place.path().join("objects"))?;
            std::fs::write(place.path().join("message"), message)?;
            copy(&index, &place.path().join("index"))?;
            Ok(place)
        };
        off_the_runtime(make).await.flatten()
    }

    /// Runs one as git does: at the top of the work tree.
    async fn one(
        &self,
        name: &str,
        words: Vec<OsString>,
        place: &TempDir,
        passed: &mut Passed,
    ) -> Result<(), NoCommit> {
        let layout = &self.by.repository.layout;
        let mut variables: Vec<(&str, OsString)> = vec![
            ("GIT_INDEX_FILE", place.path().join("index").into()),
            ("GIT_EDITOR", ":".into()),
            ("GIT_PREFIX", "".into()),
        ];
        if !self.context.read_only_git.is_empty() {
            // Where a hook can move a ref, it must not be to what is gone with this folder.
            variables.push(("GIT_OBJECT_DIRECTORY", place.path().join("objects").into()));
            variables.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES", layout.common.join("objects").into()));
        }
        let more = variables.into_iter().map(|(name, value)| (name.into(), value));
        let command = Command {
            words,
            folder: layout.top.clone(),
            environment: self.context.environment.iter().cloned().chain(more).collect(),
            timeout: self.context.limits.timeout_max,
            confinement: None,
            gate: None,
            streams: Streams::default(),
        };
        let done = commands::run(self.context, command, &self.call.cancel, &*self.call.output).await;
        let done = done.map_err(GitError::from)?;
        let said = done.said.text();
        passed.notes.extend(done.planted.into_iter().chain(done.notes));
        let why = match done.ended {
            Ok(Ended { cause: Cause::Itself, status: ExitStatus::Exited(0), .. }) => {
                passed.said += &said;
                return Ok(());
            }
            Ok(Ended { cause: Cause::Cancelled, .. }) => "was stopped".to_owned(),
            Ok(Ended { cause: Cause::TimedOut, .. }) => "did not end in time".to_owned(),
            Ok(Ended { status: ExitStatus::Exited(code), .. }) => format!("ended with exit status {code}"),
            Ok(Ended { status: ExitStatus::Signalled(signal), .. }) => {
                format!("was ended by signal {signal}")
            }
            Err(error) => format!("could not be run: {error}"),
        };
        let notes = std::mem::take(&mut passed.notes).into_iter().map(|note| format!("\n[{note}]"));
        refused(format!("the repository's hook `{name}` {why}\n{said}{}", notes.collect::<String>()))
    }
}

/// A message as a hook left it.
fn read(file: &Path) -> io::Result<String> {
    let bytes = head_of(file, MESSAGE_MAX as u64 + 1)?;
    match String::from_utf8(bytes) {
        Ok(text) if text.len() <= MESSAGE_MAX && !text.contains('\0') => Ok(text.trim_end().to_owned()),
        _ => Err(io::Error::other(format!("the hook `{MESSAGE}` left a message that can't be taken"))),
    }
}
