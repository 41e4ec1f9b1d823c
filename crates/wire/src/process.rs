//! What is said of the process itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// That it is well, and what it is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// How many sessions live in it.
    pub sessions: usize,
    /// Its store.
    pub store: String,
    /// What agents may do unasked and what holds their commands, in a line for people.
    pub safety: String,
}
