//! What makes an agent's folder ready, before the agent's first call: it is seen while it runs.

use crate::ground::Ground;
use crate::tmux::{USUAL, has, is_here};

#[tokio::test]
async fn what_a_setup_says_is_seen_while_it_runs_and_by_who_comes_later() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let setup = "folder.setup=echo one; until [ -e go-setup ]; do sleep 0.05; done; echo two";
    let model = ground.scripted("subagents");
    let first = ground.midturn(USUAL, &["run", "--no-sandbox", "--set", setup, "--model", &model, "Go."]);
    first.wait_until("two folders", |screen| ready(screen) == 2).await;
    let late = ground.midturn(USUAL, &["attach"]);
    for terminal in [&first, &late] {
        terminal.wait_until("two folders", |screen| ready(screen) == 2).await;
        terminal.types("/agent one");
        terminal.send(&["Enter"]);
        // What it prints comes behind the line that it is run.
        for line in ["── the folder is made ready ─", "   + echo one; until [ -e go-setup ]", "   one"]
        {
            terminal.sees(line).await;
        }
    }
    ground.go("one", "setup");
    for terminal in [&first, &late] {
        let screen = terminal.sees("until [ -e go-one ]").await;
        assert!(!has(&screen, "the folder is made ready") && ready(&screen) == 1, "{screen:#?}");
    }
}

/// How many agents wait for their folders.
fn ready(screen: &[String]) -> usize {
    screen.iter().filter(|line| line.contains("makes its folder ready")).count()
}
