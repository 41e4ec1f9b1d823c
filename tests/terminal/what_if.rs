//! What if: a message is moved on the timeline of what is played back, and both timelines are read.

use std::fs;

use crate::ground::Ground;
use crate::tmux::{Size, has, is_here};

#[tokio::test]
async fn a_message_moved_in_a_replay_shows_both_timelines_and_what_differs_as_replay_shift_says_it() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let played = midturn_tests::root().join("scenarios/boundaries/a-correction-between-two-edits.yaml");
    fs::copy(played, ground.path("main/played.yaml")).unwrap();
    let terminal = ground.midturn(Size(120, 50), &["replay", "--view", "played.yaml"]);
    terminal.sees("plays ").await;
    terminal.types("/to 1m");
    terminal.send(&["Enter"]);
    terminal.sees("stored").await;
    terminal.send(&["C-t"]);
    terminal.sees("next message").await;
    // The last one is the coordinator's, about the worker.
    terminal.send(&["Up"]);
    terminal.sees("to lead, ").await;
    terminal.send(&["Up"]);
    terminal.sees("lead to worker, next_boundary: Stop: use the new name").await;
    // By keys, and played by Enter: what differs is what the command says.
    terminal.send(&["+", "Right", "Right"]);
    terminal.sees("Moved by +1.2s (Enter plays): lead to worker").await;
    terminal.send(&["Enter"]);
    let says = ground.says(&["replay", "--shift", "fix=+1.2s", "played.yaml"]);
    let changes: Vec<&str> = says.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(changes.len(), 4, "{says}");
    let parts = ["what if", "As many calls, and as many tokens", "As it was", "With the message +1.2s"];
    let shows = |screen: &[String]| parts.iter().chain(&changes).all(|part| has(screen, part));
    terminal.wait_until("both timelines and what differs", shows).await;
    // Before the beginning nothing can come, and that is said.
    terminal.types("/shift -3s");
    terminal.send(&["Enter"]);
    terminal.sees("that is before the replay begins").await;
    // Two more timelines, and the way back to the one and then to the conversation.
    terminal.types("/shift -1s");
    terminal.send(&["Enter"]);
    let spared = |screen: &[String]| has(screen, "With the message -1s") && has(screen, "1 call spared");
    terminal.wait_until("what is spared", spared).await;
    terminal.send(&["Escape"]);
    let one = |screen: &[String]| has(screen, "timeline of all") && !has(screen, "As it was");
    terminal.wait_until("one timeline again", one).await;
    terminal.send(&["Escape"]);
    terminal.sees("Esc closes").await;
    terminal.send(&["Escape"]);
    terminal.wait_until("the conversation", |screen| !has(screen, "timeline of all")).await;
}
