//! The main states of the screen, each played from the session's first event.

use midturn_client::Trouble;
use midturn_client::events::{Ended, Told};
use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::InterruptReason;
use midturn_core::rules::conversation::ToolStatus::{Completed, Failed, Interrupted, Skipped};
use midturn_core::rules::event::{EventKind, Halt, LiveKind, Outcome, PlanStatus, PlanStep, Scope, Trigger};
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::mail::{Point, ReturnReason, Role, Urgency};
use midturn_tui::effect::Done;
use midturn_tui::settings::Settings;
use midturn_tui::update::Input;
use midturn_tui::what_if::{Played, Shift};
use midturn_view::what_if;
use midturn_wire::work::Diff;
use ratatui::layout::Size;
use serde_json::json;

use crate::common::{Play, command, name, opening};

/// A state: its name, and how it comes about.
pub(crate) type Named = (&'static str, fn(&mut Play));

/// All of them.
pub(crate) const ALL: &[Named] = &[
    ("streaming", streaming),
    ("setup", setup),
    ("queue", queue),
    ("asks_command", asks_command),
    ("asks_edit", asks_edit),
    ("injected", injected),
    ("corrected", corrected),
    ("stopped", stopped),
    ("help", help),
    ("palette", palette),
    ("completion", completion),
    ("addressed", addressed),
    ("command", typed_command),
    ("plan", plan),
    ("diff", diff),
    ("comment", comment),
    ("comments", comments),
    ("opened", opened),
    ("scrolled", scrolled),
    ("stored", stored),
    ("lost", lost),
    ("loading", loading),
    ("results", results),
    ("inbox", inbox),
    ("timeline", timeline),
    ("what_if", what_if),
];

/// A state of that name on a terminal of this size.
pub(crate) fn state(wanted: &str, settings: Settings, size: Size) -> Play {
    let (_, comes) = ALL.iter().find(|(name, _)| *name == wanted).expect("a state's name");
    let mut play = Play::new(opening(), settings, size);
    comes(&mut play);
    play
}

/// A lead that waits for two who work.
fn streaming(play: &mut Play) {
    play.begins("lead", "Rename `open()` to `load()` in the whole project.").after(12);
    let spawn = |who: &str| json!({"name": who, "prompt": "…"});
    let calls = [("l1", "spawn_agent", spawn("docs")), ("l2", "spawn_agent", spawn("tester"))];
    play.replies("lead", "Two of us are faster: **docs** takes the pages, **tester** the tests.", &calls);
    play.starts("lead", "l1", "spawn_agent", spawn("docs"));
    play.begins("docs", "Rename `open()` in docs/.").ends("lead", "l1", "spawn_agent", Completed, "spawned");
    play.starts("lead", "l2", "spawn_agent", spawn("tester"));
    play.begins("tester", "Run the tests of the parser.");
    play.ends("lead", "l2", "spawn_agent", Completed, "spawned").asks_model("lead").after(8);
    play.replies("tester", "", &[("t1", "bash", command("cargo test -p parser"))]);
    play.starts("tester", "t1", "bash", command("cargo test -p parser"));
    let output = "   Compiling parser v0.3.1\n    Finished in 4.2 s\ntest nested ... FAILED\n";
    play.live("tester", LiveKind::ToolOutput { tool: CallId::new("t1"), text: output.to_owned() });
    play.says("docs", "The page on files names it **three** times:\n\n- in the intro");
    play.after(21).says("lead", "While they work I look at the `Cargo.toml`:\n\n1. the version stays");
    play.says("lead", "\n2. the feature `open` keeps its na");
}

/// A folder is made ready before its agent's first call.
fn setup(play: &mut Play) {
    streaming(play);
    let (parent, prompt) = (Some(name("lead")), Some("Look for callers in the examples.".into()));
    let spawned = EventKind::AgentSpawned { parent, role: Role::Subagent, model: None, prompt };
    play.event("finder", spawned).event("finder", EventKind::RunStarted { trigger: Trigger::Prompt });
    let prints = |text: &str| LiveKind::SetupOutput { text: text.to_owned() };
    play.live("finder", prints("+ npm ci\n"))
        .live("finder", prints("npm warn \u{1b}[33mold\u{1b}[0m lockfile\n"));
    play.after(21).live("finder", prints("added 312 packa"));
    look_at(play, "finder").types("Only examples/ru");
}

/// Messages of every level wait; one more is being typed.
fn queue(play: &mut Play) {
    streaming(play);
    look_at(play, "tester").queued(
        "tester",
        "q1",
        "lead",
        Urgency::AfterTools,
        "Report when the tests pass.",
    );
    play.types("Only the parser's tests, please.").press(&["enter"]);
    play.queued("tester", "t-1", "user", Urgency::NextBoundary, "Only the parser's tests, please.");
    play.input(Input::Paste("British spelling\nin comments.".to_owned())).press(&["alt+enter"]);
    play.queued("tester", "t-2", "user", Urgency::FollowUp, "British spelling\nin comments.");
    play.queued("tester", "q3", "user", Urgency::Urgent, "Wrong branch!");
    play.after(3).types("And use the fixtures fro");
}

/// Somebody wants to run a command of many lines.
fn asks_command(play: &mut Play) {
    streaming(play);
    let script = "set -eu\ncd \"$(git rev-parse --show-toplevel)\"\nfor crate in crates/*; do\n  cargo clean -p \"$(basename \"$crate\")\"\ndone\nrm -rf build\u{202e}dliub target/doc\ncargo doc --workspace --no-deps\necho done";
    play.replies("docs", "The pages are built anew.", &[("d1", "bash", command(script))]);
    play.asks("docs", "d1", "bash", command(script), "bash(cargo:*)").after(7);
    look_at(play, "tester").types("a word that was begun befo");
}

/// What waits for the person: two ask, and one has failed.
fn inbox(play: &mut Play) {
    asks_command(play);
    let overloaded = EventKind::RunFinished {
        outcome: Outcome::Failed,
        error: Some("the model was overloaded for 5 min".into()),
        turns: 3,
        usage: Default::default(),
    };
    play.event("tester", overloaded).after(40);
    let input = json!({"command": "git push origin \u{1b}]0;main"});
    play.asks("lead", "l9", "bash", input, "bash(git push:*)").after(11);
    play.press(&["ctrl+c", "alt+i", "down"]);
}

/// Somebody wants to change a file.
fn asks_edit(play: &mut Play) {
    streaming(play);
    let input = json!({
        "path": "docs/files.md",
        "old": "Call `open()` with the file's path.\nIt fails if there is none.",
        "new": "Call `load()` with the file's path.\nIt fails if there is none.\nSee also `save()`.",
    });
    play.replies("docs", "", &[("d1", "edit", input.clone())]);
    play.asks("docs", "d1", "edit", input, "edit(docs/**)").after(7);
    look_at(play, "docs");
}

/// A message came in between two tools: two calls were skipped for it.
fn injected(play: &mut Play) {
    play.begins("lead", "Make the tests pass.").after(9);
    let calls = [
        ("c1", "bash", command("cargo test")),
        ("c2", "bash", command("cargo clippy")),
        ("c3", "edit", json!({"path": "src/lib.rs", "old": "a", "new": "b"})),
    ];
    play.replies("lead", "I run everything.", &calls).starts("lead", "c1", "bash", command("cargo test"));
    play.types("Only the parser's tests, please.").press(&["ctrl+s"]).after(14);
    play.queued("lead", "t-1", "user", Urgency::NextBoundary, "Only the parser's tests, please.").after(1);
    play.ends("lead", "c1", "bash", Completed, "test result: ok. 41 passed\n");
    play.ends("lead", "c2", "bash", Skipped, "skipped").ends("lead", "c3", "edit", Skipped, "skipped");
    play.injected("lead", &["t-1"], Point::C, &["c2", "c3"]).asks_model("lead").after(6);
    play.says("lead", "The parser's tests it is.");
}

/// The first look: several at work, one of them corrected between two of its calls.
fn corrected(play: &mut Play) {
    streaming(play);
    look_at(play, "tester")
        .ends("tester", "t1", "bash", Completed, "test nested ... FAILED\n")
        .asks_model("tester")
        .after(9);
    let load = json!({"path": "src/lib.rs", "old": "open", "new": "load"});
    let calls = [
        ("t2", "read", json!({"path": "src/parse.rs"})),
        ("t3", "edit", load.clone()),
        ("t4", "edit", json!({"path": "src/main.rs", "old": "open", "new": "load"})),
        ("t5", "bash", command("cargo test --workspace")),
    ];
    play.replies("tester", "The name is wrong in two more places.", &calls);
    play.starts("tester", "t2", "read", json!({"path": "src/parse.rs"})).after(1);
    play.ends("tester", "t2", "read", Completed, "fn open() {}\n").starts("tester", "t3", "edit", load);
    play.types("The name is load_from, not load.").press(&["enter"]);
    play.queued("tester", "t-1", "user", Urgency::NextBoundary, "The name is load_from, not load.").after(1);
    play.ends("tester", "t3", "edit", Completed, "edited\n");
    play.ends("tester", "t4", "edit", Skipped, "skipped").ends("tester", "t5", "bash", Skipped, "skipped");
    play.injected("tester", &["t-1"], Point::C, &["t4", "t5"]).asks_model("tester").after(4);
    play.says("tester", "load_from it is. I change src/lib.rs back and");
}

/// The person stopped an agent: what had waited comes back, each a draft of its own.
fn stopped(play: &mut Play) {
    queue(play);
    play.press(&["ctrl+c", "esc"]);
    let (by, reason, scope) = ("user".to_owned(), Halt::Stop, Scope::Agent);
    play.event("tester", EventKind::StopRequested { by, reason, scope, still_queued: Vec::new() });
    play.ends("tester", "t1", "bash", Interrupted, "test nested ... FAILED\n");
    for id in ["t-1", "t-2"] {
        let reason = ReturnReason::Withdrawn;
        play.event("tester", EventKind::MessageReturned { message: MessageId::new(id), reason });
    }
    play.finishes("tester", Outcome::Stopped);
    let back =
        vec!["Only the parser's tests, please.".to_owned(), "British spelling\nin comments.".to_owned()];
    let (agent, result) = (name("tester"), Ok(true));
    play.input(Input::Done(Done::Stopped { agent, result, back })).after(4);
}

fn look_at<'a>(play: &'a mut Play, agent: &str) -> &'a mut Play {
    play.types(&format!("/agent {agent}")).press(&["enter"])
}

