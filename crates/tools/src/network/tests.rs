//! The proxy on real sockets: a command's end, a host's end, and between them a network that answers as a test says.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{pause, resume};

use super::addresses::closed;
use super::hello::tests::hello;
use super::outside::Outside;
use super::*;

/// A network in which every address is one server of the test's.
#[derive(Debug)]
struct Scripted {
    server: SocketAddr,
    /// What each look-up answers, the last one from then on.
    answers: Vec<&'static [&'static str]>,
    looked_up: AtomicUsize,
    connected: Mutex<Vec<SocketAddr>>,
}

#[async_trait]
impl Outside for Scripted {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let nth = self.looked_up.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Ok(self.answers[nth].iter().map(|text| text.parse().unwrap()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        assert_eq!(closed(address.ip()), None, "{address} was connected to");
        self.connected.lock().push(address);
        TcpStream::connect(self.server).await
    }
}

/// A proxy, its address, and the server that stands for all hosts.
struct Bench {
    gate: Arc<Gate>,
    outside: Arc<Scripted>,
    address: SocketAddr,
    server: TcpListener,
    proxy: Proxy,
}

impl Bench {
    async fn new(entries: &[&str], answers: &[&'static [&'static str]]) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let outside = Arc::new(Scripted {
            server: server.local_addr().unwrap(),
            answers: answers.to_vec(),
            looked_up: AtomicUsize::new(0),
            connected: Mutex::default(),
        });
        let hosts = Hosts::parse(entries.iter().copied()).unwrap();
        let gate = Arc::new(Gate::new(Arc::new(Reachable::new(Arc::new(hosts))), outside.clone(), false));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Proxy::serve(gate.clone(), listener.into()).unwrap();
        Self { gate, outside, address, server, proxy }
    }

    async fn open(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Says all of it and hears all that comes back.
    async fn said(&self, bytes: &[u8]) -> String {
        let mut stream = self.open().await;
        stream.write_all(bytes).await.unwrap();
        rest(stream).await
    }

    /// A tunnel that stands.
    async fn tunnel(&self, site: &str) -> TcpStream {
        let mut stream = self.open().await;
        stream
            .write_all(format!("CONNECT {site} HTTP/1.1\r\nHost: {site}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = [0; 39];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 Connection established\r\n\r\n");
        stream
    }

    fn notes(&self) -> String {
        self.gate.take_notes().join("\n")
    }

    /// Nobody was looked up or connected to.
    fn is_untouched(&self) -> bool {
        self.outside.looked_up.load(Ordering::SeqCst) == 0 && self.outside.connected.lock().is_empty()
    }
}

/// All that still comes, and then the end; a connection that was cut off ends, too.
async fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let _cut_off = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

const OPEN: &[&[&str]] = &[&["1.1.1.1"]];

#[tokio::test]
async fn tls_for_the_host_passes_as_it_is_both_ways() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    let mut command = bench.tunnel("a.example:443").await;
    let (mut host, _) = bench.server.accept().await.unwrap();
    let first = hello("a.example");
    // In two pieces: the host gets nothing before the name is known.
    command.write_all(&first[..9]).await.unwrap();
    command.write_all(&first[9..]).await.unwrap();
    let mut heard = vec![0; first.len()];
    host.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, first);
    host.write_all(b"an answer").await.unwrap();
    let mut answer = [0; 9];
    command.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"an answer");
    // Half a connection is one: what the other side says still comes.
    command.shutdown().await.unwrap();
    assert_eq!(host.read(&mut [0]).await.unwrap(), 0);
    host.write_all(b"the last").await.unwrap();
    drop(host);
    assert_eq!(rest(command).await, "the last");
    assert_eq!(*bench.outside.connected.lock(), ["1.1.1.1:443".parse().unwrap()]);
    assert_eq!(bench.notes(), "");
}

