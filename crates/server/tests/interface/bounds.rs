//! What is bounded: connections, streams, waits, requests, time; and where it may listen.

use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use midturn_core::rules::mail::Sender;
use midturn_server::{BindError, Bounds, Interface, Listen, Rate, Token, Tokens};

use crate::support::client::in_time;
use crate::support::{Rig, name, scripts};

#[tokio::test]
async fn who_asks_too_often_gets_429_and_a_time_to_come_back() {
    let token = Token::random().unwrap();
    let number = |n| NonZeroU32::new(n).unwrap();
    let rate = Rate { per_second: number(1), burst: number(5) };
    let tokens = Tokens::new([(token.clone(), Sender::User)], rate);
    let rig = Rig::of(Bounds::default(), scripts(), token, tokens).await;
    // What is refused counts as well.
    for path in ["/v1/health", "/no/such/place", "/v1/sessions/nobody", "/v1/health", "/v1/health"] {
        assert_ne!(rig.get(path).await.status, 429);
    }
    let refused = rig.post("/v1/sessions/s1/agents/worker/stop", "{}").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_requests"));
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn the_sender_is_who_the_token_says() {
    let (user, agent) = (Token::random().unwrap(), Token::random().unwrap());
    let holders = [(user.clone(), Sender::User), (agent.clone(), Sender::Agent(name("lead")))];
    let mut rig = Rig::of(Bounds::default(), scripts(), agent, Tokens::new(holders, Rate::default())).await;
    let mut events = rig.events("/v1/sessions/s1/events?agent=worker", "").await;
    let at = "/v1/sessions/s1/agents/worker/messages";
    rig.post(at, r#"{"text": "from an agent", "id": "m1"}"#).await;
    assert_eq!(events.told().await.unwrap().json()["from"], "lead");
    let own = rig.get("/v1/sessions/s1/messages/m1").await;
    rig.token = user;
    let foreign = rig.get("/v1/sessions/s1/messages/m1").await;
    assert_eq!((own.status, foreign.status), (200, 404), "receipts are their sender's");
}

#[tokio::test]
async fn there_are_only_so_many_streams_and_waits_and_a_place_comes_back() {
    let bounds = Bounds { streams: 1, waits: 1, ..Bounds::default() };
    let rig = Rig::with(bounds, scripts()).await;
    let open = rig.events("/v1/sessions/s1/events", "").await;
    let refused = rig.get("/v1/sessions/s1/events").await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_streams"));
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "a", "id": "m1"}"#).await;
    let mut waits = rig.connect().await;
    let head = rig.head("GET", "/v1/sessions/s1/messages/m1/wait?timeout=10m");
    waits.write(format!("{head}\r\n").as_bytes()).await;
    let busy =
        async || rig.get("/v1/sessions/s1/messages/m1/wait?timeout=0").await.code() == "too_many_waits";
    in_time(async { while !busy().await {} }).await;
    drop(waits);
    in_time(async { while busy().await {} }).await;
    drop(open);
    // The server sees the end of the stream when it next looks.
    until_there_is_a_place(&rig).await;
}

/// Asks for a stream until there is one.
async fn until_there_is_a_place(rig: &Rig) {
    let asked = format!("{}\r\n", rig.head("GET", "/v1/sessions/s1/events"));
    in_time(async {
        loop {
            let mut client = rig.connect().await;
            client.write(asked.as_bytes()).await;
            if client.read_head().await.status == 200 {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn streams_are_not_counted_as_connections_and_a_full_house_says_so() {
    let bounds = Bounds { connections: 2, ..Bounds::default() };
    let rig = Rig::with(bounds, scripts()).await;
    let _one = rig.events("/v1/sessions/s1/events", "").await;
    let _two = rig.events("/v1/sessions/s1/events", "").await;
    let _three = rig.events("/v1/sessions/s1/events", "").await;
    assert_eq!(rig.get("/v1/health").await.status, 200);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = rig.connect().await;
        let health = format!("{}\r\n", rig.head("GET", "/v1/health"));
        assert_eq!(client.ask(health.as_bytes()).await.status, 200);
        held.push(client);
    }
    let mut refused = rig.connect().await;
    let health = format!("{}\r\n", rig.head("GET", "/v1/health"));
    let answer = refused.ask(health.as_bytes()).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "too_many_connections"));
}

#[tokio::test]
async fn who_never_ends_the_head_or_never_reads_loses_the_connection() {
    let short = Duration::from_millis(50);
    let bounds = Bounds { head_time: short, stall_time: short, streams: 1, ..Bounds::default() };
    let rig = Rig::with(bounds, scripts()).await;
    let mut slow = rig.connect().await;
    slow.write(b"GET /v1/health HTTP/1.1\r\nHost: mid").await;
    let status = slow.answer().await.status;
    assert!([0, 408].contains(&status), "{status}");
    let stuck = rig.events("/v1/sessions/s1/events", "").await;
    let text = "x".repeat(200 * 1024);
    let mut n = 0;
    // Nobody reads; once its buffers are full, its place is free again.
    while rig.get("/v1/sessions/nobody/events").await.status == 404 && n < 12 {
        n += 1;
        let body = format!(r#"{{"text": "{text}"}}"#);
        rig.post("/v1/sessions/s1/agents/worker/messages", &body).await;
    }
    until_there_is_a_place(&rig).await;
    drop(stuck);
}

#[tokio::test]
async fn it_listens_where_only_its_owner_can_reach_it() {
    let open = Interface::bind([Listen::Tcp("0.0.0.0:0".parse().unwrap())]).await;
    assert!(matches!(open, Err(BindError::NotLoopback(_))));
    let open = Interface::bind([Listen::Tcp("192.0.2.1:80".parse().unwrap())]).await;
    assert!(matches!(open, Err(BindError::NotLoopback(_))));

    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b/socket");
    let made = Interface::bind([Listen::Unix(deep.clone())]).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(deep.parent().unwrap()), mode(&deep)), (0o700, 0o600));
    assert!(matches!(Interface::bind([Listen::Unix(deep.clone())]).await, Err(BindError::Held(_))));
    drop(made);
    assert!(!deep.exists());

    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Interface::bind([Listen::Unix(shared.join("socket"))]).await;
    assert!(matches!(refused, Err(BindError::OpenFolder(_))));
    let long = deep.with_file_name("x".repeat(200));
    assert!(matches!(Interface::bind([Listen::Unix(long)]).await, Err(BindError::TooLong(_))));
    std::fs::write(&deep, "a file").unwrap();
    assert!(matches!(Interface::bind([Listen::Unix(deep.clone())]).await, Err(BindError::NoSocket(_))));
    assert_eq!(std::fs::read(&deep).unwrap(), b"a file");
}

#[tokio::test]
async fn the_socket_of_a_process_that_is_gone_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/socket");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o700)).unwrap();
    // A socket that nobody listens on any more: what a crash leaves.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(Interface::bind([Listen::Unix(path.clone())]).await.is_ok());
}

#[tokio::test]
async fn on_tcp_it_answers_to_its_own_address_only() {
    let rig = Rig::start().await;
    let interface = Interface::bind([Listen::Tcp("127.0.0.1:0".parse().unwrap())]).await.unwrap();
    let address = interface.address().unwrap();
    let host: std::sync::Arc<dyn midturn_server::Host> = rig.host.clone();
    let tokens = std::sync::Arc::new(Tokens::of_user(rig.token.clone()));
    let served = tokio::spawn(interface.serve(host, tokens, Default::default(), rig.shutdown.clone()));
    let port = address.port();
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("127.0.0.1".to_owned(), 421),
        ("midturn".to_owned(), 421),
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.1:{}", port ^ 1), 421),
    ] {
        let request = format!(
            "GET /v1/health HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            rig.token.secret()
        );
        let answer = tcp(address, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
    rig.shutdown.cancel();
    served.await.unwrap();
}

async fn tcp(address: std::net::SocketAddr, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
