//! How much processor time this process has used.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// User and system time of all threads so far.
pub fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap().into()
}

/// How much `work` used.
pub fn measure(work: impl FnOnce()) -> Duration {
    let before = used();
    work();
    used() - before
}
