//! Group commit: the epochs of a group are looked at once, what is stale is left out, the
//! rest is written with a few statements and committed at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use midturn_core::engine::ports::{SessionRecord, StoreError};
use midturn_core::fail;

use super::Connects;
use crate::batch::{Batch, Write};
use crate::cell::Cell;
use crate::db::{Connection, Step};
use crate::error::Problem;
use crate::statements::{Into, Texts, rows_at_once};

/// Writes groups over a connection.
#[derive(Debug)]
pub(crate) struct Grouper {
    connects: Connects,
    /// None after it was lost.
    connection: Option<Connection>,
    texts: Texts,
}

/// The epoch of each session, by its id as the tables have it.
type Epochs = HashMap<String, u64>;

/// A group, sorted by what its epochs say.
#[derive(Debug, Default)]
struct Sorted {
    fresh: Vec<Write>,
    stale: Vec<Write>,
}

impl Grouper {
    pub(crate) fn new(connects: Connects, connection: Connection) -> Self {
        let texts = Texts::new(connection.dialect());
        Self { connects, connection: Some(connection), texts }
    }

    /// Makes the transactions durable and tells each what became of it.
    pub(crate) async fn commit(&mut self, writes: Vec<Write>, stale: &AtomicU64) {
        let writes = without_broken(writes);
        if writes.is_empty() {
            return;
        }
        let mut sorted = Sorted::default();
        let result = self.try_commit(writes, &mut sorted).await;
        stale.fetch_add(sorted.stale.len() as u64, Ordering::Relaxed);
        tell(sorted.stale, &Err(StoreError::Stale));
        match result {
            Ok(()) => tell(sorted.fresh, &Ok(())),
            // One that is refused does no harm to the others.
            Err(problem) if problem.is_of_the_data() && sorted.fresh.len() > 1 => {
                for write in sorted.fresh {
                    Box::pin(self.commit(vec![write], stale)).await;
                }
            }
            Err(problem) => tell(sorted.fresh, &Err(problem.told())),
        }
    }

    /// After an error, whatever was not found stale is in `sorted.fresh` and nothing of it counts.
    async fn try_commit(&mut self, writes: Vec<Write>, sorted: &mut Sorted) -> Result<(), Problem> {
        sorted.fresh = writes;
        let epochs = self.begin(&sessions_of(&sorted.fresh)).await?;
        sorted.split(&epochs);
        let written = self.write(sorted).await;
        match written {
            Ok(batch) => {
                batch.settle();
                Ok(())
            }
            Err(problem) => {
                self.roll_back().await;
                Err(problem)
            }
        }
    }

    async fn write(&mut self, sorted: &mut Sorted) -> Result<Batch, Problem> {
        let Self { connection: Some(connection), texts, .. } = self else { return Err(lost()) };
        let mut batch = Batch::of(&sorted.fresh)?;
        let mut steps = Vec::new();
        for into in Into::GROUP {
            in_steps(&mut steps, texts, into, batch.take(into));
        }
        connection.execute_all(steps).await?;
        fail::point("store_written");
        connection.commit().await?;
        fail::point("store_committed");
        Ok(batch)
    }

    /// Begins, and gives the epochs of these sessions. A connection that was lost meanwhile is
    /// made anew once, as nothing is written yet.
    async fn begin(&mut self, sessions: &[Arc<str>]) -> Result<Epochs, Problem> {
        if let Some(connection) = &mut self.connection
            && let Ok(epochs) = connection.begin_fenced(sessions).await
        {
            return Ok(epochs.into_iter().collect());
        }
        self.connection = None;
        let mut connection = self.connects.connect().await?;
        let epochs = connection.begin_fenced(sessions).await?;
        self.connection = Some(connection);
        Ok(epochs.into_iter().collect())
    }

