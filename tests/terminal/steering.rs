//! A sentence for the right ear: sent, made sooner, taken back, answered, and what another terminal sees of it.

use crate::ground::Ground;
use crate::tmux::{Size, Terminal, USUAL, has, is_here};

/// A run whose lead is in the first of its commands.
async fn at_work(ground: &Ground, script: &str) -> Terminal {
    let terminal =
        ground.midturn(USUAL, &["run", "--no-sandbox", "--model", &ground.scripted(script), "Go."]);
    terminal.sees("running").await;
    terminal
}

/// A run whose lead asks before it does something.
async fn asking(ground: &Ground, script: &str) -> Terminal {
    let model = ground.scripted(script);
    let words = ["run", "--no-sandbox", "--mode", "ask", "--model", &model, "Go."];
    let terminal = ground.midturn(USUAL, &words);
    terminal.sees("lead asks: ").await;
    terminal
}

async fn sends(terminal: &Terminal, text: &str, key: &str) {
    terminal.types(text);
    terminal.wait_until(&format!("the draft {text}"), |screen| draft(screen) == text).await;
    terminal.send(&[key]);
}

/// The first line of what is typed.
fn draft(screen: &[String]) -> &str {
    let head = screen.iter().rposition(|line| line.starts_with("── to "));
    head.and_then(|at| screen.get(at + 1)).map_or("", String::as_str)
}

/// What waits, a line each, without the heading.
fn queue(screen: &[String]) -> Vec<&str> {
    let first = screen.iter().position(|line| line.starts_with("queued "));
    let lines = first.map_or(&[][..], |first| &screen[first..]);
    let lines = lines.iter().take_while(|line| line.starts_with("queued ") || line.starts_with("       "));
    lines.map(|line| line[6..].trim()).collect()
}

async fn waits(terminal: &Terminal, expected: &[&str]) {
    terminal.wait_until(&format!("the queue {expected:?}"), |screen| queue(screen) == expected).await;
}

#[tokio::test]
async fn an_urgent_message_cuts_the_command_and_what_it_has_printed_stays() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = at_work(&ground, "sofar").await;
    terminal.sees("    printed so far").await;
    sends(&terminal, "Wrong branch!", "C-x").await;
    let screen = terminal.sees("Heard at once.").await;
    assert!(has(&screen, "1 call cut, 1 call skipped"), "{screen:#?}");
    assert!(has(&screen, "cut short") && has(&screen, " skipped"), "{screen:#?}");
    let calls = ground.events("tool_finished");
    assert_eq!(calls[0]["status"], "interrupted");
    assert!(calls[0]["output"].as_str().unwrap().contains("printed so far"), "{}", calls[0]);
    assert!(ground.events("tool_started").len() == 1);
}

#[tokio::test]
async fn what_waits_is_a_list_to_edit_to_take_back_from_and_to_make_sooner() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = at_work(&ground, "tools").await;
    sends(&terminal, "one", "Enter").await;
    sends(&terminal, "two", "Enter").await;
    sends(&terminal, "three", "M-Enter").await;
    waits(&terminal, &["1  ⏳ soft  one", "2  ⏳ soft  two", "3  ⏳ later  three"]).await;
    // The last, by its key: it is a draft again, and goes out changed.
    terminal.send(&["M-Up"]);
    terminal.wait_until("the draft", |screen| draft(screen) == "three").await;
    waits(&terminal, &["1  ⏳ soft  one", "2  ⏳ soft  two"]).await;
    sends_more(&terminal, " and a half").await;
    waits(&terminal, &["1  ⏳ soft  one", "2  ⏳ soft  two", "3  ⏳ soft  three and a half"]).await;
    // The first, by its number; and what is no number of ours says so.
    sends(&terminal, "/withdraw 1", "Enter").await;
    waits(&terminal, &["1  ⏳ soft  two", "2  ⏳ soft  three and a half"]).await;
    sends(&terminal, "/withdraw 7", "Enter").await;
    terminal.sees("7 is none of your messages that wait for lead").await;
    // Sooner, twice; it is still ours then.
    terminal.send(&["M-r"]);
    waits(&terminal, &["1  ⏳ soft  two", "2  ⚡ ASAP  three and a half"]).await;
    terminal.sees("⚡ Will inject ASAP (may skip tools)").await;
    sends(&terminal, "/withdraw 2", "Enter").await;
    waits(&terminal, &["1  ⏳ soft  two"]).await;
    for command in ["1", "2", "3"] {
        ground.go("lead", command);
    }
    terminal.sees("Heard after the commands.").await;
    // It is read: the refusals say why.
    for key in ["M-Up", "M-r", "M-BSpace"] {
        terminal.send(&["C-l", key]);
        terminal.sees("nothing of yours waits for lead: what was sent has been read").await;
    }
    let read = ground.events("message_injected");
    assert_eq!(read.len(), 1, "{read:#?}");
}

