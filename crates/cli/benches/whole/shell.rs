//! Processor time of a turn with a streamed reply and the command `true`, and the wall time of
//! many agents at it: as a person has it, sandboxed, and without a sandbox.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::person::{Home, Live};
use super::server::{Answer, Server, turns};
use super::stats::{Figures, millis, of_children};

const TURNS: usize = 200;

/// What is measured in turn: how it is called, what is said for it, and what is aimed at for a turn and for 100 agents.
const WAYS: [(&str, &[&str], &str, &str); 2] =
    [("sandboxed", &[], "target 4", "target 6"), ("bare", &["--no-sandbox"], "target 2.5", "")];

pub(crate) fn table() {
    println!(
        "\na turn over HTTP with the command `true`, its processes included  (median, minimum, maximum)"
    );
    let mut ours = WAYS.map(|_| Vec::new());
    let mut hand = Vec::new();
    for _ in 0..5 {
        for ((_, said, ..), figures) in WAYS.iter().zip(&mut ours) {
            let start = conversation(1, said);
            figures.push((conversation(TURNS + 1, said) - start) / TURNS as f64);
        }
        hand.push(by_hand());
    }
    for ((name, _, target, _), figures) in WAYS.iter().zip(ours) {
        let name = format!("processor time of a turn, 200 turns, {name}");
        Figures::new(figures).print(&name, "ms", target);
    }
    Figures::new(hand).print("of it, `bash -c true` by hand", "ms", "");
    for (name, said, _, target) in WAYS {
        let wall = Figures::new((0..3).map(|_| many(100, 20, said).seconds));
        wall.print(&format!("100 agents × 20 turns, wall time, {name}"), "s", target);
    }
}

/// A thousand agents, once: a minute and more.
pub(crate) fn thousand() {
    println!("\n1,000 agents × 20 turns with the command `true`, sandboxed");
    let Many { seconds, fewest } = many(1_000, 20, &[]);
    println!("  {:<58} {seconds:>9.1} s      target 60", "wall time");
    println!("  {:<58} {fewest:>9}", "turns of who has fewest, when all together have half");
}

fn conversation(most: usize, said: &[&str]) -> f64 {
    let server = Server::start(move |body| answer(body, most));
    let home = Home::new();
    let before = of_children();
    Live::start(&home, &server, said).end();
    millis(of_children() - before)
}

fn answer(body: &str, most: usize) -> Answer {
    if turns(body) < most {
        Answer::Calls(vec![("bash", json!({"command": "true"}))])
    } else {
        Answer::Says("Done.")
    }
}

fn by_hand() -> f64 {
    let before = of_children();
    for _ in 0..TURNS {
        Command::new("bash").args(["-c", "true"]).status().unwrap();
    }
    millis(of_children() - before) / TURNS as f64
}

/// How many agents got through their turns.
struct Many {
    seconds: f64,
    /// The turns of the one who has fewest, when all together have half of theirs.
    fewest: usize,
}

/// A lead spawns so many subagents, and each takes so many turns.
fn many(agents: usize, most: usize, said: &[&str]) -> Many {
    let server = Server::start(move |body| {
        if !body.contains("the task") {
            return answer(body, most);
        }
        if turns(body) > 0 {
            return Answer::Says("All are at work.");
        }
        let spawn =
            |i| ("spawn_agent", json!({"name": format!("agent-{i}"), "prompt": "Work.", "agent": "worker"}));
        Answer::Calls((0..agents).map(spawn).collect())
    });
    let home = Home::new();
    definition(&home.project());
    let begin = Instant::now();
    let bounds = ["max_agents", "max_spawns"].map(|name| format!("{name}={}", agents + 1));
    let bounds = bounds.iter().flat_map(|bound| ["--set", bound]);
    let mut live = Live::start(&home, &server, &bounds.chain(said.iter().copied()).collect::<Vec<_>>());
    let mut done = HashMap::new();
    while let Some(event) = live.next() {
        count(&event, &mut done);
        if done.values().sum::<usize>() == agents * most / 2 {
            break;
        }
    }
    let fewest = done.values().copied().min().unwrap_or(0) * usize::from(done.len() == agents);
    while let Some(event) = live.next() {
        count(&event, &mut done);
    }
    assert!(done.len() == agents && done.values().all(|turns| *turns == most), "{} at work", done.len());
    live.end();
    Many { seconds: begin.elapsed().as_secs_f64(), fewest }
}

/// Notes a command that ended well.
fn count(event: &str, done: &mut HashMap<String, usize>) {
    if !event.contains("tool_finished") {
        return;
    }
    let event: Value = serde_json::from_str(event).unwrap();
    if event["type"] == "tool_finished" && event["name"] == "bash" {
        assert_eq!(event["status"], "completed", "{event}");
        *done.entry(event["agent"].as_str().unwrap().to_owned()).or_default() += 1;
    }
}

fn definition(folder: &Path) {
    let agents = folder.join(".claude/agents");
    fs::create_dir_all(&agents).unwrap();
    let text = "---\nname: worker\ndescription: works\nisolation: none\n---\nYou work.\n";
    fs::write(agents.join("worker.md"), text).unwrap();
}
