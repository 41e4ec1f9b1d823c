//! What waits for the writer. It is bounded: each session under an epoch may have so many
//! transactions on their way, and whoever begins or takes up a session waits for the answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use midturn_core::engine::ports::store::{Hurry, IN_FLIGHT, Unhurried};
use midturn_core::engine::ports::{Commit, StoreError, Transaction};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::batch::Write;
use crate::cell::Cell;
use crate::session::OpenSession;

/// How many transactions of a session may be on their way. The core waits for room at
/// [`IN_FLIGHT`]; but whoever stops waiting for a commit gives its place away before the
/// transaction is decided, hence the reserve.
const ROOM: usize = 16 * IN_FLIGHT;

/// How many transactions are made durable at once: it bounds how long the first waits for
/// the last.
const GROUP: usize = 1_024;

/// Something for the writer to do.
#[derive(Debug)]
pub(crate) enum Job {
    Write(Write),
    Epoch(Epoch),
}

/// Begins a session, takes one up or removes one, with one statement that says which epoch it then has, or had.
#[derive(Debug)]
pub(crate) struct Epoch {
    /// What is done before, with the same values.
    pub(crate) first: &'static [&'static str],
    /// Written with `?`.
    pub(crate) query: &'static str,
    pub(crate) values: Vec<Cell>,
    /// `None`: no session was changed.
    pub(crate) told: oneshot::Sender<Result<Option<u64>, StoreError>>,
}

/// What the writer does next.
#[derive(Debug)]
pub(crate) enum Next {
    Group(Vec<Write>),
    Epoch(Epoch),
    End,
}

/// How long a store that fails is waited for, unless somebody says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Somebody waits for what is there. Until then nothing is written: what comes next has a
    /// place in the same group.
    wanted: bool,
    closed: bool,
}

/// The queue between those who submit and the one who writes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// Somebody waits for an answer who wants to know at once whether the store is back.
    hurry: Notify,
    /// Why nothing can be written just now.
    trouble: Mutex<Option<Arc<str>>>,
    /// What somebody said instead of [`PATIENCE`].
    patience: Mutex<Option<Duration>>,
    /// How many writes were refused because their epoch was over.
    pub(crate) stale: AtomicU64,
}

fn closed() -> StoreError {
    StoreError::Failed("it was closed; resume the session".to_owned())
}

impl Queue {
    /// Queues a transaction; never waits. It is written when somebody waits for it, or for another.
    pub(crate) fn submit(
        self: &Arc<Self>,
        session: &Arc<OpenSession>,
        transaction: Arc<Transaction>,
        at: u64,
    ) -> Commit {
        if session.in_flight.fetch_add(1, Ordering::AcqRel) >= ROOM {
            session.in_flight.fetch_sub(1, Ordering::AcqRel);
            let error =
                StoreError::Failed(format!("{ROOM} transactions of the session are on their way already"));
            session.break_off(&error);
            return Commit::Done(Err(error));
        }
        let (told, waits) = oneshot::channel();
        match self.push(Job::Write(Write { session: session.clone(), transaction, at, told })) {
            Ok(()) => Commit::Unhurried(Unhurried::new(waits, self.clone())),
            Err(error) => Commit::Done(Err(error)),
        }
    }

    /// Queues a job.
    pub(crate) fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(closed());
        }
        // Whoever begins or takes up a session waits for the answer.
        let is_waited_for = !matches!(job, Job::Write(_));
        waiting.jobs.push_back(job);
        drop(waiting);
        if is_waited_for {
            self.hurry();
            if self.trouble().is_some() {
                self.hurry.notify_one();
            }
        }
        Ok(())
    }

    /// Nothing more comes in; what waits is still done, if the store answers.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.wake.notify_one();
        self.hurry.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Why nothing can be written just now.
    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.lock().clone()
    }

    /// Says so, or that it is over. Whether that is news.
    pub(crate) fn say_trouble(&self, trouble: Option<Arc<str>>) -> bool {
        let mut now = self.trouble.lock();
        let news = now.is_some() != trouble.is_some();
        *now = trouble;
        news
    }

    /// How long a store that fails is waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.patience.lock().unwrap_or(PATIENCE)
    }

    pub(crate) fn be_patient(&self, patience: Duration) {
        *self.patience.lock() = Some(patience);
    }

    /// Waits until somebody wants to know at once whether the store is back.
    pub(crate) async fn hurried(&self) {
        self.hurry.notified().await;
    }

    /// Takes whoever waits for an answer, or everything.
    pub(crate) fn give_up(&self, all: bool) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let (out, stay) = std::mem::take(&mut waiting.jobs)
            .into_iter()
            .partition(|job| all || !matches!(job, Job::Write(_)));
        waiting.jobs = stay;
        drop(waiting);
        Vec::from(out)
    }

    /// What comes next, in the order in which it came.
    pub(crate) async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.waiting.lock().take_wanted() {
                return next;
            }
            self.wake.notified().await;
        }
    }
}

impl Hurry for Queue {
    fn hurry(&self) {
        let mut waiting = self.waiting.lock();
        // What isn't there any more is being written.
        waiting.wanted |= !waiting.jobs.is_empty();
        drop(waiting);
        self.wake.notify_one();
    }
}

impl Waiting {
    /// What is to be done now: nothing while nobody waits for any of it.
    fn take_wanted(&mut self) -> Option<Next> {
        if !self.wanted && !self.closed {
            return None;
        }
        let next = self.take();
        self.wanted &= !self.jobs.is_empty();
        next
    }

    /// All transactions up to the next job of another kind, or that job.
    fn take(&mut self) -> Option<Next> {
        let writes = self.jobs.iter().take(GROUP).take_while(|job| matches!(job, Job::Write(_))).count();
        if writes > 0 {
            let taken = self.jobs.drain(..writes);
            let taken = taken.filter_map(|job| if let Job::Write(write) = job { Some(write) } else { None });
            return Some(Next::Group(taken.collect()));
        }
        match self.jobs.pop_front() {
            Some(Job::Epoch(epoch)) => Some(Next::Epoch(epoch)),
            Some(Job::Write(write)) => Some(Next::Group(vec![write])),
            None => self.closed.then_some(Next::End),
        }
    }
}
