//! Who has places for connections, and who can take them from whom (C10).

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use midturn_server::{Bounds, Host, Interface, Listen, Tokens};
use rustix::process::{Uid, geteuid};

use crate::needs::{Need, has};
use crate::support::client::{Answer, Client};
use crate::support::{Rig, scripts};

/// Nobody's connections are dropped for being idle while these tests look.
const TWO: fn() -> Bounds =
    || Bounds { connections: 2, head_time: Duration::from_secs(300), ..Bounds::default() };

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// One interface with both kinds of listeners.
struct Doors {
    rig: Rig,
    socket: PathBuf,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Doors {
    async fn open() -> Self {
        let rig = Rig::start().await;
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("own/socket");
        let places = [Listen::Unix(socket.clone()), Listen::Tcp("127.0.0.1:0".parse().unwrap())];
        let interface = Interface::bind(places).await.unwrap().bounds(TWO());
        let address = interface.address().unwrap();
        let host: std::sync::Arc<dyn Host> = rig.host.clone();
        let tokens = std::sync::Arc::new(Tokens::of_user(rig.token.clone()));
        tokio::spawn(interface.serve(host, tokens, Default::default(), rig.shutdown.clone()));
        Self { rig, socket, address, _folder: folder }
    }

    async fn connect(&self, door: Door) -> Client {
        match door {
            Door::Socket => Client::unix(&self.socket).await,
            Door::Tcp => Client::tcp(&self.address.to_string()).await,
        }
    }

    /// Asks for something that is there for everybody with the token.
    async fn ask(&self, door: Door) -> Answer {
        let host = match door {
            Door::Socket => "midturn".to_owned(),
            Door::Tcp => self.address.to_string(),
        };
        self.connect(door).await.ask(health(&self.rig, &host).as_bytes()).await
    }
}

fn health(rig: &Rig, host: &str) -> String {
    rig.head("GET", "/v1/health").replace("Host: midturn", &format!("Host: {host}")) + "\r\n"
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

#[derive(Clone, Copy, Debug)]
enum Door {
    Socket,
    Tcp,
}

#[tokio::test]
async fn a_listener_full_of_idle_connections_takes_no_place_of_the_other() {
    for (full, other) in [(Door::Tcp, Door::Socket), (Door::Socket, Door::Tcp)] {
        let doors = Doors::open().await;
        let _idle = (doors.connect(full).await, doors.connect(full).await);
        assert_eq!(
            told(&doors.ask(full).await),
            (503, "too_many_connections".to_owned()),
            "{full:?} is full"
        );
        assert_eq!(doors.ask(other).await.status, 200, "{other:?} beside {full:?}");
    }
}

#[tokio::test]
async fn on_the_socket_another_users_connections_take_no_place_of_its_owner() {
    if !has(Need::Root, geteuid().is_root()) {
        return;
    }
    // Root gets to any user's socket. Here it is the other way round: the socket is root's, and is opened to
    // somebody else.
    let doors = Doors::open().await;
    opened(&doors.socket);
    let asked = health(&doors.rig, "midturn");
    let connect = || as_nobody(doors.socket.clone());
    let _theirs = (connect(), connect());
    assert_eq!(doors.ask(Door::Socket).await.status, 200, "the owner, beside another's idle ones");
    let mut refused = Client::of_unix(connect());
    assert_eq!(told(&refused.ask(asked.as_bytes()).await), (503, "too_many_connections".to_owned()));
    drop(_theirs);

    let doors = Doors::open().await;
    opened(&doors.socket);
    let asked = health(&doors.rig, "midturn");
    let _ours = (doors.connect(Door::Socket).await, doors.connect(Door::Socket).await);
    assert_eq!(told(&doors.ask(Door::Socket).await), (503, "too_many_connections".to_owned()));
    let mut other = Client::of_unix(as_nobody(doors.socket.clone()));
    assert_eq!(other.ask(asked.as_bytes()).await.status, 200, "another, beside the owner's idle ones");
}

fn opened(socket: &Path) {
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let own = socket.parent().unwrap();
    set(own.parent().unwrap(), 0o711);
    set(own, 0o711);
    set(socket, 0o666);
}

/// A connection of somebody else's: who a thread is, is its own.
fn as_nobody(socket: PathBuf) -> UnixStream {
    let connect = move || {
        let nobody = Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        UnixStream::connect(socket).unwrap()
    };
    std::thread::spawn(connect).join().unwrap()
}

#[tokio::test]
async fn a_connection_that_never_asks_anything_is_dropped_and_its_place_is_free() {
    let bounds = Bounds { connections: 1, head_time: Duration::from_millis(50), ..Bounds::default() };
    let rig = Rig::with(bounds, scripts()).await;
    let mut silent = rig.connect().await;
    let status = silent.answer().await.status;
    assert!([0, 408].contains(&status), "{status}");
    assert_eq!(rig.get("/v1/health").await.status, 200);
}
