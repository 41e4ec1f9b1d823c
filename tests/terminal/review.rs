//! What a person says to lines of an agent's diff while it works.

use serde_json::Value;

use crate::ground::Ground;
use crate::tmux::{Size, Terminal, USUAL, has, is_here};

/// The lead is in the third of six commands, and its diff is open.
async fn looks_at_diff(ground: &Ground, size: Size) -> Terminal {
    let model = ground.scripted("review");
    let terminal = ground.midturn(size, &["run", "--no-sandbox", "--model", &model, "Go."]);
    let is_third = |line: &String| line.contains("go-3") && line.contains(" running ");
    terminal.wait_until("its third", |screen| screen.iter().any(is_third)).await;
    terminal.send(&["M-d"]);
    terminal.sees("> ── README ──").await;
    terminal
}

/// Begins a comment on the line below, which is this one.
async fn comments(terminal: &Terminal, line: &str, place: &str, text: &str) {
    terminal.send(&["Down"]);
    terminal.wait_until(line, |screen| screen.iter().any(|shown| shown.starts_with(line))).await;
    terminal.send(&["M-m"]);
    terminal.sees(&format!("── comment on {place} · Enter keeps it ──")).await;
    terminal.types(text);
    terminal.sees(text).await;
}

/// The lines below the one that begins so.
fn below<'a>(screen: &'a [String], line: &str) -> &'a [String] {
    let at = screen.iter().position(|shown| shown.trim_start_matches(['>', ' ']).starts_with(line));
    at.map_or(&[], |at| &screen[at + 1..])
}

async fn sees_below(terminal: &Terminal, line: &str, expected: &[&str]) {
    let holds = |screen: &[String]| {
        let shown = below(screen, line).iter().map(|line| line.trim());
        expected.iter().zip(shown).filter(|(expected, shown)| shown.starts_with(**expected)).count()
            == expected.len()
    };
    terminal.wait_until(&format!("{expected:?} below {line}"), holds).await;
}

#[tokio::test]
async fn a_comment_on_a_line_sent_in_the_third_of_six_calls_is_in_the_next_request_and_the_calls_behind_do_not_run()
 {
    if !is_here() {
        return;
    }
    for size in [Size(80, 24), USUAL] {
        let ground = Ground::new();
        let terminal = looks_at_diff(&ground, size).await;
        terminal.send(&["Down", "Down"]);
        comments(&terminal, "> 2 + It opens.", "README:2", "Say load, please.").await;
        terminal.send(&["Enter"]);
        sees_below(&terminal, "2 + It opens.", &["│ Say load, please.", "│ not sent (Alt+S)"]).await;
        comments(&terminal, "> 3 + It closes.", "README:3", "This stays.").await;
        terminal.sees("Alt+S sends 2 comments").await;
        terminal.send(&["C-s"]);
        let waits = "│ ⚡ Will inject ASAP (may skip tools)";
        sees_below(&terminal, "3 + It closes.", &["│ This stays.", waits]).await;
        ground.go("lead", "3");
        let read = "│ ✓ Message injected after bash at C, 3 calls skipped, ";
        sees_below(&terminal, "2 + It opens.", &["│ Say load, please.", read, "│ it said: I load it."]).await;

        // The line has changed since, and the other has not.
        terminal.send(&["Escape"]);
        terminal.sees("It loads now.").await;
        terminal.send(&["M-d"]);
        let changed = "README:2 has changed since, or is no part of this";
        let fate = ["It opens.", "│ Say load, please.", read, "│ it said: I load it."];
        sees_below(&terminal, changed, &fate).await;
        sees_below(&terminal, "3 + It closes.", &["│ This stays.", read]).await;

        let ends = ground.events("tool_finished");
        let ends: Vec<_> = ends.iter().map(|end| (end["tool"].as_str(), end["status"].as_str())).collect();
        let expected = [("b1", "completed"), ("b2", "completed"), ("b3", "completed")].into_iter();
        let expected =
            expected.chain(["b4", "b5", "b6"].map(|call| (call, "skipped"))).chain([("c1", "completed")]);
        assert_eq!(ends, expected.map(|(call, end)| (Some(call), Some(end))).collect::<Vec<_>>());
        let log = ground.log();
        let read = log.iter().position(|event| event["type"] == "message_injected").unwrap();
        let text = log[read]["text"].as_str().unwrap();
        let said = "2 comments on your diff:\n\n1. README:2\n   > It opens.\n   Say load, please.\n\n2. README:3\n   > It closes.\n   This stays.";
        assert!(text.contains(said), "{text}");
        let reply = log[read..].iter().find(|event| event["type"] == "model_finished").unwrap();
        assert_eq!(reply["text"], "I load it.");
    }
}

