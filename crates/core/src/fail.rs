//! Fail points: places where the crash harness (tests/crash) ends the process at once, as a
//! power cut would. Without the feature `fail-points` none of this is in the program.
//!
//! A point stands where something is durable and nobody knows yet, or the other way round. It
//! decides nothing, and nothing but the harness may depend on one.

/// Where the process can be ended. `_MIDTURN_FAIL_POINT=NAME:N` ends it when NAME is passed the
/// N-th time (1 without `:N`).
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

/// The process may end here.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

#[cfg(feature = "fail-points")]
pub use armed::point;

#[cfg(feature = "fail-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::POINTS;

    /// The variable that names the point. It is no setting, so its name begins otherwise.
    const VARIABLE: &str = "_MIDTURN_FAIL_POINT";

    struct Armed {
        name: &'static str,
        left: AtomicU32,
    }

    /// The process may end here.
    pub fn point(name: &'static str) {
        debug_assert!(POINTS.contains(&name), "{name} is in no list");
        let Some(armed) = armed() else { return };
        if armed.name == name && armed.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // No destructor, no flush: the next process finds what is there.
            std::process::abort();
        }
    }

    fn armed() -> Option<&'static Armed> {
        static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
        ARMED.get_or_init(|| parse(&std::env::var(VARIABLE).ok()?)).as_ref()
    }

    fn parse(text: &str) -> Option<Armed> {
        let (name, pass) = text.split_once(':').unwrap_or((text, "1"));
        let name = POINTS.iter().find(|point| **point == name)?;
        Some(Armed { name, left: AtomicU32::new(pass.parse().ok().filter(|pass| *pass > 0)?) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_armed_by_its_name_and_the_pass_that_ends_the_process() {
            let read = |text| parse(text).map(|armed| (armed.name, armed.left.into_inner()));
            assert_eq!(read("told"), Some(("told", 1)));
            assert_eq!(read("durable:7"), Some(("durable", 7)));
            for none in ["", "nowhere:1", "told:0", "told:x"] {
                assert_eq!(read(none), None, "{none}");
            }
        }
    }
}
