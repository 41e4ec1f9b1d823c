//! Looks at the project folder before a turn's first call that may change something, and after its last one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use midturn_core::rules::id::{AgentName, RunId, TurnId};
use parking_lot::Mutex;

use super::super::git::GitError;
use super::super::layout::RepositoryLayout;
use super::ledger::{Held, Ledger, Place, Turn, Who};
use super::trees::{Taken, Trees};
use crate::context::off_the_runtime;
use crate::mark::Mark;

/// How long a call waits for the look before it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much a session's trees may hold, in bytes; then it begins anew.
const BYTES_MAX: u64 = 1 << 30;

/// Keeps the turns of one session's agents in the project folder.
#[derive(Debug)]
pub(in super::super) struct Recorder {
    pub(in super::super) layout: Arc<RepositoryLayout>,
    pub(in super::super) folder: PathBuf,
    pub(in super::super) state: PathBuf,
    pub(in super::super) mark: Option<Mark>,
    /// How many are kept.
    pub(in super::super) turns_max: usize,
    place: Place,
    window: tokio::sync::Mutex<Option<Window>>,
    /// Turns that are over, and not yet looked at.
    ended: Mutex<Vec<Who>>,
    /// Why some turn was not kept: for the run's end.
    note: Mutex<Option<String>>,
}

/// Turns that overlap.
#[derive(Debug)]
struct Window {
    /// Of whom calls may run.
    working: BTreeSet<AgentName>,
    turn: Turn,
    /// `None`: what was before is not known.
    held: Option<(Held, Ledger)>,
}

/// Why a turn is not kept.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("another process is at it")]
    Held,
    #[error("looking at all files took longer than {} s", PATIENCE.as_secs())]
    TooLong,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Recorder {
    pub(in super::super) fn new(
        layout: Arc<RepositoryLayout>,
        (folder, state): (PathBuf, PathBuf),
        session: &str,
        mark: Option<Mark>,
        turns_max: usize,
    ) -> Self {
        let place = Place::new(&state, session);
        let (window, ended, note) = Default::default();
        Self { layout, folder, state, mark, turns_max, place, window, ended, note }
    }

    fn trees(&self) -> Trees {
        let (own, top, folder) = (self.place.git(), self.layout.top.clone(), self.folder.clone());
        Trees { own, top, folder, state: self.state.clone(), mark: self.mark.clone() }
    }

    /// Before a call that may change something. What fails keeps no call from running: it is told at the run's end.
    pub(super) async fn begins(&self, agent: &AgentName, run: RunId) {
        let mut window = self.window.lock().await;
        self.close(&mut window).await;
        let who = Who { agent: agent.clone(), run, turn: None };
        let window = window.get_or_insert_with(|| Window::new(now()));
        let is_first = window.working.is_empty();
        if window.working.insert(agent.clone()) {
            window.turn.who.push(who);
        }
        if is_first {
            let looked = tokio::time::timeout(PATIENCE, self.look_before(&mut window.turn)).await;
            match looked.unwrap_or(Err(NotKept::TooLong)) {
                Ok(held) => window.held = Some(held),
                Err(why) => self.not_kept(&why),
            }
        }
    }

    /// A commit was made in this turn.
    pub(super) async fn committed(&self) {
        if let Some(window) = &mut *self.window.lock().await {
            window.turn.committed = true;
        }
    }

    /// A turn is over. Quick; the look comes behind it, and before the next one begins.
    pub(in super::super) fn ended(self: &Arc<Self>, agent: &AgentName, run: RunId, turn: TurnId) {
        self.ended.lock().push(Who { agent: agent.clone(), run, turn: Some(turn) });
        let recorder = self.clone();
        tokio::spawn(async move { recorder.close(&mut *recorder.window.lock().await).await });
    }

    /// Waits until what is over is looked at; why something was not kept.
    pub(in super::super) async fn settle(&self) -> Option<String> {
        self.close(&mut *self.window.lock().await).await;
        self.note.lock().take()
    }

    /// What an agent is to be told with its next result.
    pub(super) fn take_untold(&self) -> Option<String> {
        self.place.take_untold()
    }

    fn not_kept(&self, why: &NotKept) {
        let text =
            format!("what was changed in the project folder can't be taken back with `midturn undo`: {why}");
        self.note.lock().get_or_insert(text);
    }

    async fn close(&self, window: &mut Option<Window>) {
        let ended = std::mem::take(&mut *self.ended.lock());
        let Some(open) = window else { return };
        for over in ended {
            if open.working.remove(&over.agent) {
                let mine = open.turn.who.iter_mut().find(|who| who.agent == over.agent && who.turn.is_none());
                mine.into_iter().for_each(|who| who.turn = over.turn);
            }
        }
        if !open.working.is_empty() {
            return;
        }
        if let Some(Window { turn, held: Some((held, ledger)), .. }) = window.take()
            && let Err(why) = self.look_after(turn, &held, ledger).await
        {
            self.not_kept(&why);
        }
    }

    async fn look_before(&self, turn: &mut Turn) -> Result<(Held, Ledger), NotKept> {
        let place = self.place.clone();
        let held = off_the_runtime(move || place.hold()).await.flatten()?.ok_or(NotKept::Held)?;
        let trees = self.trees();
        let mut ledger = match held.load()? {
            Some(ledger) if ledger.bytes <= BYTES_MAX => ledger,
            too_much => {
                if too_much.is_some() {
                    held.forget()?;
                    let why = format!("more than {} MiB were kept of them", BYTES_MAX >> 20);
                    let text =
                        format!("`midturn undo` no longer takes back what earlier turns changed: {why}");
                    self.note.lock().get_or_insert(text);
                }
                Ledger::new(self.layout.top.clone(), self.folder.clone())
            }
        };
        trees.make(&self.layout).await?;
        Taken { tree: turn.before, left_out: turn.left_out, .. } = take(&trees, &mut ledger).await?;
        // Whoever killed the process of the last one left it open: it ends where this one begins.
        if let Some(open) = ledger.turns.last_mut().filter(|open| open.after.is_none()) {
            open.after = Some(turn.before.clone());
        }
        ledger.turns.push(turn.clone());
        let more = ledger.turns.len().saturating_sub(self.turns_max);
        ledger.turns.drain(..more);
        held.save(&ledger)?;
        Ok((held, ledger))
    }

    async fn look_after(&self, mut turn: Turn, held: &Held, mut ledger: Ledger) -> Result<(), NotKept> {
        let trees = self.trees();
        let Taken { tree: after, left_out, .. } = take(&trees, &mut ledger).await?;
        ledger.turns.pop();
        if after != turn.before {
            turn.files = trees.changes(&turn.before, &after).await?.len();
            (turn.after, turn.left_out) = (Some(after), left_out);
            ledger.turns.push(turn);
        }
        Ok(held.save(&ledger)?)
    }
}

impl Window {
    fn new(began_at: u64) -> Self {
        let (who, left_out) = Default::default();
        let turn =
            Turn { who, began_at, committed: false, files: 0, left_out, before: String::new(), after: None };
        Self { working: BTreeSet::new(), turn, held: None }
    }
}

/// The folder as it is; the ledger knows what that took.
pub(super) async fn take(trees: &Trees, ledger: &mut Ledger) -> Result<Taken, GitError> {
    let taken = trees.take().await?;
    ledger.bytes += taken.bytes;
    Ok(taken)
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
