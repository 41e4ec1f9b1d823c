//! A real interface on a real socket, in front of scripted agents and a store in memory; and
//! a client that writes what it likes. Shared by the tests, the benchmark and the example.
#![allow(dead_code, unreachable_pub, reason = "each user needs another part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "it is a part of tests")]

pub mod client;
pub mod host;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use midturn_conformance::memory::Memory;
use midturn_core::engine::scripted::{ScriptedCall, ScriptedReply, Scripts};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Span;
use midturn_server::{Bounds, Host, Interface, Listen, Metrics, Token, Tokens};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use client::{Answer, Client};
use host::TestHost;

/// A number that is higher than the last.
pub fn counted() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// A name, in a test.
pub fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// `lead` answers at once, again and again; `worker` never comes to an end by itself; `asker`
/// runs one command after the other, each the call `c1`.
pub fn scripts() -> Scripts {
    let quick = (0..512).map(|n| ScriptedReply::says(format!("answer {n}"))).collect::<Vec<_>>();
    let endless =
        (0..512).map(|_| ScriptedReply { takes: Span::secs(36_000), ..ScriptedReply::says("late") });
    let endless = endless.collect::<Vec<_>>();
    let run = || ScriptedReply::calls(ScriptedCall::new("c1", "bash", json!({"command": "cargo test"})));
    let asks = (0..512).map(|_| run()).collect::<Vec<_>>();
    [(name("lead"), quick.into()), (name("worker"), endless.into()), (name("asker"), asks.into())].into()
}

/// An interface that is served.
pub struct Rig {
    pub host: Arc<TestHost>,
    pub archive: Arc<Memory>,
    pub token: Token,
    pub socket: PathBuf,
    pub shutdown: CancellationToken,
    pub served: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Rig {
    /// A session `s1` with an idle lead and an idle worker.
    pub async fn start() -> Self {
        Self::with(Bounds::default(), scripts()).await
    }

    /// The same, with other bounds and scripts.
    pub async fn with(bounds: Bounds, scripts: Scripts) -> Self {
        let token = Token::random().unwrap();
        let tokens = Tokens::of_user(token.clone());
        Self::of(bounds, scripts, token, tokens).await
    }

    /// The same, with other tokens; `token` is the one that the client sends.
    pub async fn of(bounds: Bounds, scripts: Scripts, token: Token, tokens: Tokens) -> Self {
        let archive = Arc::new(Memory::default());
        let host = Arc::new(TestHost::new(archive.clone(), scripts));
        host.start_session("s1").await;
        Self::serve(host, bounds, token, tokens).await
    }

    /// `s1` is stopped so long after its page has left.
    pub async fn that_stops_when_left(after: Duration) -> Self {
        let token = Token::random().unwrap();
        let tokens = Tokens::of_user(token.clone());
        let host = Arc::new(TestHost::new(Arc::new(Memory::default()), scripts()));
        host.start_session("s1").await;
        Self::serve_as(host, token, tokens, |interface| interface.stops_when_left(Some(after))).await
    }

    /// Serves this process.
    pub async fn serve(host: Arc<TestHost>, bounds: Bounds, token: Token, tokens: Tokens) -> Self {
        Self::serve_as(host, token, tokens, |interface| interface.bounds(bounds)).await
    }

    async fn serve_as(
        host: Arc<TestHost>,
        token: Token,
        tokens: Tokens,
        configured: impl FnOnce(Interface) -> Interface,
    ) -> Self {
        let folder = tempfile::Builder::new().permissions(private()).tempdir().unwrap();
        let socket = folder.path().join("socket");
        let interface = configured(Interface::bind([Listen::Unix(socket.clone())]).await.unwrap());
        let shutdown = CancellationToken::new();
        let dynamic: Arc<dyn Host> = host.clone();
        let serving =
            interface.serve(dynamic, Arc::new(tokens), Arc::new(Metrics::default()), shutdown.clone());
        let served = Some(tokio::spawn(serving));
        Self { archive: host.archive.clone(), host, token, socket, shutdown, served, _folder: folder }
    }

    /// Ends it and waits until it has ended.
    pub async fn end(mut self) {
        self.shutdown.cancel();
        self.served.take().unwrap().await.unwrap();
    }

    pub async fn connect(&self) -> Client {
        Client::unix(&self.socket).await
    }

    /// The head of a good request, without the last line's end.
    pub fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: midturn\r\nAuthorization: Bearer {}\r\n",
            self.token.secret()
        )
    }

    pub async fn get(&self, path: &str) -> Answer {
        let head = format!("{}\r\n", self.head("GET", path));
        self.connect().await.ask(head.as_bytes()).await
    }

    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.connect().await.ask(self.posting(path, body).as_bytes()).await
    }

    /// A good `POST`, as it is written.
    pub fn posting(&self, path: &str, body: &str) -> String {
        let head = self.head("POST", path);
        format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    /// Opens an event stream; `extra` are further header lines.
    pub async fn events(&self, path: &str, extra: &str) -> Client {
        let mut client = self.connect().await;
        client.write(format!("{}{extra}\r\n", self.head("GET", path)).as_bytes()).await;
        let answer = client.read_head().await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        client
    }
}

fn private() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o700)
}
