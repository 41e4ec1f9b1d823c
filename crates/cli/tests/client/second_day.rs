//! What a person does with a session on its second day: goes on with it, says a second word, reads
//! along, ends what is done with.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::common::{Place, Running};
use super::open::Started;
use super::remote::{Serving, bash, lead};
use super::terminal::Person;

/// The exit status, and what is on the two outputs.
fn say(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

/// A command that has to succeed: what is on its standard output.
fn well(place: &Place, words: &[&str]) -> String {
    let (status, out, told) = say(place, words);
    assert_eq!(status, Some(0), "{words:?}: {out}{told}");
    out
}

/// > D18: An overload is waited out for five minutes, and shown
#[test]
fn an_overload_is_waited_out_and_whoever_looks_sees_who_waits_until_when_and_for_which_attempt() {
    let scenario =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/errors/an-overload-is-waited-out.yaml");
    let place = Place::new();
    let played = well(&place, &["replay", scenario]);
    assert!(played.contains("an overload is waited out"), "{played}");
    let waits = lead(
        "      - {error: overloaded}\n      - {error: overloaded, retry_after: 200s}\n      - text: Done.\n",
    );
    let mut run = Running::start(&place, &waits, &[]);
    let told = run.until("model_retry", &[("agent", "lead"), ("error", "overloaded")]);
    assert_eq!(told["attempt"], 1, "{told}");
    run.until("model_started", &[("agent", "lead")]);
    run.until("model_retry", &[("agent", "lead")]);
    // The wait is recorded a moment before it begins.
    let mut ps = well(&place, &["ps"]);
    while !ps.contains("tries again in ") {
        ps = well(&place, &["ps"]);
    }
    assert!(ps.contains(" (attempt 3)"), "{ps}");
    run.say("/ps");
    run.say("/quit");
    let ended = run.end();
    assert_eq!(ended.status, Some(130));
    for line in [
        "lead: call 1 failed: overloaded; again in 0.5 s",
        "lead: call 2 failed: overloaded; again in 200.0 s",
        "lead: running, run 1, turn 1",
        "waits to ask its model again, attempt 3",
    ] {
        assert!(ended.told.contains(line), "{line}: {}", ended.told);
    }
}

/// A lead with a worker whose first call lasts until it is ended.
fn with_worker(second: &str) -> String {
    lead(
        "      - tools:\n          - {id: s, name: spawn_agent, input: {name: worker, prompt: go}}\n          \
           - {id: w, name: wait_agents, input: {names: [worker]}}\n      - text: The lead is done.\n",
    ) + &format!(
        "  - name: worker\n    parent: lead\n    start: spawned\n    model:\n      - tools:\n{}{}{second}",
        bash("b1", "sleep 300"),
        bash("b2", "touch second")
    )
}

/// > D15: `supersede` and `close` are commands, and lines
#[test]
fn who_goes_the_wrong_way_is_set_to_something_else_and_who_is_done_with_is_closed() {
    for by_lines in [false, true] {
        for guest in [false, true] {
            let place = Place::new();
            let _serving = guest.then(|| Serving::start(&place));
            let again = format!("      - tools:\n{}", bash("b3", "sleep 300"));
            let mut run = Running::start(&place, &with_worker(&again), &[]);
            run.until("tool_started", &[("tool", "b1")]);
            if by_lines {
                run.say("/supersede worker write the tests");
            } else {
                let told = well(&place, &["supersede", "worker", "write the tests"]);
                assert!(told.contains("worker"), "{told}");
            }
            let stopped = run.until("run_finished", &[("agent", "worker")]);
            assert_eq!(stopped["outcome"], "stopped", "{stopped}");
            let told = run.until("message_injected", &[("agent", "worker"), ("point", "start")]);
            assert!(told["text"].as_str().unwrap().contains("write the tests"), "{told}");
            run.until("tool_started", &[("tool", "b3")]);
            if by_lines {
                run.say("/close worker");
            } else {
                assert_eq!(well(&place, &["close", "worker"]), "closed: worker\n");
            }
            run.until("agent_closed", &[("agent", "worker")]);
            let ended = run.end();
            assert_eq!(
                (ended.status, by_lines && !ended.told.contains("closed: worker")),
                (Some(0), false),
                "{}",
                ended.told
            );
        }
    }
}

#[test]
fn who_is_not_there_can_be_neither_superseded_nor_closed() {
    let place = Place::new();
    place.write("scenario.yaml", &lead("      - text: Done.\n"));
    let _serving = Serving::start(&place);
    let words = ["run", "the task", "--model", "scripted:../scenario.yaml"];
    assert!(place.midturn("repo", &words).stderr(Stdio::null()).status().unwrap().success());
    for words in [&["supersede", "nobody", "go"][..], &["close", "nobody"]] {
        let (status, _, told) = say(&place, words);
        assert_eq!((status, told.contains("there is no agent `nobody`")), (Some(1), true), "{told}");
    }
}

/// > D15: A line sends with `next_boundary`
#[test]
fn a_line_with_an_arrow_skips_what_has_not_begun_and_cuts_nothing() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        assert!(Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
        let scenario = lead(&format!(
            "      - tools:\n{}{}      - text: Done.\n",
            bash("b1", "cat go"),
            bash("b2", "touch second")
        ));
        let mut run = Running::start(&place, &scenario, &["--no-sandbox"]);
        run.until("tool_started", &[("tool", "b1")]);
        run.say("lead> not the second");
        let queued = run.until("message_queued", &[("agent", "lead")]);
        assert_eq!(queued["urgency"], "next_boundary", "{queued}");
        std::fs::write(place.path("repo/go"), "went").unwrap();
        let first = run.until("tool_finished", &[("tool", "b1")]);
        assert_eq!(first["status"], "completed", "{first}");
        let second = run.until("tool_finished", &[("tool", "b2")]);
        assert_eq!(second["status"], "skipped", "{second}");
        assert_eq!(run.end().status, Some(0));
        assert!(!place.path("repo/second").exists());
    }
}

