//! The interface at work: accepts connections, within bounds, and ends them when told.

mod places;
mod stall;
mod used;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::host::Host;
use crate::listen::{BindError, Listen, Listener};
use crate::metrics::Metrics;
use crate::pages::Pages;
use crate::replays::Replays;
use crate::routes;
use crate::security::Tokens;
use places::Places;
use stall::{Socket, Stall};
pub use used::Use;

/// The largest head of a request, and what is written at once, in bytes.
const BUFFER: usize = 32 * 1024;

/// How long changes whose clients are gone may take once the interface has ended.
const LAST_TASKS: Duration = Duration::from_millis(50);

/// How long it may take to tell a connection that there is no place.
const TELLING: Duration = Duration::from_millis(100);

/// What an interface does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How many connections, event streams not counted: to each listener, and to the socket of its owner and
    /// of all others each.
    pub connections: usize,
    /// How many event streams.
    pub streams: usize,
    /// How many clients that wait for a receipt.
    pub waits: usize,
    /// How long a request's head may take, and how long a connection may be idle.
    pub head_time: Duration,
    /// How long a client may take nothing of what it is sent.
    pub stall_time: Duration,
    /// How long open requests may take once the interface is told to end.
    pub grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            streams: 1_200,
            waits: 128,
            head_time: Duration::from_secs(10),
            stall_time: Duration::from_secs(30),
            // A signal may take the agents' deadline for what they abort and one second in all.
            grace: Duration::from_millis(250),
        }
    }
}

/// An interface that listens and is not served yet.
pub struct Interface {
    listeners: Vec<Listener>,
    bounds: Bounds,
    page_port: u16,
    stops_when_left: Option<Duration>,
    used: Arc<Use>,
}

impl Interface {
    /// Listens at all these places.
    ///
    /// # Errors
    /// One of them can't be listened on; then none is.
    pub async fn bind(places: impl IntoIterator<Item = Listen>) -> Result<Self, BindError> {
        let mut listeners = Vec::new();
        for place in places {
            listeners.push(Listener::bind(place).await?);
        }
        let bounds = Bounds::default();
        Ok(Self { listeners, bounds, page_port: 0, stops_when_left: None, used: Use::new() })
    }

    /// The port of the page, if that is free when somebody first asks for the page, and no TCP address is there
    /// already; any without it.
    pub fn page_port(mut self, port: u16) -> Self {
        self.page_port = port;
        self
    }

    /// A session whose page has left is stopped after so long, unless somebody follows it then who answers.
    pub fn stops_when_left(mut self, after: Option<Duration>) -> Self {
        self.stops_when_left = after;
        self
    }

    /// How it is used, while it is served.
    pub fn used(&self) -> Arc<Use> {
        self.used.clone()
    }

    /// Other bounds than the usual ones.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The TCP address, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::address)
    }

    /// The socket's path, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        self.listeners.iter().find_map(|listener| match listener {
            Listener::Unix(_, file) => Some(file.path.as_path()),
            Listener::Tcp(..) => None,
        })
    }

    /// Answers until `shutdown` is cancelled. Then streams are told to their end; open requests
    /// and changes that were begun get [`Bounds::grace`], and are left where they are then, as
    /// in a crash.
    pub async fn serve(
        self,
        host: Arc<dyn Host>,
        tokens: Arc<Tokens>,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) {
        let (pages, mut doors) = Pages::new(self.address(), self.page_port);
        let app = Arc::new(App {
            host,
            tokens,
            metrics,
            shutdown: shutdown.clone(),
            tasks: TaskTracker::new(),
            streams: Arc::new(Semaphore::new(self.bounds.streams)),
            waits: Arc::new(Semaphore::new(self.bounds.waits)),
            pages,
            replays: Replays::default(),
            stops_when_left: self.stops_when_left,
        });
        let acceptors = TaskTracker::new();
        let router = routes::router(app.clone());
        let accept = |listener: Listener| {
            let acceptor = Acceptor {
                names: listener.names().into(),
                router: router.clone(),
                bounds: self.bounds,
                places: Places::new(&listener, self.bounds.connections),
                used: self.used.clone(),
                shutdown: shutdown.clone(),
                connections: TaskTracker::new(),
            };
            acceptors.spawn(acceptor.run(listener));
        };
        self.listeners.into_iter().for_each(&accept);
        while let Some(Some(listener)) = shutdown.run_until_cancelled(doors.recv()).await {
            accept(listener);
        }
        acceptors.close();
        acceptors.wait().await;
        app.tasks.close();
        if tokio::time::timeout(LAST_TASKS, app.tasks.wait()).await.is_err() {
            tracing::warn!("the process ends while changes that were asked for are still being made");
        }
    }
}

