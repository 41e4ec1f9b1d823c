//! Holding a project's store: one process of a machine carries a project's sessions; whoever
//! comes second asks it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::Archive;
use midturn_core::rules::time::Span;
use midturn_store::{OpenError, OpenMode, SqlArchive};

use crate::failure::Failure;
use crate::project::{Project, StoreAt};

/// What came of the attempt to hold a project's store.
pub(crate) enum Opened {
    /// It is ours as long as this lives.
    Ours(Holding),
    /// Another process has it.
    Theirs(String),
}

/// A project's store, held.
pub(crate) struct Holding {
    /// The store.
    pub(crate) archive: Arc<dyn Archive>,
    /// Whose it is.
    pub(crate) project: Project,
    /// What no command of an agent is to see: the token, the socket, the store's file.
    pub(crate) hidden: Vec<PathBuf>,
    /// A file of SQLite has a lock of its own. A server has many writers, one for each project
    /// and machine: that is what this one is for.
    _lock: Option<File>,
}

#[cfg(test)]
impl Holding {
    /// A store that nobody else knows.
    pub(super) fn of(archive: Arc<dyn Archive>, project: Project) -> Self {
        Self { archive, project, hidden: Vec::new(), _lock: None }
    }
}

/// Opens the project's store for writing, and makes it if it is not there. When it fails it is
/// waited for as long as `patience` says.
///
/// # Errors
/// [`Failure::Failed`]: it is damaged, newer, read-only, full or not to be reached; the
/// sentence says what to do. Nothing was changed.
pub(crate) async fn open(project: &Project, patience: Span) -> Result<Opened, Failure> {
    project.prepare()?;
    #[cfg(feature = "crash-tests")]
    if let (StoreAt::File(path), Some(fault)) = (project.store(), crate::planted::planted()) {
        fault.before_opening(path);
    }
    let (opened, lock) = match project.store() {
        StoreAt::File(path) => (open_file(path).await, None),
        StoreAt::Postgres(url) => match lock(&project.state().join("holder.lock"))? {
            None => return Ok(Opened::Theirs("another process carries this project's sessions".to_owned())),
            locked => (midturn_store::open_postgres(url).await, locked),
        },
    };
    match opened {
        Ok(store) => {
            store.be_patient(patience.duration());
            let (hidden, project) = (project.hidden()?, project.clone());
            Ok(Opened::Ours(Holding { archive: seen(store), project, hidden, _lock: lock }))
        }
        Err(held @ OpenError::Held { .. }) => Ok(Opened::Theirs(held.to_string())),
        Err(error) => Err(Failure::failed(error)),
    }
}

/// The store, as it is or with a fault that the crash harness plants.
fn seen(store: SqlArchive) -> Arc<dyn Archive> {
    #[cfg(feature = "crash-tests")]
    if let Some(fault) = crate::planted::planted() {
        return fault.around(Arc::new(store));
    }
    Arc::new(store)
}

/// How often, and in which pauses, a file is tried that a dead process seems to hold: a child
/// that it was just starting had its files open too, and lives a moment longer.
const ATTEMPTS: (u32, Duration) = (40, Duration::from_millis(50));

async fn open_file(path: &Path) -> Result<SqlArchive, OpenError> {
    let (attempts, pause) = ATTEMPTS;
    for _ in 0..attempts {
        match midturn_store::open_sqlite(path, OpenMode::Write).await {
            Err(OpenError::Held { pid: Some(pid), .. }) if !lives(pid) => tokio::time::sleep(pause).await,
            opened => return opened,
        }
    }
    midturn_store::open_sqlite(path, OpenMode::Write).await
}

fn lives(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// The lock of a file, until the process ends, however it ends. `None`: another one has it.
fn lock(path: &Path) -> Result<Option<File>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let mut open = OpenOptions::new();
    let open = open.write(true).create(true).truncate(false).mode(0o600);
    let file = open.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
