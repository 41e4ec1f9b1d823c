//! Keys that a person has chosen, and the bar of work that takes its time.

use crate::ground::{Ground, output};
use crate::tmux::{End, USUAL, has, is_here};

const CHOSEN: &str = "[terminal.keys]
send = 'f5'
newline = 'enter'
stop = ['alt+q', 'f8']
help = 'f6'
leave = 'ctrl+q'
";

#[tokio::test]
async fn keys_that_a_person_has_chosen_hold_and_are_shown() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let own = ground.path("home/.config/midturn");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("midturn.toml"), CHOSEN).unwrap();
    // A repository's file gives nobody a key.
    std::fs::write(ground.path("main/midturn.toml"), "[terminal.keys]\nplan = 'f5'\n").unwrap();
    let model = ground.scripted("tools");
    let terminal = ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &model, "Go."]);
    let screen = terminal.sees("running").await;
    let keys = screen.iter().rfind(|line| line.contains("F6 keys"));
    assert!(keys.is_some_and(|keys| keys.contains("F5 send") && keys.contains("Alt+Q stop")), "{screen:#?}");
    terminal.types("one");
    terminal.send(&["Enter"]);
    terminal.types("two");
    terminal.wait_until("two lines", |screen| has(screen, "one") && has(screen, "two")).await;
    assert!(!has(&terminal.screen(), "queued "));
    terminal.send(&["F5"]);
    terminal.sees("queued ").await;
    terminal.send(&["F6"]);
    let screen = terminal.sees("Alt+Q closes").await;
    assert!(has(&screen, "Alt+Q, F8") && !has(&screen, "Esc"), "{screen:#?}");
    terminal.send(&["M-q"]);
    terminal.sees_no("Alt+Q closes").await;
    terminal.send(&["F8"]);
    terminal.sees("stopped").await;
}

#[tokio::test]
async fn a_replay_that_takes_its_time_has_a_bar_that_is_gone_in_the_end() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let quick = "midturn: 1\nname: quick\nagents:\n  - {name: lead, role: lead, prompt: Go., model: [{text: Done.}]}\n";
    std::fs::write(ground.path("main/quick.yaml"), quick).unwrap();
    // It comes when somebody writes it: that is when the bar was seen.
    output(ground.command("mkfifo").arg("late.yaml"));
    let terminal = ground.midturn(USUAL, &["replay", "quick.yaml", "late.yaml", "quick.yaml"]);
    let screen = terminal.sees("replaying  [######--------------]  1 of 3").await;
    assert!(screen[0].contains("quick"), "{screen:#?}");
    std::fs::write(ground.path("main/late.yaml"), quick).unwrap();
    assert_eq!(terminal.ends().await, End::Status(0));
    let screen = terminal.screen();
    assert!(has(&screen, "3 passed") && !has(&screen, "replaying"), "{screen:#?}");
}
