//! The interface of this process: bound, published for the project, and taken down at the end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use midturn_client::Client;
use midturn_server::{Interface, Listen, Token, Tokens, Use};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Carrier;
use crate::failure::Failure;
use crate::project::Project;
use crate::secrets;

/// The interface, while it answers.
pub(crate) struct Answering {
    place: PathBuf,
    published: midturn_client::Interface,
    carrier: Arc<Carrier>,
    used: Arc<Use>,
    end: CancellationToken,
    serving: JoinHandle<()>,
}

impl Answering {
    /// Binds the project's socket, and TCP on loopback if asked, and says in the project's
    /// folder where to ask and with which token. A session that its page has left is stopped after
    /// `stops_when_left`.
    ///
    /// # Errors
    /// [`Failure::Failed`]: an address can't be bound, or the file can't be written.
    pub(crate) async fn start(
        project: &Project,
        carrier: Arc<Carrier>,
        tcp: Option<SocketAddr>,
        stops_when_left: Option<Duration>,
    ) -> Result<Self, Failure> {
        let socket = project.socket()?;
        let token = Token::random().map_err(failed)?;
        secrets::hide([("interface token", token.secret())])?;
        let mut listen = vec![Listen::Unix(socket.clone())];
        listen.extend(tcp.map(Listen::Tcp));
        let interface = Interface::bind(listen).await.map_err(failed)?;
        let interface = interface.page_port(project.page_port()).stops_when_left(stops_when_left);
        let used = interface.used();
        let published = midturn_client::Interface {
            pid: std::process::id(),
            socket,
            token: token.secret().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tcp: interface.address(),
        };
        let place = project.interface_path();
        published.write(&place)?;
        let end = CancellationToken::new();
        let tokens = Arc::new(Tokens::of_user(token));
        let metrics = carrier.metrics().clone();
        let serving = tokio::spawn(interface.serve(carrier.clone(), tokens, metrics, end.clone()));
        Ok(Self { place, published, carrier, used, end, serving })
    }

    /// The way to it, for whoever is in this process.
    pub(crate) fn client(&self) -> Client {
        Client::of(self.published.clone())
    }

    /// Whose sessions it answers for.
    pub(crate) fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// The file that says where to ask.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// How it is used.
    pub(crate) fn used(&self) -> &Use {
        &self.used
    }

    /// Where TCP answers, if it does.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        self.published.tcp
    }

    /// Takes the interface down and lets the store go: nobody finds this process any more,
    /// streams end, requests under way are answered. `in_a_hurry`: somebody waits for its end.
    pub(crate) async fn end(self, in_a_hurry: bool) {
        if let Err(failure) = self.published.remove(&self.place) {
            tracing::warn!(%failure, "the file that says where this process answers is left behind");
        }
        self.end.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the interface ended with an error");
        }
        self.carrier.close(in_a_hurry).await;
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("the interface: {error}"))
}
