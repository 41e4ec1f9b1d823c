//! Group commit: the epochs of a group are looked at once, what is stale is left out, the
//! rest is written with a few statements and committed at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use midturn_core::engine::ports::StoreError;
use midturn_core::fail;

use super::patience::{ANSWER, Patience, SILENCE};
use super::{Connects, Epoch, Job, Queue};
use crate::batch::{Batch, Witness, Write};
use crate::cell::Cell;
use crate::db::{Connection, Step};
use crate::error::Problem;
use crate::statements::{Dialect, Statement, rows_at_once};

/// Writes groups over a connection.
pub(crate) struct Grouper {
    connects: Connects,
    /// None after it was lost.
    connection: Option<Connection>,
}

/// What is said while nothing is known.
const SILENT: &str = "it is being waited for, so try again in a moment: it has not answered for 10 s";

/// The epoch of each session, by its id as the tables have it.
type Epochs = HashMap<String, u64>;

/// A group on its way, however often that takes.
#[derive(Debug, Default)]
struct Group {
    writes: Vec<Write>,
    /// The commit was begun, and nobody said what became of it: if this row is there, the whole group is.
    unsure: Option<Witness>,
    /// Those whose epoch was over when the group was tried last.
    stale: Vec<Write>,
}

impl Grouper {
    pub(crate) fn new(connects: Connects, connection: Connection) -> Self {
        Self { connects, connection: Some(connection) }
    }

    /// Makes the transactions durable and tells each what became of it. A store that fails is
    /// waited for; when that has lasted too long, all that wait are told.
    pub(crate) async fn commit(&mut self, writes: Vec<Write>, queue: &Queue) {
        let mut group = Group { writes: without_broken(writes), ..Group::default() };
        let mut patience = Patience::new(queue.patience());
        while !group.writes.is_empty() {
            let tried = self.attempt(&mut group, queue).await;
            queue.stale.fetch_add(group.stale.len() as u64, Ordering::Relaxed);
            tell(std::mem::take(&mut group.stale), &Err(StoreError::Stale));
            let Err(problem) = tried else {
                self.is_well(queue);
                return tell(group.writes, &Ok(()));
            };
            if problem.is_of_the_data() && group.writes.len() > 1 {
                return self.commit_each(group.writes, queue).await;
            }
            if !problem.may_pass() {
                return tell(group.writes, &Err(problem.told()));
            }
            if !patience.goes_on(&problem, queue).await {
                let error = problem.told();
                tell(group.writes, &Err(error.clone()));
                return refuse(queue.give_up(true), &error);
            }
        }
    }

    /// One that is refused does no harm to the others. In this order.
    async fn commit_each(&mut self, writes: Vec<Write>, queue: &Queue) {
        for write in writes {
            Box::pin(self.commit(vec![write], queue)).await;
        }
    }

    /// The store answers.
    pub(crate) fn is_well(&self, queue: &Queue) {
        if queue.say_trouble(None) {
            tracing::warn!("the store answers again");
        }
    }

    /// Looks whether the store answers again, of which nothing is asked just now.
    pub(crate) async fn probe(&mut self, queue: &Queue) {
        let limit = self.limit();
        let written = limited(limit, self.write_nothing()).await;
        if self.after(written).await.is_ok() {
            self.is_well(queue);
        }
    }

    /// Writes what is there already: a disk that is full says so.
    async fn write_nothing(&mut self) -> Result<(), Problem> {
        self.begin(&[], false).await?;
        let Some(connection) = &mut self.connection else { return Err(lost()) };
        connection.script("UPDATE schema_version SET applied_at = applied_at").await?;
        connection.commit().await
    }

    /// Tries to write the group. After an error nothing of it counts, unless it is unsure.
    async fn attempt(&mut self, group: &mut Group, queue: &Queue) -> Result<(), Problem> {
        let limit = self.limit();
        let tried = {
            let works = limited(limit, self.try_commit(group));
            tokio::pin!(works);
            match tokio::time::timeout(SILENCE, &mut works).await {
                Ok(tried) => tried,
                Err(_) => {
                    queue.say_trouble(Some(SILENT.into()));
                    works.await
                }
            }
        };
        self.after(tried).await
    }

    /// How long the database may take. A file's own thread does what it was told, whoever waits.
    fn limit(&self) -> Option<Duration> {
        match self.connects {
            Connects::Sqlite(_) => None,
            Connects::Postgres(_) => Some(ANSWER),
        }
    }

    /// After an error the transaction is taken back, or the connection that nobody can believe any more is given up.
    async fn after<T>(&mut self, tried: Result<T, Problem>) -> Result<T, Problem> {
        match &tried {
            Ok(_) => {}
            Err(problem) if problem.spares_the_connection() => self.roll_back().await,
            Err(_) => self.connection = None,
        }
        tried
    }

    async fn try_commit(&mut self, group: &mut Group) -> Result<(), Problem> {
        let epochs = self.begin(&sessions_of(&group.writes), group.unsure.is_some()).await?;
        let Some(connection) = &mut self.connection else { return Err(lost()) };
        if let Some(witness) = &group.unsure {
            if connection.has(witness).await? {
                Batch::of(&group.writes)?.settle();
                connection.roll_back().await;
                return Ok(());
            }
            group.unsure = None;
        }
        group.split(&epochs);
        let mut batch = Batch::of(&group.writes)?;
        let witness = batch.witness();
        let mut steps = Vec::new();
        for (into, values) in batch.take() {
            in_steps(&mut steps, connection.dialect(), into.statement(), values);
        }
        connection.execute(steps).await?;
        fail::point("store_written");
        // Before: when the answer is lost nobody knows whether it is there, and it would be written again.
        group.unsure = witness;
        connection.commit().await?;
        fail::point("store_committed");
        // Only now: what is refused has no lines, and the next ones would be numbered behind a gap.
        batch.settle();
        Ok(())
    }

