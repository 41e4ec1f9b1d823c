//! What is said of the process itself.

use serde::Serialize;
use utoipa::ToSchema;

/// That it is well, and what it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Health {
    /// Its version.
    pub version: &'static str,
    /// Its process id.
    pub pid: u32,
    /// How many sessions live in it.
    pub sessions: usize,
    /// Its store.
    pub store: String,
    /// What agents may do unasked and what holds their commands, in a line for people.
    pub safety: String,
}
