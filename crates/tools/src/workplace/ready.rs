//! An agent's own folder, made ready to work in before its first request: what git ignores and the work
//! needs is copied from the project folder, then the project's setup runs in the agent's sandbox
//! (docs/decisions/0041). Nothing that fails here keeps the agent from its work: it is told, as is the person.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use midturn_core::engine::ports::OutputSink;
use midturn_core::rules::id::AgentName;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::copied::Copying;
use super::worktree::Worktree;
use crate::commands;
use crate::context::{ToolContext, off_the_runtime};
use crate::process::{Cause, Command, Streams};
use crate::tools::bash::report;

/// How much of what a setup said is told, in bytes: its end, where errors stand.
const SAID_MAX: usize = 4 << 10;

/// What is copied within this time needs no words.
const QUIETLY: Duration = Duration::from_secs(2);

/// How long somebody who listens may take to hear one text.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// Hears what a person has to know of an agent's folder, before the agent begins.
#[async_trait]
pub trait Listener: Send + Sync {
    /// A text of one line or several.
    async fn tell(&self, agent: &AgentName, text: &str);
}

/// What is wished of the folders of agents.
#[derive(Clone)]
pub struct Wishes {
    /// A command that makes a new folder ready.
    pub setup: Option<String>,
    /// How long it may take.
    pub setup_time: Duration,
    /// Files and folders of the project folder that git ignores, and a new folder has all the same.
    pub copy: Vec<String>,
    /// How many bytes of them, for one agent.
    pub copy_max: u64,
    /// Where the folders lie; `None`: below the state folder.
    pub base: Option<PathBuf>,
    /// Whether a commit names its agent.
    pub trailer: bool,
    /// Why all agents share the project folder, where somebody wants that.
    pub shared: Option<String>,
    /// Who is told what there is to say.
    pub listener: Option<Arc<dyn Listener>>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            setup: None,
            setup_time: Duration::from_secs(600),
            copy: Vec::new(),
            copy_max: 2 << 30,
            base: None,
            trailer: true,
            shared: None,
            listener: None,
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct MadeReady {
    /// What went wrong, for the agent, the person and the agent's parent.
    pub(super) failures: Vec<String>,
    /// What went well.
    pub(super) done: Vec<String>,
    /// It was stopped meanwhile.
    pub(super) cut: bool,
}

impl Wishes {
    /// Tells whoever listens; somebody who doesn't keeps no agent waiting.
    pub(super) async fn tell(&self, agent: &AgentName, text: &str) {
        if let Some(listener) = &self.listener {
            // It stands in the report on the run, too, if it matters.
            let _ = timeout(HEARD_WITHIN, listener.tell(agent, text)).await;
        }
    }

    /// Whether a new folder is ready as git makes it.
    pub(super) fn are_none(&self) -> bool {
        self.copy.is_empty() && self.setup.is_none()
    }

    /// Makes a new folder ready. What the setup says is told to `output` while it comes.
    pub(super) async fn fulfil(
        &self,
        worktree: &Worktree,
        context: &Arc<ToolContext>,
        cancel: &CancellationToken,
        output: &dyn OutputSink,
    ) -> MadeReady {
        let mut made = MadeReady::default();
        for path in &self.copy {
            match told_if_long(path, self.copy(path, worktree, context, cancel), output).await {
                Ok(said) => made.done.push(said),
                Err(why) => made.failures.push(format!("`{path}` was not copied into the folder: {why}")),
            }
        }
        if let Some(setup) = self.setup.as_ref().filter(|_| !cancel.is_cancelled()) {
            let began = Instant::now();
            // As a shell shows what it runs: some say nothing for minutes.
            output.tell(&format!("+ {setup}\n"));
            match self.set_up(setup, context, cancel, output).await {
                Ok(notes) => {
                    let seconds = began.elapsed().as_secs_f64();
                    made.done.push(format!("the setup `{setup}` is done after {seconds:.1} s{notes}"));
                }
                Err(said) => made.failures.push(format!(
                    "the setup `{setup}` failed, and the folder may lack what it makes. {said}"
                )),
            }
        }
        made.cut = cancel.is_cancelled();
        made
    }

