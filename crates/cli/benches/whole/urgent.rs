//! A message to an agent in the middle of a command: how long until the request that holds it
//! leaves. From the line that is typed to the request that is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::person::Live;
use super::server::{Answer, Server};
use super::stats::{Figures, millis};

const ROUNDS: usize = 100;

/// How long a command runs before the message: it is on its way by then.
const RUNNING: Duration = Duration::from_millis(40);

pub(crate) fn table() {
    println!("\nuntil the next request leaves  (median, minimum, maximum; ms)");
    urgent("urgent into `sleep 30`", "sleep 30", ROUNDS, "target p50 5, p99 25");
    urgent("… `sleep 30 & setsid sleep 30 & wait`", "sleep 30 & setsid sleep 30 & wait", ROUNDS / 2, "");
    urgent("… a process that ignores SIGTERM", "trap '' TERM; sleep 30", ROUNDS / 4, "target grace 100 + 25");
    ordinary();
}

fn urgent(name: &str, command: &'static str, rounds: usize, target: &str) {
    let server = Server::start(move |_| Answer::Calls(vec![("bash", json!({"command": command}))]));
    let folder = tempfile::tempdir().unwrap();
    let mut live = Live::start(folder.path(), &server, &[]);
    server.next();
    let mut took = Vec::new();
    for _ in 0..rounds {
        live.until("\"type\":\"tool_started\"");
        thread::sleep(RUNNING);
        let begin = Instant::now();
        live.say("lead! use the new name");
        let asked = server.next();
        assert!(asked.body.contains("use the new name"));
        took.push(millis(asked.at - begin));
    }
    live.quit();
    let figures = Figures::new(took);
    figures.print(name, "ms", target);
    println!("  {:<58} {:>9.2}", "  99 of 100 below", figures.at(0.99));
}

/// Five commands in a row, an ordinary message during the first: how long after the command's
/// own end the request with it leaves, and how many commands still ran.
fn ordinary() {
    const COMMAND: f64 = 0.3;
    let ran = Arc::new(AtomicUsize::new(0));
    let server = Server::start(|_| {
        let call = ("bash", json!({"command": format!("sleep {COMMAND}")}));
        Answer::Calls(std::iter::repeat_n(call, 5).collect())
    });
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "default_urgency.to_lead=\"next_boundary\""];
    let mut live = Live::start(folder.path(), &server, &set);
    server.next();
    let mut late = Vec::new();
    for _ in 0..15 {
        live.until("\"type\":\"tool_started\"");
        let begin = Instant::now();
        thread::sleep(RUNNING);
        live.say("lead: use the new name");
        let asked = server.next();
        late.push(millis(asked.at - begin) - COMMAND * 1_000.0);
        let injected = live.until("\"type\":\"message_injected\"");
        let skipped = injected.split("\"skipped\":[").nth(1).and_then(|rest| rest.split(']').next());
        ran.fetch_add(4 - skipped.unwrap().split(',').count(), Ordering::Relaxed);
    }
    live.quit();
    Figures::new(late).print("ordinary, into the first of five: beyond the command's end", "ms", "target 10");
    println!("  {:<58} {:>9}        target 0", "  commands that still ran", ran.load(Ordering::Relaxed));
}
