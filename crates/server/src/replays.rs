//! Replays that are asked for: one at a time is played, and the newest few are kept for a page to show.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::Refused;

/// How many are kept: each is a scenario's text, of a mebibyte at most.
const KEPT_MAX: usize = 4;

/// Those that are kept, and whether one is played now.
pub(crate) struct Replays {
    kept: Mutex<Kept>,
    /// A play takes a processor for itself.
    playing: Semaphore,
}

struct Kept {
    count: u64,
    /// What no other process calls its own by: a page that outlives this one must not be shown another's.
    mark: u64,
    all: VecDeque<(String, String)>,
}

impl Default for Replays {
    fn default() -> Self {
        // The seed of the standard library's hash tables: this is no secret, and has to be another each time.
        let mark = RandomState::new().build_hasher().finish() & 0xffff_ffff;
        let kept = Kept { count: 0, mark, all: VecDeque::new() };
        Self { kept: Mutex::new(kept), playing: Semaphore::new(1) }
    }
}

impl Replays {
    /// Keeps a scenario's text; what it is found by from now on.
    pub(crate) fn keep(&self, scenario: String) -> String {
        let mut kept = self.kept.lock();
        kept.count += 1;
        let id = format!("r{}-{:08x}", kept.count, kept.mark);
        kept.all.push_back((id.clone(), scenario));
        if kept.all.len() > KEPT_MAX {
            kept.all.pop_front();
        }
        id
    }

    /// A scenario's text that is kept.
    pub(crate) fn kept(&self, id: &str) -> Option<String> {
        self.kept.lock().all.iter().find(|(known, _)| known == id).map(|(_, text)| text.clone())
    }

    /// Room to play one.
    pub(crate) fn room(&self) -> Result<SemaphorePermit<'_>, Refused> {
        let busy = "another replay is being played; try again when it is done";
        self.playing.try_acquire().map_err(|_| Refused::too_many("too_many_requests", busy, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_few_are_kept_each_under_a_name_of_its_own() {
        let replays = Replays::default();
        let ids: Vec<String> = (0..6).map(|n| replays.keep(n.to_string())).collect();
        let kept: Vec<Option<String>> = ids.iter().map(|id| replays.kept(id)).collect();
        assert!(ids[0].starts_with("r1-") && ids[5].starts_with("r6-"), "{ids:?}");
        assert_ne!(Replays::default().keep(String::new()), ids[0], "another process has other names");
        let expected = [None, None, Some("2"), Some("3"), Some("4"), Some("5")];
        assert_eq!(kept, expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn one_is_played_at_a_time() {
        let replays = Replays::default();
        let room = replays.room().unwrap();
        assert!(replays.room().is_err());
        drop(room);
        assert!(replays.room().is_ok());
    }
}