    async fn copy(
        &self,
        path: &str,
        worktree: &Worktree,
        context: &Arc<ToolContext>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let (project, prefix) =
            (worktree.repository.layout.top.clone(), worktree.repository.layout.prefix.clone());
        let (from, to) = (project.join(prefix), context.root.path().to_owned());
        let copying = Copying::new(path, self.copy_max, cancel)?;
        if from.join(path).symlink_metadata().is_err() {
            return Err(
                "it is not in the project folder: make it there, or take it off `folder.copy`".to_owned()
            );
        }
        let named = from.join(path).to_string_lossy().into_owned();
        let is_ignored = worktree.repository.git().is(&["check-ignore", "--quiet", "--", &named]).await;
        match is_ignored {
            Ok(true) => {}
            Ok(false) => {
                let why = "git doesn't ignore it: what is committed is in the folder anyway, and what isn't would be";
                return Err(format!("{why} committed by the agent; commit it, or name it in .gitignore"));
            }
            Err(error) => return Err(error.to_string()),
        }
        let copied = off_the_runtime(move || copying.copy(&from, &to)).await;
        copied.map_err(|error| error.to_string()).flatten()
    }

    /// What there is to say of it beside what it said, or what went wrong.
    async fn set_up(
        &self,
        setup: &str,
        context: &Arc<ToolContext>,
        cancel: &CancellationToken,
        output: &dyn OutputSink,
    ) -> Result<String, String> {
        let command = Command {
            words: vec!["bash".into(), "-c".into(), setup.into()],
            folder: context.root.path().to_owned(),
            environment: context.environment.clone(),
            timeout: self.setup_time,
            confinement: None,
            gate: None,
            streams: Streams::default(),
        };
        let done = commands::run(context, command, cancel, output).await;
        let done = done.map_err(|error| {
            format!("It was not started: what has to be kept from it can't be looked up: {error}")
        })?;
        let said = done.said.text();
        let ended = done.ended.map_err(|error| error.to_string())?;
        let is_late = ended.cause == Cause::TimedOut;
        let whole = report(said, ended, self.setup_time);
        let notes: String =
            done.planted.iter().chain(&done.notes).map(|note| format!("\n[{note}]")).collect();
        let text = format!("It said:\n{}{notes}", end_of(&whole.text));
        match whole.is_error || !done.planted.is_empty() {
            // What it said was heard.
            false => Ok(notes),
            true if is_late => Err(format!("{text}\n[`folder.setup_time` gives it longer]")),
            true => Err(text),
        }
    }
}

/// Does this; where it takes a while, that it goes on is told as what a setup prints is, so that nobody wonders.
async fn told_if_long<T>(path: &str, copies: impl Future<Output = T>, output: &dyn OutputSink) -> T {
    let mut copies = pin!(copies);
    match timeout(QUIETLY, &mut copies).await {
        Ok(done) => done,
        Err(_) => {
            output.tell(&format!("copying {path} from the project folder\n"));
            copies.await
        }
    }
}

/// The last whole lines, as many as are told.
fn end_of(text: &str) -> &str {
    let text = text.trim_end();
    let Some(over) = text.len().checked_sub(SAID_MAX) else { return text };
    let end = &text[text.ceil_char_boundary(over)..];
    end.split_once('\n').map_or(end, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_last_whole_lines_are_told() {
        assert_eq!(end_of("a\nb\n"), "a\nb");
        let long = format!("first\n{}é\nlast\n", "x".repeat(SAID_MAX - 6));
        assert_eq!(end_of(&long), "last");
        assert_eq!(end_of(&"é".repeat(SAID_MAX)).len(), SAID_MAX);
    }

    /// What was told.
    #[derive(Default)]
    struct Heard(parking_lot::Mutex<String>);

    impl OutputSink for Heard {
        fn write(&self, text: &str) {
            self.tell(text);
        }

        fn tell(&self, text: &str) {
            self.0.lock().push_str(text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_copied_for_longer_than_two_seconds_is_told_while_it_is() {
        for (took, told) in [(1, ""), (3, "copying node_modules from the project folder\n")] {
            let heard = Heard::default();
            let copies = async {
                let _ = timeout(Duration::from_secs(took), std::future::pending::<()>()).await;
                assert_eq!(*heard.0.lock(), told);
                took
            };
            assert_eq!(told_if_long("node_modules", copies, &heard).await, took);
        }
    }
}
