//! How fast the next request leaves after an urgent message has ended a running command: the
//! real binary, a model server on loopback, real processes (targets.md, "What people feel").
//! Beside it, in alternating rounds, the same by hand: kill a child, reap it, send a request.
//!
//! `cargo bench -p midturn-tests --bench next_request [-- ROUNDS]`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

const COMMAND: &str = "echo go; sleep 300 & setsid sleep 300 & wait";

fn main() -> std::io::Result<()> {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let rounds: usize = asked.unwrap_or(60);
    let (server, requests) = serve(rounds)?;
    let mut agent = Agent::start(&server)?;
    requests.recv().map_err(std::io::Error::other)?;
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        agent.until_the_command_runs()?;
        let sent = Instant::now();
        agent.stdin.write_all(b"lead! stop that\n")?;
        let left = requests.recv().map_err(std::io::Error::other)?;
        ours.push(left - sent);
        by_hand.push(kill_and_ask(&server, &requests)?);
    }
    drop(agent.stdin);
    agent.process.wait()?;
    report("midturn: urgent line on standard input", &mut ours);
    report("by hand: kill, reap, send a request", &mut by_hand);
    Ok(())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!("{what:<40} p50 {:7.3} ms  p99 {:7.3} ms  max {:7.3} ms", at(50), at(99), at(100));
}

/// The real binary at work on a task.
struct Agent {
    process: Child,
    stdin: ChildStdin,
    events: BufReader<ChildStdout>,
}

impl Agent {
    fn start(server: &str) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("midturn-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut process = Command::new(midturn_tests::binary())
            .args(["run", "--json", "--model", "anthropic/bench", "Work."])
            .current_dir(&folder)
            .env("ANTHROPIC_API_KEY", "bench-key-of-no-use")
            .env("ANTHROPIC_BASE_URL", format!("http://{server}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let stdin = process.stdin.take().ok_or_else(missing)?;
        let events = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        Ok(Self { process, stdin, events })
    }

    /// The command has said its first word, so its children are about to sleep.
    fn until_the_command_runs(&mut self) -> std::io::Result<()> {
        let mut line = String::new();
        while self.events.read_line(&mut line)? > 0 {
            if line.contains("\"type\":\"tool_output\"") {
                return Ok(());
            }
            line.clear();
        }
        Err(std::io::Error::other("the run ended early"))
    }
}

/// The least that anybody could do: end a child that sleeps, and send a request.
fn kill_and_ask(server: &str, requests: &Receiver<Instant>) -> std::io::Result<Duration> {
    let mut child = Command::new("sh").args(["-c", COMMAND]).stdout(Stdio::piped()).spawn()?;
    let mut word = [0; 3];
    if let Some(output) = child.stdout.as_mut() {
        output.read_exact(&mut word)?;
    }
    let mut connection = TcpStream::connect(server)?;
    connection.set_nodelay(true)?;
    let begun = Instant::now();
    child.kill()?;
    child.wait()?;
    connection.write_all(b"POST /by-hand HTTP/1.1\r\nhost: bench\r\ncontent-length: 2\r\n\r\n{}")?;
    let left = requests.recv().map_err(std::io::Error::other)?;
    // `kill` by hand leaves the grandchildren: they are nobody's here, so end them by name.
    Command::new("pkill").args(["-9", "-x", "-f", "sleep 300"]).status()?;
    Ok(left - begun)
}

/// A model server that always asks for the same command, and tells when each request came.
fn serve(rounds: usize) -> std::io::Result<(String, Receiver<Instant>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let (came, requests) = sync_channel(16);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let came = came.clone();
            // A connection that breaks is the client's matter: it asks again.
            std::thread::spawn(move || answer(connection, &came, rounds).ok());
        }
    });
    Ok((address, requests))
}

fn answer(mut connection: TcpStream, came: &SyncSender<Instant>, rounds: usize) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    for call in 0.. {
        let by_hand = request(&mut reader)?;
        came.send(Instant::now()).map_err(std::io::Error::other)?;
        if by_hand {
            return Ok(());
        }
        let body = if call < rounds { asks(call) } else { ends() };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes())?;
    }
    Ok(())
}

/// Reads one request; `true`: it was sent by hand.
fn request(reader: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        line.clear();
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    Ok(first.starts_with("POST /by-hand"))
}

fn frames(frames: &[serde_json::Value]) -> String {
    let frame = |value: &serde_json::Value| {
        format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
    };
    frames.iter().map(frame).collect()
}

fn message(block: serde_json::Value, delta: serde_json::Value, stop: &str) -> String {
    use serde_json::json;
    frames(&[
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ])
}

fn asks(call: usize) -> String {
    use serde_json::json;
    let arguments = json!({"command": COMMAND, "timeout": 300}).to_string();
    message(
        json!({"type": "tool_use", "id": format!("call{call}"), "name": "bash", "input": {}}),
        json!({"type": "input_json_delta", "partial_json": arguments}),
        "tool_use",
    )
}

fn ends() -> String {
    use serde_json::json;
    message(json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "Done."}), "end_turn")
}
