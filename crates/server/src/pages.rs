//! The page's door: an address on loopback, opened when somebody first asks for it, and codes
//! that each let one page in (docs/protocol.md, "The page").

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::listen::{BindError, Listen, Listener};
use crate::security::{Codes, Meter, NoEntry, Rate, Token, TokenError};

/// How often somebody may try to sign in: often enough for every tab of a browser that comes back.
fn tries() -> Rate {
    let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Rate { per_second: number(2), burst: number(20) }
}

/// The page's door.
pub(crate) struct Pages {
    /// Where it is, once it is open.
    place: tokio::sync::Mutex<Option<SocketAddr>>,
    /// The port that it has if that is free: the one of the last time, so that a page's drafts are found again.
    port: u16,
    /// Takes what is to be listened to.
    doors: mpsc::Sender<Listener>,
    codes: Mutex<Codes>,
    tries: Meter,
}

/// Why no page can be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPage {
    #[error("{0}")]
    Bind(#[from] BindError),
    #[error("{0}")]
    Token(#[from] TokenError),
    #[error("the process ends")]
    Ends,
}

impl Pages {
    /// A door that is where `place` says, or at this port when it is first asked for.
    pub(crate) fn new(place: Option<SocketAddr>, port: u16) -> (Self, mpsc::Receiver<Listener>) {
        let (doors, opened) = mpsc::channel(1);
        let (codes, tries) = (Mutex::default(), Meter::new(tries()));
        (Self { place: tokio::sync::Mutex::new(place), port, doors, codes, tries }, opened)
    }

    /// Opens the door if it is not open, and makes a code.
    pub(crate) async fn open(&self) -> Result<(SocketAddr, Token), NoPage> {
        let mut place = self.place.lock().await;
        let address = match *place {
            Some(address) => address,
            None => {
                let listener = self.listen().await?;
                let address = listener.address().ok_or(NoPage::Ends)?;
                self.doors.send(listener).await.map_err(|_| NoPage::Ends)?;
                *place.insert(address)
            }
        };
        Ok((address, self.codes.lock().make(Instant::now())?))
    }

    async fn listen(&self) -> Result<Listener, BindError> {
        let at = |port| Listener::bind(Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        match at(self.port).await {
            // Somebody else has it.
            Err(_) => at(0).await,
            bound => bound,
        }
    }

    /// Counts a try; an error says after how many seconds the next one may come.
    pub(crate) fn count(&self) -> Result<(), u64> {
        self.tries.count()
    }

    /// Uses a code up.
    pub(crate) fn enter(&self, code: &str) -> Result<(), NoEntry> {
        self.codes.lock().take(code, Instant::now())
    }
}