#[tokio::test]
async fn a_host_that_is_not_listed_is_refused_in_words_and_never_looked_up() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    for (head, about, status) in [
        ("CONNECT b.example:443 HTTP/1.1\r\n\r\n", "b.example:443", "403"),
        ("CONNECT a.example:22 HTTP/1.1\r\n\r\n", "a.example:22", "403"),
        ("CONNECT a.example.evil.example:443 HTTP/1.1\r\n\r\n", "a.example.evil.example:443", "403"),
        ("CONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n", "1.1.1.1:443", "403"),
        ("CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "in disguise", "403"),
        ("CONNECT 0x7f000001:80 HTTP/1.1\r\n\r\n", "in disguise", "403"),
        ("CONNECT 0177.0.0.1:80 HTTP/1.1\r\n\r\n", "in disguise", "403"),
        ("CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\n\r\n", "in disguise", "403"),
        ("GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "b.example:80", "403"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "another host, b.example", "403"),
        ("GET http://a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "is not TLS", "403"),
        ("SSH-2.0-x\r\n\r\n", "can't be read", "400"),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\nGET http://a.example/ HTTP/1.1\r\n",
            "more follows",
            "400",
        ),
        (
            "PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Content-Length",
            "411",
        ),
    ] {
        let answer = bench.said(head.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        let notes = bench.notes();
        assert!(answer.contains(about) && notes.contains(about), "{head}: {answer} {notes}");
    }
    assert!(bench.is_untouched());
}

#[tokio::test]
async fn a_name_that_leads_into_a_closed_network_is_refused_with_the_address() {
    for answers in [
        &["127.0.0.1"][..],
        &["10.1.2.3"],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["::ffff:192.168.0.1"],
        &["64:ff9b::a00:1"],
        &["1.1.1.1", "::1"],
    ] {
        let bench = Bench::new(&["a.example"], &[answers]).await;
        let answer = bench.said(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("its address"),
            "{answers:?}: {answer}"
        );
        assert!(bench.outside.connected.lock().is_empty());
        assert!(bench.notes().contains("a.example:443 was refused: its address"));
    }
}

/// A name whose second look-up leads elsewhere has none: the connection goes to what was checked.
#[tokio::test]
async fn a_name_is_looked_up_once_so_there_is_nothing_to_rebind() {
    let bench = Bench::new(&["a.example"], &[&["1.1.1.1"], &["127.0.0.1"]]).await;
    let _command = bench.tunnel("a.example:443").await;
    assert_eq!(bench.outside.looked_up.load(Ordering::SeqCst), 1);
    assert_eq!(*bench.outside.connected.lock(), ["1.1.1.1:443".parse().unwrap()]);
    let answer = bench.said(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("127.0.0.1"), "{answer}");
    assert_eq!(bench.outside.connected.lock().len(), 1);
}

#[tokio::test]
async fn on_port_443_nothing_reaches_the_host_but_tls_for_it() {
    for (first, why) in [
        (hello("b.example"), "another host, b.example"),
        (hello("192.0.2.1"), "without the name"),
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), "is not TLS"),
        (b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec(), "is not TLS"),
        (vec![0; 4096], "is not TLS"),
        (vec![0x16; 40_000], "is not TLS"),
    ] {
        let bench = Bench::new(&["a.example"], OPEN).await;
        let mut command = bench.tunnel("a.example:443").await;
        let (host, _) = bench.server.accept().await.unwrap();
        // It may be cut before all of it is said.
        let _cut_off = command.write_all(&first).await;
        assert_eq!(rest(command).await, "", "{why}");
        assert_eq!(rest(host).await, "", "{why}");
        let notes = bench.notes();
        assert!(notes.contains("a.example:443 was refused") && notes.contains(why), "{why}: {notes}");
    }
}

#[tokio::test]
async fn a_port_that_is_named_takes_whatever_is_said() {
    let bench = Bench::new(&["git.example:22"], OPEN).await;
    let command = bench.tunnel("git.example:22").await;
    let (mut host, _) = bench.server.accept().await.unwrap();
    host.write_all(b"SSH-2.0-server\r\n").await.unwrap();
    drop(host);
    assert_eq!(rest(command).await, "SSH-2.0-server\r\n");
}

#[tokio::test]
async fn one_request_without_tls_is_passed_on_and_its_answer_comes_back() {
    for (is_tunnel, first) in [
        (false, "PUT http://a.example/x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbo"),
        (true, "PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbo"),
    ] {
        let bench = Bench::new(&["a.example"], OPEN).await;
        let mut command = if is_tunnel { bench.tunnel("a.example:80").await } else { bench.open().await };
        command.write_all(first.as_bytes()).await.unwrap();
        let (mut host, _) = bench.server.accept().await.unwrap();
        command.write_all(b"dy").await.unwrap();
        let expected =
            "PUT /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        let mut heard = vec![0; expected.len()];
        host.read_exact(&mut heard).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&heard), expected);
        host.write_all(b"HTTP/1.1 200 OK\r\n\r\nfine").await.unwrap();
        drop(host);
        assert_eq!(rest(command).await, "HTTP/1.1 200 OK\r\n\r\nfine");
        assert_eq!(bench.notes(), "");
    }
}

