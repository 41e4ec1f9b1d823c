//! Fail points: places where the crash harness (tests/crash) ends the process at once, as a
//! power cut would. Without the feature `fail-points` none of this is in the program.
//!
//! A point stands where something is durable and nobody knows yet, or the other way round. It
//! decides nothing, and nothing but the harness may depend on one.

/// Where the process can be ended.
pub const POINTS: &[&str] = &[
    // Every transaction (journal): between its making, its durability and its effects. With
    // the pass they name every place of a session where something is recorded.
    "submitted",
    "durable",
    "told",
    // The store's own writer: before and after what it has written is committed.
    "store_written",
    "store_committed",
    // What happens between two transactions.
    "mail_taken",
    "mail_delivered",
    "request_sent",
    "reply_heard",
    "tools_started",
    "tool_ended",
    "run_ended",
    // A session begins or goes on (cli's host, recovery).
    "session_archived",
    "taken_up",
    "restored",
    "gone_on",
];

/// What happens wherever a point is passed: the crash harness sets it.
#[cfg(feature = "fail-points")]
pub static AT_EACH: std::sync::OnceLock<fn(&'static str)> = std::sync::OnceLock::new();

/// The process may end here.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// The process may end here.
#[cfg(feature = "fail-points")]
pub fn point(name: &'static str) {
    debug_assert!(POINTS.contains(&name), "{name} is in no list");
    AT_EACH.get().into_iter().for_each(|act| act(name));
}