/// Adds to the draft and sends it.
async fn sends_more(terminal: &Terminal, more: &str) {
    terminal.types(more);
    terminal.wait_until("the draft", |screen| draft(screen).ends_with(more)).await;
    terminal.send(&["Enter"]);
}

#[tokio::test]
async fn a_stop_brings_each_message_that_waited_back_as_a_draft_of_its_own() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = at_work(&ground, "tools").await;
    for text in ["first", "second", "third"] {
        sends(&terminal, text, "Enter").await;
    }
    waits(&terminal, &["1  ⏳ soft  first", "2  ⏳ soft  second", "3  ⏳ soft  third"]).await;
    terminal.send(&["Escape"]);
    terminal.sees("your 3 messages that waited are drafts again").await;
    // The stop is answered before the run has ended.
    let screen = terminal.sees("stopped after 1 turn").await;
    assert_eq!((draft(&screen), queue(&screen)), ("first", vec![]));
    assert!(has(&screen, " · 2 more drafts"), "{screen:#?}");
    terminal.send(&["Enter"]);
    terminal.wait_until("the next draft", |screen| draft(screen) == "second").await;
    terminal.sees("   first").await;
    terminal.send(&["C-c"]);
    terminal.wait_until("the last draft", |screen| draft(screen) == "third").await;
}

#[tokio::test]
async fn stop_and_send_is_one_key() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = at_work(&ground, "tools").await;
    sends(&terminal, "Something else.", "M-x").await;
    let screen = terminal.sees("Heard after the commands.").await;
    assert!(has(&screen, "   Something else.") && has(&screen, "supersede"), "{screen:#?}");
    assert_eq!(draft(&screen), "Write to lead");
    assert_eq!(ground.events("run_started").len(), 2);
}

#[tokio::test]
async fn no_key_that_is_typed_answers_and_the_keys_that_do_leave_the_draft() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = asking(&ground, "approval").await;
    let screen = terminal.screen();
    // All of the command.
    for line in ["  $ printf 'one", "  > two", "  > ' > made.txt && echo made it"] {
        assert!(has(&screen, line), "{line}: {screen:#?}");
    }
    terminal.types("yes Yes y n a 1 ok");
    terminal.wait_until("the draft", |screen| draft(screen) == "yes Yes y n a 1 ok").await;
    assert!(ground.events("approval_resolved").is_empty());
    answers(&terminal, "C-y", "lead asks: edit").await;
    let screen = terminal.screen();
    assert_eq!(draft(&screen), "yes Yes y n a 1 ok");
    // What an edit changes.
    assert!(has(&screen, "  - A project.") && has(&screen, "  + The project."), "{screen:#?}");
    terminal.send(&["C-c"]);
    no_with_a_reason(&terminal, "/no leave the README alone").await;
    terminal.sees("Both are done.").await;
    assert!(has(&terminal.screen(), "denied"));
    let refused = &ground.events("tool_finished")[1]["output"];
    assert!(refused.as_str().unwrap().contains("leave the README alone"), "{refused}");
    // Nobody asks any more: what was typed for it stays.
    sends(&terminal, "/no a long reason", "Enter").await;
    terminal.sees("nobody asks for anything now").await;
    assert_eq!(draft(&terminal.screen()), "/no a long reason");
}

/// Presses the key of an answer until something is on the screen: a request that has only just come is not
/// answered by it.
async fn answers(terminal: &Terminal, key: &str, then: &str) {
    terminal.send(&[key]);
    let told =
        terminal.wait_until(then, |screen| has(screen, then) || has(screen, "has only just come")).await;
    if !has(&told, then) {
        terminal.wait_until("its rest", |_| true).await;
        Box::pin(answers(terminal, key, then)).await;
    }
}

/// Types the line, and presses Enter until nobody asks for that any more.
async fn no_with_a_reason(terminal: &Terminal, line: &str) {
    sends(terminal, line, "Enter").await;
    loop {
        // What is not taken is still typed.
        let is_not_taken = |screen: &[String]| has(screen, "has only just come") && draft(screen) == line;
        let is_taken = |screen: &[String]| !has(screen, "lead asks: edit");
        let told = terminal.wait_until("an answer", |screen| is_not_taken(screen) || is_taken(screen)).await;
        if is_taken(&told) {
            return;
        }
        terminal.send(&["Enter"]);
    }
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again_and_no_is_no() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = asking(&ground, "edits").await;
    answers(&terminal, "M-a", "lead asks: bash").await;
    assert_eq!(std::fs::read_to_string(ground.path("main/README")).unwrap(), "Our project.\n");
    answers(&terminal, "C-n", "All is done.").await;
    let decisions = ground.events("approval_resolved");
    assert_eq!(decisions.iter().map(|it| &it["decision"]).collect::<Vec<_>>(), ["session", "denied"]);
}

