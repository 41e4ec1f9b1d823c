//! How many files and connections the process may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for 64 sessions of 64 agents, each of which holds two folders open, and for as many
/// clients as there may be.
const WANTED: u64 = 16_384;

/// Asks the system for that many, as far as it lets us: 1,024, which is usual, is enough for the
/// agents of a few sessions only.
pub(super) fn make_room() {
    let known = getrlimit(Resource::Nofile);
    let most = known.maximum.map_or(WANTED, |most| most.min(WANTED));
    if known.current.is_none_or(|current| current >= most) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..known }) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}
