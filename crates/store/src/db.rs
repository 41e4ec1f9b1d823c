//! The two databases, as one: a connection, a snapshot of what is there, the rows of a query.
//!
//! All that differs between SQLite and PostgreSQL when the store is open is in this file.

use std::ops::DerefMut;
use std::sync::Arc;

use futures_util::TryStreamExt;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::AgentName;
use serde::de::DeserializeOwned;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{
    Arguments, AssertSqlSafe, Connection as _, Postgres, Row as _, Sqlite, Transaction, ValueRef as _,
};

use crate::batch::Witness;
use crate::cell::{Cell, Kind};
use crate::error::{Problem, Unreadable};
use crate::nul::{show, show_json};
use crate::statements::{Dialect, in_dialect};

/// Something of one of the two databases.
#[derive(Clone, Debug)]
pub(crate) enum Either<S, P> {
    Sqlite(S),
    Postgres(P),
}

/// A connection of one's own.
pub(crate) type Connection = Either<Box<SqliteConnection>, Box<PgConnection>>;

/// Connections for readers.
pub(crate) type Pool = Either<SqlitePool, PgPool>;

/// What was there at one instant.
pub(crate) type Snapshot = Either<Transaction<'static, Sqlite>, Transaction<'static, Postgres>>;

/// A row of a query's answer.
pub(crate) type Row<'r> = Either<&'r SqliteRow, &'r PgRow>;

/// A statement and its values, row after row.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) kinds: &'static [Kind],
    pub(crate) values: Vec<Cell>,
}

impl Connection {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Runs statements that take no values.
    pub(crate) async fn script(&mut self, script: &'static str) -> Result<(), Problem> {
        match self {
            Self::Sqlite(connection) => {
                sqlx::raw_sql(script).execute(&mut **connection).await?;
            }
            Self::Postgres(connection) => {
                sqlx::raw_sql(script).execute(&mut **connection).await?;
            }
        }
        Ok(())
    }