/// What a request has to know of its connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// What its `Host` has to be.
    pub(crate) names: Arc<[String]>,
    place: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Peer {
    /// From now on it counts as an event stream, no longer as a connection.
    pub(crate) fn is_a_stream_now(&self) {
        self.place.lock().take();
    }
}

struct Acceptor {
    names: Arc<[String]>,
    router: Router,
    bounds: Bounds,
    places: Places,
    used: Arc<Use>,
    shutdown: CancellationToken,
    connections: TaskTracker,
}

impl Acceptor {
    async fn run(self, listener: Listener) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => break,
                accepted = self.accept(&listener) => accepted,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a connection was not accepted");
                // No descriptors, say: others have to close theirs first.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        drop(listener);
        self.connections.close();
        self.connections.wait().await;
    }

    async fn accept(&self, listener: &Listener) -> io::Result<()> {
        let socket = match listener {
            Listener::Unix(listener, _) => Socket::Left(listener.accept().await?.0),
            Listener::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Socket::Right(stream)
            }
        };
        self.admit(socket).await;
        Ok(())
    }

    /// Gives the connection a place. When there is none it is told so.
    async fn admit(&self, socket: Socket) {
        match self.places.find(&socket).await {
            Some(place) => {
                let peer = Peer { names: self.names.clone(), place: Arc::new(Mutex::new(Some(place))) };
                self.connections.spawn(self.connection(socket, peer));
            }
            None => self.turn_away(socket),
        }
    }

    /// Tells it beside the next ones' being accepted, unless very many are told that: then it is just closed.
    fn turn_away(&self, mut socket: Socket) {
        let Some(place) = self.places.to_be_told() else { return };
        self.connections.spawn(async move {
            let _place = place;
            let told = tokio::time::timeout(TELLING, refuse(&mut socket)).await;
            tracing::warn!(told = matches!(told, Ok(Ok(()))), "too many connections: one was refused");
        });
    }

    /// One connection to its end.
    fn connection(&self, socket: Socket, peer: Peer) -> impl Future<Output = ()> + Send + 'static {
        let router = self.router.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            let mut router = router.clone();
            tower_service::Service::call(&mut router, request.map(axum::body::Body::new))
        });
        let io = TokioIo::new(Stall::new(socket, self.bounds.stall_time));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.bounds.head_time).max_buf_size(BUFFER);
        let connection = builder.serve_connection(io, service);
        let (shutdown, grace) = (self.shutdown.clone(), self.bounds.grace);
        let open = self.used.begin();
        async move {
            let _open = open;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => Some(ended),
                () = shutdown.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::time::timeout(grace, connection).await.ok()
                }
            };
            if let Some(Err(error)) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
}

/// Says that there is no place, and lets the other side read it: what is closed with a request
/// unread is reset.
async fn refuse(socket: &mut Socket) -> io::Result<()> {
    socket.write_all(FULL).await?;
    socket.shutdown().await?;
    while socket.read(&mut [0; 1_024]).await? > 0 {}
    Ok(())
}

/// What a connection is told that finds no place.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
retry-after: 1\r\nconnection: close\r\ncontent-length: 148\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"code\":\"too_many_connections\",\
\"detail\":\"too many connections are open; close some\"}";

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_connection_without_a_place_is_told_is_whole() {
        let text = std::str::from_utf8(super::FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["status"], 503);
    }
}
