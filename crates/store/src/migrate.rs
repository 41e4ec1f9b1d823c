//! Brings the tables to the version that this program knows. Versions only go up; each has
//! one file for each database, applied whole or not at all.

use crate::cell::Cell;
use crate::db::Connection;
use crate::error::Problem;
use crate::statements::Dialect;

/// What makes version 1, 2, 3 … of the one before.
fn steps(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Sqlite => &[
            include_str!("../migrations/sqlite_1.sql"),
            include_str!("../migrations/sqlite_2.sql"),
            include_str!("../migrations/sqlite_3.sql"),
        ],
        Dialect::Postgres => &[
            include_str!("../migrations/postgres_1.sql"),
            include_str!("../migrations/postgres_2.sql"),
            include_str!("../migrations/postgres_3.sql"),
        ],
    }
}

/// The version of the tables that this program reads and writes.
pub(crate) fn known(dialect: Dialect) -> i64 {
    i64::try_from(steps(dialect).len()).unwrap_or(i64::MAX)
}

/// The version that is there; 0 is none.
pub(crate) async fn found(connection: &mut Connection) -> Result<i64, Problem> {
    let there = match connection.dialect() {
        Dialect::Sqlite => {
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'"
        }
        Dialect::Postgres => {
            "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_version'"
        }
    };
    if connection.number(there).await? == 0 {
        return Ok(0);
    }
    connection.number("SELECT coalesce(max(version), 0) FROM schema_version").await
}

/// Brings the tables up to date, and gives the version that was there. Two processes that start at once
/// do so one after the other. After an error the connection goes, and what it had begun with it.
pub(crate) async fn migrate(connection: &mut Connection, now: u64) -> Result<i64, Problem> {
    let dialect = connection.dialect();
    connection.begin().await?;
    if dialect == Dialect::Postgres {
        // Of SQLite's transactions that write there is only one at a time.
        connection.script("SELECT pg_advisory_xact_lock(1298752596)").await?;
    }
    let from = found(connection).await?;
    if from == 0 {
        let made =
            "CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)";
        connection.script(made).await?;
    }
    for (version, step) in (1..).zip(steps(dialect)).filter(|(version, _)| *version > from) {
        connection.script(step).await?;
        let values = vec![Cell::Int(version), Cell::number(now)];
        let insert = "INSERT INTO schema_version (version, applied_at) VALUES (?, ?)";
        connection.rows(insert, values, |_| Ok(())).await?;
    }
    connection.commit().await?;
    Ok(from)
}