#[tokio::test]
async fn a_second_request_on_a_connection_reaches_nobody() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    let mut command = bench.open().await;
    command.write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").await.unwrap();
    let (mut host, _) = bench.server.accept().await.unwrap();
    let expected = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let mut heard = vec![0; expected.len()];
    host.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, expected);
    command.write_all(b"GET / HTTP/1.1\r\nHost: hidden.example\r\n\r\n").await.unwrap();
    assert_eq!(rest(host).await, "");
}

#[tokio::test]
async fn a_head_has_an_end_within_16_kib() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    let long =
        format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: {}\r\n\r\n", "x".repeat(16 << 10));
    let answer = bench.said(long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("16 KiB"), "{answer}");
    assert!(bench.is_untouched());
}

/// A clock that is paused goes on when nobody has anything else to do.
#[tokio::test]
async fn who_says_nothing_or_says_it_slowly_is_cut_in_time() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    let mut command = bench.tunnel("a.example:443").await;
    command.write_all(&hello("a.example")[..20]).await.unwrap();
    pause();
    assert_eq!(rest(command).await, "");
    for begun in ["", "CONNECT a.example:443 HTTP/1.1\r\n"] {
        let answer = bench.said(begun.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("within 10 s"), "{answer}");
    }
    assert!(bench.notes().contains("a.example:443 was refused: nothing that could be judged"));
}

#[tokio::test]
async fn a_connection_in_which_nothing_moves_ends() {
    let bench = Bench::new(&["git.example:22"], OPEN).await;
    let command = bench.tunnel("git.example:22").await;
    let (host, _) = bench.server.accept().await.unwrap();
    pause();
    assert_eq!((rest(command).await, rest(host).await), Default::default());
    resume();
    // One side alone has said its last.
    let mut command = bench.tunnel("git.example:22").await;
    let (host, _) = bench.server.accept().await.unwrap();
    command.shutdown().await.unwrap();
    pause();
    assert_eq!((rest(command).await, rest(host).await), Default::default());
}

#[tokio::test]
async fn a_thousand_connections_are_all_answered_in_their_turn() {
    let bench = Bench::new(&["a.example"], OPEN).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(bench.open().await);
    }
    let address = bench.address;
    let ask = move || async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"CONNECT b.example:443 HTTP/1.1\r\n\r\n").await.unwrap();
        rest(stream).await
    };
    for _ in 0..8 {
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..100 {
            asked.spawn(ask());
        }
        while let Some(answer) = asked.join_next().await {
            assert!(answer.unwrap().starts_with("HTTP/1.1 403 "));
        }
    }
    assert_eq!(bench.notes().lines().count(), 1, "it is told once");
    drop(idle);
}

#[tokio::test]
async fn with_its_handle_a_proxy_and_all_it_serves_end() {
    let bench = Bench::new(&["git.example:22"], OPEN).await;
    let command = bench.tunnel("git.example:22").await;
    let (host, _) = bench.server.accept().await.unwrap();
    assert!(bench.proxy.is_alive());
    drop(bench.proxy);
    assert_eq!((rest(command).await, rest(host).await), Default::default());
    assert!(TcpStream::connect(bench.address).await.is_err());
}

#[test]
fn the_network_is_off_on_or_a_list_of_hosts() {
    let read = |value: serde_json::Value| serde_json::from_value::<Network>(value);
    for (written, shown) in [
        (json!(false), json!(false)),
        (json!(true), json!(true)),
        (json!([]), json!(false)),
        (json!(["registries", "A.example:22"]), json!(["registries", "A.example:22"])),
        (json!("registries, a.example"), json!(["registries", "a.example"])),
    ] {
        assert_eq!(serde_json::to_value(read(written).unwrap()).unwrap(), shown);
    }
    for (written, why) in [
        (json!(1), "a list of hosts"),
        (json!({"a": 1}), "a list of hosts"),
        (json!([1]), "expected a string"),
        (json!("on"), "write true or false"),
        (json!(["https://a.example"]), "it is a URL"),
        (json!(["0x7f.1"]), "in disguise"),
    ] {
        let error = read(written).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn programs_find_the_proxy_in_their_environment_and_go_past_it_to_their_own_loopback() {
    let of = |entries: &[&str], name: &str| {
        let all = environment(&Hosts::parse(entries.iter().copied()).unwrap());
        let found = all.into_iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.into_string().unwrap()).unwrap_or_default()
    };
    for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        assert_eq!(of(&[], name), "http://127.0.0.1:17077");
    }
    assert_eq!(of(&[], "NODE_USE_ENV_PROXY"), "1");
    assert_eq!(of(&["a.example"], "no_proxy"), "localhost,127.0.0.1,::1");
    assert_eq!(of(&["127.0.0.1:5432"], "NO_PROXY"), "localhost,::1");
}