/// A lead that thinks, says a long word, runs a long command with a long output, and is told something.
fn talks(long: &str) -> String {
    let command = format!("printf 'one\\n{long}\\nlast\\n'");
    lead(&format!(
        "      - thinking: I think {long}.\n        text: First {long}.\n        tools:\n{}      - text: \"Done.\\n{long}\"\n",
        bash("b1", &command)
    ))
}

/// > D12: `show AGENT` prints a conversation whole
#[test]
fn a_conversation_is_shown_as_the_model_has_it() {
    let place = Place::new();
    let long = "word ".repeat(60).trim_end().to_owned();
    let ran = {
        let mut run =
            Running::start(&place, &talks(&long).replace("printf", "cat go; printf"), &["--no-sandbox"]);
        assert!(Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
        run.until("tool_started", &[("tool", "b1")]);
        run.say("use tabs");
        run.until("message_queued", &[]);
        // Whoever looks while it works sees what there is.
        assert!(well(&place, &["show", "lead"]).contains("---- lead calls bash (b1)"));
        std::fs::write(place.path("repo/go"), "").unwrap();
        run.end()
    };
    assert_eq!(ran.status, Some(0), "{}", ran.told);
    let shown = well(&place, &["show", "lead", "--session", "last"]);
    let expected = format!(
        "==== run 1 ====\n\n---- prompt\nthe task\n\n==== run 1, turn 1 ====\n\n---- lead thinks\nI think {long}.\n\n\
         ---- lead\nFirst {long}.\n\n---- lead calls bash (b1)\ncommand: cat go; printf 'one\\n{long}\\nlast\\n'\n\n\
         ---- bash (b1) completed\n"
    );
    assert!(shown.starts_with(&expected), "{shown}");
    let rest = &shown[expected.len()..];
    let results = format!(
        "one\n{long}\nlast\n\n---- message from user, with the results, at D\n[User feedback: use tabs]\n\n\
         ==== run 1, turn 2 ====\n\n---- lead\nDone.\n{long}\n\n"
    );
    assert_eq!(rest, results);
    let lines = well(&place, &["show", "lead", "--json"]);
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["role"].is_string())
    );
    assert!(lines.contains(&format!("I think {long}.")), "{lines}");
    for (words, expected) in [
        (&["show", "nobody"][..], "there is no agent `nobody` in session "),
        (&["show", "lead", "--session", "x"], "there is no session `x`"),
    ] {
        let (status, _, told) = say(&place, words);
        assert_eq!((status, told.contains(expected)), (Some(2), true), "{told}");
    }
}

/// > D12: `log --full` cuts nothing
#[test]
fn a_full_log_has_all_of_every_text() {
    let place = Place::new();
    let long = "word ".repeat(60).trim_end().to_owned();
    let ran = Running::start(&place, &talks(&long), &[]).end();
    assert_eq!(ran.status, Some(0), "{}", ran.told);
    let short = well(&place, &["log", "last"]);
    assert!(!short.contains(&long) && short.contains('…'), "{short}");
    let full = well(&place, &["log", "last", "--full"]);
    for text in [
        format!("\n             text: First {long}.\n"),
        format!("\n             input.command: printf 'one\\n{long}\\nlast\\n'\n"),
        format!("\n             output:\n               one\n               {long}\n               last\n"),
        format!("\n             text:\n               Done.\n               {long}\n"),
    ] {
        assert!(full.contains(&text), "{text}: {full}");
    }
    // As many events as there are.
    let events = well(&place, &["log", "last", "--json"]).lines().count();
    let heads = full.lines().filter(|line| !line.starts_with("             ")).count();
    assert_eq!(heads, events, "{full}");
}

