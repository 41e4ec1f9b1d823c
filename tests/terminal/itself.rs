//! The harness itself, with a shell in the place of the program: it sees what is there, and fails where it isn't.

use rustix::process::Signal;

use crate::ground::Ground;
use crate::tmux::{End, Size, USUAL, has, is_here, runs};

/// A shell that says nothing by itself.
const SHELL: [&str; 2] = ["sh", "-c"];

fn shell(script: &str) -> Vec<&str> {
    [&SHELL[..], &[script]].concat()
}

#[tokio::test]
async fn what_is_typed_arrives_and_what_is_said_is_seen() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal =
        ground.terminal(USUAL, &shell("stty -echo; echo mute; read line; echo \"heard: $line\"; read more"));
    // What is typed before that is echoed by the terminal itself.
    assert_eq!(terminal.sees("mute").await.len(), 40);
    terminal.types("-l ⏳ two  words;");
    terminal.send(&["Enter"]);
    let screen = terminal.sees("heard").await;
    assert_eq!(screen[1], "heard: -l ⏳ two  words;");
    assert_eq!((terminal.cursor(), terminal.cursor_is_shown()), ((0, 2), true));
    assert_eq!(terminal.end(), None);
    terminal.send(&["Enter"]);
    assert_eq!(terminal.ends().await, End::Status(0));
}

#[tokio::test]
async fn a_program_sees_its_ground_and_nothing_of_ours() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let script = "pwd; echo home=$HOME; env | grep -c CARGO; git log --format=%s; sleep 60";
    let terminal = ground.terminal(USUAL, &shell(script));
    let screen = terminal.sees("First").await;
    let (main, home) = (ground.path("main"), ground.path("home"));
    assert_eq!(screen[..2], [main.display().to_string(), format!("home={}", home.display())]);
    assert_eq!(screen[2..4], ["0", "First"]);
}

#[tokio::test]
async fn the_end_of_a_program_its_status_and_its_last_screen_stay() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = ground.terminal(USUAL, &shell("seq 100 160; printf '\\033[?1049h'; echo last; exit 3"));
    assert_eq!(terminal.ends().await, End::Status(3));
    let screen = terminal.screen();
    assert!(has(&screen, "last"), "{screen:#?} {:?}", (terminal.alternate_on(), terminal.cursor()));
    let terminal = ground.terminal(USUAL, &shell("seq 100 160; exit 3"));
    assert_eq!(terminal.ends().await, End::Status(3));
    assert_eq!((has(&terminal.screen(), "160"), has(&terminal.screen(), "100")), (true, false));
    assert!(has(&terminal.all_lines(), "100"));
    let terminal = ground.terminal(USUAL, &shell("echo up; exec sleep 60"));
    terminal.sees("up").await;
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ends().await, End::Signal(15));
}

#[tokio::test]
async fn modes_styles_and_sizes_are_seen() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let script = "printf '\\033[?1049h\\033[?1003h\\033[?25l\\033[1mbold\\033[0m'; read l; printf '\\033[?1049l'; \
                  trap 'stty size' WINCH; while :; do sleep 0.05; done";
    let terminal = ground.terminal(Size(80, 24), &shell(script));
    terminal.sees("bold").await;
    assert!(terminal.screen_with_styles()[0].contains("\u{1b}[1mbold"));
    let modes = || (terminal.alternate_on(), terminal.mouse_on(), terminal.cursor_is_shown());
    assert_eq!(modes(), (true, true, false));
    terminal.send(&["Enter"]);
    terminal.sees_no("bold").await;
    assert!(!terminal.alternate_on());
    terminal.resize(Size(60, 20));
    terminal.sees("20 60").await;
    assert_eq!(terminal.screen().len(), 20);
}

#[tokio::test]
async fn two_terminals_are_two_and_a_closed_window_ends_its_program() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let script = "trap 'echo gone >> ../run/gone; exit' HUP; echo one; while :; do sleep 0.05; done";
    let (one, two) = (ground.terminal(USUAL, &shell(script)), ground.terminal(USUAL, &shell("cat")));
    two.pastes("pasted\n");
    two.sees("pasted").await;
    assert!(!has(&one.sees("one").await, "pasted"));
    one.close();
    two.send(&["C-d"]);
    assert_eq!(two.ends().await, End::Status(0));
    let three =
        ground.terminal(USUAL, &shell("until grep gone ../run/gone; do sleep 0.05; done 2>/dev/null"));
    assert_eq!(three.ends().await, End::Status(0));
}

#[tokio::test]
#[should_panic(expected = "`never said` never came (it has ended: Status(0)); the screen is\nsaid")]
async fn what_never_comes_fails_with_the_last_screen() {
    if !is_here() {
        panic!("`never said` never came (it has ended: Status(0)); the screen is\nsaid");
    }
    let ground = Ground::new();
    ground.terminal(USUAL, &shell("echo said")).sees("never said").await;
}

#[tokio::test]
async fn a_daemon_begins_and_is_killed() {
    let ground = Ground::new();
    let model = ground.scripted("twenty");
    let mut daemon = ground.daemon(&["--model", &model]).await;
    assert!(daemon.lives());
    // It can be asked while it lives, and what it has kept can be read when it is gone.
    assert!(!ground.says(&["stats"]).is_empty());
    daemon.kill().await;
    ground.says(&["sessions"]);
}

#[tokio::test]
async fn scripted_agents_work_in_it_and_wait_for_the_test() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = ground.midturn(USUAL, &["run", "--model", &ground.scripted("tools"), "Go."]);
    for command in ["1", "2", "3"] {
        terminal
            .wait_until(&format!("command {command} runs"), |screen| runs(screen, &format!("go-{command}")))
            .await;
        assert!(!has(&terminal.screen(), "Heard after"));
        ground.go("lead", command);
    }
    terminal.sees("Heard after the commands.").await;
    let calls = ground.events("tool_finished");
    assert_eq!(calls.iter().map(|call| &call["status"]).collect::<Vec<_>>(), ["completed"; 3]);
    let ground = Ground::new();
    let terminal = ground.midturn(USUAL, &["run", "--model", &ground.scripted("subagents"), "Go."]);
    for agent in ["one", "two"] {
        // Both at once: what stands in the roster is the call of either.
        terminal.sees(&format!("* {agent}   bash until")).await;
        ground.go(agent, agent);
    }
    terminal.sees("Both are through.").await;
}
