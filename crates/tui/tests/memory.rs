//! What the terminal holds of a session of 100,000 events: alone in its process, so that nothing else is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's helpers")]
#![cfg(target_os = "linux")]

mod common;

use common::{Play, command};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{EventKind, Outcome, Trigger};
use midturn_tui::draw::draw;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The most that a session may take, in KiB.
const KIB_MAX: u64 = 64 << 10;

/// The most that this process has ever held, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// One turn of an agent: eight events.
fn turn(play: &mut Play, agent: &str, n: u64) {
    let call = format!("c{n}");
    let input = command(&format!("cargo test -p part_{n} -- --nocapture"));
    let text = "The next part has three callers, all in the tests; I change them first.\n".repeat(4);
    play.event(agent, EventKind::RunStarted { trigger: Trigger::Mail(Vec::new()) }).asks_model(agent);
    play.says(agent, &text).replies(agent, &text, &[(&call, "bash", input.clone())]);
    play.starts(agent, &call, "bash", input).after(1);
    play.ends(agent, &call, "bash", ToolStatus::Completed, &"test parse::nested ... ok\n".repeat(20));
    play.asks_model(agent).replies(agent, "It passes.", &[]).finishes(agent, Outcome::Finished);
}

#[test]
fn a_hundred_thousand_events_take_no_more_than_they_may() {
    let agents: Vec<String> = (1..=20).map(|n| format!("worker-{n}")).collect();
    let mut play = Play::of_size(200, 60);
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    agents.iter().for_each(|agent| {
        play.begins(agent, "Rename open() to load().");
    });
    terminal.draw(|frame| draw(&play.state, frame)).unwrap();
    let before = peak();
    for n in 0..100_000 / 8 {
        turn(&mut play, &agents[n % 20], n as u64);
        play.effects.clear();
        if n % 100 == 0 {
            play.press(&["tab"]);
            terminal.draw(|frame| draw(&play.state, frame)).unwrap();
        }
    }
    let more = peak() - before;
    println!("{more} KiB");
    assert!(play.state.session.view().seq() >= 100_000);
    assert!(more <= KIB_MAX, "{more} KiB");
}
