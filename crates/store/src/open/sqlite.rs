//! SQLite: one file, one process that writes it.
//!
//! A new store is made under another name and gets its own only when it is whole, so a file
//! that is there and has nothing in it was damaged, and is never taken for a new one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::now;
use crate::archive::SqlArchive;
use crate::db::{Connection, Pool};
use crate::error::{OpenError, Problem, Trouble};
use crate::lock;
use crate::migrate::{self, migrate};
use crate::statements::Dialect;
use crate::writer::{Connects, Writer};

/// Older ones have a bug that can damage a file in WAL mode.
const OLDEST: (u32, u32, u32) = (3, 51, 3);

/// Says in the file's header whose it is: "MidT".
const APPLICATION: i64 = 0x4d69_6454;

/// How long another program may keep the file locked.
const BUSY: Duration = Duration::from_secs(10);

/// So long the writer waits in silence: then it says so, and waits on as for any store that fails.
const BUSY_WRITER: Duration = Duration::from_secs(2);

/// The bytes of a page. A commit writes each page that it touched whole, and what a turn adds to a
/// table is a few hundred bytes at its end.
const PAGE: u32 = 2_048;

/// What a connection keeps of the file, in KiB (the sign says that it isn't pages): the ends of tables and
/// their indexes, which is where commits write. The system keeps the rest.
const CACHE: &str = "-512";

/// So many pages in the log are moved into the file in one go: 4 MB of it.
const CHECKPOINT: &str = "2000";

/// What a log that had to grow is cut back to, once it could be emptied.
const LOG_BYTES: &str = "8388608";

/// How many rows a reading thread may be ahead of whoever takes them.
const ROWS_AHEAD: usize = 1_024;

/// How many may read at once.
const READERS: u32 = 4;

/// How many prepared statements a connection keeps: all that there are.
const STATEMENTS: usize = 128;

/// Whether a store is opened to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To read and write: takes the lock, makes the file if there is none.
    Write,
    /// The same, with so many pages at most (of 2 KiB, or 4 in a file that an older version made):
    /// beyond, it is as if the disk were full.
    WriteAtMost(u32),
    /// To read only: takes no lock, makes nothing, and works while another process writes.
    ReadOnly,
}

/// Opens the file at `path`; see [`OpenError`] for what is refused. To write, its folder is
/// made if it isn't there (mode 0700), and so is the file (0600).
pub async fn open_sqlite(path: impl AsRef<Path>, mode: OpenMode) -> Result<SqlArchive, OpenError> {
    let path = path.as_ref();
    let absolute = std::path::absolute(path);
    let path =
        absolute.map_err(|error| OpenError::NotWritable { path: path.to_owned(), why: error.to_string() })?;
    match mode {
        OpenMode::Write => to_write(SqliteWay { path, max_pages: None }).await,
        OpenMode::WriteAtMost(pages) => to_write(SqliteWay { path, max_pages: Some(pages) }).await,
        OpenMode::ReadOnly => to_read(SqliteWay { path, max_pages: None }).await,
    }
}

async fn to_write(way: SqliteWay) -> Result<SqlArchive, OpenError> {
    let path = way.path.clone();
    make_folder(&path)?;
    let lock = lock::take(&path, &way.beside(".lock"))?;
    way.make_file().await?;
    let pool = way.pool(way.reading(false));
    let name = path.display().to_string();
    let writer = Writer::start(Connects::Sqlite(way), Some(lock)).await?;
    Ok(SqlArchive::new(name, Pool::Sqlite(pool), Some(writer)))
}

async fn to_read(way: SqliteWay) -> Result<SqlArchive, OpenError> {
    match way.path.metadata() {
        Err(_) => {
            way.nothing_is_left()?;
            return Err(OpenError::Missing(way.path));
        }
        Ok(metadata) if metadata.len() == 0 => return Err(way.damaged("the file is empty")),
        Ok(_) => {}
    }
    let reading = way.readable().await?;
    let pool = way.pool(reading);
    Ok(SqlArchive::new(way.path.display().to_string(), Pool::Sqlite(pool), None))
}

fn make_folder(path: &Path) -> Result<(), OpenError> {
    let Some(folder) = path.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| not_writable(path, folder, &error))
}

fn not_writable(path: &Path, what: &Path, error: &std::io::Error) -> OpenError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return OpenError::DiskFull(path.to_owned());
    }
    OpenError::NotWritable { path: path.to_owned(), why: format!("{}: {error}", what.display()) }
}

