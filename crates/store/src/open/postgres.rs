//! PostgreSQL: a database that many processes share. The epochs alone keep two processes from
//! writing the same session.

use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::now;
use crate::archive::SqlArchive;
use crate::db::{Connection, Pool};
use crate::error::{OpenError, Problem, Trouble};
use crate::migrate::{self, migrate};
use crate::statements::Dialect;
use crate::writer::{Connects, Writer};

/// How long a server may take to let us in.
const PATIENCE: Duration = Duration::from_secs(10);

/// After so many milliseconds in which nothing comes from us in the middle of a transaction the
/// server takes it back: what was lost on the way, and is tried anew, waits no longer for it.
const IDLE: &str = "10000";

/// How many may read at once.
const READERS: u32 = 4;

/// How many prepared statements a connection keeps: all that there are.
const STATEMENTS: usize = 128;

/// Opens the database of a `postgres://` address; see [`OpenError`] for what is refused. The
/// tables are made if they aren't there.
pub async fn open_postgres(url: &str) -> Result<SqlArchive, OpenError> {
    let name = shown(url);
    let options: PgConnectOptions = url.parse().map_err(|_| OpenError::Unreachable {
        server: name.clone(),
        why: "the address is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned(),
    })?;
    // What is told to be durable is, whatever the server's default.
    let options = options
        .options([("synchronous_commit", "on"), ("idle_in_transaction_session_timeout", IDLE)])
        .application_name("midturn")
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging();
    let way = PostgresWay { options, name: name.clone() };
    let writer = Writer::start(Connects::Postgres(Box::new(way.clone())), None).await?;
    let pool = PgPoolOptions::new().max_connections(READERS).acquire_timeout(PATIENCE);
    Ok(SqlArchive::new(name, Pool::Postgres(pool.connect_lazy_with(way.options)), Some(writer)))
}

/// How to connect to a server.
#[derive(Clone)]
pub(crate) struct PostgresWay {
    options: PgConnectOptions,
    name: String,
}

impl PostgresWay {
    /// A connection that writes.
    pub(crate) async fn connect(&self) -> Result<Connection, Problem> {
        let connected = tokio::time::timeout(PATIENCE, self.options.connect()).await;
        let connection = connected.map_err(|_| Problem::Sql(sqlx::Error::PoolTimedOut))??;
        Ok(Connection::Postgres(Box::new(connection)))
    }

    /// The writer's first connection: the tables are brought up to date.
    pub(crate) async fn open(&self) -> Result<Connection, OpenError> {
        let mut connection = self.connect().await.map_err(|problem| self.unreachable(&problem))?;
        let found = migrate(&mut connection, now()).await.map_err(|problem| self.refused(&problem))?;
        let known = migrate::known(Dialect::Postgres);
        if found > known {
            return Err(OpenError::Newer { store: self.name.clone(), found, known });
        }
        Ok(connection)
    }

    fn unreachable(&self, problem: &Problem) -> OpenError {
        OpenError::Unreachable { server: self.name.clone(), why: problem.to_string() }
    }

    fn refused(&self, problem: &Problem) -> OpenError {
        match problem {
            Problem::Sql(error) if Trouble::of(error) == Trouble::Unreachable => self.unreachable(problem),
            _ => OpenError::Failed { store: self.name.clone(), why: problem.to_string() },
        }
    }
}

/// The address without user, password and parameters.
fn shown(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    format!("postgres://{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in
            ["postgres://u:se@cret@h:1/d?password=secret", "postgresql://u@h:1/d?sslpassword=secret#secret"]
        {
            assert_eq!(shown(url), "postgres://h:1/d");
        }
    }
}
