//! The places for connections. Each listener has its own, and on the socket its owner has some that
//! nobody else can take: whoever fills what they reach locks nobody out but themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::either::Either;

use super::stall::Socket;
use crate::listen::Listener;

/// How long a place is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many connections are told at the same time that there is no place for them; the others are closed.
const TOLD: usize = 16;

/// The places of one listener.
pub(super) struct Places {
    /// Whose socket it is; nobody knows of a TCP port.
    owner: Option<u32>,
    own: Arc<Semaphore>,
    /// On a socket: root's, and whoever else its folder's mode may let in some day.
    others: Arc<Semaphore>,
    /// For being told that there is none.
    told: Arc<Semaphore>,
}

impl Places {
    /// So many for each of them.
    pub(super) fn new(listener: &Listener, count: usize) -> Self {
        let places = || Arc::new(Semaphore::new(count));
        Self {
            owner: listener.owner(),
            own: places(),
            others: places(),
            told: Arc::new(Semaphore::new(TOLD)),
        }
    }

    /// A place for this connection; none, even after a moment.
    pub(super) async fn find(&self, socket: &Socket) -> Option<OwnedSemaphorePermit> {
        if self.is_anothers(socket) {
            // Who waited here would have the owner wait, who comes next.
            return self.others.clone().try_acquire_owned().ok();
        }
        let place = self.own.clone().acquire_owned();
        tokio::time::timeout(PATIENCE, place).await.ok()?.ok()
    }

    /// A place for being told that there is none.
    pub(super) fn to_be_told(&self) -> Option<OwnedSemaphorePermit> {
        self.told.clone().try_acquire_owned().ok()
    }

    fn is_anothers(&self, socket: &Socket) -> bool {
        match (self.owner, socket) {
            (Some(owner), Either::Left(stream)) => user(stream) != Some(owner),
            (None, _) | (_, Either::Right(_)) => false,
        }
    }
}

/// Who connected, if the system says.
fn user(stream: &UnixStream) -> Option<u32> {
    stream.peer_cred().ok().map(|peer| peer.uid())
}
