//! `[notify]`: a person's own way to be told what waits for them.

use serde::{Deserialize, Serialize};

/// A person's own way to be told what waits for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Notify {
    /// A command line for `sh`, run once for each.
    pub(crate) command: Option<String>,
}