/// The words of a run of the scenario, with more behind them.
fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "the task", "--model", "scripted:../scenario.yaml"], more].concat()
}

/// > D2: `resume` goes on with a run that failed
#[test]
fn a_run_that_failed_is_gone_on_with() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        place.write("scenario.yaml", &lead("      - error: invalid_request\n      - text: It is done.\n"));
        let (status, _, told) = say(&place, &run(&[]));
        assert_eq!((status, told.contains("lead: failed after 1 turn")), (Some(1), true), "{told}");
        let (status, out, told) = say(&place, &["resume"]);
        assert_eq!((status, out.as_str()), (Some(0), "It is done.\n"), "{told}");
        assert!(told.contains(" goes on: lead\n"), "{told}");
    }
}

/// > D2: `resume` goes on with a run that met a limit, once the limit is higher
#[test]
fn a_run_that_met_a_limit_is_gone_on_with_once_that_is_higher() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        let works = format!("      - tools:\n{}      - text: It is done.\n", bash("b", "echo hi"));
        place.write("scenario.yaml", &lead(&works));
        assert_eq!(say(&place, &run(&["--set", "max_turns=1"])).0, Some(4));
        // As often as one tries: nothing is different by then.
        for words in [&["resume"][..], &["resume", "last", "go on"]] {
            let (status, _, told) = say(&place, words);
            assert_eq!(status, Some(4), "{told}");
            let rests = "lead rests at its limit max_turns; with a higher N it goes on: midturn ";
            let line = told.lines().find_map(|line| Some(line.split_once(rests)?.1.replace('N', "3")));
            let line = line.unwrap_or_else(|| panic!("{told}"));
            if words.len() == 1 {
                continue;
            }
            // The line that was told is typed.
            let (status, out, told) = say(&place, &line.split(' ').collect::<Vec<_>>());
            assert_eq!(status, Some(0), "{line}: {told}");
            if guest {
                let mut log = well(&place, &["log", "last"]);
                while !log.contains("It is done.") {
                    log = well(&place, &["log", "last"]);
                }
            } else {
                assert_eq!(out, "It is done.\n", "{told}");
            }
        }
    }
}

/// > D2: The exit status says what came of it
#[test]
fn the_status_of_a_resume_is_that_of_what_was_resumed() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        let fails = "      - error: invalid_request\n";
        let works = format!("      - tools:\n{}", bash("b", "sleep 300"));
        place.write("scenario.yaml", &lead(&format!("{fails}{fails}{works}      - text: Done.\n")));
        assert_eq!(say(&place, &run(&[])).0, Some(1));
        // It fails again.
        assert_eq!(say(&place, &["resume"]).0, Some(1));
        let words = ["resume", "last", "--json"];
        let mut command = place.midturn("repo", &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut resumed = Running::of(command);
        resumed.until("tool_started", &[("tool", "b")]);
        resumed.signal("INT");
        assert_eq!(resumed.end().status, Some(130));
        assert_eq!(say(&place, &["resume"]).0, Some(0));
        // Nothing is left to do, and what there was has finished.
        let (status, out, told) = say(&place, &["resume"]);
        assert_eq!((status, out.as_str()), (Some(0), ""), "{told}");
        assert!(told.contains("has nothing to go on with") && told.contains("midturn resume "), "{told}");
    }
}

#[test]
fn where_nothing_is_left_unanswered_the_status_is_that_of_the_last_run() {
    let place = Place::new();
    // A reply that says nothing fails its run, and nothing is unanswered behind it.
    place.write("scenario.yaml", &lead("      - text: ''\n      - text: Better.\n"));
    assert_eq!(say(&place, &run(&[])).0, Some(1));
    let (status, _, told) = say(&place, &["resume"]);
    assert_eq!((status, told.contains("has nothing to go on with")), (Some(1), true), "{told}");
    assert_eq!(say(&place, &["resume", "last", "say something"]).1, "Better.\n");
    let (status, _, told) = say(&place, &["resume", "say something"]);
    assert_eq!((status, told.contains("midturn resume last TEXT")), (Some(2), true), "{told}");
}