    /// Begins, and gives the epochs of these sessions. A connection that was lost meanwhile is
    /// made anew once, as nothing is written yet.
    async fn begin(&mut self, sessions: &[Arc<str>], alone: bool) -> Result<Epochs, Problem> {
        if let Some(connection) = &mut self.connection {
            match connection.begin_fenced(sessions, alone).await {
                Ok(epochs) => return Ok(epochs.into_iter().collect()),
                Err(problem) if problem.spares_the_connection() => return Err(problem),
                Err(_) => self.connection = None,
            }
        }
        let mut connection = self.connects.connect().await?;
        let epochs = connection.begin_fenced(sessions, alone).await?;
        self.connection = Some(connection);
        Ok(epochs.into_iter().collect())
    }

    /// Begins a session or takes one up, in a transaction that is durable with the next one: nothing is
    /// told of a session before something of it is recorded. One that is removed has nothing that comes next.
    /// Tried once: whoever asks can ask again.
    pub(crate) async fn set_epoch(&mut self, epoch: Epoch, queue: &Queue) {
        let Epoch { first, query, values, told } = epoch;
        let limit = self.limit();
        let tried = limited(limit, self.try_epoch(first, query, values)).await;
        match tried {
            Ok(_) => self.is_well(queue),
            // Whatever it was: the next connection syncs its commits again.
            Err(_) => self.connection = None,
        }
        // Whoever asked may be gone; the session is begun or taken up all the same.
        let _ = told.send(tried.map_err(StoreError::from));
    }

    async fn try_epoch(
        &mut self,
        first: &[&'static str],
        query: &'static str,
        values: Vec<Cell>,
    ) -> Result<Option<u64>, Problem> {
        if let (Some(connection), []) = (&mut self.connection, first) {
            connection.sync_commits(false).await?;
        }
        self.begin(&[], false).await?;
        let Some(connection) = &mut self.connection else { return Err(lost()) };
        for statement in first {
            connection.rows(statement, values.clone(), |_| Ok(())).await?;
        }
        let epochs = connection.rows(query, values, |row| row.unsigned(0)).await?;
        connection.commit().await?;
        connection.sync_commits(true).await?;
        Ok(epochs.first().copied())
    }

    async fn roll_back(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.roll_back().await;
        }
    }

    pub(crate) async fn close(self) {
        if let Some(connection) = self.connection {
            // All that was told to be durable is; what closing tidies up, the next open does too.
            let _ = connection.close().await;
        }
    }
}

/// A server that says nothing has failed.
async fn limited<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    let silent = |_| Err(Problem::Sql(sqlx::Error::PoolTimedOut));
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(silent),
        None => work.await,
    }
}

fn lost() -> Problem {
    Problem::Sql(sqlx::Error::PoolClosed)
}

/// Tells those whose session failed before; the others go on.
fn without_broken(writes: Vec<Write>) -> Vec<Write> {
    let mut sound = Vec::with_capacity(writes.len());
    for write in writes {
        match write.session.broken() {
            Some(error) => answer(write, Err(error)),
            None => sound.push(write),
        }
    }
    sound
}

fn tell(writes: Vec<Write>, result: &Result<(), StoreError>) {
    for write in writes {
        if let Err(error) = result {
            write.session.break_off(error);
        }
        answer(write, result.clone());
    }
}

/// Tells those who wait that nothing comes of it.
pub(super) fn refuse(jobs: Vec<Job>, error: &StoreError) {
    for job in jobs {
        // Whoever asked may be gone.
        match job {
            Job::Write(write) => tell(vec![write], &Err(error.clone())),
            Job::Epoch(epoch) => drop(epoch.told.send(Err(error.clone()))),
        }
    }
}

fn answer(write: Write, result: Result<(), StoreError>) {
    write.session.in_flight.fetch_sub(1, Ordering::AcqRel);
    // Nobody has to wait for it.
    let _ = write.told.send(result);
}

/// The sessions of the transactions, each once.
fn sessions_of(writes: &[Write]) -> Vec<Arc<str>> {
    let mut sessions: Vec<Arc<str>> = writes.iter().map(|write| write.session.id.clone()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

impl Group {
    /// Those whose epoch is over go.
    fn split(&mut self, epochs: &Epochs) {
        let fresh = |write: &Write| epochs.get(&*write.session.id) == Some(&write.session.epoch);
        let (fresh, stale) = std::mem::take(&mut self.writes).into_iter().partition(fresh);
        (self.writes, self.stale) = (fresh, stale);
    }
}

/// The statements that write these rows.
fn in_steps(steps: &mut Vec<Step>, dialect: Dialect, statement: &Statement, mut values: Vec<Cell>) {
    let kinds = statement.kinds;
    let mut left = values.len() / kinds.len();
    while left > 0 {
        let rows = rows_at_once(left);
        let rest = values.split_off(rows * kinds.len());
        steps.push(Step { text: statement.text(dialect, rows), kinds, values });
        values = rest;
        left -= rows;
    }
}