fn help(play: &mut Play) {
    streaming(play);
    play.press(&["?"]);
}

fn palette(play: &mut Play) {
    streaming(play);
    play.types("/li");
}

fn completion(play: &mut Play) {
    streaming(play);
    play.types("@te");
}

/// What is typed is for another than the one that is looked at.
fn addressed(play: &mut Play) {
    streaming(play);
    play.types("@tester use the fixtures");
}

/// What is typed is no message.
fn typed_command(play: &mut Play) {
    streaming(play);
    play.types("/limit max_turns=60");
}

fn plan(play: &mut Play) {
    streaming(play);
    let step = |text: &str, status| PlanStep { text: text.to_owned(), status };
    let steps = vec![
        step("Find all callers", PlanStatus::Completed),
        step("Rename them", PlanStatus::InProgress),
        step("Run the tests", PlanStatus::Pending),
        step("Update the changelog", PlanStatus::Skipped),
    ];
    play.event("lead", EventKind::PlanUpdated { steps }).press(&["ctrl+p"]);
}

const PATCH: &str = "diff --git a/docs/files.md b/docs/files.md\nindex 1..2 100644\n--- a/docs/files.md\n+++ b/docs/files.md\n@@ -1,3 +1,3 @@\n # Files\n-Call `open()` with the path.\n+Call `load()` with the path.\n It fails if there is none.\n";