#[tokio::test]
async fn two_terminals_see_each_others_messages_and_keep_their_own_drafts() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let model = ground.scripted("approval");
    let _daemon = ground.daemon(&["--no-sandbox", "--mode", "ask", "--model", &model]).await;
    let one = ground.midturn(USUAL, &["run", "--model", &model, "Go."]);
    one.sees("lead asks: bash").await;
    let two = ground.midturn(Size(80, 24), &["attach"]);
    two.sees("lead asks: bash").await;
    two.types("of the second");
    sends(&one, "of the first", "Enter").await;
    waits(&one, &["1  ⏳ soft  of the first"]).await;
    waits(&two, &["1  ⏳ soft  another terminal: of the first"]).await;
    assert_eq!((draft(&one.screen()), draft(&two.screen())), ("Write to lead", "of the second"));
    // What another has sent is not this one's to take back.
    two.send(&["M-BSpace"]);
    two.sees("nothing of yours waits for lead").await;
    answers(&one, "C-y", "lead asks: edit").await;
    two.sees("lead asks: edit").await;
    assert!(!has(&two.screen(), "lead asks: bash"));
    answers(&two, "C-n", "Both are done.").await;
    one.sees("Both are done.").await;
    assert_eq!(draft(&two.screen()), "of the second");
    // Answered by the other already.
    one.send(&["C-y"]);
    one.sees("nobody asks for anything now").await;
    assert_eq!(ground.events("approval_resolved").len(), 2);
}

#[tokio::test]
async fn a_daemon_that_is_killed_is_said_and_its_session_comes_back_without_a_gap() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let model = ground.scripted("tools");
    let words = ["--no-sandbox", "--model", &model];
    let daemon = ground.daemon(&words).await;
    let terminal = ground.midturn(USUAL, &["run", "--model", &model, "Go."]);
    terminal.sees("running").await;
    sends(&terminal, "before the end", "Enter").await;
    waits(&terminal, &["1  ⏳ soft  before the end"]).await;
    terminal.types("half a dra");
    terminal.wait_until("the draft", |screen| draft(screen) == "half a dra").await;
    daemon.kill().await;
    terminal.sees("the way to the session is lost").await;
    terminal.types("ft");
    terminal.sees("half a draft").await;
    terminal.send(&["Enter"]);
    terminal.sees("half a draft").await;
    let _again = ground.daemon(&words).await;
    terminal.sees("Heard after the commands.").await;
    let screen = terminal.wait_until("the draft", |screen| draft(screen) == "half a draft").await;
    assert!(!has(&screen, "LOST") && has(&screen, "   before the end"), "{screen:#?}");
    // Nothing twice and nothing missing: who comes now sees the same.
    terminal.sees("finished after").await;
    let fresh = ground.midturn(USUAL, &["attach"]);
    fresh.sees("finished after").await;
    assert_eq!(talk(&terminal.screen()), talk(&fresh.screen()));
    terminal.send(&["Enter"]);
    terminal.sees("   half a draft").await;
    fresh.sees("   half a draft").await;
}

/// The conversation beside the roster.
fn talk(screen: &[String]) -> Vec<String> {
    let beside = screen.iter().filter_map(|line| line.split_once(" │ "));
    beside.map(|(_, line)| line.trim_end().to_owned()).collect()
}

#[tokio::test]
async fn a_message_refused_at_a_limit_is_a_draft_and_the_limit_is_raised_from_here() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let terminal = at_work(&ground, "tools").await;
    sends(&terminal, "/limit max_turns=1", "Enter").await;
    terminal.sees("lead: max_turns 1").await;
    for command in ["1", "2", "3"] {
        ground.go("lead", command);
    }
    terminal.sees("at its limit max_turns").await;
    sends(&terminal, "go on", "Enter").await;
    let screen = terminal.sees("raise it with /limit").await;
    assert_eq!(draft(&screen), "go on");
    terminal.send(&["C-c"]);
    sends(&terminal, "/limit max_turns=60", "Enter").await;
    terminal.sees("Heard after the commands.").await;
}
