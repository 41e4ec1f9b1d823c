//! Processor time of a turn with a streamed reply and the command `true`, and the wall time of
//! many agents at it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::person::Live;
use super::server::{Answer, Server, turns};
use super::stats::{Figures, millis, of_children};

const TURNS: usize = 200;

pub(crate) fn table() {
    println!(
        "\na turn over HTTP with the command `true`, its processes included  (median, minimum, maximum)"
    );
    let (mut ours, mut hand) = (vec![], vec![]);
    for _ in 0..5 {
        let start = conversation(1);
        ours.push((conversation(TURNS + 1) - start) / TURNS as f64);
        hand.push(by_hand());
    }
    Figures::new(ours).print("processor time of a turn, 200 turns", "ms", "target 2.5");
    Figures::new(hand).print("of it, `bash -c true` by hand", "ms", "");
    let wall = Figures::new((0..3).map(|_| many(100, 20)));
    wall.print("100 agents × 20 turns, wall time", "s", "target 6");
}

fn conversation(most: usize) -> f64 {
    let server = Server::start(move |body| answer(body, most));
    let folder = tempfile::tempdir().unwrap();
    let before = of_children();
    Live::start(folder.path(), &server, &[]).end();
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

/// A lead spawns so many subagents, and each takes so many turns.
fn many(agents: usize, most: usize) -> f64 {
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
    let folder = tempfile::tempdir().unwrap();
    definition(folder.path());
    let begin = Instant::now();
    let most = format!("max_agents={}", agents + 1);
    Live::start(folder.path(), &server, &["--set", &most]).end();
    begin.elapsed().as_secs_f64()
}

fn definition(folder: &Path) {
    let agents = folder.join(".claude/agents");
    fs::create_dir_all(&agents).unwrap();
    let text = "---\nname: worker\ndescription: works\nisolation: none\n---\nYou work.\n";
    fs::write(agents.join("worker.md"), text).unwrap();
}
