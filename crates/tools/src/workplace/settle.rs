//! Between an agent's place and its first request: a new folder is made ready, and what the agent is told of
//! its place is found out (docs/decisions/0041).

use std::sync::atomic::Ordering;
use std::time::Duration;

use midturn_core::engine::ports::OutputSink;
use midturn_core::rules::id::AgentName;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::git::Git;
use super::ready::{MadeReady, Wishes};
use super::record::Record;
use super::status::Status;
use super::told::{self, Facts, Standing};
use super::worktree::Worktree;
use super::{GitWorkplace, Opened, layout};

/// Why nobody has a worktree in a new repository.
const NO_COMMIT: &str = "its git repository has no commit yet";

/// How long git may take to say what has changed: an agent is not kept waiting for it.
const PATIENCE: Duration = Duration::from_secs(2);

impl GitWorkplace {
    /// With what is wished of the folders of agents.
    #[must_use]
    pub fn wishes(mut self, wishes: Wishes) -> Self {
        self.wishes = wishes;
        self
    }

    /// Why all agents share the project folder. `None`: those that want one have a worktree each.
    pub async fn shared(&self) -> Option<String> {
        if let Some(why) = &self.wishes.shared {
            return Some(why.clone());
        }
        let git = Git::of_a_person(&self.project, self.mark.as_ref());
        if let Err(why) = layout::top(&git).await {
            return Some(why.to_string());
        }
        matches!(git.commit_at("HEAD").await, Ok(None)).then(|| NO_COMMIT.to_owned())
    }

    /// What the agent is told; its folder is made ready first, if nobody has worked there.
    pub(super) async fn settled(
        &self,
        agent: &AgentName,
        cancel: &CancellationToken,
        output: &dyn OutputSink,
    ) -> String {
        let Some(opened) = self.opened(agent) else { return String::new() };
        let mut notes = opened.notes.lock().clone();
        let unready = opened.unready.lock().take();
        if let (Some(worktree), Some(record)) = (&opened.worktree, unready) {
            let made = self.wishes.fulfil(worktree, &opened.context, cancel, output).await;
            notes.extend(self.made_ready(agent, &opened, worktree, record, made).await);
        }
        for note in &notes {
            self.wishes.tell(agent, note).await;
        }
        self.told(&opened, notes).await
    }

    /// Remembers that a folder is ready, and tells what there is to say of it: what failed is returned.
    async fn made_ready(
        &self,
        agent: &AgentName,
        opened: &Opened,
        worktree: &Worktree,
        mut record: Record,
        mut made: MadeReady,
    ) -> Vec<String> {
        record.unready = made.cut;
        if let Err(error) = worktree.repository.records.save(&record) {
            made.failures.push(format!("that the folder is ready can't be remembered: {error}"));
        }
        // Whoever reads the report on the agent has to know what it lacked.
        opened.notes.lock().extend(made.failures.iter().cloned());
        for done in &made.done {
            self.wishes.tell(agent, done).await;
        }
        made.failures
    }

    async fn told(&self, opened: &Opened, notes: Vec<String>) -> String {
        let sandbox = self.supervisor.in_force();
        let writable = self.reach.writable.iter().map(|path| path.display().to_string());
        let (git, shared) = match &opened.worktree {
            Some(worktree) => {
                // The first time only: then the agent is there.
                let is_as_made = opened.is_as_made.swap(false, Ordering::Relaxed);
                let changed = if is_as_made { Some(0) } else { changed(worktree).await };
                (
                    Standing::Apart {
                        branch: worktree.branch.clone(),
                        start: worktree.start.clone(),
                        changed,
                    },
                    None,
                )
            }
            None => self.in_project().await,
        };
        let system = rustix::system::uname();
        let facts = Facts {
            date: jiff::Zoned::now().strftime("%a %-d %b %Y").to_string(),
            system: format!(
                "{} {} ({})",
                system.sysname().to_string_lossy(),
                system.release().to_string_lossy(),
                std::env::consts::ARCH
            ),
            folder: opened.context.root.path().display().to_string(),
            git,
            shared,
            sandbox: sandbox.as_ref(),
            writable: writable.collect(),
            notes,
        };
        told::place(&facts)
    }

    /// Where agents in the project folder stand, and why all of them are there.
    async fn in_project(&self) -> (Standing, Option<String>) {
        let wished = self.wishes.shared.clone();
        let repository = match self.repository().await {
            Ok(repository) => repository,
            Err(why) => return (Standing::None, wished.or_else(|| Some(why.to_string()))),
        };
        let ours = repository.state.strip_prefix(&repository.layout.top).ok();
        let ours = ours.map(|state| format!(":(exclude,top){}", state.display()));
        let Some(Status { head, branch, changed }) = status(&repository.git(), ours.as_deref()).await else {
            return (Standing::Unknown, wished);
        };
        let no_commit = head.is_none().then(|| NO_COMMIT.to_owned());
        (Standing::Project { branch, changed: Some(changed) }, wished.or(no_commit))
    }
}

/// How many files an agent has changed. `None`: git doesn't say; it is told when the run ends, if it still is so.
async fn changed(worktree: &Worktree) -> Option<usize> {
    let git = worktree.git().await.ok()?;
    status(&git, None).await.map(|status| status.changed)
}

/// `None`: git doesn't say, or takes too long.
async fn status(git: &Git<'_>, but: Option<&str>) -> Option<Status> {
    let paths: Vec<_> = std::iter::once(":/").chain(but).collect();
    timeout(PATIENCE, Status::of(git, "normal", &paths)).await.ok()?.ok()
}
