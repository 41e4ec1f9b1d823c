//! Ctrl-C and its kin. The first one asks the run to stop; the second leaves at once, from a thread of its own,
//! which does nothing else: it works even when everything else is stuck. The terminal is as before then, too; should
//! it take no word any more, the third leaves from within the handler. What the tools run ends by itself: their
//! supervisors hold a pipe to this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use tokio_util::sync::CancellationToken;

use crate::failure::{End, Failure};

/// Starts to listen. The token is cancelled by the first signal.
///
/// # Errors
/// The handlers can't be installed.
pub(crate) fn listen() -> Result<CancellationToken, Failure> {
    let complain = |error: std::io::Error| Failure::failed(format!("can't listen to signals: {error}"));
    let leaves = Arc::new(AtomicBool::new(false));
    let status = i32::from(End::Interrupted as u8);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, status, leaves.clone()).map_err(complain)?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(complain)?;
    let interrupted = CancellationToken::new();
    let token = interrupted.clone();
    // It waits for a signal that may never come, so nobody can join it: it ends with the process.
    std::thread::spawn(move || {
        let mut told = signals.forever();
        if told.next().is_some() {
            token.cancel();
        }
        if told.next().is_some() {
            leaves.store(true, Ordering::SeqCst);
            midturn_tui::give_back();
            low_level::exit(status);
        }
    });
    Ok(interrupted)
}
