//! What Midturn keeps: SQLite (embedded, the default) and PostgreSQL behind the core's
//! [`Archive`](midturn_core::engine::ports::Archive) and
//! [`Store`](midturn_core::engine::ports::Store).
//!
//! The only crate with SQL. It decides nothing: it makes transactions durable in the order in
//! which they were submitted, many of them at once, refuses those of an epoch that is over,
//! and gives back what it was given, byte for byte. The tables are described for other
//! programs in docs/store.md.
//!
//! There is one set of queries. What differs between the two databases is in `db`: how a
//! placeholder is written, how a snapshot is begun, and what the fence locks.

mod archive;
mod batch;
mod cell;
mod db;
mod error;
mod journal;
mod line;
mod lock;
mod migrate;
mod nul;
mod open;
mod session;
mod statements;
mod words;
mod writer;

pub use archive::SqlArchive;
pub use error::OpenError;
pub use open::{OpenMode, open_postgres, open_sqlite};
