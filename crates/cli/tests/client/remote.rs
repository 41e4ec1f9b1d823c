//! A run in a project whose store another process holds: it is like any other run.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::common::{Ended, Place, Running};

/// `midturn serve`, killed at the end of the test.
pub(crate) struct Serving {
    process: Child,
    /// What it told until it could be reached.
    told: Vec<String>,
}

impl Serving {
    pub(crate) fn start(place: &Place) -> Self {
        let mut process = place.midturn("repo", &["serve"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut told: Vec<String> = Vec::new();
        while !told.last().is_some_and(|line| line.starts_with("the interface: ")) {
            let Some(line) = lines.next() else { panic!("it doesn't tell where it is found: {told:?}") };
            told.push(line);
        }
        // Whoever reads no more must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, told }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn lead(entries: &str) -> String {
    format!("midturn: 1\nname: test\nagents:\n  - name: lead\n    role: lead\n    model:\n{entries}")
}

pub(crate) fn bash(id: &str, command: &str) -> String {
    format!("          - {{id: {id}, name: bash, input: {{command: {}}}}}\n", Value::from(command))
}

/// What a run leaves: its status, and what is on its two outputs.
fn run(place: &Place, more: &[&str]) -> (Option<i32>, String, String) {
    let words = ["run", "the task", "--model", "scripted:../scenario.yaml"];
    let said = place.midturn("repo", &words).args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

#[test]
fn a_run_in_the_holder_has_the_output_and_the_status_of_one_of_its_own() {
    let write = bash("x", "echo two > c.txt");
    let works = lead(&format!(
        "      - tools:\n{}      - text: \"All done.\\nTwice.\"\n",
        bash("b", "echo hi > out.txt")
    ));
    let spawns = format!(
        "{}  - name: worker\n    parent: lead\n    start: spawned\n    model:\n      - tools:\n{write}      - text: Done.\n",
        lead(
            "      - tools:\n          - {id: s, name: spawn_agent, input: {name: worker, prompt: go}}\n          \
              - {id: w, name: wait_agents, input: {names: [worker]}}\n      - text: It is done.\n"
        )
    );
    for (scenario, more, status) in [
        (works.clone(), &[][..], 0),
        (spawns, &[], 0),
        (lead("      - error: invalid_request\n"), &[], 1),
        (works.clone(), &["--set", "max_turns=1"], 4),
    ] {
        let (own, remote) = (Place::new(), Place::new());
        let _serving = Serving::start(&remote);
        let [own, remote] = [own, remote].map(|place| {
            place.write("scenario.yaml", &scenario);
            place.git(&["commit", "--quiet", "--allow-empty", "--message", "begin"]);
            let (status, answer, told) = run(&place, more);
            (status, answer, without_ids(&without_notes(&told)), place.path("repo/out.txt").exists())
        });
        assert_eq!(remote, own);
        assert_eq!(own.0, Some(status), "{own:?}");
        assert_eq!(
            own.2.contains("worker changed on branch midturn/ID/worker: c.txt"),
            scenario.contains("c.txt")
        );
    }
}

/// What holds the agents is said by whoever carries them.
fn without_notes(told: &str) -> String {
    told.lines().filter(|line| !line.starts_with("note: ")).map(|line| format!("{line}\n")).collect()
}

/// A branch has its session's id in its name.
fn without_ids(told: &str) -> String {
    let mut parts = told.split("midturn/");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, rest| format!("{text}midturn/ID/{}", rest.split_once('/').unwrap().1))
}

/// The events of a run, without what no two runs have in common.
fn events(place: &Place) -> Vec<Value> {
    let (status, out, told) = run(place, &["--json"]);
    assert_eq!(status, Some(0), "{told}");
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The holder has the scenario by its whole path. How a text is cut into deltas depends on who reads how fast.
    let stored = lines.filter(|event| event.get("n").is_none());
    let same = stored.map(|mut event| {
        event
            .as_object_mut()
            .unwrap()
            .retain(|field, _| !["t", "session", "scenario", "model"].contains(&field.as_str()));
        event
    });
    same.collect()
}

#[test]
fn with_json_the_events_are_those_of_a_run_of_its_own() {
    let scenario = lead(&format!("      - tools:\n{}      - text: All done.\n", bash("b", "echo hi")));
    let (own, remote) = (Place::new(), Place::new());
    let _serving = Serving::start(&remote);
    let [own, remote] = [own, remote].map(|place| {
        place.write("scenario.yaml", &scenario);
        events(&place)
    });
    assert_eq!(remote, own);
}

/// A lead whose first call lasts until it is ended.
fn lasting() -> String {
    lead(&format!(
        "      - tools:\n{}{}      - text: Done.\n",
        bash("b1", "echo begun; sleep 300"),
        bash("b2", "touch second")
    ))
}

#[test]
fn lines_typed_to_it_steer_the_session_in_the_holder() {
    let place = Place::new();
    let _serving = Serving::start(&place);
    let mut run = Running::start(&place, &lasting(), &[]);
    run.until("tool_output", &[("tool", "b1")]);
    for line in ["/ps", "/stpo", "note: tabs"] {
        run.say(line);
    }
    assert_eq!(run.until("message_queued", &[("from", "user")])["text"], "note: tabs");
    run.say("lead! never mind");
    assert_eq!(run.until("tool_finished", &[("tool", "b1")])["status"], "interrupted");
    let Ended { status, told, .. } = run.end();
    assert_eq!(status, Some(0), "{told}");
    for expected in [
        "lead: running, run 1, turn 1",
        "there is no command `/stpo`",
        "there is no agent `note`; the line went to `lead`",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}

#[test]
fn quitting_and_a_signal_end_the_session_in_the_holder() {
    let place = Place::new();
    let _serving = Serving::start(&place);
    for ending in ["/stop lead", "/quit", "INT"] {
        let mut run = Running::start(&place, &lasting(), &[]);
        run.until("tool_output", &[("tool", "b1")]);
        match ending.starts_with('/') {
            true => run.say(ending),
            false => run.signal(ending),
        }
        assert_eq!(run.until("tool_finished", &[("tool", "b1")])["status"], "stopped", "{ending}");
        let Ended { status, told, .. } = run.end();
        assert_eq!(status, Some(130), "{ending}: {told}");
        assert!(told.contains("lead: stopped"), "{ending}: {told}");
    }
}

#[test]
fn a_session_that_was_stopped_in_the_holder_goes_on_there() {
    let place = Place::new();
    let _serving = Serving::start(&place);
    let mut run = Running::start(&place, &lasting(), &[]);
    run.until("tool_output", &[("tool", "b1")]);
    run.say("/quit");
    assert_eq!(run.end().status, Some(130));
    for (status, out, told) in [(0, "Done.\n", " goes on: lead\n"), (0, "", " has nothing to go on with: ")] {
        let said = place.midturn("repo", &["resume"]).output().unwrap();
        let [answer, words] = [said.stdout, said.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!((said.status.code(), answer.as_str()), (Some(status), out), "{words}");
        assert!(words.contains(told), "{words}");
    }
}

#[test]
fn watch_ends_well_when_the_run_that_it_watched_does() {
    let place = Place::new();
    assert!(std::process::Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
    let scenario = lead(&format!("      - tools:\n{}      - text: Done.\n", bash("b", "echo begun; cat go")));
    let mut run = Running::start(&place, &scenario, &[]);
    run.until("tool_output", &[("tool", "b")]);
    let mut watch = place.midturn("repo", &["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.next().unwrap().starts_with("watching "));
    // It is there when it shows what was said before it came.
    assert_eq!(shown.next().unwrap(), "lead $ begun");
    std::fs::write(place.path("repo/go"), "go").unwrap();
    assert_eq!(shown.last().unwrap(), "lead: finished after 2 turns");
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    assert_eq!(run.end().status, Some(0));
}

#[test]
fn a_run_that_holds_the_store_waits_for_the_sessions_of_others() {
    let place = Place::new();
    for pipe in ["own", "guest"] {
        let made = std::process::Command::new("mkfifo").arg(place.path(&format!("repo/{pipe}"))).status();
        assert!(made.unwrap().success());
    }
    let waits_for = |pipe: &str| {
        lead(&format!(
            "      - tools:\n{}      - text: Done.\n",
            bash("b", &format!("echo begun; cat {pipe}"))
        ))
    };
    let [mut own, mut guest] = ["own", "guest"].map(|pipe| {
        let mut run = Running::start(&place, &waits_for(pipe), &[]);
        run.until("tool_output", &[("tool", "b")]);
        run
    });
    std::fs::write(place.path("repo/own"), "go").unwrap();
    own.until("run_finished", &[]);
    std::fs::write(place.path("repo/guest"), "go").unwrap();
    assert_eq!(guest.until("run_finished", &[])["outcome"], "finished");
    for run in [guest, own] {
        let Ended { status, told, .. } = run.end();
        assert_eq!(status, Some(0), "{told}");
    }
}

#[test]
fn when_the_holder_is_killed_it_is_said_how_to_go_on() {
    let place = Place::new();
    let mut serving = Serving::start(&place);
    let mut run = Running::start(&place, &lasting(), &[]);
    run.until("tool_output", &[("tool", "b1")]);
    serving.kill();
    let Ended { status, told, .. } = run.end();
    assert_eq!(status, Some(1), "{told}");
    let listed = place.midturn("repo", &["sessions", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let session = &listed["sessions"][0];
    assert_eq!((&session["state"], &session["live"]), (&"resumable".into(), &false.into()));
    let id = session["session"].as_str().unwrap();
    assert!(told.contains(&format!("`midturn resume {id}` goes on with it")), "{told}");
}

/// E9: what an earlier daemon left running is gone before the next one can be reached, also where
/// its session doesn't go on by itself; and that is said.
#[test]
fn nobody_reaches_a_daemon_before_what_an_earlier_one_left_is_ended() {
    let place = Place::new();
    let run = Running::start(&place, &lead("      - text: Done.\n"), &[]).end();
    assert_eq!(run.status, Some(0), "{}", run.told);
    let session = run.events[0]["session"].as_str().unwrap();
    // This process, had it begun with the machine: nobody who is alive.
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let owner = json!({"pid": std::process::id(), "started": 1, "session": 1, "namespace": namespace});
    let mark = json!({"owner": owner, "purpose": "command", "session": session}).to_string();
    // In a POSIX session of its own: that of a marked process goes with it.
    let left = || {
        let mut command = std::process::Command::new("setsid");
        command.args(["sleep", "600"]).env("_MIDTURN_TREE", &mark).spawn().unwrap()
    };
    for told in
        ["ended 1 process that an earlier daemon left behind", "an earlier daemon left no process behind"]
    {
        let mut left = told.starts_with("ended").then(left);
        let daemon = Serving::start(&place);
        if let Some(left) = &mut left {
            let ended = left.try_wait().unwrap();
            left.kill().unwrap();
            assert!(ended.is_some(), "{:?}", daemon.told);
        }
        assert!(daemon.told.iter().any(|line| line == told), "{:?}", daemon.told);
    }
}
