//! What one more agent costs in resident memory: `cargo bench -p midturn-core --bench memory`.
//! Each figure comes from a process of its own, so that none finds what another freed.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on should end")]

mod common;

use std::process::Command;

use common::fleet;
use tokio::sync::mpsc;

/// What is measured: a name for the table, how many of it, and how it is made.
struct Kind {
    name: &'static str,
    many: u32,
    target: Option<u64>,
    make: fn(u32) -> u64,
}

const KINDS: [Kind; 4] = [
    Kind { name: "an idle agent", many: 1_000_000, target: Some(1_024), make: idle_agents },
    Kind { name: "a tokio task with its mpsc channel", many: 1_000_000, target: None, make: idle_tasks },
    Kind { name: "an agent in its 21st turn", many: 1_000, target: Some(128 << 10), make: working_agents },
    Kind { name: "the same conversation alone", many: 1_000, target: None, make: conversations },
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, kind] = &args[..]
        && word == "only"
    {
        let kind = &KINDS[kind.parse::<usize>().unwrap()];
        println!("{}", (kind.make)(kind.many) / u64::from(kind.many));
        return;
    }
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    println!("\nresident memory of one more  (bytes)");
    for (index, kind) in KINDS.iter().enumerate() {
        let own = std::env::current_exe().unwrap();
        let output = Command::new(own).args(["only", &index.to_string()]).output().unwrap();
        let bytes = String::from_utf8(output.stdout).unwrap();
        let target = kind.target.map_or(String::new(), |target| format!("(target: {target})"));
        println!("  {:<44} {:>9}  of {:>9}  {target}", kind.name, bytes.trim(), kind.many);
    }
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1_024
}

fn idle_agents(many: u32) -> u64 {
    fleet::runtime().block_on(async {
        let coordinator = fleet::idle().await;
        let before = resident();
        for i in 0..many {
            coordinator.spawn_agent(fleet::with_model(i)).await.unwrap();
        }
        let used = resident() - before;
        drop(coordinator);
        used
    })
}

fn idle_tasks(many: u32) -> u64 {
    fleet::runtime().block_on(async {
        let before = resident();
        let mut senders = Vec::new();
        for _ in 0..many {
            let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
            let task = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
            senders.push((sender, task));
        }
        tokio::task::yield_now().await;
        resident() - before
    })
}

fn working_agents(many: u32) -> u64 {
    fleet::runtime().block_on(async {
        // The first session pays for what is there once.
        let few = fleet::working(10, fleet::TURNS).await;
        let before = resident();
        let coordinator = fleet::working(many, fleet::TURNS).await;
        let used = resident() - before;
        drop((few, coordinator));
        used
    })
}

/// The texts that such an agent's conversation is made of, and nothing else.
fn conversations(many: u32) -> u64 {
    let before = resident();
    let all: Vec<_> = (0..many).map(|_| fleet::conversation(fleet::TURNS)).collect();
    let used = resident() - before;
    drop(all);
    used
}
