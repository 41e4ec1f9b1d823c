//! A command that downloads from this machine: by the proxy, through its tunnel and as single requests, and without.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use super::person::{Home, Live};
use super::server::{Answer, Server, turns};
use super::stats::Figures;

/// What is downloaded, in bytes.
const SIZE: usize = 512 << 20;

/// How often in each way.
const ROUNDS: usize = 5;

pub(crate) fn table() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("\ncurl is not installed: no download is measured");
        return;
    }
    let port = serve();
    let named = format!("sandbox.network=[\"127.0.0.1:{port}\"]");
    // What goes to this machine would go past the proxy.
    let ways = [
        ("direct, the network open", "sandbox.network=true", ""),
        ("by the proxy, in a tunnel", named.as_str(), "--noproxy '' --proxytunnel"),
        ("by the proxy, a request", named.as_str(), "--noproxy ''"),
    ];
    println!("\na sandboxed `curl` downloads {} MiB from loopback  (median, minimum, maximum)", SIZE >> 20);
    let mut speeds = ways.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, network, how), speeds) in ways.iter().zip(&mut speeds) {
            speeds.push(speed(port, network, how));
        }
    }
    for ((name, ..), speeds) in ways.iter().zip(speeds) {
        Figures::new(speeds).print(name, "MB/s", "");
    }
}

/// Bytes a second, in millions.
fn speed(port: u16, network: &str, how: &str) -> f64 {
    let command = format!(
        "curl -sf {how} -o /dev/null -w '%{{size_download}} %{{speed_download}}' http://127.0.0.1:{port}/"
    );
    let server = Server::start(move |body| match turns(body) {
        0 => Answer::Calls(vec![("bash", json!({"command": command}))]),
        _ => Answer::Says("Done."),
    });
    let home = Home::new();
    let mut live = Live::start(&home, &server, &["--set", network]);
    let event: Value = serde_json::from_str(&live.until("\"tool_finished\"")).unwrap();
    live.end();
    let said = event["output"].as_str().unwrap();
    let (size, speed) = said.split_once(' ').unwrap_or_else(|| panic!("it said {said}"));
    assert_eq!(size.parse(), Ok(SIZE), "it said {said}");
    speed.trim().parse::<f64>().unwrap() / 1e6
}

/// A server that says nothing but zeros; it lives as long as this process.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    port
}

/// A request of `curl`'s is there at once.
fn answer(mut stream: TcpStream) {
    let zeros = vec![0; 1 << 16];
    if stream.read(&mut vec![0; 4 << 10]).is_ok_and(|length| length > 0) {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\nconnection: close\r\n\r\n").unwrap();
        for _ in 0..SIZE / zeros.len() {
            stream.write_all(&zeros).unwrap();
        }
    }
}
