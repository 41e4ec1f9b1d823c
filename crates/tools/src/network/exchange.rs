//! One connection of a command's to the proxy: its head is read, judged, and what it asks for is connected to it, or it
//! is told why not. What is judged is decided in pure code beside this.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::gate::Gate;
use super::hello::Hello;
use super::refusal::{Refusal, Why};
use super::relay;
use super::request::{HEAD_MAX, Plain, Request, end_of_head, read, read_within};
use super::site::{Host, Site};

/// How long a command may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long the look-up of a name may take.
const LOOK_UP_TIME: Duration = Duration::from_secs(10);

/// How long one address may take to answer, if there is another one.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 4;

/// How long an answer that nobody reads is offered.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How much of what a command still says is taken before it is hung up on: what is unread would take the answer with it.
const REST_MAX: u64 = 64 << 10;

/// The port of TLS.
const TLS: u16 = 443;

/// The port of HTTP without it.
const HTTP: u16 = 80;

const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Why a connection is over before its time.
enum Cut {
    /// A rule, or the network: to be told.
    Refused(Refusal),
    /// The command hung up.
    Gone,
}

impl From<Refusal> for Cut {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// A command's end of a connection, and what was read of it and not used.
struct Heard {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// Serves one connection to its end.
pub(super) async fn serve(gate: &Gate, stream: TcpStream) {
    let mut heard = Heard { stream, bytes: Vec::new() };
    let request = match heard.request().await {
        Ok(request) => request,
        Err(cut) => return tell(gate, heard, cut, true).await,
    };
    let (site, plain) = match request {
        Request::Tunnel(site) => (site, None),
        Request::Plain(plain) => (plain.site.clone(), Some(plain)),
    };
    let host = match connect(gate, &site, plain.is_some()).await {
        Ok(host) => host,
        Err(why) => return tell(gate, heard, Refusal::of(&site, why).into(), true).await,
    };
    let first = match plain {
        Some(plain) => Ok(Some(plain)),
        None => heard.opened(&site).await,
    };
    // How a connection ended that was let through, both sides know.
    let _they_know = match first {
        Ok(Some(plain)) => pass_on(heard, host, &plain).await,
        Ok(None) => relay::tunnel(heard.stream, host, &heard.bytes).await,
        // The tunnel stands: an answer would be taken for the host's, which HTTP alone can read.
        Err(cut) => return tell(gate, heard, cut, site.port == HTTP).await,
    };
}

impl Heard {
    async fn more(&mut self) -> Result<(), Cut> {
        let read = self.stream.read_buf(&mut self.bytes).await?;
        if read == 0 { Err(Cut::Gone) } else { Ok(()) }
    }

    /// Takes a whole head out of what was heard.
    async fn head(&mut self) -> Result<Vec<u8>, Cut> {
        let mut seen = 0;
        loop {
            if let Some(end) = end_of_head(&self.bytes, seen).filter(|end| *end <= HEAD_MAX) {
                let rest = self.bytes.split_off(end);
                return Ok(std::mem::replace(&mut self.bytes, rest));
            }
            if self.bytes.len() >= HEAD_MAX {
                return Err(Refusal::of_request(Why::Request("its head is longer than 16 KiB")).into());
            }
            seen = self.bytes.len();
            self.more().await?;
        }
    }

    async fn request(&mut self) -> Result<Request, Cut> {
        let head = timeout(HEAD_TIME, self.head()).await;
        let head = head.map_err(|_| Refusal::of_request(Why::Slow(HEAD_TIME)))??;
        let request = read(&head)?;
        if let Request::Plain(plain) = &request {
            self.holds_no_more_than(plain)?;
        }
        Ok(request)
    }

    /// Opens the tunnel and listens to what is said first; `None`: anything may pass.
    async fn opened(&mut self, site: &Site) -> Result<Option<Plain>, Cut> {
        self.stream.write_all(CONNECTED).await?;
        let first = async {
            match site.port {
                TLS => self.hello(site).await.map(|()| None),
                HTTP => {
                    let plain = read_within(site, &self.head().await?)?;
                    self.holds_no_more_than(&plain)?;
                    Ok(Some(plain))
                }
                _ => Ok(None),
            }
        };
        timeout(HEAD_TIME, first).await.map_err(|_| Refusal::of(site, Why::Slow(HEAD_TIME)))?
    }

    /// One connection is one request.
    fn holds_no_more_than(&self, plain: &Plain) -> Result<(), Refusal> {
        let is_more = u64::try_from(self.bytes.len()).map_or(true, |held| held > plain.body);
        let more = || Refusal::of(&plain.site, Why::Request("more follows it than its body"));
        if is_more { Err(more()) } else { Ok(()) }
    }

    async fn hello(&mut self, site: &Site) -> Result<(), Cut> {
        let mut hello = Hello::default();
        let mut told = 0;
        loop {
            let whole = hello.hear(&self.bytes[told..], &site.host);
            if whole.map_err(|why| Refusal::of(site, why))? {
                return Ok(());
            }
            told = self.bytes.len();
            self.more().await?;
        }
    }
}

/// Rule, one look-up, addresses checked, a connection to one of them.
async fn connect(gate: &Gate, site: &Site, is_plain: bool) -> Result<TcpStream, Why> {
    gate.reachable.admits(site)?;
    if is_plain && site.port == TLS {
        return Err(Why::NotTls);
    }
    let found = addresses(gate, &site.host).await?;
    let checked = gate.reachable.checked(site, &found, |address| gate.outside.closed(address))?;
    let mut last = Why::Unknown("it has no address".to_owned());
    for address in checked.into_iter().take(ADDRESSES_MAX) {
        match connect_to(gate, address).await {
            Ok(host) => return Ok(host),
            Err(why) => last = why,
        }
    }
    Err(last)
}

async fn addresses(gate: &Gate, host: &Host) -> Result<Vec<IpAddr>, Why> {
    match host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(name) => match timeout(LOOK_UP_TIME, gate.outside.addresses(name)).await {
            Ok(found) => found.map_err(|error| Why::Unknown(error.to_string())),
            Err(_) => Err(Why::Late(LOOK_UP_TIME)),
        },
    }
}

async fn connect_to(gate: &Gate, address: SocketAddr) -> Result<TcpStream, Why> {
    match timeout(CONNECT_TIME, gate.outside.connect(address)).await {
        Ok(connected) => connected.map_err(|error| Why::Unreachable(error.to_string())),
        Err(_) => Err(Why::Late(CONNECT_TIME)),
    }
}

/// One request, and of what follows it its body.
async fn pass_on(heard: Heard, host: TcpStream, plain: &Plain) -> io::Result<()> {
    let Heard { stream, bytes } = heard;
    let rest = plain.body.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    relay::exchange(stream, host, &[&plain.head[..], &bytes].concat(), rest).await
}

/// Keeps what is to be told, and answers where the command can read it.
async fn tell(gate: &Gate, mut heard: Heard, cut: Cut, in_words: bool) {
    let Cut::Refused(refusal) = cut else { return };
    gate.refused(&refusal);
    if !in_words {
        return;
    }
    let answer = refusal.answer();
    let said = async {
        heard.stream.write_all(answer.as_bytes()).await?;
        heard.stream.shutdown().await?;
        let mut rest = (&mut heard.stream).take(REST_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // One that doesn't listen is told by the result of its command.
    drop(timeout(ANSWER_TIME, said).await);
}
