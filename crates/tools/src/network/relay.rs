//! Bytes both ways between a command and a host, until both are done or nothing moves any more.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// How long a connection may be silent both ways.
const SILENT_MAX: Duration = Duration::from_secs(600);

/// The same once one side has said its last.
const LINGER_MAX: Duration = Duration::from_secs(60);

/// What has moved, for the direction that waits to know that the other one doesn't.
#[derive(Default)]
struct Moved {
    bytes: AtomicU64,
    ended: AtomicU64,
}

impl Moved {
    fn patience(&self) -> Duration {
        if self.ended.load(Ordering::Relaxed) == 0 { SILENT_MAX } else { LINGER_MAX }
    }

    fn now(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
    }
}

/// All of both ways; what was `said` first goes first.
///
/// # Errors
/// One side broke off, or both were silent for too long.
pub(super) async fn tunnel(mut command: TcpStream, mut host: TcpStream, said: &[u8]) -> io::Result<()> {
    let moved = Moved::default();
    unless_silent(host.write_all(said), &moved).await?;
    let (mut from_command, mut to_command) = command.split();
    let (mut from_host, mut to_host) = host.split();
    let there = pass(&mut from_command, &mut to_host, &moved);
    let back = pass(&mut from_host, &mut to_command, &moved);
    tokio::try_join!(there, back).map(drop)
}

/// One request, of whose body `body` bytes are still to come behind what was `said`, and all of the answer. What the
/// command says behind it is nobody's: the connection ends.
///
/// # Errors
/// As for [`tunnel`].
pub(super) async fn exchange(
    mut command: TcpStream,
    mut host: TcpStream,
    said: &[u8],
    body: u64,
) -> io::Result<()> {
    let moved = Moved::default();
    unless_silent(host.write_all(said), &moved).await?;
    let (mut from_command, mut to_command) = command.split();
    let (mut from_host, mut to_host) = host.split();
    let request = async {
        let mut whole = (&mut from_command).take(body);
        copy(&mut whole, &mut to_host, &moved).await?;
        if whole.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match from_command.read(&mut [0]).await? {
            // It has said all, and listens.
            0 => std::future::pending().await,
            _ => Ok(()),
        }
    };
    tokio::select! {
        ended = request => ended,
        ended = pass(&mut from_host, &mut to_command, &moved) => ended,
    }
}

/// One way, its end too.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    moved: &Moved,
) -> io::Result<()> {
    copy(from, to, moved).await?;
    moved.ended.fetch_add(1, Ordering::Relaxed);
    to.shutdown().await
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    moved: &Moved,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = unless_silent(from.read(&mut chunk), moved).await?;
        if count == 0 {
            return Ok(());
        }
        moved.bytes.fetch_add(1, Ordering::Relaxed);
        unless_silent(to.write_all(&chunk[..count]), moved).await?;
    }
}

/// Waits as long as anything moves.
async fn unless_silent<T>(work: impl Future<Output = io::Result<T>>, moved: &Moved) -> io::Result<T> {
    tokio::pin!(work);
    loop {
        let before = moved.now();
        match timeout(moved.patience(), &mut work).await {
            Ok(done) => return done,
            Err(_) if moved.now() == before => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => {}
        }
    }
}