#[tokio::test]
async fn a_comment_on_a_subagents_branch_sent_in_the_third_of_its_six_calls_is_in_its_next_request() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let model = ground.scripted("review_branch");
    let terminal = ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &model, "Go."]);
    let is_third = |line: &String| line.contains("go-3") && line.contains(" running ");
    // Who works is above who waits.
    terminal.wait_until("its third", |screen| screen.iter().any(|line| line.contains("go-3"))).await;
    terminal.send(&["M-1"]);
    terminal.wait_until("its third", |screen| screen.iter().any(is_third)).await;
    terminal.send(&["M-d"]);
    terminal.sees("> ── README ──").await;
    terminal.send(&["Down", "Down"]);
    comments(&terminal, "> 2 + It opens.", "README:2", "Say load, please.").await;
    terminal.send(&["C-s"]);
    let waits = "│ ⚡ Will inject ASAP (may skip tools)";
    sees_below(&terminal, "2 + It opens.", &["│ Say load, please.", waits]).await;
    ground.go("worker", "3");
    let read = "│ ✓ Message injected after bash at C, 3 calls skipped, ";
    sees_below(&terminal, "2 + It opens.", &["│ Say load, please.", read, "│ it said: I load it."]).await;
    terminal.send(&["Escape"]);
    terminal.sees("It loads now.").await;

    let log = ground.log();
    let of_worker = |event: &&Value| event["agent"] == "worker";
    let skipped = log.iter().filter(of_worker).filter(|event| event["status"] == "skipped").count();
    assert_eq!(skipped, 3);
    let read = log.iter().position(|event| {
        event["type"] == "message_injected" && event["agent"] == "worker" && event["point"] == "C"
    });
    let read = read.unwrap();
    let text = log[read]["text"].as_str().unwrap();
    assert!(text.contains("README:2\n   > It opens.\n   Say load, please."), "{text}");
    let reply = log[read..].iter().filter(of_worker).find(|event| event["type"] == "model_finished").unwrap();
    assert_eq!(reply["text"], "I load it.");
}

#[tokio::test]
async fn a_diff_of_10_mib_is_cut_and_said_to_be_and_a_comment_on_it_goes_out() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = looks_at_diff(&ground, Size(80, 24)).await;
    let lines = "a line of a large file\n".repeat(200_000) + &"x".repeat(6 << 20);
    std::fs::write(ground.path("main/README"), lines).unwrap();
    terminal.send(&["M-d", "M-d"]);
    terminal.sees("+ a line of a large file").await;
    terminal.send(&["End"]);
    let screen = terminal.sees("[the patch is too long to be shown whole").await;
    assert!(has(&screen, "── to lead · after_tools"), "{screen:#?}");
    terminal.send(&["C-Home", "Down", "Down"]);
    comments(&terminal, "> ", "README:1", "So many lines").await;
    // Escape keeps it and stops nobody.
    terminal.send(&["Escape"]);
    terminal.sees("│ So many lines").await;
    terminal.send(&["M-s"]);
    terminal.sees("│ ⏳ Will inject at next safe point").await;
    ground.go("lead", "3");
    terminal.sees("│ ✓ Message injected after bash at D, ").await;
}
