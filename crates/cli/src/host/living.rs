//! The sessions that live in this process: who finds them, who makes room, and how they end,
//! all at once.

use midturn_core::rules::mail::Refusal;
use midturn_server::{HostError, Live};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::Begun;

/// How many sessions live at once.
const MOST: usize = 64;

/// How many of them rest without anybody who watches them. When one more comes, those that came first
/// are let go: they are stored, and `resume` brings them back. One of
/// twenty agents holds 8 MB while it rests.
const RESTING: usize = 16;

/// The sessions that live here.
#[derive(Default)]
pub(super) struct Living(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    /// In the order in which they came.
    all: Vec<Entry>,
    /// The process ends: no more come.
    ending: bool,
}

struct Entry {
    begun: Begun,
    /// Its lead is recorded: from then on it can be found.
    visible: bool,
}

impl Entry {
    fn is(&self, id: &str) -> bool {
        self.begun.live.record.id.as_str() == id
    }
}

impl Living {
    /// # Errors
    /// [`HostError::ShuttingDown`]: the process ends.
    pub(super) fn must_go_on(&self) -> Result<(), HostError> {
        if self.0.lock().ending { Err(shutting_down()) } else { Ok(()) }
    }

    /// From now on a shutdown finds the session, and nobody else does.
    ///
    /// # Errors
    /// [`HostError::ShuttingDown`]: there was one already, and the session has ended.
    pub(super) async fn enter(&self, begun: &Begun) -> Result<(), HostError> {
        {
            let mut sessions = self.0.lock();
            if !sessions.ending {
                sessions.all.push(Entry { begun: begun.clone(), visible: false });
                return Ok(());
            }
        }
        end(begun).await;
        Err(shutting_down())
    }

    /// From now on everybody finds the session.
    pub(super) fn show(&self, id: &str) {
        self.0.lock().all.iter_mut().filter(|entry| entry.is(id)).for_each(|entry| entry.visible = true);
    }

    /// Ends a session that came to nothing.
    pub(super) async fn give_up(&self, begun: &Begun) {
        self.0.lock().all.retain(|entry| !entry.is(begun.live.record.id.as_str()));
        end(begun).await;
    }

    pub(super) fn find(&self, id: &str) -> Option<Begun> {
        let sessions = self.0.lock();
        let found = sessions.all.iter().find(|entry| entry.visible && entry.is(id));
        found.map(|entry| entry.begun.clone())
    }

    /// Those that can be found, in the order in which they came.
    pub(super) fn all(&self) -> Vec<Begun> {
        let sessions = self.0.lock();
        sessions.all.iter().filter(|entry| entry.visible).map(|entry| entry.begun.clone()).collect()
    }

    /// Ends all of them at once; none comes any more.
    pub(super) async fn shutdown(&self) {
        let all: Vec<Begun> = {
            let mut sessions = self.0.lock();
            sessions.ending = true;
            sessions.all.iter().map(|entry| entry.begun.clone()).collect()
        };
        // None waits for another: the last one's commands live no longer than the first one's.
        let mut ending: JoinSet<()> = all.into_iter().map(|begun| async move { end(&begun).await }).collect();
        while let Some(ended) = ending.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a session was not shut down");
            }
        }
    }

    /// Lets sessions go, if too many rest for another, or live.
    ///
    /// # Errors
    /// [`HostError::Conflict`]: all of them are needed.
    pub(super) async fn make_room(&self) -> Result<(), HostError> {
        let let_go: Vec<Begun> = {
            let mut sessions = self.0.lock();
            let rest = |entry: &Entry| entry.visible && !is_needed(&entry.begun);
            let resting = sessions.all.iter().filter(|entry| rest(entry)).count();
            let surplus = surplus(sessions.all.len(), resting).ok_or_else(|| HostError::Conflict {
                code: "max_sessions",
                text: format!(
                    "{MOST} sessions are at work or watched here already: wait for one to end, or stop one"
                ),
            })?;
            let mut left = surplus;
            let gone = sessions.all.extract_if(.., |entry| {
                let goes = left > 0 && rest(entry);
                left -= usize::from(goes);
                goes
            });
            gone.map(|entry| entry.begun).collect()
        };
        for begun in let_go {
            end(&begun).await;
        }
        Ok(())
    }
}

/// How many of those that rest have to go before one more lives. `None`: there is no room.
fn surplus(living: usize, resting: usize) -> Option<usize> {
    let surplus = (resting + 1).saturating_sub(RESTING).max((living + 1).saturating_sub(MOST));
    (surplus <= resting).then_some(surplus)
}

fn shutting_down() -> HostError {
    HostError::ShuttingDown(Refusal::ShuttingDown.to_string())
}

/// Whether a session is at work, or somebody watches it or would answer what is asked in it.
fn is_needed(begun: &Begun) -> bool {
    let Live { coordinator, feed, .. } = &begun.live;
    coordinator.is_busy() || coordinator.is_attended() || feed.is_read()
}

/// Ends what a session does here: whoever has it in hand still is refused. Its readers get all
/// there is, and the end.
async fn end(begun: &Begun) {
    #[cfg(feature = "crash-tests")]
    if let Some(fault) = crate::planted::planted() {
        fault.before_the_end(&begun.live.coordinator).await;
    }
    begun.live.coordinator.shutdown().await;
    begun.live.feed.end();
    if let Some(notifying) = &begun.notifying {
        notifying.end().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_rest_make_room_and_those_that_are_needed_never_do() {
        for (living, resting, gone) in [
            (0, 0, Some(0)),
            (15, 15, Some(0)),
            (16, 16, Some(1)),
            (63, 0, Some(0)),
            (63, 15, Some(0)),
            (64, 1, Some(1)),
            (64, 15, Some(1)),
            (64, 64, Some(49)),
            (64, 0, None),
        ] {
            assert_eq!(surplus(living, resting), gone, "{living} live, {resting} rest");
        }
    }
}
