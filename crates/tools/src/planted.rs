//! Faults planted on purpose, which the crash harness has to find. Without the feature
//! `planted-faults` nothing can be planted: every question is answered `false` when the program is
//! compiled.

use serde::Serialize;

/// A fault of this crate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// An abort ends the command's process group only.
    GroupKillOnly,
    /// A dead daemon's processes are not looked for.
    NoLeftovers,
    /// A supervisor doesn't end its tree when the daemon dies.
    SupervisorIgnoresPipe,
}

/// The variable that names the fault; other crates have faults of their own in it.
const VARIABLE: &str = "_MIDTURN_PLANTED";

/// Whether this fault is planted.
pub(crate) fn planted(fault: Fault) -> bool {
    word().is_some_and(|word| serde_json::json!(fault) == word)
}

/// What supervisors have to be told; their environment is a new one.
pub(crate) fn handed_on() -> Option<(&'static str, &'static str)> {
    word().map(|word| (VARIABLE, word))
}

#[cfg(feature = "planted-faults")]
fn word() -> Option<&'static str> {
    static WORD: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    WORD.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref()
}

#[cfg(not(feature = "planted-faults"))]
const fn word() -> Option<&'static str> {
    None
}