/// How to connect to a file.
#[derive(Clone)]
pub(crate) struct SqliteWay {
    path: PathBuf,
    max_pages: Option<u32>,
}

impl SqliteWay {
    fn options(&self, path: &Path) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY)
            .pragma("cache_size", CACHE)
            .statement_cache_capacity(STATEMENTS)
            .foreign_keys(true)
            .disable_statement_logging()
    }

    fn writing(&self, path: &Path) -> SqliteConnectOptions {
        let options = self
            .options(path)
            .busy_timeout(BUSY_WRITER)
            .synchronous(SqliteSynchronous::Full)
            .pragma("wal_autocheckpoint", CHECKPOINT)
            .pragma("journal_size_limit", LOG_BYTES);
        match self.max_pages {
            Some(pages) => options.pragma("max_page_count", pages.to_string()),
            None => options,
        }
    }

    fn reading(&self, immutable: bool) -> SqliteConnectOptions {
        self.options(&self.path).read_only(true).row_buffer_size(ROWS_AHEAD).immutable(immutable)
    }

    fn pool(&self, reading: SqliteConnectOptions) -> sqlx::SqlitePool {
        SqlitePoolOptions::new()
            .max_connections(READERS)
            .test_before_acquire(false)
            .connect_lazy_with(reading)
    }

    /// A connection that writes.
    pub(crate) async fn connect(&self) -> Result<Connection, Problem> {
        let options = self.writing(&self.path).journal_mode(SqliteJournalMode::Wal);
        Ok(Connection::Sqlite(Box::new(options.connect().await?)))
    }

    /// The writer's first connection: all is checked, and the tables are brought up to date.
    pub(crate) async fn open(&self) -> Result<Connection, OpenError> {
        let mut connection = self.connect().await.map_err(|problem| self.refused(&problem))?;
        self.check(&mut connection).await?;
        migrate(&mut connection, now()).await.map_err(|problem| self.refused(&problem))?;
        // A file that can't be written, or a disk that is full, says so now.
        let same = async {
            // Nobody waits for what is there already.
            connection.sync_commits(false).await?;
            connection.script("UPDATE schema_version SET applied_at = applied_at").await?;
            connection.sync_commits(true).await
        };
        same.await.map_err(|problem| self.refused(&problem))?;
        Ok(connection)
    }

    /// The version of the tables, if the file is one of ours and can be used.
    async fn check(&self, connection: &mut Connection) -> Result<i64, OpenError> {
        let (version, application, found) =
            looked_at(connection).await.map_err(|problem| self.refused(&problem))?;
        if !is_recent(&version) {
            return Err(OpenError::TooOldSqlite { found: version });
        }
        if application != APPLICATION || found == 0 {
            return Err(self.damaged("it is an SQLite file, but not one that midturn made"));
        }
        let known = migrate::known(Dialect::Sqlite);
        if found > known {
            return Err(OpenError::Newer { store: self.path.display().to_string(), found, known });
        }
        match self.missing(connection).await {
            Ok(None) => Ok(found),
            Ok(Some(why)) => Err(self.damaged(&why)),
            Err(problem) => Err(self.refused(&problem)),
        }
    }

    /// What the file lacks at its end, if it was cut. SQLite itself takes a part of a page for a
    /// whole one, and finds out when it reads it.
    async fn missing(&self, connection: &mut Connection) -> Result<Option<String>, Problem> {
        let pages = connection.number("PRAGMA page_count").await?;
        let bytes = pages * connection.number("PRAGMA page_size").await?;
        let there = self.path.metadata().map_or(0, |metadata| metadata.len());
        if i64::try_from(there).unwrap_or(i64::MAX) >= bytes {
            return Ok(None);
        }
        if self.has_log() {
            // The rest may be in there: after a crash it is.
            let said = connection.rows("PRAGMA quick_check(1)", Vec::new(), |row| row.raw(0)).await?;
            return Ok(said.into_iter().next().filter(|said| said != "ok"));
        }
        Ok(Some(format!("the file was cut: it has {there} bytes and should have {bytes}")))
    }

    /// Makes the file if there is none.
    async fn make_file(&self) -> Result<(), OpenError> {
        match self.path.metadata() {
            Ok(metadata) if metadata.len() == 0 => return Err(self.damaged("the file is empty")),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(not_writable(&self.path, &self.path, &error)),
        }
        self.nothing_is_left()?;
        let making = self.beside(".new");
        self.make_at(&making).await?;
        let named = std::fs::rename(&making, &self.path).and_then(|()| sync_folder(&self.path));
        named.map_err(|error| not_writable(&self.path, &making, &error))
    }

    /// Where there is no file there is nothing of it either: what is in its log belongs to it. A
    /// log without anything in it is what a reader leaves behind.
    fn nothing_is_left(&self) -> Result<(), OpenError> {
        if self.has_log() {
            return Err(self.damaged("the file itself is gone, and what belongs to it (-wal) is still there"));
        }
        Ok(())
    }

    fn has_log(&self) -> bool {
        self.beside("-wal").metadata().is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Makes a whole store under another name.
    async fn make_at(&self, making: &Path) -> Result<(), OpenError> {
        let mut create = OpenOptions::new();
        // What an end in the middle of it left behind is overwritten.
        let create = create.write(true).create(true).truncate(true).mode(0o600);
        create.open(making).map_err(|error| not_writable(&self.path, making, &error))?;
        // Nothing is synced on the way: until it has its name, what is here is nobody's and made anew.
        let options = self.writing(making).page_size(PAGE).synchronous(SqliteSynchronous::Off);
        let made = async {
            let mut connection = Connection::Sqlite(Box::new(options.connect().await?));
            connection.script("PRAGMA journal_mode = WAL; PRAGMA application_id = 1298752596").await?;
            migrate(&mut connection, now()).await?;
            connection.close().await
        };
        made.await.map_err(|problem: Problem| self.refused(&problem))?;
        let synced = File::open(making).and_then(|file| file.sync_all());
        synced.map_err(|error| not_writable(&self.path, making, &error))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    /// How the file can be read: as one that others write, or, where nothing can be written
    /// beside it, as one that doesn't change.
    async fn readable(&self) -> Result<SqliteConnectOptions, OpenError> {
        let refused = match self.try_read(self.reading(false)).await {
            Ok(()) => return Ok(self.reading(false)),
            Err(refused) => refused,
        };
        if self.has_log() || !matches!(refused, OpenError::NotWritable { .. }) {
            return Err(refused);
        }
        self.try_read(self.reading(true)).await?;
        Ok(self.reading(true))
    }

    async fn try_read(&self, reading: SqliteConnectOptions) -> Result<(), OpenError> {
        let connection = reading.connect().await;
        let connection = connection.map_err(|error| self.refused(&error.into()))?;
        let mut connection = Connection::Sqlite(Box::new(connection));
        let found = self.check(&mut connection).await?;
        // It was only looked at: nothing depends on how the look ends.
        let _ = connection.close().await;
        let known = migrate::known(Dialect::Sqlite);
        if found < known {
            return Err(OpenError::Older { store: self.path.display().to_string(), found, known });
        }
        Ok(())
    }

    fn damaged(&self, why: &str) -> OpenError {
        OpenError::Damaged { store: self.path.display().to_string(), why: why.to_owned() }
    }

    fn refused(&self, problem: &Problem) -> OpenError {
        let Problem::Sql(error) = problem else { return self.damaged(&problem.to_string()) };
        let why = error.to_string();
        match Trouble::of(error) {
            Trouble::Full => OpenError::DiskFull(self.path.clone()),
            Trouble::NotWritable => OpenError::NotWritable { path: self.path.clone(), why },
            Trouble::Damaged => self.damaged(&why),
            Trouble::Locked => OpenError::Held { path: self.path.clone(), pid: None },
            Trouble::Data | Trouble::Unreachable | Trouble::Io | Trouble::Other => {
                OpenError::Failed { store: self.path.display().to_string(), why }
            }
        }
    }
}

/// A new name is durable only when the folder is.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// The version of SQLite, the application that made the file, and the version of its tables.
async fn looked_at(connection: &mut Connection) -> Result<(String, i64, i64), Problem> {
    let version = connection.rows("SELECT sqlite_version()", Vec::new(), |row| row.raw(0)).await?;
    let application = connection.number("PRAGMA application_id").await?;
    let found = migrate::found(connection).await?;
    Ok((version.into_iter().next().unwrap_or_default(), application, found))
}

fn is_recent(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let mut next = || parts.next().unwrap_or_default();
    (next(), next(), next()) >= OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sqlite_that_damages_files_is_refused() {
        for good in ["3.51.3", "3.52.0", "3.100.1", "4.0.0"] {
            assert!(is_recent(good), "{good}");
        }
        for bad in ["3.51.2", "3.50.9", "3.9.0", "", "x"] {
            assert!(!is_recent(bad), "{bad}");
        }
    }
}
