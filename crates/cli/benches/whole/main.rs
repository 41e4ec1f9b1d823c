//! The figures of the whole binary against a scripted model server on loopback: what people
//! feel. `cargo bench -p midturn`; one table alone: `cargo bench -p midturn -- urgent`.
//!
//! The server runs in this process, what is measured in others, so that its processor time
//! is not counted. Times are wall times from one line of this process to another; where that
//! says little on a busy machine, processor time or instructions are told instead.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that can't go on should end")]

mod abort;
mod download;
mod fleet;
mod launch;
mod person;
mod replay;
mod server;
mod shell;
mod stats;
mod urgent;

use std::process::ExitCode;

use midturn_tools::process::{SUPERVISE, supervise_main};

/// A table, by the word that asks for it alone.
const TABLES: [(&str, fn()); 8] = [
    ("launch", launch::table),
    ("urgent", urgent::table),
    ("abort", abort::table),
    ("shell", shell::table),
    ("thousand", shell::thousand),
    ("download", download::table),
    ("fleet", fleet::table),
    ("replay", replay::table),
];

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().and_then(|word| word.into_string().ok()).as_deref() {
        Some(SUPERVISE) => return supervise_main(),
        Some(fleet::CHILD) => return fleet::child(words),
        _ => {}
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to know that it starts.
    if words.iter().any(|word| word == "--bench") {
        let wanted = words.iter().find(|word| !word.starts_with('-'));
        for (_, table) in TABLES.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name)) {
            table();
        }
    }
    ExitCode::SUCCESS
}
