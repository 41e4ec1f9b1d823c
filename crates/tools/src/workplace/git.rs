//! The git command: never a hook, a filter or a prompt, never the caller's environment, and
//! never a folder that git found by itself (issue 4, item 2).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::keeper::Keeper;
use super::layout::{RepositoryLayout, Setting};
use super::worktree::Repository;
use crate::mark::Mark;
use crate::process::ExitStatus;
use crate::programs::{self, NoProgram, Program};
use crate::sandbox::Confinement;

/// How much of git's answer is taken, in bytes.
const ANSWER_MAX: u64 = 64 << 20;

/// How much of what it complains about is taken, in bytes.
pub(super) const COMPLAINT_MAX: u64 = 16 << 10;

/// How long one git command may take: a large checkout takes its time, a lost server for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// What git may know of the caller's environment: where things are.
const KEPT: [&str; 2] = ["HOME", "XDG_CONFIG_HOME"];

/// What each of our commands is told, after all that a repository says: nobody asked for the
/// programs that its settings name, and none of them is run with what an agent wrote.
const SETTINGS: [(&str, &str); 22] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.alternateRefsCommand", "true"),
    ("sequence.editor", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("commit.gpgSign", "false"),
    ("commit.verbose", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("merge.autoStash", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    // With `git status` in one, git would obey what is configured there.
    ("diff.ignoreSubmodules", "dirty"),
    ("rerere.enabled", "false"),
    // The empty file that we name for it would be warned of in everything that it complains about.
    ("advice.graftFileDeprecated", "false"),
];

/// No file of settings but the repository's; no editor, no replaced or grafted commits, which
/// would show a person something else than what is there.
const ENVIRONMENT: [(&str, &str); 13] = [
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_ASKPASS", "false"),
    ("GIT_ATTR_NOSYSTEM", "1"),
];

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    /// It can't be started.
    #[error("git can't be run: {0}")]
    NotRun(#[from] std::io::Error),
    /// It ended with an error, and said this.
    #[error("git {command} failed: {complaint}")]
    Failed { command: String, complaint: String },
    /// It says more than anybody wants to read.
    #[error("git {0} answered with more than {max} MiB", max = ANSWER_MAX >> 20)]
    TooMuch(String),
    /// It doesn't end.
    #[error("git {0} did not end within {seconds} s", seconds = PATIENCE.as_secs())]
    TimedOut(String),
    /// What an agent made is not taken.
    #[error("{0}")]
    Refused(String),
}

/// Runs git in one folder.
#[derive(Clone, Debug)]
pub(super) struct Git<'a> {
    folder: &'a Path,
    environment: Vec<(OsString, OsString)>,
    settings: Vec<Setting>,
    /// What it reads, if anything.
    input: Option<PathBuf>,
    keeper: Option<Keeper>,
}

/// Takes the next bytes of an answer; false: that is enough, nobody reads on.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) -> bool + Send + 'a;

/// How a git command ended, and what it complained of.
pub(super) struct Left {
    pub(super) status: ExitStatus,
    pub(super) complaint: Vec<u8>,
}

/// The same, and what it answered.
struct Ended {
    status: ExitStatus,
    answer: Vec<u8>,
    complaint: Vec<u8>,
}

impl Ended {
    fn failed(&self, words: &[&str]) -> GitError {
        let complaint = String::from_utf8_lossy(&self.complaint).trim().replace('\n', "; ");
        let complaint = match (complaint.is_empty(), self.status) {
            (false, _) => complaint,
            (true, ExitStatus::Exited(code)) => format!("exit status {code}"),
            (true, ExitStatus::Signalled(signal)) => format!("ended by signal {signal}"),
        };
        GitError::Failed { command: words[0].to_owned(), complaint }
    }
}

impl<'a> Git<'a> {
    /// In the project, of which we know where its git folder is: nothing is looked for, so
    /// nothing that an agent put there is found. With the mark of a session, where there is one; in a
    /// sandbox of its own, where there is one: what it writes through a link that an agent made stays
    /// in there too.
    pub(super) fn new(repository: &Repository, top: &'a Path, own: &Path) -> Self {
        let Repository { layout, keeper, .. } = repository;
        let git = Self::ours(repository.mark.as_ref(), top, own, layout.settings.iter().cloned());
        Self { keeper: keeper.clone(), ..git.with("GIT_COMMON_DIR", &layout.common) }
    }

    /// In an agent's own repository, and in that agent's sandbox: whatever it says there, what that makes
    /// git do it could have done itself.
    pub(super) fn inside(
        repository: &Repository,
        top: &'a Path,
        own: &Path,
        settings: impl Iterator<Item = Setting>,
        keeper: Option<Keeper>,
    ) -> Self {
        Self { keeper, ..Self::ours(repository.mark.as_ref(), top, own, settings) }
    }

    /// In the project, for whoever only asks about commits and refs: that runs nothing, and writes nothing.
    pub(super) fn asking(layout: &'a RepositoryLayout) -> Self {
        let git = Self::ours(None, &layout.top, &layout.own, layout.settings.iter().cloned());
        git.with("GIT_COMMON_DIR", &layout.common)
    }

    /// In a work tree, but with a git folder of ours that lies elsewhere: nothing that is in the work tree, or in
    /// the repository that it is of, is obeyed.
    pub(super) fn beside(folder: &'a Path, top: &Path, own: &Path, mark: Option<&Mark>) -> Self {
        Self { folder, ..Self::ours(mark, top, own, std::iter::empty()) }
    }

    fn ours<'b>(
        mark: Option<&Mark>,
        top: &'b Path,
        own: &Path,
        settings: impl Iterator<Item = Setting>,
    ) -> Git<'b> {
        let fixed = ENVIRONMENT.into_iter().map(|(name, value)| (name.into(), value.into()));
        let mut git = Git::of_a_person(top, mark).with("GIT_DIR", own).with("GIT_WORK_TREE", top);
        git.environment.extend(fixed);
        let ours = SETTINGS.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        git.settings = settings.chain(ours).collect();
        git
    }

    /// With a person's own settings: only to ask where things are, before any agent worked there.
    pub(super) fn of_a_person(folder: &'a Path, mark: Option<&Mark>) -> Self {
        let kept = KEPT.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let fixed = ["LC_ALL", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS"].into_iter().zip(["C", "0", "0"]);
        let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
        let path = ("PATH".into(), programs::path());
        let environment = mark.map(Mark::entry).into_iter().chain([path]).chain(kept).chain(fixed).collect();
        let settings = vec![("core.fsmonitor".to_owned(), "false".to_owned())];
        Self { folder, environment, settings, input: None, keeper: None }
    }

    /// With another setting.
    pub(super) fn setting(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// With another variable.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// That writes into the index what it learns of files' times, if nobody else is at work there.
    pub(super) fn noting_times(mut self) -> Self {
        const LOCKS: &str = "GIT_OPTIONAL_LOCKS";
        // Of two of a name programs take one or the other.
        self.environment.retain(|(name, _)| name != LOCKS);
        self.with(LOCKS, "1")
    }

    /// That runs in another folder: what it is to write there has a name that is plain then.
    pub(super) fn at(self, folder: &'a Path) -> Self {
        Self { folder, ..self }
    }

    /// That reads a file, which has to be where it can see it.
    pub(super) fn fed(mut self, file: PathBuf) -> Self {
        self.input = Some(file);
        self
    }

    /// In a sandbox that is another one in this.
    pub(super) fn seeing(mut self, other: impl FnOnce(&Arc<Confinement>) -> Arc<Confinement>) -> Self {
        if let Some(keeper) = &mut self.keeper {
            keeper.confinement = other(&keeper.confinement);
        }
        self
    }

    /// Commits are an agent's, under its name.
    pub(super) fn by(self, name: &str, email: &str) -> Self {
        self.with("GIT_AUTHOR_NAME", name)
            .with("GIT_AUTHOR_EMAIL", email)
            .with("GIT_COMMITTER_NAME", name)
            .with("GIT_COMMITTER_EMAIL", email)
    }

    /// What it answers, byte for byte.
    pub(super) async fn bytes(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        let ended = self.run(words).await?;
        if ended.status == ExitStatus::Exited(0) { Ok(ended.answer) } else { Err(ended.failed(words)) }
    }

    /// What it answers as text, without the line break at the end.
    pub(super) async fn text(&self, words: &[&str]) -> Result<String, GitError> {
        let text = String::from_utf8_lossy(&self.bytes(words).await?).into_owned();
        Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
    }

    /// The first `max` bytes of what it answers, and whether there was more.
    pub(super) async fn head_of(&self, words: &[&str], max: usize) -> Result<(Vec<u8>, bool), GitError> {
        let mut ended = self.run_upto(words, max as u64).await?;
        let cut = ended.answer.len() > max;
        // Git dies of the pipe that was closed before its eyes then.
        if !cut && ended.status != ExitStatus::Exited(0) {
            return Err(ended.failed(words));
        }
        ended.answer.truncate(max);
        Ok((ended.answer, cut))
    }

    /// What it answers to a question that it also answers with its exit status: 0 yes, 1 no.
    pub(super) async fn yes_or_no(&self, words: &[&str]) -> Result<(bool, Vec<u8>), GitError> {
        let ended = self.run(words).await?;
        match ended.status {
            ExitStatus::Exited(0) => Ok((true, ended.answer)),
            ExitStatus::Exited(1) => Ok((false, ended.answer)),
            _ => Err(ended.failed(words)),
        }
    }

    /// A question that git answers with its exit status alone.
    pub(super) async fn is(&self, words: &[&str]) -> Result<bool, GitError> {
        self.yes_or_no(words).await.map(|(yes, _)| yes)
    }

    /// As [`Git::text`], for a question that may have no answer: git then exits with 1.
    pub(super) async fn maybe(&self, words: &[&str]) -> Result<Option<String>, GitError> {
        let (yes, answer) = self.yes_or_no(words).await?;
        Ok(yes.then(|| String::from_utf8_lossy(&answer).trim_end().to_owned()))
    }

    /// The commit that has this name. `None`: there is none.
    pub(super) async fn commit_at(&self, name: &str) -> Result<Option<String>, GitError> {
        self.maybe(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).await
    }

    async fn run(&self, words: &[&str]) -> Result<Ended, GitError> {
        let ended = self.run_upto(words, ANSWER_MAX).await?;
        if ended.answer.len() as u64 > ANSWER_MAX {
            return Err(GitError::TooMuch(words[0].to_owned()));
        }
        Ok(ended)
    }

    /// All of its environment: the settings go in there too, where no character of a name or a
    /// value means anything.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.environment.clone();
        all.push(("GIT_CONFIG_COUNT".into(), self.settings.len().to_string().into()));
        for (n, (key, value)) in self.settings.iter().enumerate() {
            all.push((format!("GIT_CONFIG_KEY_{n}").into(), key.into()));
            all.push((format!("GIT_CONFIG_VALUE_{n}").into(), value.into()));
        }
        all
    }

    /// Writes what it answers into a file.
    ///
    /// # Errors
    /// It is more than `max` bytes, too.
    pub(super) async fn to_file(&self, words: &[&str], mut file: File, max: u64) -> Result<(), GitError> {
        let (mut written, mut failed) = (0, None);
        let mut take = |bytes: &[u8]| {
            written += bytes.len() as u64;
            failed = file.write_all(bytes).err();
            failed.is_none() && written <= max
        };
        let Left { status, complaint } = self.run_into(words, &mut take).await?;
        match (failed, status) {
            (Some(error), _) => Err(error.into()),
            (None, _) if written > max => {
                Err(GitError::Refused(format!("it has more than {} MiB", max >> 20)))
            }
            (None, ExitStatus::Exited(0)) => Ok(()),
            (None, _) => Err(Ended { status, complaint, answer: Vec::new() }.failed(words)),
        }
    }

    /// Takes one byte more than `max` of the answer, at most.
    async fn run_upto(&self, words: &[&str], max: u64) -> Result<Ended, GitError> {
        let room = usize::try_from(max + 1).unwrap_or(usize::MAX);
        let mut answer = Vec::new();
        let mut take = |bytes: &[u8]| {
            answer.extend_from_slice(&bytes[..bytes.len().min(room - answer.len())]);
            answer.len() < room
        };
        let Left { status, complaint } = self.run_into(words, &mut take).await?;
        Ok(Ended { status, answer, complaint })
    }

    async fn run_into(&self, words: &[&str], take: &mut Sink<'_>) -> Result<Left, GitError> {
        match &self.keeper {
            Some(keeper) => {
                let input = self.input.as_deref();
                keeper.run(self.folder, self.environment(), words, input, take).await
            }
            None => self.run_here(words, take).await,
        }
    }

    async fn run_here(&self, words: &[&str], take: &mut Sink<'_>) -> Result<Left, GitError> {
        let input = match &self.input {
            Some(file) => Stdio::from(File::open(file)?),
            None => Stdio::null(),
        };
        let mut child = Command::new(program(Program::Git)?)
            .args(words.iter().map(OsStr::new))
            .current_dir(self.folder)
            .env_clear()
            .envs(self.environment())
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (answer, complaint) = (child.stdout.take(), child.stderr.take());
        let all = async {
            let ((), complaint) = tokio::try_join!(hand_on(answer, take), upto(complaint, COMPLAINT_MAX))?;
            // Nobody reads on: what it still wants to say ends it.
            let status = child.wait().await?;
            let code = status.code().map(ExitStatus::Exited);
            let status = code.unwrap_or_else(|| ExitStatus::Signalled(status.signal().unwrap_or_default()));
            Ok::<_, std::io::Error>(Left { status, complaint })
        };
        let ended = tokio::time::timeout(PATIENCE, all).await;
        Ok(ended.map_err(|_| GitError::TimedOut(words[0].to_owned()))??)
    }
}

/// All of it, as long as it is taken. The pipe is closed then.
async fn hand_on(source: Option<impl AsyncRead + Unpin>, take: &mut Sink<'_>) -> std::io::Result<()> {
    let Some(mut source) = source else { return Ok(()) };
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = source.read(&mut bytes).await?;
        if read == 0 || !take(&bytes[..read]) {
            return Ok(());
        }
    }
}

/// Where a program of ours is.
pub(super) fn program(program: Program) -> Result<PathBuf, GitError> {
    programs::find(program).map_err(|none: NoProgram| std::io::Error::other(none).into())
}

/// One byte more than the bound shows that there was more. The pipe is closed then.
async fn upto(source: Option<impl AsyncRead + Unpin>, max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        source.take(max + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// The parts of an answer to `-z`.
pub(super) fn parts(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    answer.split(|&b| b == 0).filter(|part| !part.is_empty())
}
