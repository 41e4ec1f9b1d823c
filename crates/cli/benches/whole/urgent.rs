//! A message to an agent in the middle of a command: how long until the request that holds it
//! leaves. From the line that is typed to the request that is there.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::person::{Home, Live};
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
    let home = Home::new();
    let mut live = Live::start(&home, &server, &[]);
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

/// How long each of the five commands runs.
const SLEEP: &str = "sleep 0.3";

/// Five commands in a row, an ordinary message during the first: how long after the command's
/// own end the request with it leaves, and how many commands still ran.
fn ordinary() {
    let server = Server::start(|_| {
        let call = ("bash", json!({"command": SLEEP}));
        Answer::Calls(std::iter::repeat_n(call, 5).collect())
    });
    let home = Home::new();
    let set = ["--set", "default_urgency.to_lead=\"next_boundary\""];
    let mut live = Live::start(&home, &server, &set);
    server.next();
    let (mut late, mut ran) = (Vec::new(), 0);
    for _ in 0..15 {
        live.until("\"type\":\"tool_started\"");
        let begin = Instant::now();
        thread::sleep(RUNNING);
        live.say("lead: use the new name");
        late.push(millis(server.next().at - begin) - 300.0);
        let injected = live.until("\"type\":\"message_injected\"");
        let skipped = injected.split("\"skipped\":[").nth(1).and_then(|rest| rest.split(']').next());
        ran += 4 - skipped.unwrap().split(',').count();
    }
    live.quit();
    let by_hand = |_| {
        let begin = Instant::now();
        Command::new("bash").args(["-c", SLEEP]).status().unwrap();
        millis(begin.elapsed()) - 300.0
    };
    Figures::new(late).print("ordinary, into the first of five: beyond its 0.3 s", "ms", "target 10");
    Figures::new((0..15).map(by_hand)).print("  for scale: `bash -c` of that command by hand", "ms", "");
    println!("  {:<58} {ran:>9}        target 0", "  commands that still ran");
}
