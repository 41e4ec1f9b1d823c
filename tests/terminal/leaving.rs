//! How it ends and what is left behind, what it is on other terminals, and what nothing that is said can do to it.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::ground::Ground;
use crate::tmux::{End, Size, Terminal, USUAL, has, is_here, until};

/// A terminal in which a shell starts `midturn` with these words, and stays: it writes what the terminal is like
/// before and after into files.
fn in_a_shell(ground: &Ground, size: Size, words: &str) -> Terminal {
    let program = midturn_tests::binary().display();
    let script = format!(
        "stty -a > ../run/before; sh -c 'echo $$ > ../run/pid; exec {program} {words}'; \
         echo \"left with $?\"; stty -a > ../run/after; read line"
    );
    ground.terminal(size, &["sh", "-c", &script])
}

/// The process of `in_a_shell`.
fn pid(ground: &Ground) -> Pid {
    let pid = fs::read_to_string(ground.path("run/pid")).unwrap();
    Pid::from_raw(pid.trim().parse().unwrap()).unwrap()
}

/// Waits until the shell has the terminal again, and looks at it.
async fn is_as_before(ground: &Ground, terminal: &Terminal, status: i32) -> Vec<String> {
    let screen = terminal.sees(&format!("left with {status}")).await;
    assert!(!terminal.alternate_on() && !terminal.mouse_on() && terminal.cursor_is_shown(), "{screen:#?}");
    // Nothing comes between brackets any more.
    terminal.pastes("pasted");
    terminal.sees("pasted").await;
    assert!(!has(&terminal.screen(), "[200~"));
    let settings = |when| fs::read_to_string(ground.path(&format!("run/{when}"))).unwrap();
    assert_eq!(settings("before"), settings("after"));
    screen
}

fn run_of(ground: &Ground, script: &str) -> String {
    format!("run --no-sandbox --model {} Go.", ground.scripted(script))
}

#[tokio::test]
async fn leaving_gives_the_terminal_back_with_what_was_stopped_or_said() {
    if !is_here() {
        return;
    }
    // Twice Ctrl+C while somebody works.
    let ground = Ground::new();
    let terminal = in_a_shell(&ground, USUAL, &run_of(&ground, "tools"));
    terminal.sees("running").await;
    terminal.send(&["C-c"]);
    terminal.sees("Ctrl+C again leaves, and stops the agent that is at work").await;
    terminal.send(&["C-c"]);
    let screen = is_as_before(&ground, &terminal, 130).await;
    let said = screen.join(" ");
    assert!(said.contains("stopped: lead") && said.contains("`midturn resume "), "{said}");
    // After the answer, and it stays until somebody leaves.
    let ground = Ground::new();
    let terminal = in_a_shell(&ground, USUAL, &run_of(&ground, "edits").replace("run ", "run --mode auto "));
    terminal.sees("finished after").await;
    terminal.types("one word more");
    terminal.send(&["Enter"]);
    terminal.sees("Heard once more.").await;
    terminal.sees("── finished after 1 turn").await;
    terminal.types("/quit");
    terminal.sees("> /quit").await;
    terminal.send(&["Escape"]);
    // Together they would be Alt+Enter.
    terminal.sees_no("> /quit").await;
    terminal.send(&["Enter"]);
    let said = is_as_before(&ground, &terminal, 0).await.join(" ");
    assert!(said.contains("Heard once more.") && said.contains("`midturn resume "), "{said}");
}

#[tokio::test]
async fn a_signal_gives_the_terminal_back() {
    if !is_here() {
        return;
    }
    for signal in [Signal::TERM, Signal::HUP] {
        let ground = Ground::new();
        let terminal = in_a_shell(&ground, USUAL, &run_of(&ground, "tools"));
        terminal.sees("running").await;
        terminal.types("half a draft");
        terminal.sees("half a draft").await;
        kill_process(pid(&ground), signal).unwrap();
        let screen = is_as_before(&ground, &terminal, 130).await;
        assert!(screen.join(" ").contains("midturn resume "), "{screen:#?}");
        assert!(!ground.events("run_finished").is_empty());
    }
}

#[tokio::test]
async fn two_signals_at_once_give_it_back_too() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = in_a_shell(&ground, USUAL, &run_of(&ground, "tools"));
    terminal.sees("running").await;
    let pid = pid(&ground);
    // Two of one kind would be one.
    for signal in [Signal::TERM, Signal::HUP] {
        kill_process(pid, signal).unwrap();
    }
    is_as_before(&ground, &terminal, 130).await;
}

