//! A day in a terminal: somebody with an empty home lets agents work in their repository, answers and corrects
//! them, takes what they made, says a second word, is interrupted, and cleans up (issue 14).

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ground::{Ground, output};
use crate::tmux::{End, Terminal, USUAL, has, is_here};

/// A shell in which a person types.
fn shell(ground: &Ground) -> Terminal {
    let folder = midturn_tests::binary().parent().unwrap().display().to_string();
    let script = format!("PATH={folder}:$PATH; PS1='$ '; export PATH PS1; exec sh -i");
    ground.terminal(USUAL, &["sh", "-c", &script])
}

/// Types a line, and waits for what it says.
async fn types(terminal: &Terminal, line: &str, says: &str) -> Vec<String> {
    terminal.types(&format!("clear; {line}"));
    terminal.send(&["Enter"]);
    terminal.sees(says).await
}

/// The same, and waits until the shell is there again: what is typed before may be read by what still runs.
async fn done(terminal: &Terminal, line: &str, says: &str) -> Vec<String> {
    // What the line before said may still be there.
    static LINES: AtomicUsize = AtomicUsize::new(0);
    let line_number = LINES.fetch_add(1, Ordering::Relaxed);
    // As it is typed it doesn't say so.
    types(
        terminal,
        &format!("{line}; echo 'all said' '{line_number}.'"),
        &format!("all said {line_number}."),
    )
    .await;
    terminal.sees(says).await
}

/// Answers a request with a key until nobody asks for it any more: one that has only just come is not answered.
async fn answers(terminal: &Terminal, key: &str, asks: &str) {
    loop {
        terminal.send(&[key]);
        let seen = |screen: &[String]| !has(screen, asks) || has(screen, "has only just come");
        if !has(&terminal.wait_until("an answer", seen).await, asks) {
            return;
        }
    }
}

#[tokio::test]
async fn a_day_from_an_empty_home_to_a_clean_repository() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let read = |file: &str| fs::read_to_string(ground.path("main").join(file)).unwrap_or_default();
    let model = ground.scripted("day");
    let terminal = shell(&ground);
    let begin = format!("midturn run --no-sandbox --mode ask --model {model} 'Notes, and a README.'");

    // The worker asks for a command; while that runs it is corrected, and what it had in mind is skipped.
    types(&terminal, &begin, "worker asks: bash").await;
    answers(&terminal, "C-y", "worker asks: bash").await;
    terminal.types("/agent worker");
    terminal.send(&["Enter"]);
    terminal.sees("── to worker").await;
    terminal.types("Not wrong.txt: notes.txt");
    terminal.send(&["C-s"]);
    terminal.sees("queued").await;
    ground.go("worker", "look");
    terminal.sees("worker asks: write").await;
    assert!(has(&terminal.screen(), "notes.txt"), "{:#?}", terminal.screen());

    // The diff is before one's eyes when the lead asks.
    answers(&terminal, "C-y", "worker asks: write").await;
    terminal.sees("lead asks: edit").await;
    let screen = terminal.sees("+ The project.").await;
    assert!(has(&screen, "- A project."), "{screen:#?}");
    answers(&terminal, "C-y", "lead asks: edit").await;
    terminal.sees("All is written.").await;
    terminal.send(&["C-d"]);
    terminal.sees("Ctrl+D again leaves").await;
    terminal.send(&["C-d"]);
    let screen = terminal.sees("midturn merge worker").await;
    assert!(has(&screen, "midturn diff worker"), "{screen:#?}");

    // What the worker made is looked at and taken, though no Midturn runs.
    let screen = done(&terminal, "midturn diff worker", "+notes").await;
    assert!(!has(&screen, "wrong.txt"), "{screen:#?}");
    done(&terminal, "git commit -qam README; midturn merge worker", "merged").await;
    assert_eq!((read("notes.txt"), read("README")), ("notes\n".to_owned(), "The project.\n".to_owned()));

    // A second word; a third, in the middle of which the power goes.
    done(&terminal, "midturn resume last --once 'And now?'", "The second word is heard.").await;
    let third = "midturn resume last --once --mode auto 'A last thing.' < /dev/null & echo $! > ../run/pid; wait; echo go''ne";
    types(&terminal, third, "bash until").await;
    output(ground.command("kill").args(["-9", fs::read_to_string(ground.path("run/pid")).unwrap().trim()]));
    terminal.sees("gone").await;
    ground.go("lead", "third");
    done(&terminal, "midturn resume last --once", "Done for today.").await;
    done(&terminal, "midturn sessions; midturn show lead | tail -n 3", "Done for today.").await;

    // The person doesn't want the lead's README after all; what nobody needs any more goes.
    done(&terminal, "midturn undo 9", "restored  README").await;
    assert_eq!(read("README"), "A project.\n");
    done(&terminal, "midturn prune --yes", "removed").await;
    let branches = output(ground.command("git").args(["branch", "--list", "midturn/*"]));
    assert_eq!(branches, "", "a merged branch is not needed");
    terminal.types("exit 0");
    terminal.send(&["Enter"]);
    assert_eq!(terminal.ends().await, End::Status(0));
}
