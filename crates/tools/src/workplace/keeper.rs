//! Our own git commands in a sandbox. Git follows some links that it finds in its own folders
//! (an index, a log), and an agent can write in some of them: what such a command writes is
//! kept to the repository, its worktrees and a folder for temporary files that is ours.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use super::git::{COMPLAINT_MAX, GitError, Left, PATIENCE, Sink, program};
use crate::context::off_the_runtime;
use crate::process::{Cause, Command, RunError, Streams, Supervisor};
use crate::programs::Program;
use crate::protect::head_of;
use crate::sandbox::Confinement;

/// Runs git in a sandbox.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    pub(super) supervisor: Supervisor,
    pub(super) confinement: Arc<Confinement>,
}

impl Keeper {
    /// Runs git, as long as its answer is taken.
    pub(super) async fn run(
        &self,
        folder: &Path,
        environment: Vec<(OsString, OsString)>,
        words: &[&str],
        input: Option<&Path>,
        take: &mut Sink<'_>,
    ) -> Result<Left, GitError> {
        let complaints = self.complaints();
        let git = std::iter::once(program(Program::Git)?.into());
        let command = Command {
            words: git.chain(words.iter().map(OsString::from)).collect(),
            folder: folder.to_owned(),
            environment: environment.into(),
            timeout: PATIENCE,
            confinement: Some(self.confinement.clone()),
            gate: None,
            // A supervisor hands on both outputs as one: what git complains of goes to a file.
            streams: Streams { input: input.map(Path::to_owned), errors: Some(complaints.clone()) },
        };
        let enough = CancellationToken::new();
        let mut hear = |bytes: &[u8]| {
            if !enough.is_cancelled() && !take(bytes) {
                enough.cancel();
            }
        };
        let ended = self.supervisor.run(&command, &enough, &mut hear).await;
        let complaint = off_the_runtime(move || taken(&complaints)).await.flatten();
        match ended {
            Ok(ended) if ended.cause == Cause::TimedOut => Err(GitError::TimedOut(words[0].to_owned())),
            Ok(ended) => Ok(Left { status: ended.status, complaint: complaint? }),
            Err(RunError::NotExecuted(error)) => Err(error.into()),
            Err(error) => Err(io::Error::other(error).into()),
        }
    }

    fn complaints(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.confinement.temporary.join(format!("complaints-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Reads a file and removes it. There is none when the command was not started.
fn taken(path: &Path) -> io::Result<Vec<u8>> {
    match head_of(path, COMPLAINT_MAX) {
        Ok(bytes) => std::fs::remove_file(path).map(|()| bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