#[tokio::test]
async fn a_closed_window_ends_the_run_and_its_agents() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal =
        ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &ground.scripted("tools"), "Go."]);
    terminal.sees("running").await;
    terminal.close();
    // Nobody shows it any more, and the record has the end.
    let ended = until("its end", || ground.events("run_finished").pop()).await;
    assert_eq!(ended["outcome"], "stopped", "{ended}");
}

#[tokio::test]
async fn attach_says_what_goes_on_and_can_be_suspended() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let model = ground.scripted("tools");
    let _daemon = ground.daemon(&["--no-sandbox", "--model", &model]).await;
    let one = ground.midturn(USUAL, &["run", "--model", &model, "Go."]);
    one.sees("running").await;
    let shell = ground.terminal(USUAL, &["sh", "-i"]);
    shell.types(&format!("PS1='ready> '; {} attach\n", midturn_tests::binary().display()));
    shell.sees("running").await;
    shell.types("my draft");
    shell.sees("my draft").await;
    shell.send(&["C-z"]);
    shell.sees("ready> ").await;
    assert!(!shell.alternate_on() && shell.cursor_is_shown());
    ground.go("lead", "1");
    one.sees("until [ -e go-2 ]; do sleep 0.05; done; echo out 2  ").await;
    shell.types("fg\n");
    let screen = shell.sees("my draft").await;
    assert!(has(&screen, "running") && shell.alternate_on(), "{screen:#?}");
    shell.send(&["C-c", "C-c"]);
    shell.sees("Ctrl+C again leaves; the agents go on").await;
    shell.send(&["C-c"]);
    let screen = shell.sees(" goes on, 1 agent is at work").await;
    assert!(screen.join("").contains("`midturn attach "), "{screen:#?}");
    // The run is a daemon's: leaving stops nobody.
    one.send(&["C-c", "C-c"]);
    assert_eq!(one.ends().await, End::Status(0));
    assert!(one.screen().join("").contains(" goes on"), "{:#?}", one.screen());
    assert!(ground.events("stop_requested").is_empty());
}

#[tokio::test]
async fn a_run_of_its_own_is_not_suspended() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = in_a_shell(&ground, USUAL, &run_of(&ground, "tools"));
    terminal.sees("running").await;
    terminal.send(&["C-z"]);
    terminal.sees("not suspended: the agents live in this process").await;
    for command in ["1", "2", "3"] {
        ground.go("lead", command);
    }
    terminal.sees("Heard after the commands.").await;
}

#[tokio::test]
async fn it_is_usable_at_every_size_while_a_reply_streams() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal =
        ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &ground.scripted("streaming"), "Go."]);
    terminal.sees("The parser reads").await;
    for size in [Size(80, 24), Size(20, 5), Size(33, 9), Size(20, 5)] {
        terminal.resize(size);
        terminal.types("w");
        let whole = |screen: &[String]| screen.len() == usize::from(size.1) && has(screen, "w");
        terminal.wait_until(&format!("{size:?}"), whole).await;
    }
    // What is typed is seen, and arrives.
    terminal.send(&["C-c"]);
    terminal.types("small");
    terminal.sees("small").await;
    terminal.send(&["Enter"]);
    terminal.resize(Size(100, 30));
    terminal.sees("   small").await;
    terminal.sees("Heard after the text.").await;
}

#[tokio::test]
async fn nothing_beyond_ascii_and_no_colour_where_that_is_asked_for() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let program = midturn_tests::binary().display().to_string();
    let model = ground.scripted("tools");
    let words = ["run", "--ascii", "--no-sandbox", "--model", &model, "Go."];
    let terminal = ground.terminal(USUAL, &[&["env", "NO_COLOR=1", &program], &words[..]].concat());
    terminal.sees("running").await;
    terminal.types("soft");
    terminal.send(&["Enter"]);
    terminal.sees("queued  1  ~ soft  soft").await;
    let is_ascii = |screen: Vec<String>| {
        let odd: Vec<_> = screen.iter().filter(|line| !line.is_ascii()).cloned().collect();
        assert!(odd.is_empty(), "{odd:#?}");
    };
    is_ascii(terminal.screen());
    let coloured: Vec<_> =
        terminal.screen_with_styles().into_iter().filter(|line| is_coloured(line)).collect();
    assert!(coloured.is_empty(), "{coloured:#?}");
    terminal.send(&["F1"]);
    terminal.sees("keys and actions").await;
    is_ascii(terminal.screen());
    terminal.send(&["Escape"]);
    for command in ["1", "2", "3"] {
        ground.go("lead", command);
    }
    terminal.sees("finished after").await;
    is_ascii(terminal.screen());
    terminal.send(&["M-d"]);
    terminal.sees("diff").await;
    is_ascii(terminal.screen());
}

