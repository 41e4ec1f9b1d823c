//! An agent's worktree when it begins: found again, or a new one. What agents ask of the project that begin at
//! the same time git is asked once.

use std::sync::Arc;
use std::time::Instant;

use midturn_core::rules::id::AgentName;
use tokio::sync::Mutex;

use super::GitWorkplace;
use super::borrowed::Found;
use super::record::Record;
use super::worktree::{Again, Begun, NoWorktree, Worktree};

/// What the agents share that begin.
#[derive(Debug, Default)]
pub(super) struct Starting {
    /// One name for a worktree is taken at a time.
    making: Mutex<()>,
    /// What the project has.
    found: Shared<Arc<Found>>,
    /// What is changed there and not committed, in words.
    changed: Shared<Option<String>>,
}

/// A worktree that was made or found, its record, and what there is to say of it.
pub(super) struct Had {
    pub(super) worktree: Worktree,
    pub(super) record: Record,
    pub(super) is_new: bool,
    pub(super) notes: Vec<String>,
}

impl GitWorkplace {
    pub(super) async fn worktree(&self, agent: &AgentName) -> Result<Had, NoWorktree> {
        let asked = Instant::now();
        let repository = self.repository().await?;
        let mut notes = Vec::new();
        if let Some(record) = self.record(agent).map_err(|e| self.no_state(&e))? {
            match repository.again(record.clone()).await? {
                Again::Found(worktree, note) => {
                    // What git ignores is gone with a folder that was.
                    let mut record = record;
                    record.unready |= note.is_some();
                    let notes = note.map(str::to_owned).into_iter().collect();
                    return Ok(Had { worktree: *worktree, record, is_new: false, notes });
                }
                Again::Lost(why) => notes.extend(why.map(|why| format!("{agent} started over: {why}"))),
            }
        }
        let Starting { making, found, changed } = &self.starting;
        let Begun { worktree, mut record, found } = {
            let _one_at_a_time = making.lock().await;
            repository.begin(agent, (found, asked)).await?
        };
        let changed = changed.since(asked, async |_| repository.changed().await);
        match tokio::try_join!(changed, worktree.make(&worktree.start, &found)) {
            Ok((changed, ())) => notes.extend(changed.map(|paths| not_in_it(&worktree, &paths))),
            Err(error) => {
                repository.forget(&worktree).await;
                return Err(error.into());
            }
        }
        record.unready = !self.wishes.are_none();
        let record = repository.made(record)?;
        notes.extend(worktree.fill_submodules().await?);
        if !worktree.branch.ends_with(&format!("/{agent}")) {
            let branch = &worktree.branch;
            notes.push(format!(
                "a worktree or branch of that name is left over from before, so {agent} works on {branch}"
            ));
        }
        Ok(Had { worktree, record, is_new: true, notes })
    }
}

fn not_in_it(worktree: &Worktree, paths: &str) -> String {
    format!(
        "the worktree starts from commit {start:.12}: uncommitted changes in the project folder ({paths}) are not in \
         it",
        start = worktree.start
    )
}

/// An answer that all share who asked before anybody went to look: it is never older than the question.
#[derive(Debug)]
pub(super) struct Shared<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Shared<T> {
    /// A look may make use of what was seen the last time.
    ///
    /// # Errors
    /// Those of a look, which nobody shares.
    pub(super) async fn since<E>(
        &self,
        asked: Instant,
        look: impl AsyncFnOnce(Option<T>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut last = self.0.lock().await;
        if let Some((_, answer)) = last.as_ref().filter(|(began, _)| *began >= asked) {
            return Ok(answer.clone());
        }
        let began = Instant::now();
        let answer = look(last.as_ref().map(|(_, answer)| answer.clone())).await?;
        *last = Some((began, answer.clone()));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_shared_by_those_who_asked_before_the_look_began_and_by_nobody_else() {
        let (shared, looks) = (Shared::default(), std::cell::Cell::new(0));
        let look = |_| async {
            looks.set(looks.get() + 1);
            // Whoever asks now may have to know what came to be after this look.
            tokio::task::yield_now().await;
            Ok::<_, ()>((looks.get(), Instant::now()))
        };
        let asked = Instant::now();
        let (first, second) = tokio::join!(shared.since(asked, look), shared.since(asked, look));
        assert_eq!(first, second);
        let (_, meanwhile) = first.unwrap();
        assert_eq!(shared.since(meanwhile, look).await.unwrap().0, 2);
        assert_eq!(shared.since(asked, async |_| Err(())).await.unwrap().0, 2, "the newest is new enough");
        assert_eq!(shared.since(Instant::now(), async |_| Err(())).await, Err(()));
        assert_eq!(shared.since(asked, async |_| Err(())).await.unwrap().0, 2, "a failure leaves it");
    }
}
