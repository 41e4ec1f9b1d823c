//! What is done with a session's work when nobody carries it: it is looked at, merged, pushed and removed, from the
//! store and git alone (issue 14). The looks are those of a coordinator; no model is needed, and nobody is woken.

mod branch;
mod clean;
mod plan;
mod push;
mod removal;
mod resolve;

use std::path::PathBuf;

use midturn_core::engine::ports::Workplace as _;
use midturn_core::engine::ports::archive::SessionJournal;
use midturn_core::rules::id::AgentName;
use midturn_tools::workplace::GitWorkplace;

use crate::commands;
use crate::config::Config;
use crate::env::Env;
use crate::failure::Failure;
use crate::history;
use crate::host::carry::{self, Ground};
use crate::host::safety::Safety;
use crate::project::Project;

pub(crate) use branch::{diff, merge};
pub(crate) use clean::{prune, remove};
pub(crate) use push::push;
pub(crate) use removal::remove_as_seen;
pub(crate) use resolve::{hand_over, resolve, task};

/// A session that is stored, and the places of its agents.
pub(crate) struct Stored {
    pub(crate) journal: SessionJournal,
    pub(crate) workplace: GitWorkplace,
}

/// The terms that a stored session works by.
pub(crate) struct Terms {
    folder: PathBuf,
    pub(crate) config: Config,
}

impl Stored {
    /// The session that somebody means: `current` is the one that began last.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there is no such session, or its configuration is not sound any more.
    /// [`Failure::Failed`]: the store can't be read.
    pub(crate) async fn of(project: &Project, asked: &str, env: &Env) -> Result<Self, Failure> {
        let asked = if asked == "current" { "last" } else { asked };
        let (archive, id) = history::kept(project, asked).await?;
        let journal = archive.journal(&id).await.map_err(Failure::failed)?;
        let gone = || Failure::usage(format!("there is no session {id}; `midturn sessions` lists them"));
        Self::in_journal(project, journal.ok_or_else(gone)?, env).await
    }

    async fn in_journal(project: &Project, journal: SessionJournal, env: &Env) -> Result<Self, Failure> {
        project.put_right();
        let terms = Self::terms(project, &journal, &[], env)?;
        let safety = Safety::of(&terms.config, None).await?;
        Self::on(project, journal, &terms, &safety)
    }

    /// The terms that a session works by, with more settings laid over its own.
    ///
    /// # Errors
    /// [`Failure::Usage`]: its configuration is not sound any more. [`Failure::Failed`]: its folders are on another machine.
    pub(crate) fn terms(
        project: &Project,
        journal: &SessionJournal,
        more: &[String],
        env: &Env,
    ) -> Result<Terms, Failure> {
        is_of_this_machine(journal)?;
        let mut layer = carry::layer(&journal.record, more)?;
        // Where its own folder is gone, its branches are still there.
        layer.cwd = layer.cwd.filter(|folder| folder.is_dir()).or_else(|| Some(project.root().to_owned()));
        let folder = commands::work_folder(&layer)?;
        let config = commands::load(&layer, &folder, env)?;
        Ok(Terms { folder, config })
    }

    /// A session on its terms.
    ///
    /// # Errors
    /// [`Failure::Failed`]: what was kept of it can't be read.
    pub(crate) fn on(
        project: &Project,
        journal: SessionJournal,
        Terms { folder, config }: &Terms,
        safety: &Safety,
    ) -> Result<Self, Failure> {
        let (state, hidden) = (project.whole_state(), project.hidden()?);
        let ground = Ground { folder, state: &state, config, safety, hidden: &hidden };
        Ok(Self { workplace: carry::workplace_apart(&ground, &journal)?, journal })
    }

    /// Somebody who is in it.
    ///
    /// # Errors
    /// [`Failure::Failed`]: nobody of that name was.
    fn has(&self, agent: &AgentName) -> Result<(), Failure> {
        if self.journal.agents.iter().any(|known| known.record.name == *agent) {
            return Ok(());
        }
        let id = &self.journal.record.id;
        Err(Failure::failed(format!(
            "there is no agent `{agent}` in session {id}: `midturn log {id}` shows who was there, and --session names \
             another session"
        )))
    }

    /// Somebody who has a branch.
    ///
    /// # Errors
    /// [`Failure::Failed`]: nobody of that name is there, or it worked in the project folder itself.
    fn branch_of(&self, agent: &AgentName) -> Result<String, Failure> {
        self.has(agent)?;
        let none = || Failure::failed(format!("`{agent}` has no branch of its own"));
        self.workplace.branch(agent).ok_or_else(none)
    }
}

/// # Errors
/// [`Failure::Failed`]: its folders are on another machine.
fn is_of_this_machine(journal: &SessionJournal) -> Result<(), Failure> {
    let id = &journal.record.id;
    match carry::Memo::of(&journal.record)?.machine {
        there if there.is_empty() || there == carry::machine() => Ok(()),
        there => {
            Err(Failure::failed(format!("session {id} was begun on {there}, and its branches are there")))
        }
    }
}
