//! What waits for the person: listed, and told once to whoever doesn't look at the terminal.

use std::fs;
use std::path::PathBuf;

use crate::ground::Ground;
use crate::tmux::{End, Terminal, USUAL, has, is_here, until};

/// What a terminal says to a program when it is looked at, and when it no longer is.
const LOOKED_AT: &str = "\u{1b}[I";
const LOOKED_AWAY: &str = "\u{1b}[O";

/// A terminal on a session whose lead asks, and what the program writes to it from then on.
async fn asking(ground: &Ground, notify: &str) -> (Terminal, PathBuf) {
    let folder = ground.path("home/.config/midturn");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("midturn.toml"), format!("[terminal]\nnotify = \"{notify}\"\n")).unwrap();
    let model = ground.scripted("approval");
    let terminal = ground.midturn(USUAL, &["run", "--mode", "ask", "--model", &model, "Go."]);
    terminal.sees("lead asks: bash").await;
    let written = ground.path("written");
    terminal.writes_to(&written);
    (terminal, written)
}

/// What the program has written.
fn written(path: &PathBuf) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// How often a bell rang: one that ends no sequence.
fn bells(written: &str) -> usize {
    let mut bells = 0;
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('\u{7}') {
        let is_end = before.rfind("\u{1b}]").is_some_and(|at| !before[at..].contains("\u{1b}\\"));
        bells += usize::from(!is_end);
        rest = after;
    }
    bells
}

#[tokio::test]
async fn the_bell_rings_once_when_nobody_looks_and_never_while_somebody_does() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let (terminal, path) = asking(&ground, "bell").await;
    terminal.types(LOOKED_AT);
    terminal.sees("inbox 1").await;
    // Asked while somebody looks, then while nobody does.
    until_answered(&terminal, "lead asks: edit").await;
    terminal.sees("inbox 1").await;
    assert_eq!(bells(&written(&path)), 0);
    terminal.types(LOOKED_AWAY);
    until_answered(&terminal, "Both are done.").await;
    until("a bell", || (bells(&written(&path)) == 1).then_some(())).await;
    terminal.types(LOOKED_AT);
    terminal.types(LOOKED_AWAY);
    terminal.types("One more.");
    terminal.send(&["Enter"]);
    terminal.sees("Heard once more.").await;
    until("the next bell", || (bells(&written(&path)) == 2).then_some(())).await;
    terminal.types("/quit");
    terminal.send(&["Enter"]);
    assert_eq!(terminal.ends().await, End::Status(0));
    assert_eq!(bells(&written(&path)), 2);
}

/// Answers until this is on the screen: a request that has just come is not answered.
async fn until_answered(terminal: &Terminal, text: &str) {
    until(text, || {
        terminal.send(&["C-y"]);
        has(&terminal.screen(), text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_title_says_how_many_wait_is_given_back_and_osc_9_says_with_what() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let (terminal, path) = asking(&ground, "osc9").await;
    until("the title", || (terminal.title() == "(1) midturn: Go.").then_some(())).await;
    terminal.types(LOOKED_AWAY);
    until_answered(&terminal, "Both are done.").await;
    // tmux is asked to pass on what it doesn't know itself.
    let passed = "\u{1b}Ptmux;\u{1b}\u{1b}]9;midturn: lead has ended: Both are done.\u{7}\u{1b}\\";
    until("OSC 9", || written(&path).contains(passed).then_some(())).await;
    assert_eq!((written(&path).matches("]9;midturn").count(), bells(&written(&path))), (2, 0));
    terminal.types("/quit");
    terminal.send(&["Enter"]);
    terminal.ends().await;
    assert!(!terminal.title().contains("midturn"), "{}", terminal.title());
}

#[tokio::test]
async fn the_inbox_opens_by_its_key_and_leads_to_who_waits() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let (terminal, path) = asking(&ground, "off").await;
    terminal.send(&["M-i"]);
    let screen = terminal.sees("> 1 ? lead asks: bash: ").await;
    assert!(has(&screen, "inbox · Esc closes"), "{screen:#?}");
    terminal.send(&["Enter"]);
    terminal.sees_no("inbox · Esc closes").await;
    terminal.types(LOOKED_AWAY);
    until_answered(&terminal, "Both are done.").await;
    assert!(!written(&path).contains("\u{1b}]") && bells(&written(&path)) == 0);
}
