//! Network by host, in a real sandbox: the proxy is the only way out of an agent's network (docs/decisions/0055).

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::path::Path;

use midturn_core::engine::ports::{Output, Workplace as _};
use midturn_tools::network::{Hosts, Network};
use midturn_tools::process::Supervision;
use midturn_tools::sandbox::{Sandbox, Tier, Wanted};
use serde_json::json;
use support::needs::{Need, has};
use support::own::Place;
use support::sandboxed::PROGRAM;
use support::{call, has_python, name};

/// A sandbox whose commands reach these hosts.
async fn reaching(hosts: &[&str]) -> Option<Sandbox> {
    let network = Network::hosts(Hosts::parse(hosts.iter().copied()).unwrap());
    let wanted = Wanted { tier: Some(Tier::Landlock), network, ..Wanted::default() };
    let sandbox = Sandbox::probe_at_best(&wanted, Path::new(PROGRAM), Supervision::UserNamespace).await.ok();
    let sandbox = sandbox.filter(|sandbox| sandbox.in_force().mount_namespace);
    has(Need::Landlock, sandbox.is_some()).then_some(sandbox).flatten()
}

/// A server on the machine that says one word to each who comes; its port.
fn server(word: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _asked = stream.read(&mut [0; 1024]);
            let _gone = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{word}", word.len());
            let _gone = stream.shutdown(Shutdown::Write);
        }
    });
    port
}

/// Through the proxy of the environment, as `curl -p` does: CONNECT, then what is said in the tunnel.
const TUNNEL: &str = r#"
import os, socket, sys, urllib.parse
proxy = urllib.parse.urlparse(os.environ["https_proxy"])
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\r\nHost: {sys.argv[1]}\r\n\r\n".encode())
head = s.recv(65536).decode()
print(head.split("\r\n")[0])
if " 200 " in head:
    s.sendall(b"GET / HTTP/1.1\r\n\r\n")
    print(s.makefile("rb").read().decode().split("\r\n")[-1])
"#;

async fn says(place: &Place, sandbox: &Sandbox, text: &str) -> Output {
    let toolbox = place.workplace(sandbox).open(&name("w")).await.unwrap();
    call(&toolbox, "bash", json!({ "command": text })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reaches_the_hosts_of_the_list_by_the_proxy_and_nothing_else() {
    if !has_python() {
        return;
    }
    let (named, other) = (server("named"), server("other"));
    let Some(sandbox) = reaching(&[&format!("127.0.0.1:{named}")]).await else { return };
    let place = Place::with_a_commit();
    std::fs::write(place.at("project/tunnel.py"), TUNNEL).unwrap();
    place.sh("git add .; git commit -qm tunnel");

    let output = says(&place, &sandbox, &format!("python3 tunnel.py 127.0.0.1:{named}")).await;
    assert_eq!(output.text.trim(), "HTTP/1.1 200 Connection established\nnamed");

    let text = format!(
        "for host in 127.0.0.1:{other} 10.0.0.1:443 2130706433:{named} a.example:443; do python3 tunnel.py $host; done"
    );
    let output = says(&place, &sandbox, &text).await;
    assert_eq!(output.text.matches("HTTP/1.1 403").count(), 4, "{}", output.text);
    for refused in [
        format!("127.0.0.1:{other}"),
        "10.0.0.1:443".into(),
        format!("2130706433:{named}"),
        "a.example:443".into(),
    ] {
        let told =
            output.text.lines().filter(|line| line.starts_with('[') && line.contains(&refused)).count();
        assert_eq!(told, 1, "{refused}: {}", output.text);
    }

    // Past the proxy there is nothing: neither the machine's loopback nor an address, nor a name.
    let past = format!(
        "for where in 'socket.create_connection((\"127.0.0.1\", {named}), 2)' 'socket.create_connection((\"1.1.1.1\", 443), 2)' \
         'socket.getaddrinfo(\"a.example\", 443)' 'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"1.1.1.1\", 53))'; \
         do python3 -c \"import socket; $where; print('out')\" 2>/dev/null || echo shut; done"
    );
    let output = says(&place, &sandbox, &past).await;
    assert_eq!(output.text.trim(), "shut\nshut\nshut\nshut");
}

/// Attacks on the listener: a command takes its port, floods it, and holds it half open; the next command has its way out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_takes_the_way_out_from_the_next() {
    if !has_python() {
        return;
    }
    let named = server("named");
    let Some(sandbox) = reaching(&[&format!("127.0.0.1:{named}")]).await else { return };
    let place = Place::with_a_commit();
    std::fs::write(place.at("project/tunnel.py"), TUNNEL).unwrap();
    place.sh("git add .; git commit -qm tunnel");
    let toolbox = place.workplace(&sandbox).open(&name("w")).await.unwrap();
    let attack = r#"python3 - <<'P'
import os, socket, urllib.parse
proxy = urllib.parse.urlparse(os.environ["https_proxy"])
try:
    socket.create_server((proxy.hostname, proxy.port), reuse_port=True)
    print("taken")
except OSError as error:
    print(type(error).__name__)
held = []
for n in range(900):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex((proxy.hostname, proxy.port))
    held.append(s)
print(len(held))
P"#;
    let output = call(&toolbox, "bash", json!({ "command": attack })).await;
    assert_eq!(output.text.trim(), "OSError\n900");
    let again =
        call(&toolbox, "bash", json!({ "command": format!("python3 tunnel.py 127.0.0.1:{named}") })).await;
    assert_eq!(again.text.trim(), "HTTP/1.1 200 Connection established\nnamed");
}
