//! Holding a project's store: one process per file writes; whoever comes second asks it.

use midturn_store::{OpenError, OpenMode, SqlArchive};

use crate::failure::Failure;
use crate::project::{Project, StoreAt};

/// What came of the attempt to hold a project's store.
pub enum Opened {
    /// It is ours for as long as the archive lives.
    Ours(SqlArchive),
    /// Another process has it; the sentence says which.
    Theirs(String),
}

/// Opens the project's store for writing, and makes it if it is not there.
///
/// # Errors
/// [`Failure::Failed`]: it is damaged, newer, read-only, full or not to be reached; the
/// sentence says what to do. Nothing was changed.
pub async fn open(project: &Project) -> Result<Opened, Failure> {
    project.prepare()?;
    let opened = match project.store() {
        StoreAt::File(path) => midturn_store::open_sqlite(path, OpenMode::Write).await,
        StoreAt::Postgres(url) => midturn_store::open_postgres(url).await,
    };
    match opened {
        Ok(archive) => Ok(Opened::Ours(archive)),
        Err(held @ OpenError::Held { .. }) => Ok(Opened::Theirs(held.to_string())),
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}
