//! Our side of a running supervisor: waits for its report, ends it when told, drains the output.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::wire::{REPORT_MAX, Report};
use super::{Cause, RunError};

/// How much is read at once; also a pipe's usual size.
const CHUNK: usize = 64 << 10;

/// What is still in the pipe once nothing is alive is taken up to here: somebody outside the
/// tree who was handed the pipe could go on writing for ever.
const REST_MAX: usize = 2 << 20;

/// A timeout that nobody lives to see, and that no sum with now overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A supervisor at work. Dropping it closes the control socket, which ends the tree.
pub(super) struct Running {
    /// One that was executed, reaped by the runtime.
    _child: Option<Child>,
    control: UnixStream,
    output: pipe::Receiver,
}

impl Running {
    /// Of our end of the control socket, and of what the command writes. Within a runtime.
    pub(super) fn new(
        child: Option<Child>,
        control: std::os::unix::net::UnixStream,
        output: OwnedFd,
    ) -> io::Result<Self> {
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        Ok(Self { _child: child, control, output: pipe::Receiver::from_owned_fd(output)? })
    }

    /// Hands over the order and stays until nothing of the tree is alive. The supervisor
    /// has reaped it all then; it ends itself when the control socket closes behind us, which
    /// costs half a millisecond that nobody has to wait for, and the runtime reaps it.
    pub(super) async fn until_end(
        mut self,
        order: &[u8],
        timeout: Duration,
        cancel: &CancellationToken,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<(Report, Cause), RunError> {
        // A supervisor that is gone already says why in its report, which is read next.
        let handed_over = self.control.write_all(order).await;
        let (report, cause) = self.watch(timeout, cancel, output).await;
        self.drain(output);
        match (report, handed_over) {
            (Some(report), _) => Ok((report, cause)),
            (None, Err(error)) => Err(RunError::NoSupervisor(error)),
            (None, Ok(())) => Err(RunError::SupervisorLost),
        }
    }

    /// Until the report is there; `None` when there will be none.
    async fn watch(
        &mut self,
        timeout: Duration,
        cancel: &CancellationToken,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> (Option<Report>, Cause) {
        let Self { control, output: pipe, .. } = self;
        let (reports, mut orders) = control.split();
        let mut reports = BufReader::new(reports.take(REPORT_MAX)).lines();
        let mut chunk = vec![0; CHUNK];
        let mut open = true;
        let mut cause = Cause::Itself;
        let deadline = sleep_until(Instant::now() + timeout.min(LONGEST));
        tokio::pin!(deadline);
        loop {
            // A report that is there is real: it wins over a cancellation that came with it.
            let order = tokio::select! {
                biased;
                said = reports.next_line() => {
                    let report = said.ok().flatten();
                    return (report.and_then(|report| serde_json::from_slice(report.as_bytes()).ok()), cause);
                }
                () = cancel.cancelled(), if cause == Cause::Itself => Cause::Cancelled,
                () = &mut deadline, if cause == Cause::Itself => Cause::TimedOut,
                n = pipe.read(&mut chunk), if open => {
                    match n {
                        Ok(n) if n > 0 => output(&chunk[..n]),
                        Ok(_) | Err(_) => open = false,
                    }
                    continue;
                }
            };
            cause = order;
            // It fails only when the supervisor is gone, and then there is a report, or the
            // end of the socket, to be read next.
            let _gone = orders.write_all(&[0]).await;
        }
    }

    /// Takes what was written before the last process died, without waiting for anything.
    fn drain(&mut self, output: &mut (dyn FnMut(&[u8]) + Send)) {
        let mut chunk = vec![0; CHUNK];
        let mut taken = 0;
        while taken < REST_MAX {
            match self.output.try_read(&mut chunk) {
                Ok(n) if n > 0 => {
                    output(&chunk[..n]);
                    taken += n;
                }
                Ok(_) | Err(_) => return,
            }
        }
    }
}
