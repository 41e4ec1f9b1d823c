//! Whoever reads the output of a run may stop reading: nobody else notices (A1).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use super::common::Place;
use super::holder::Holder;
use super::remote::{bash, lead};

/// What takes so long will never come.
const NEVER: Duration = Duration::from_secs(120);

/// So many files of so many bytes are read: more than a pipe, the queues and the feed together hold.
const READS: (usize, usize) = (480, 40_000);

/// What comes of some work that may hang.
fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, came) = channel();
    // Work that hangs ends with the process of the test.
    std::thread::spawn(move || done.send(work()));
    came.recv_timeout(NEVER).unwrap_or_else(|_| panic!("{what} hangs"))
}

fn says(what: &str, mut command: Command) -> (Option<i32>, String) {
    let said = within(what, move || command.output().unwrap());
    (said.status.code(), String::from_utf8(said.stdout).unwrap() + &String::from_utf8(said.stderr).unwrap())
}

/// Waits until somebody has written to the pipe of that name.
fn is_written(place: &Place, pipe: &str) {
    let path = place.path(&format!("repo/{pipe}"));
    within(pipe, move || std::fs::read(path).unwrap());
}

/// A lead that reads far more than anybody holds, then works on and on.
fn talkative(place: &Place) -> Child {
    let (count, bytes) = READS;
    place.write("repo/large", &"0123456789 abcdefghi\n".repeat(bytes / 21));
    let read = |n: usize| format!("          - {{id: r{n}, name: read, input: {{path: large}}}}\n");
    let reads: String = (0..count).map(read).collect();
    for pipe in ["first", "second"] {
        assert!(Command::new("mkfifo").arg(place.path(&format!("repo/{pipe}"))).status().unwrap().success());
    }
    let works = |pipe: &str| format!("      - tools:\n{}", bash(pipe, &format!("echo > {pipe}; sleep 300")));
    let scenario = format!("      - tools:\n{reads}{}{}", works("first"), works("second"));
    place.write("scenario.yaml", &lead(&scenario));
    let words = ["run", "the task", "--json", "--no-sandbox", "--model", "scripted:../scenario.yaml"];
    let mut run = place.midturn("repo", &words);
    run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_reader_that_stops_reading_holds_up_nobody_and_misses_nothing() {
    let place = Place::new();
    let mut run = talkative(&place);
    is_written(&place, "first");
    let (status, agents) = says("ps", place.midturn("repo", &["ps"]));
    assert!(status == Some(0) && agents.contains("lead"), "{agents}");
    let send = ["send", "lead", "--urgent", "never mind"];
    let (status, told) = says("send", place.midturn("repo", &send));
    assert_eq!(status, Some(0), "{told}");
    is_written(&place, "second");
    let (status, told) = says("stop", place.midturn("repo", &["stop", "lead"]));
    assert_eq!(status, Some(0), "{told}");
    // It reads on. What it missed it gets, and all that was done meanwhile.
    let out = run.stdout.take().unwrap();
    let lines: Vec<String> =
        within("the rest", move || BufReader::new(out).lines().map(Result::unwrap).collect());
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stored: Vec<&Value> = events.iter().filter(|event| event.get("n").is_none()).collect();
    let seqs: Vec<u64> = stored.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let ended = |tool: &str, status: &str| {
        stored.iter().any(|event| {
            event["type"] == "tool_finished" && event["tool"] == tool && event["status"] == status
        })
    };
    assert!(ended("r0", "completed") && ended(&format!("r{}", READS.0 - 1), "completed"));
    assert!(ended("first", "interrupted") && ended("second", "stopped"));
    assert_eq!(stored.last().unwrap()["type"], "run_finished");
    assert_eq!(within("the end", move || run.wait().unwrap().code()), Some(130));
}

#[test]
fn a_signal_ends_a_run_whoever_takes_nothing_of_it() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let mut run = talkative(&place);
        is_written(&place, "first");
        // A stream and an answer that nobody reads, a request that never comes whole, and one that waits.
        let holder = Holder::find(&place).unwrap();
        let held = [
            holder.send("GET", "sessions/current/events?after=0", None),
            holder.send("GET", "sessions/current/agents/lead/conversation?limit=1000", None),
            holder.send("GET", "sessions/current/messages/m/wait?timeout=10m", None),
        ];
        let id = run.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert_eq!(within(signal, move || run.wait().unwrap().code()), Some(130));
        drop(held);
        let listed = place.midturn("repo", &["sessions", "--json"]).output().unwrap();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        assert_eq!(listed["sessions"][0]["state"], "resumable", "{listed}");
    }
}