/// Whether a line has a colour of its own: bold and the like are none.
fn is_coloured(line: &str) -> bool {
    let codes = line.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m'));
    let mut codes = codes.flat_map(|(codes, _)| codes.split(';'));
    codes.any(|code| matches!(code.parse::<u8>(), Ok(30..=38 | 40..=48 | 90..=107)))
}

#[tokio::test]
async fn a_pipe_once_and_plain_give_lines() {
    if !is_here() {
        return;
    }
    for words in ["--once", "--plain", "--once --ascii"] {
        let ground = Ground::new();
        let run = run_of(&ground, "edits").replace("run ", &format!("run {words} "));
        let terminal = in_a_shell(&ground, USUAL, &run);
        if words == "--plain" {
            terminal.sees("all is done: say what comes next, or /quit").await;
            terminal.types("/quit");
            terminal.send(&["Enter"]);
        }
        let screen = terminal.sees("left with 0").await;
        assert!(has(&screen, "All is done.") && !terminal.alternate_on(), "{words}: {screen:#?}");
    }
    let ground = Ground::new();
    assert_eq!(
        ground.says(&["run", "--no-sandbox", "--model", &ground.scripted("tools_less"), "Go."]),
        "Done.\n"
    );
}

#[tokio::test]
async fn what_was_played_and_what_is_stored_is_only_read() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let played = midturn_tests::root()
        .join("scenarios/agents/a-model-corrects-another-in-the-middle-of-its-batch.yaml");
    fs::copy(played, ground.path("main/played.yaml")).unwrap();
    let terminal = in_a_shell(&ground, USUAL, "replay --view played.yaml");
    terminal.sees("read only").await;
    terminal.sees("plays ").await;
    terminal.types("hello");
    terminal.send(&["Enter"]);
    terminal.sees("it was played on a virtual clock: nobody is there to be written to").await;
    terminal.send(&["C-c", "C-c", "C-c"]);
    is_as_before(&ground, &terminal, 0).await;
    // A session that is only kept, without a daemon and with one.
    ground.says(&["run", "--no-sandbox", "--model", &ground.scripted("tools_less"), "Go."]);
    let without = ground.midturn(USUAL, &["attach", "last"]);
    without.sees("Done.").await;
    without.sees("stored").await;
    let _daemon = ground.daemon(&["--model", &ground.scripted("tools_less")]).await;
    let with = ground.midturn(USUAL, &["attach", "last"]);
    with.sees("finished after 1 turn").await;
    with.types("hello");
    with.sees("hello").await;
    with.send(&["Enter"]);
    with.sees("goes on with it").await;
    assert!(has(&with.screen(), "hello"));
    with.send(&["C-c", "C-c", "C-c"]);
    assert_eq!(with.ends().await, End::Status(0));
    assert!(has(&with.screen(), "`midturn resume "), "{:#?}", with.screen());
}

#[tokio::test]
async fn what_models_and_tools_say_stays_text() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal =
        ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &ground.scripted("hostile"), "Go."]);
    let screen = terminal.sees("finished after").await;
    assert!(has(&screen, "Clean") && has(&screen, "Inert."), "{screen:#?}");
    assert!(screen[0].starts_with(" midturn  Go."), "{screen:#?}");
    terminal.send(&["C-o"]);
    let screen = terminal.sees("    end").await;
    assert!(screen[0].starts_with(" midturn  Go."), "{screen:#?}");
    assert!(terminal.alternate_on() && terminal.cursor_is_shown(), "{screen:#?}");
    // What it printed, without what would act.
    assert!(has(&screen, "    topred"), "{screen:#?}");
}

#[tokio::test]
async fn twenty_agents_are_seen_chosen_and_spoken_to() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal =
        ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &ground.scripted("twenty"), "Go."]);
    terminal.sees("21 agents  20 work").await;
    terminal.types("@w17 only the tests, please");
    terminal.send(&["Enter"]);
    terminal.types("/agent w17");
    terminal.send(&["Enter"]);
    let screen = terminal.sees("── to w17").await;
    assert!((1..=20).all(|number| has(&screen, &format!("w{number:02}"))), "{screen:#?}");
    terminal.sees("   only the tests, please").await;
    // On a small screen the chosen one is there, and how many are not.
    terminal.resize(Size(80, 24));
    let screen = terminal.sees("more agents: Tab shows the next").await;
    assert!(screen.iter().any(|line| line.starts_with('>') && line.contains("w17")), "{screen:#?}");
}
