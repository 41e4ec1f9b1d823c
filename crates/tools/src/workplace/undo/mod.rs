//! Undo: what agents changed in the project folder itself is taken back turn by turn, from trees that are kept
//! beside the repository (issue 14, item 4; docs/decisions/0044).

mod ledger;
mod plan;
mod recorder;
mod tool;
mod trees;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::Tool;
use midturn_core::rules::id::SessionId;

pub use self::ledger::{Turn, Who};
pub use self::plan::{Kept, Undone};
pub(super) use self::recorder::Recorder;

use self::ledger::{Held, Ledger, Place};
use self::plan::{Plan, TurnChanges};
use self::recorder::take;
use self::tool::Recorded;
use self::trees::Trees;
use super::GitWorkplace;
use super::git::GitError;
use super::layout::RepositoryLayout;
use super::worktree::part_of_branch;
use crate::context::off_the_runtime;
use crate::own_folder;

/// How many turns in the project folder can be undone where nobody says otherwise.
pub const TURNS_KEPT: usize = 100;

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// An agent is in the middle of a turn.
    #[error(
        "an agent is in the middle of a turn that may change files in the project folder: wait until it is over, or \
         `midturn stop` that agent first"
    )]
    UnderWay,
    /// What is kept can't be read or written.
    #[error("what is kept to undo turns can't be used: {0}")]
    Io(#[from] std::io::Error),
    /// Git can't do it.
    #[error("nothing more was undone: {0}")]
    Git(String),
}

impl From<GitError> for UndoError {
    fn from(error: GitError) -> Self {
        Self::Git(error.to_string())
    }
}

/// The turns of one session that can be undone. While it is held no agent begins another one.
pub struct Undo {
    held: Held,
    ledger: Ledger,
    trees: Trees,
}

impl Undo {
    /// Opens what is kept of a session below a state folder. `None`: nothing is.
    ///
    /// # Errors
    /// A turn is under way, or it can't be read.
    pub async fn open(state: &Path, session: &SessionId) -> Result<Option<Self>, UndoError> {
        own_folder::make(state, Path::new("")).map_err(std::io::Error::from)?;
        let state = state.canonicalize()?;
        let place = Place::new(&state, &part_of_branch(session));
        if !place.exists() {
            return Ok(None);
        }
        let (own, at) = (place.git(), place);
        let held = off_the_runtime(move || at.hold()).await.flatten()?.ok_or(UndoError::UnderWay)?;
        let Some(ledger) = held.load()? else { return Ok(None) };
        let (top, folder) = (ledger.top.clone(), ledger.folder.clone());
        let trees = Trees { own, top, folder, state, mark: None };
        Ok(Some(Self { held, ledger, trees }))
    }

    /// The turns that can be undone, the last one first.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = &Turn> {
        self.ledger.turns.iter().rev()
    }

    /// Takes back what the last `count` turns changed, the last one first: a file that is as a turn left it
    /// becomes what it was before that turn. What somebody changed since stays, and is named. The agents are told
    /// with their next call. `only_look`: nothing is changed.
    ///
    /// # Errors
    /// The folder can't be looked at or changed; what was undone by then is.
    pub async fn undo(&mut self, count: usize, only_look: bool) -> Result<Vec<Undone>, UndoError> {
        let now = take(&self.trees, &mut self.ledger).await?.tree;
        let (mut turns, rest) = (Vec::new(), self.ledger.turns.len().saturating_sub(count));
        for turn in self.ledger.turns[rest..].iter().rev() {
            // Its process was killed in the middle of it.
            let after = turn.after.as_deref().unwrap_or(&now);
            turns.push(TurnChanges { turn, changes: self.trees.changes(&turn.before, after).await? });
        }
        let before: Vec<_> =
            turns.iter().flat_map(|turn| &turn.changes).filter_map(|change| change.before.clone()).collect();
        let missing = if before.is_empty() { Vec::new() } else { self.trees.missing(&before).await? };
        let plan = Plan::new(&turns, self.trees.entries(&now).await?, &missing);
        if !only_look {
            self.trees.put(&plan.wanted, &now).await?;
            self.ledger.turns.truncate(rest);
            self.held.save(&self.ledger)?;
            self.held.place.tell(&plan::note(&plan.undone))?;
        }
        Ok(plan.undone.into_iter().map(|undone| self.as_seen(undone)).collect())
    }

    /// With paths as they are seen from the project folder.
    fn as_seen(&self, mut undone: Undone) -> Undone {
        let prefix = self.ledger.folder.strip_prefix(&self.ledger.top).unwrap_or(Path::new("")).to_owned();
        let seen = |path: &mut PathBuf| {
            if let Ok(within) = path.strip_prefix(&prefix) {
                *path = within.to_owned();
            }
        };
        undone.restored.iter_mut().chain(&mut undone.removed).for_each(seen);
        undone.kept.iter_mut().for_each(|(path, _)| seen(path));
        undone
    }
}

/// These tools, whose turns can be undone then.
pub(super) fn recorded(tools: Vec<Arc<dyn Tool>>, recorder: &Arc<Recorder>) -> Vec<Arc<dyn Tool>> {
    let recorded = |tool| Arc::new(Recorded { tool, recorder: recorder.clone() }) as Arc<dyn Tool>;
    tools.into_iter().map(recorded).collect()
}

impl GitWorkplace {
    /// With so many turns in the project folder that can be undone; 0: none is kept.
    #[must_use]
    pub fn turns_kept(mut self, turns: usize) -> Self {
        self.turns_kept = turns;
        self
    }

    /// Who keeps what is changed in the project folder. `None`: nobody wants to undo it.
    pub(super) fn recorder(&self, layout: Arc<RepositoryLayout>) -> std::io::Result<Option<Arc<Recorder>>> {
        if self.turns_kept == 0 {
            return Ok(None);
        }
        let places = (self.project.canonicalize()?, self.folders()?.state.clone());
        let session = part_of_branch(&self.session);
        let made = || Arc::new(Recorder::new(layout, places, &session, self.mark.clone(), self.turns_kept));
        Ok(Some(self.recorder.get_or_init(made).clone()))
    }
}

/// What a file is to become. `None`: gone.
type Wanted = BTreeMap<PathBuf, Option<trees::Entry>>;