    /// The one number that a query answers.
    pub(crate) async fn number(&mut self, query: &'static str) -> Result<i64, Problem> {
        let numbers = self.rows(query, Vec::new(), |row| row.int(0)).await?;
        Ok(numbers.first().copied().unwrap_or_default())
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<(), Problem> {
        match self {
            Self::Sqlite(_) => self.command("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.command("BEGIN").await,
        }
    }

    /// Whether a commit is durable by itself, or with the next one that is: SQLite's log is in order.
    /// A server's commits always are, as other processes hear of them at once.
    pub(crate) async fn sync_commits(&mut self, yes: bool) -> Result<(), Problem> {
        match self {
            Self::Sqlite(_) if yes => self.script("PRAGMA synchronous = FULL").await,
            Self::Sqlite(_) => self.script("PRAGMA synchronous = NORMAL").await,
            Self::Postgres(_) => Ok(()),
        }
    }

    pub(crate) async fn commit(&mut self) -> Result<(), Problem> {
        self.command("COMMIT").await
    }

    /// Takes the transaction back. SQLite does it by itself after some errors, and says then
    /// that there is none: so the answer says nothing. If one were still open, the next
    /// `BEGIN` would say so.
    pub(crate) async fn roll_back(&mut self) {
        let _ = self.command("ROLLBACK").await;
    }

    async fn command(&mut self, command: &'static str) -> Result<(), Problem> {
        self.rows(command, Vec::new(), |_| Ok(())).await.map(drop)
    }

    /// Begins a transaction that writes, and gives the epochs of these sessions, which nobody
    /// raises until it ends. `alone`: whoever else writes to them has ended, too.
    pub(crate) async fn begin_fenced(
        &mut self,
        sessions: &[Arc<str>],
        alone: bool,
    ) -> Result<Vec<(String, u64)>, Problem> {
        let query = match (&self, alone) {
            // Nobody else writes between BEGIN IMMEDIATE and COMMIT.
            (Self::Sqlite(_), _) => {
                "BEGIN IMMEDIATE; SELECT id, epoch FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
            }
            (Self::Postgres(_), false) => {
                "SELECT id, epoch FROM sessions WHERE id IN (SELECT json_array_elements_text(CAST(? AS json))) ORDER BY id FOR SHARE"
            }
            (Self::Postgres(_), true) => {
                "SELECT id, epoch FROM sessions WHERE id IN (SELECT json_array_elements_text(CAST(? AS json))) ORDER BY id FOR UPDATE"
            }
        };
        if let Self::Postgres(_) = self {
            self.begin().await?;
        }
        let ids = Cell::Owned(serde_json::to_string(sessions)?);
        self.rows(query, vec![ids], |row| Ok((row.raw(0)?, row.unsigned(1)?))).await
    }

    /// Whether the row is there that this witness names.
    pub(crate) async fn has(&mut self, witness: &Witness) -> Result<bool, Problem> {
        let found = self.rows(witness.query, witness.key.clone(), |row| row.int(0)).await?;
        Ok(found.first().is_some_and(|count| *count > 0))
    }

    /// Runs statements one after the other. Their texts are those of [`crate::statements`]: they hold
    /// nobody's values. SQLite gets them all at once: what a driver costs there is the way to its thread
    /// and back.
    pub(crate) async fn execute(&mut self, steps: Vec<Step>) -> Result<(), Problem> {
        match self {
            Self::Sqlite(_) if steps.is_empty() => {}
            Self::Sqlite(connection) => {
                let mut text = String::new();
                let mut values = Vec::new();
                for step in steps {
                    text.push_str(&step.text);
                    text.push(';');
                    values.extend(step.values);
                }
                let query = sqlx::query_with(AssertSqlSafe(text), for_sqlite(values)?);
                query.execute(&mut **connection).await?;
            }
            Self::Postgres(connection) => {
                for step in steps {
                    let values = for_postgres(step.kinds, step.values)?;
                    sqlx::query_with(AssertSqlSafe(step.text), values).execute(&mut **connection).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends the connection in good order: SQLite's last one tidies its files up.
    pub(crate) async fn close(self) -> Result<(), Problem> {
        match self {
            Self::Sqlite(connection) => connection.close().await?,
            Self::Postgres(connection) => connection.close().await?,
        }
        Ok(())
    }
}

impl Pool {
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, Problem> {
        Ok(match self {
            Self::Sqlite(pool) => Snapshot::Sqlite(pool.begin().await?),
            Self::Postgres(pool) => {
                let read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Snapshot::Postgres(pool.begin_with(read).await?)
            }
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl<S, P> Either<S, P>
where
    S: DerefMut<Target = SqliteConnection>,
    P: DerefMut<Target = PgConnection>,
{
    /// The rows of a query, written with `?`.
    pub(crate) async fn rows<T>(
        &mut self,
        query: &'static str,
        values: Vec<Cell>,
        mut each: impl FnMut(Row<'_>) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Problem> {
        let mut found = Vec::new();
        match self {
            Self::Sqlite(connection) => {
                let text = AssertSqlSafe(in_dialect(Dialect::Sqlite, query));
                let mut rows = sqlx::query_with(text, for_sqlite(values)?).fetch(&mut **connection);
                while let Some(row) = rows.try_next().await? {
                    found.push(each(Row::Sqlite(&row))?);
                }
            }
            Self::Postgres(connection) => {
                let text = AssertSqlSafe(in_dialect(Dialect::Postgres, query));
                // No query has a NULL among its values.
                let values = for_postgres(&[Kind::Text], values)?;
                let mut rows = sqlx::query_with(text, values).fetch(&mut **connection);
                while let Some(row) = rows.try_next().await? {
                    found.push(each(Row::Postgres(&row))?);
                }
            }
        }
        Ok(found)
    }
}

fn for_sqlite(values: Vec<Cell>) -> Result<SqliteArguments, Problem> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        let added = match value {
            Cell::Null => arguments.add(None::<i64>),
            Cell::Int(number) => arguments.add(number),
            Cell::Text(text) => arguments.add(text),
            Cell::Owned(text) => arguments.add(text),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// PostgreSQL wants to know the type of a NULL as well.
fn for_postgres(kinds: &[Kind], values: Vec<Cell>) -> Result<PgArguments, Problem> {
    let mut arguments = PgArguments::default();
    for (kind, value) in kinds.iter().cycle().zip(values) {
        let added = match (value, kind) {
            (Cell::Null, Kind::Int) => arguments.add(None::<i64>),
            (Cell::Null, Kind::Text | Kind::Json) => arguments.add(None::<String>),
            (Cell::Int(number), _) => arguments.add(number),
            (Cell::Text(text), _) => arguments.add(&*text),
            (Cell::Owned(text), _) => arguments.add(text),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

impl Row<'_> {
    /// What a column holds, read in this way, unless it holds nothing.
    pub(crate) fn or_null<T>(
        &self,
        column: usize,
        read: impl FnOnce(&Self, usize) -> Result<T, Unreadable>,
    ) -> Result<Option<T>, Unreadable> {
        let is_null = match self {
            Self::Sqlite(row) => row.try_get_raw(column).map(|value| value.is_null()),
            Self::Postgres(row) => row.try_get_raw(column).map(|value| value.is_null()),
        };
        if is_null.map_err(Unreadable::of)? { Ok(None) } else { read(self, column).map(Some) }
    }

    /// A number.
    pub(crate) fn int(&self, column: usize) -> Result<i64, Unreadable> {
        let found: Result<Option<i64>, _> = match self {
            Self::Sqlite(row) => row.try_get_unchecked(column),
            Self::Postgres(row) => row.try_get_unchecked(column),
        };
        found.map_err(Unreadable::of)?.ok_or_else(|| missing(column))
    }

    /// A number that has no sign, as [`Cell::number`] wrote it.
    pub(crate) fn unsigned(&self, column: usize) -> Result<u64, Unreadable> {
        self.int(column).map(i64::cast_unsigned)
    }

    /// A number that has at most 32 bits.
    pub(crate) fn small(&self, column: usize) -> Result<u32, Unreadable> {
        u32::try_from(self.int(column)?).map_err(Unreadable::of)
    }

    /// A text or JSON as the table has it. (PostgreSQL sends JSON as it sends text.)
    pub(crate) fn raw(&self, column: usize) -> Result<String, Unreadable> {
        let found: Result<Option<String>, _> = match self {
            Self::Sqlite(row) => row.try_get_unchecked(column),
            Self::Postgres(row) => row.try_get_unchecked(column),
        };
        found.map_err(Unreadable::of)?.ok_or_else(|| missing(column))
    }

    /// A text as it was before it was kept.
    pub(crate) fn text(&self, column: usize) -> Result<String, Unreadable> {
        self.raw(column).map(show)
    }

    /// JSON as it was before it was kept.
    pub(crate) fn json(&self, column: usize) -> Result<String, Unreadable> {
        self.raw(column).map(show_json)
    }

    /// What is kept as JSON.
    pub(crate) fn parsed<T: DeserializeOwned>(&self, column: usize) -> Result<T, Unreadable> {
        serde_json::from_str(&self.json(column)?).map_err(Unreadable::of)
    }

    /// An event: in a text column the escape of a NUL is as good as any other.
    pub(crate) fn event(&self, column: usize) -> Result<Event, Unreadable> {
        serde_json::from_str(&self.raw(column)?).map_err(Unreadable::of)
    }

    /// An agent's name, which has no NUL.
    pub(crate) fn name(&self, column: usize) -> Result<AgentName, Unreadable> {
        AgentName::new(&self.raw(column)?).map_err(Unreadable::of)
    }
}

fn missing(column: usize) -> Unreadable {
    Unreadable(format!("there is nothing in column {}", column + 1))
}
