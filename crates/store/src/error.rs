//! What can go wrong, in sentences that say what to do about it.

use std::path::PathBuf;

use midturn_core::engine::ports::StoreError;
use sqlx::sqlite::SqliteError;

/// Why a store can't be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes to it.
    #[error(
        "the store {} is held by {}: work through that process (`midturn ps`, `midturn send`), end it, or name another store with --store",
        path.display(), holder(*pid)
    )]
    Held {
        /// The store.
        path: PathBuf,
        /// Who holds it, as the lock file says.
        pid: Option<u32>,
    },
    /// A newer Midturn made it what it is.
    #[error(
        "the store {store} is of version {found}, and this program knows versions up to {known}: use the newer midturn that wrote it"
    )]
    Newer {
        /// The store.
        store: String,
        /// The version it has.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// It is older, and was opened for reading only.
    #[error(
        "the store {store} is of the older version {found}: start `midturn serve` or `midturn run` with it once, which brings it to version {known}"
    )]
    Older {
        /// The store.
        store: String,
        /// The version it has.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// What is there is no store, or not a whole one.
    #[error(
        "the store {store} is damaged: {why}. Nothing was changed. Keep a copy of it and put a backup in its place, or name another store with --store (docs/store.md, \"When it is damaged\")"
    )]
    Damaged {
        /// The store.
        store: String,
        /// What was found.
        why: String,
    },
    /// There is none, and it was opened for reading only.
    #[error("there is no store {}: no session was recorded there yet", .0.display())]
    Missing(PathBuf),
    /// Its disk or folder can't be written to.
    #[error(
        "the store {} can't be written ({why}): make its folder and its files writable for this user, or name another store with --store",
        path.display()
    )]
    NotWritable {
        /// The store.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// There is no room.
    #[error("there is no room for the store {}: make room on its disk, then start again", .0.display())]
    DiskFull(PathBuf),
    /// The SQLite of this build may damage files.
    #[error(
        "this program was built with SQLite {found}, which can damage a store that is written and read at once: build it with SQLite 3.51.3 or newer (its own is)"
    )]
    TooOldSqlite {
        /// The version found.
        found: String,
    },
    /// The server doesn't answer, or doesn't let us in.
    #[error(
        "the PostgreSQL server {server} can't be used ({why}): check that it runs, and the address, the user and the password given with --store"
    )]
    Unreachable {
        /// The server, without user and password.
        server: String,
        /// What was tried and failed.
        why: String,
    },
    /// Anything else.
    #[error("the store {store} can't be opened: {why}")]
    Failed {
        /// The store.
        store: String,
        /// What the database said.
        why: String,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// What a table holds and this program can't read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

impl Unreadable {
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Why something was not read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// What an error of a database means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No room on the disk.
    Full,
    /// It may only be read.
    NotWritable,
    /// What is there is not whole.
    Damaged,
    /// Somebody else has it locked.
    Locked,
    /// What was to be written is refused: the next transaction may do better.
    Data,
    /// Nobody answers.
    Unreachable,
    /// The disk, or the system below it, failed.
    Io,
    Other,
}

impl Trouble {
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => Self::of_database(error.as_ref()),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed => Self::Unreachable,
            sqlx::Error::WorkerCrashed => Self::Io,
            _ => Self::Other,
        }
    }

    fn of_database(error: &dyn sqlx::error::DatabaseError) -> Self {
        let code = error.code().unwrap_or_default();
        match error.try_downcast_ref::<SqliteError>() {
            Some(_) => Self::of_sqlite(code.parse().unwrap_or_default()),
            None => Self::of_postgres(&code),
        }
    }

    /// The low byte of SQLite's extended result codes.
    fn of_sqlite(code: i32) -> Self {
        match code & 0xff {
            3 | 8 | 14 | 23 => Self::NotWritable,
            5 | 6 => Self::Locked,
            10 => Self::Io,
            11 | 26 => Self::Damaged,
            13 => Self::Full,
            18 | 19 | 20 | 25 => Self::Data,
            _ => Self::Other,
        }
    }

    /// The classes of SQLSTATE.
    fn of_postgres(code: &str) -> Self {
        match code.get(..2).unwrap_or_default() {
            "53" => Self::Full,
            "25" => Self::NotWritable,
            "XX" => Self::Damaged,
            // Two that waited for each other, too: one of them is asked to try again.
            "40" | "55" => Self::Locked,
            "22" | "23" | "54" => Self::Data,
            "08" | "57" => Self::Unreachable,
            "58" => Self::Io,
            _ => Self::Other,
        }
    }
}

impl Problem {
    /// What it means, if it is the database's.
    fn trouble(&self) -> Option<Trouble> {
        if let Self::Sql(error) = self { Some(Trouble::of(error)) } else { None }
    }

    /// Whether it is about what was to be written, and not about the store.
    pub(crate) fn is_of_the_data(&self) -> bool {
        matches!(self, Self::Json(_)) || self.trouble() == Some(Trouble::Data)
    }

    /// Whether it may pass by itself or by what a person does, so that it is worth waiting.
    pub(crate) fn may_pass(&self) -> bool {
        use Trouble::{Full, Io, Locked, NotWritable, Unreachable};
        matches!(self.trouble(), Some(Full | NotWritable | Locked | Unreachable | Io))
    }

    /// Whether the connection can be believed after it.
    pub(crate) fn spares_the_connection(&self) -> bool {
        use Trouble::{Data, Full, Locked};
        matches!(self.trouble(), None | Some(Full | Locked | Data))
    }

    /// The sentence for whoever wanted to write or read.
    pub(crate) fn told(&self) -> StoreError {
        let then = if self.is_of_the_session() { ", then resume the session" } else { "" };
        StoreError::Failed(format!("{}{then} ({self})", self.advice()))
    }

    /// The sentence while it is waited for.
    pub(crate) fn waited_for(&self) -> String {
        format!("it is being waited for, so try again in a moment: {} ({self})", self.advice())
    }

    /// Whether the session goes on once somebody has done something about it.
    fn is_of_the_session(&self) -> bool {
        self.trouble().is_some_and(|trouble| !matches!(trouble, Trouble::Damaged | Trouble::Data))
    }

    fn advice(&self) -> &'static str {
        match self.trouble() {
            None => {
                "it holds or was given what can't be read: it is damaged, or another program changed it (docs/store.md, \"When it is damaged\")"
            }
            Some(Trouble::Full) => "its disk is full; make room",
            Some(Trouble::NotWritable) => "it can't be written; make its folder and files writable",
            Some(Trouble::Damaged) => "it is damaged; see docs/store.md, \"When it is damaged\"",
            Some(Trouble::Locked) => "another program keeps it locked; end that program",
            Some(Trouble::Data) => {
                "it refuses what it was given, which is a bug of midturn; please report it"
            }
            Some(Trouble::Unreachable) => "its server doesn't answer; see that it runs and can be reached",
            Some(Trouble::Io) => "its disk fails; look at it",
            Some(Trouble::Other) => "look at its disk or server",
        }
    }
}

impl From<Problem> for StoreError {
    fn from(problem: Problem) -> Self {
        problem.told()
    }
}