fn diff(play: &mut Play) {
    streaming(play);
    look_at(play, "tester").press(&["alt+d"]);
    changed(play, PATCH);
}

fn changed(play: &mut Play, patch: &str) {
    let (branch, start, patch) = ("midturn/x/tester".to_owned(), "1f3a".to_owned(), patch.to_owned());
    let diff = Diff { branch, start, patch, truncated: false };
    play.input(Input::Done(Done::Diff(name("tester"), Ok(diff))));
}

/// A comment is written below one that is not sent yet.
fn comment(play: &mut Play) {
    diff(play);
    play.press(&["down", "down", "alt+m"]).types("A heading says what the page is for.").press(&["enter"]);
    play.press(&["down", "down", "alt+m"]).types("Say what kind of p");
}

/// Comments that were sent: the line of one has changed.
fn comments(play: &mut Play) {
    comment(play);
    play.types("ath.").press(&["ctrl+s"]);
    let Some(sent) = play.state.sending.first().cloned() else { return };
    play.input(Input::Done(Done::Sent(sent.clone(), Ok(()))));
    play.queued("tester", sent.id.as_str(), "user", Urgency::NextBoundary, &sent.text);
    play.ends("tester", "t1", "bash", Completed, "passed").after(1);
    play.injected("tester", &[sent.id.as_str()], Point::D, &[]).asks_model("tester");
    play.replies("tester", "The path is relative now.", &[]);
    changed(play, &PATCH.replace("with the path", "with a relative path"));
}

/// A call that is opened: all of its arguments and output.
fn opened(play: &mut Play) {
    results(play);
    play.press(&["ctrl+o"]);
}

