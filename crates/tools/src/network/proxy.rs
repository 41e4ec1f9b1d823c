//! The proxy: accepts on a listener in an agent's network namespace, which is the only way out of it, and serves each
//! connection in ours. It ends with its handle.

use std::io;
use std::net::TcpListener as Listener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::exchange;
use super::gate::Gate;
use super::refusal::{Refusal, Why};

/// How many connections of one agent are served at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// The same for all agents of this process; more are told so.
static ROOM: Semaphore = Semaphore::const_new(2_048);

/// How long the system is left alone that gives no connection.
const PAUSE: Duration = Duration::from_millis(50);

/// How long somebody is told that there is no room.
const TELL_TIME: Duration = Duration::from_secs(1);

/// A proxy at work. Dropped, it accepts nothing more, and all that it serves is cut.
#[derive(Debug)]
pub(crate) struct Proxy(AbortOnDropHandle<()>);

impl Proxy {
    /// Serves an agent on a listener of its namespace. Within a runtime.
    ///
    /// # Errors
    /// It is no listener that can be waited for.
    pub(crate) fn serve(gate: Arc<Gate>, listener: OwnedFd) -> io::Result<Self> {
        let listener = Listener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self(AbortOnDropHandle::new(tokio::spawn(accept(gate, listener)))))
    }

    /// Whether it is at work.
    pub(crate) fn is_alive(&self) -> bool {
        !self.0.is_finished()
    }
}

/// For ever. What is served ends with it.
async fn accept(gate: Arc<Gate>, listener: TcpListener) {
    let mut open = JoinSet::new();
    loop {
        while open.len() >= CONNECTIONS_MAX {
            open.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(serve(gate.clone(), stream));
                }
                // No descriptors are left, say: it can only get better.
                Err(_) => sleep(PAUSE).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn serve(gate: Arc<Gate>, mut stream: TcpStream) {
    if let Ok(_place) = ROOM.try_acquire() {
        return exchange::serve(&gate, stream).await;
    }
    let refusal = Refusal::of_request(Why::Full);
    gate.refused(&refusal);
    drop(timeout(TELL_TIME, stream.write_all(refusal.answer().as_bytes())).await);
}