/// > D3: `resume SESSION TEXT` says the next word to a session that has ended
#[test]
fn a_session_that_has_ended_is_told_the_next_word() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        place.write("scenario.yaml", &lead("      - text: First.\n      - text: Second.\n"));
        assert_eq!(well(&place, &run(&[])), "First.\n");
        assert_eq!(well(&place, &["resume", "last", "Now write the tests"]), "Second.\n");
        let shown = well(&place, &["show", "lead"]);
        assert!(shown.contains("---- message from user, at start\nNow write the tests\n"), "{shown}");
    }
}

/// > D3: `send` to a session that has ended takes it up
#[test]
fn a_message_to_a_session_that_has_ended_takes_it_up() {
    let place = super::open::place();
    let (status, _, told) = say(&place, &["send", "lead", "hello"]);
    assert_eq!((status, told.contains("no Midturn is running")), (Some(1), true), "{told}");
    place
        .write("scenario.yaml", &lead("      - text: First.\n      - text: Second.\n      - text: Third.\n"));
    assert_eq!(well(&place, &run(&[])), "First.\n");
    let send = ["send", "lead", "Now write the tests", "--wait", "answered"];
    let (status, out, told) = say(&place, &send);
    let started = Started::of(&place);
    assert_eq!(status, Some(0), "{out}{told}");
    assert!(told.contains("`midturn serve --until-idle 10m` was started (process "), "{told}");
    assert!(told.contains("`midturn watch` shows what comes of it"), "{told}");
    // The next one finds it there.
    let (status, _, told) = say(&place, &send);
    assert_eq!((status, told.as_str()), (Some(0), ""));
    let shown = well(&place, &["show", "lead"]);
    assert!(shown.contains("Second.") && shown.contains("Third."), "{shown}");
    drop(started);
}

/// The words at a terminal: lines, not the screen.
fn person(place: &Place, more: &[&str]) -> Person {
    Person::start(place.midturn("repo", &run(&[&["--plain"], more].concat())), true)
}

/// > D3: On a terminal a run asks for the next line until `/quit`; in a pipe and with `--once` it ends
#[test]
fn whoever_sits_at_a_terminal_is_asked_for_the_next_line() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        place.write("scenario.yaml", &lead("      - text: First.\n      - text: Second.\n"));
        let mut asked = person(&place, &[]);
        asked.sees("First.");
        asked.sees("all is done: say what comes next, or /quit");
        asked.types("/ps");
        asked.sees("lead: idle");
        asked.types("and now?");
        asked.sees("lead: finished after 1 turn");
        asked.sees("Second.");
        asked.sees("all is done: say what comes next, or /quit");
        asked.types("/quit");
        assert_eq!(asked.leaves().0, Some(0), "{guest}");
        let once = person(&place, &["--once"]);
        assert_eq!(once.leaves().0, Some(0));
        // In a pipe nobody is there who could be asked.
        assert_eq!(well(&place, &run(&[])), "First.\n");
        // A session that has ended can be written to as one that has only just done.
        let mut again = Person::start(place.midturn("repo", &["resume", "last", "--plain"]), true);
        again.sees("all is done: say what comes next, or /quit");
        again.types("go on");
        again.sees("Second.");
        again.sees("all is done: say what comes next, or /quit");
        again.types("/quit");
        assert_eq!(again.leaves().0, Some(0), "{guest}");
    }
}

/// `midturn serve`, and all that it told until it was ready.
fn ready(place: &Place) -> (Child, Vec<String>) {
    let mut serving = place.midturn("repo", &["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(serving.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told = Vec::new();
    while told.last().is_none_or(|line| line != "ready") {
        told.push(lines.next().unwrap_or_else(|| panic!("it is never ready: {told:?}")));
    }
    std::thread::spawn(move || lines.for_each(drop));
    (serving, told)
}

/// > D5: A guest's run that Ctrl-C ended is not begun again by the next `serve`
#[test]
fn what_its_person_ended_stays_ended() {
    for signal in ["KILL", "INT"] {
        let place = Place::new();
        let (mut serving, _) = ready(&place);
        let mut guest = Running::start(&place, &with_worker(""), &[]);
        guest.until("tool_started", &[("tool", "b1")]);
        // A message that nobody reads any more.
        guest.say("lead: later");
        guest.until("message_queued", &[("agent", "lead")]);
        guest.signal("INT");
        assert_eq!(guest.end().status, Some(130));
        let id = serving.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        serving.wait().unwrap();
        let (mut next, told) = ready(&place);
        assert!(!told.iter().any(|line| line.contains("goes on")), "{signal}: {told:?}");
        let sessions = well(&place, &["sessions", "--json"]);
        let sessions: serde_json::Value = serde_json::from_str(&sessions).unwrap();
        assert_eq!(sessions["sessions"][0]["live"], false, "{signal}: {sessions}");
        next.kill().unwrap();
        next.wait().unwrap();
    }
}
