//! Opening a store: what is refused, what is made, and who may write.

mod postgres;
mod sqlite;

pub(crate) use postgres::PostgresWay;
pub use postgres::open_postgres;
pub(crate) use sqlite::SqliteWay;
pub use sqlite::{OpenMode, open_sqlite};

/// Now, in microseconds since 1970 by the machine's clock.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // A clock before 1970 is as good as none.
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
