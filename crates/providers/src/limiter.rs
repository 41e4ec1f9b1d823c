//! One limiter per key, for all agents (semantics.md, section 7): when one call is told to
//! wait, the others that use the key wait too, instead of finding out each for itself.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Nobody is held longer than this for another call's sake.
const LONGEST: Duration = Duration::from_secs(300);

/// Those who waited go one after another, so far apart.
const APART: Duration = Duration::from_millis(10);

/// Holds back calls under one key.
#[derive(Debug)]
pub(crate) struct Limiter {
    slots: Semaphore,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    /// Nobody goes before this.
    not_before: Instant,
    /// When the next of those who wait may go.
    next: Instant,
}

impl Limiter {
    /// A limiter that lets `at_once` calls run at the same time.
    pub(crate) fn new(at_once: usize) -> Self {
        let now = Instant::now();
        let slots = Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS));
        Self { slots, queue: Mutex::new(Queue { not_before: now, next: now }) }
    }

    /// Waits for one's turn; whoever drops the future gives it up. The permit is the turn.
    /// `None` never comes: the semaphore is never closed.
    pub(crate) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let permit = self.slots.acquire().await.ok();
        while let Some(turn) = self.turn() {
            tokio::time::sleep_until(turn).await;
        }
        permit
    }

    /// A call was told to wait: so do all others.
    pub(crate) fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait.min(LONGEST);
        let mut queue = self.queue.lock();
        queue.not_before = queue.not_before.max(until);
        queue.next = queue.next.max(until);
    }

    /// When to look again; `None` is now.
    fn turn(&self) -> Option<Instant> {
        let mut queue = self.queue.lock();
        if Instant::now() >= queue.not_before {
            return None;
        }
        let turn = queue.next;
        queue.next += APART;
        Some(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// When each of `calls` gets its turn, in ms after the hold.
    async fn turns(limiter: Arc<Limiter>, calls: usize) -> Vec<u128> {
        let start = Instant::now();
        let tasks: Vec<_> = (0..calls)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    let _turn = limiter.enter().await;
                    start.elapsed().as_millis()
                })
            })
            .collect();
        let mut at = Vec::new();
        for task in tasks {
            at.push(task.await.unwrap());
        }
        at.sort_unstable();
        at
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_to_wait_holds_back_the_others_who_then_go_one_by_one() {
        let limiter = Arc::new(Limiter::new(8));
        assert_eq!(turns(limiter.clone(), 2).await, [0, 0]);
        limiter.hold(Duration::from_secs(2));
        limiter.hold(Duration::from_secs(1));
        assert_eq!(turns(limiter.clone(), 3).await, [2_000, 2_010, 2_020]);
        assert_eq!(turns(limiter, 2).await, [0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_held_for_longer_than_the_bound() {
        let limiter = Arc::new(Limiter::new(1));
        limiter.hold(Duration::from_secs(1 << 30));
        assert_eq!(turns(limiter, 1).await, [300_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_run_at_once_than_the_setting_says() {
        let limiter = Limiter::new(1);
        let first = limiter.enter().await;
        let second = tokio::time::timeout(Duration::from_secs(9), limiter.enter());
        assert!(second.await.is_err());
        drop(first);
        assert!(limiter.enter().await.is_some());
    }
}