    async fn roll_back(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.roll_back().await;
        }
    }

    /// Writes a new session, at epoch 1.
    pub(crate) async fn begin_session(&mut self, record: SessionRecord) -> Result<(), StoreError> {
        let values = vec![
            Cell::text(record.id.as_str()),
            Cell::number(1_u64),
            Cell::number(record.began_at),
            Cell::text(&record.folder),
            Cell::text(&record.title),
            Cell::json(&record.memo).map_err(Problem::from)?,
        ];
        match self.alone(Into::Sessions, values).await? {
            0 => Err(StoreError::Failed(format!(
                "there is a session `{}` already; resume it, or take another id",
                record.id
            ))),
            _ => Ok(()),
        }
    }

    /// Raises a session's epoch: whoever had it before is refused from now on.
    pub(crate) async fn take_up(&mut self, session: Arc<str>) -> Result<Option<u64>, StoreError> {
        let raised = self.raise(session).await;
        if raised.is_err() {
            self.roll_back().await;
        }
        Ok(raised?)
    }

    async fn raise(&mut self, session: Arc<str>) -> Result<Option<u64>, Problem> {
        self.begin(&[]).await?;
        let Some(connection) = &mut self.connection else { return Err(lost()) };
        let query = "UPDATE sessions SET epoch = epoch + 1 WHERE id = ? RETURNING epoch";
        let epochs = connection.rows(query, vec![Cell::Text(session)], |row| row.unsigned(0)).await?;
        connection.commit().await?;
        Ok(epochs.first().copied())
    }

    /// One row in a transaction of its own.
    async fn alone(&mut self, into: Into, values: Vec<Cell>) -> Result<u64, Problem> {
        self.begin(&[]).await?;
        let written = self.write_alone(into, values).await;
        if written.is_err() {
            self.roll_back().await;
        }
        written
    }

    async fn write_alone(&mut self, into: Into, values: Vec<Cell>) -> Result<u64, Problem> {
        let Self { connection: Some(connection), texts, .. } = self else { return Err(lost()) };
        let rows = connection.execute(texts.text(into, 1), into.statement().kinds, values).await?;
        connection.commit().await?;
        Ok(rows)
    }

    pub(crate) async fn close(self) {
        if let Some(connection) = self.connection {
            // All that was told to be durable is; what closing tidies up, the next open does too.
            let _ = connection.close().await;
        }
    }
}

fn lost() -> Problem {
    Problem::Sql(sqlx::Error::PoolClosed)
}

/// Tells those whose session failed before; the others go on.
fn without_broken(writes: Vec<Write>) -> Vec<Write> {
    let mut sound = Vec::with_capacity(writes.len());
    for write in writes {
        match write.lane.broken() {
            Some(error) => answer(write, Err(error)),
            None => sound.push(write),
        }
    }
    sound
}

fn tell(writes: Vec<Write>, result: &Result<(), StoreError>) {
    for write in writes {
        if let Err(error) = result {
            write.lane.break_off(error);
        }
        answer(write, result.clone());
    }
}

fn answer(write: Write, result: Result<(), StoreError>) {
    write.lane.in_flight.fetch_sub(1, Ordering::AcqRel);
    // Nobody has to wait for it.
    let _ = write.told.send(result);
}

/// The sessions of the transactions, each once.
fn sessions_of(writes: &[Write]) -> Vec<Arc<str>> {
    let mut sessions: Vec<Arc<str>> = writes.iter().map(|write| write.lane.session.clone()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

impl Sorted {
    fn split(&mut self, epochs: &Epochs) {
        let fresh = |write: &Write| epochs.get(&*write.lane.session) == Some(&write.lane.epoch);
        let (fresh, stale) = std::mem::take(&mut self.fresh).into_iter().partition(fresh);
        (self.fresh, self.stale) = (fresh, stale);
    }
}

/// The statements that write these rows.
fn in_steps(steps: &mut Vec<Step>, texts: &mut Texts, into: Into, mut values: Vec<Cell>) {
    let kinds = into.statement().kinds;
    let mut left = values.len() / kinds.len();
    while left > 0 {
        let rows = rows_at_once(left);
        let rest = values.split_off(rows * kinds.len());
        steps.push(Step { text: texts.text(into, rows), kinds, values });
        values = rest;
        left -= rows;
    }
}
