//! Ctrl-C and its kin. The first one asks the run to stop; the second leaves at once, from
//! within the handler, so that it works even when everything else is stuck. What the tools
//! run then ends by itself: their supervisors hold a pipe to this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;

use crate::failure::{End, Failure};

/// Starts to listen. The token is cancelled by the first signal.
///
/// # Errors
/// The handlers can't be installed.
pub(crate) fn listen() -> Result<CancellationToken, Failure> {
    let complain = |error: std::io::Error| Failure::failed(format!("can't listen to signals: {error}"));
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset, sets it, and the second leaves.
        flag::register_conditional_shutdown(signal, i32::from(End::Interrupted as u8), told.clone())
            .map_err(complain)?;
        flag::register(signal, told.clone()).map_err(complain)?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(complain)?;
    let interrupted = CancellationToken::new();
    let token = interrupted.clone();
    // It waits for a signal that may never come, so nobody can join it: it ends with the process.
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            token.cancel();
        }
    });
    Ok(interrupted)
}