/// Somebody reads further up while more comes.
fn scrolled(play: &mut Play) {
    play.begins("lead", "Count.");
    for n in 1..=40 {
        let call = format!("c{n}");
        let input = command(&format!("wc -l src/file_{n}.rs"));
        play.replies("lead", &format!("File {n}:"), &[(&call, "bash", input.clone())]).after(1);
        play.starts("lead", &call, "bash", input).after(1);
        play.ends("lead", &call, "bash", Completed, "120\n").asks_model("lead");
        if n == 30 {
            play.press(&["pgup"]);
        }
    }
}

fn stored(play: &mut Play) {
    injected(play);
    play.replies("lead", "All 41 tests of the parser pass.", &[]).finishes("lead", Outcome::Finished);
    play.input(Input::Told(Told::Ended(Ended::Session))).after(200);
}

/// A message of what is over is chosen, and moved.
fn timeline(play: &mut Play) {
    stored(play);
    play.press(&["ctrl+t", "up", "+", "right", "right"]);
}

/// What would have been, had it come later: both timelines.
fn what_if(play: &mut Play) {
    timeline(play);
    let mut later = Play::of_size(80, 24);
    late(&mut later);
    let [before, after] = [&*play, &later].map(|play| play.state.session.timeline().clone());
    let changes = [
        "lead: call c2: skipped at 2.4 s -> completed at 2.9 s",
        "message t-1 to lead: C at 2.4 s -> D at 3.3 s",
    ];
    let (changes, spared) = (what_if::changes(&changes.map(str::to_owned)), what_if::spared(0, &[], -2_040));
    let shift = Shift { message: MessageId::new("t-1"), by: 1_200_000 };
    play.press(&["enter"]);
    let played = Box::new(Played { before, after, changes, spared });
    play.input(Input::Done(Done::Replayed(shift, Ok(played))));
}

/// As `injected`, but that the message comes when all calls have run.
fn late(play: &mut Play) {
    play.begins("lead", "Make the tests pass.").after(9);
    let calls = [("c1", "bash", command("cargo test")), ("c2", "bash", command("cargo clippy"))];
    play.replies("lead", "I run everything.", &calls);
    for (id, text, tenths) in [("c1", "cargo test", 15), ("c2", "cargo clippy", 5)] {
        play.starts("lead", id, "bash", command(text)).after(tenths);
        play.ends("lead", id, "bash", Completed, "ok");
    }
    play.queued("lead", "t-1", "user", Urgency::NextBoundary, "Only the parser's tests, please.");
    play.injected("lead", &["t-1"], Point::D, &[]).asks_model("lead").after(6);
    play.replies("lead", "All 41 tests of the parser pass.", &[]).finishes("lead", Outcome::Finished);
}

fn lost(play: &mut Play) {
    streaming(play);
    play.types("this is kept")
        .input(Input::Told(Told::Ended(Ended::Lost(Trouble::Broken("reset".to_owned())))));
}

fn loading(play: &mut Play) {
    play.state.opening.last_seq = 9_000;
    play.begins("lead", "A long session.");
}

/// Calls of every end.
pub(crate) fn results(play: &mut Play) {
    play.begins("lead", "Try each.").after(3);
    let rows = [
        ("r1", "echo one", Completed, "one\n"),
        ("r2", "false", Failed, "exit code 1\n"),
        ("r3", "sleep 60", Interrupted, ""),
        ("r4", "cargo publish", Failed, "denied by the user: not today"),
        ("r5", "cargo bench", Skipped, ""),
    ];
    let calls: Vec<_> = rows.iter().map(|(id, text, ..)| (*id, "bash", command(text))).collect();
    play.replies("lead", "", &calls);
    for (id, text, status, output) in rows {
        if id == "r4" {
            play.asks("lead", id, "bash", command(text), "bash(cargo:*)");
            let (tool, by) = (CallId::new(id), "user".to_owned());
            let (decision, reason) = (Decision::Denied, Some("not today".to_owned()));
            play.event("lead", EventKind::ApprovalResolved { tool, decision, by, reason });
        } else if status != Skipped {
            play.starts("lead", id, "bash", command(text)).after(7);
        }
        play.ends("lead", id, "bash", status, output);
    }
    play.asks_model("lead");
    let reason = InterruptReason::MessageInterrupt;
    let text = "I was about to say".to_owned();
    play.event("lead", EventKind::ModelInterrupted { reason, text, thinking: Vec::new(), partial_tokens: 9 });
}
