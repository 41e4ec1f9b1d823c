//! People at a terminal: they are asked, and what they type answers. Whoever has no terminal
//! is not asked.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{Place, Running};
use super::remote::{Serving, bash, lead};

/// How long something is waited for that has to come; it comes at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command at a terminal of its own, and the person there.
pub(crate) struct Person {
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl Person {
    /// Starts a command whose standard input and error are a terminal. `output`: its standard output is, too.
    pub(crate) fn start(mut command: Command, output: bool) -> Self {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let side = || Stdio::from(terminal.slave.try_clone().unwrap());
        command.stdin(side()).stderr(side());
        command.stdout(if output { side() } else { Stdio::piped() });
        let child = command.spawn().unwrap();
        drop((command, terminal.slave));
        let keyboard = File::from(terminal.master);
        let (shown, screen) = sync_channel(1_024);
        let mut reader = keyboard.try_clone().unwrap();
        // It ends when nobody has the terminal's other side any more.
        std::thread::spawn(move || {
            let mut some = [0; 4_096];
            while let Ok(count @ 1..) = reader.read(&mut some) {
                // Read on when nobody looks: a full terminal would hold the command.
                let _ = shown.send(String::from_utf8_lossy(&some[..count]).into_owned());
            }
        });
        Self { child, keyboard, screen, seen: String::new() }
    }

    /// Reads on until this is on the screen, and all before it.
    pub(crate) fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(more) => self.seen.push_str(&more),
                Err(_) => panic!("`{text}` never came:\n{}", self.seen),
            }
        }
        let end = self.seen.find(text).unwrap() + text.len();
        self.seen.drain(..end);
    }

    pub(crate) fn types(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
    }

    /// The exit status, and the standard output if it was no terminal.
    pub(crate) fn leaves(mut self) -> (Option<i32>, String) {
        let mut out = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut out).unwrap();
        }
        (self.child.wait().unwrap().code(), out)
    }
}

/// A lead that makes a file in each of two turns, by the same command.
fn twice() -> String {
    let make = |id: &str| format!("      - tools:\n{}", bash(id, "echo x >> out.txt"));
    lead(&format!("{}{}      - text: Done.\n", make("b1"), make("b2")))
}

fn run(place: &Place, scenario: &str) -> Command {
    place.write("scenario.yaml", scenario);
    place.midturn(
        "repo",
        &["run", "the task", "--mode", "ask", "--no-sandbox", "--model", "scripted:../scenario.yaml"],
    )
}

const ASKS: &str = "lead asks: bash: echo x >> out.txt    [/yes, /always, /no REASON]";

#[test]
fn who_sits_at_a_run_is_asked_and_what_is_typed_answers() {
    let allowed = "allowed: lead: bash: echo x >> out.txt";
    for (first, said, second, made) in [
        ("/yes", allowed, Some("/yes lead"), "x\nx\n"),
        ("/yes", allowed, Some("/no not twice"), "x\n"),
        ("/always", "allowed, and from now on in this session bash(echo x >> out.txt)", None, "x\nx\n"),
        ("/no lead", "denied: lead: bash: echo x >> out.txt", Some("/yes"), "x\n"),
    ] {
        for guest in [false, true] {
            let place = Place::new();
            let _serving = guest.then(|| Serving::start(&place));
            let mut person = Person::start(run(&place, &twice()), false);
            person.sees(ASKS);
            person.types(first);
            person.sees(said);
            if let Some(second) = second {
                person.sees(ASKS);
                person.types(second);
            }
            person.sees("lead: finished after 3 turns");
            assert_eq!(person.leaves(), (Some(0), "Done.\n".to_owned()), "{first} {guest}");
            assert_eq!(std::fs::read_to_string(place.path("repo/out.txt")).unwrap(), made, "{first} {guest}");
        }
    }
}

/// What is removed for good is asked about first.
#[test]
fn who_removes_a_session_is_asked_and_only_a_yes_is_one() {
    let place = Place::new();
    place.write("scenario.yaml", &lead("      - text: Done.\n"));
    let words = ["run", "the task", "--once", "--model", "scripted:../scenario.yaml"];
    assert!(place.midturn("repo", &words).status().unwrap().success());
    for (typed, is_left) in [("", true), ("no", true), ("y", false)] {
        let mut person = Person::start(place.midturn("repo", &["sessions", "rm", "last"]), false);
        person.sees("Remove this? [y/N] ");
        person.types(typed);
        let (status, out) = person.leaves();
        assert_eq!(
            (status, out.contains("in all: 1 session; "), out.contains("removed: ")),
            (Some(0), true, !is_left)
        );
        let listed = place.midturn("repo", &["sessions"]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(listed).unwrap().contains("the task"), is_left, "{typed:?}");
    }
}

#[test]
fn a_word_that_nobody_waits_for_is_told_so() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        let mut person = Person::start(run(&place, &twice()), false);
        person.sees(ASKS);
        for (line, told) in [
            ("/yes nobody", "error: there is no agent `nobody`; /ps lists them"),
            ("/ps", "lead: running, run 1, turn 1"),
            ("/always", "allowed, and from now on"),
        ] {
            person.types(line);
            person.sees(told);
        }
        assert_eq!(person.leaves().0, Some(0));
    }
}

#[test]
fn who_has_no_terminal_is_not_asked() {
    for guest in [false, true] {
        let place = Place::new();
        let _serving = guest.then(|| Serving::start(&place));
        let said = run(&place, &twice()).output().unwrap();
        let told = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(0), "{told}");
        assert!(told.contains("nobody is attached who could approve it"), "{told}");
        assert!(!place.path("repo/out.txt").exists());
    }
}

#[test]
fn who_watches_at_a_terminal_answers_for_a_run_that_has_none() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
    let scenario = lead(&format!(
        "      - tools:\n{}      - tools:\n{}      - text: Done.\n",
        bash("b1", "cat go"),
        bash("b2", "echo x >> out.txt")
    ));
    let more = ["--mode", "ask", "--no-sandbox", "--set", "approvals.allow=[\"bash(cat go)\"]"];
    let mut run = Running::start(&place, &scenario, &more);
    run.until("tool_started", &[("tool", "b1")]);
    let mut watcher = Person::start(place.midturn("repo", &["watch"]), true);
    watcher.sees("watching ");
    let until = Instant::now() + PATIENCE;
    while followers(&place) == 0 {
        assert!(Instant::now() < until, "nobody follows");
    }
    std::fs::write(place.path("repo/go"), "go").unwrap();
    watcher.sees(ASKS);
    for (line, told) in [
        ("hello", "error: here /yes, /always and /no answer what agents ask"),
        ("/no lead use a pen", "denied (use a pen): lead: bash: echo x >> out.txt"),
    ] {
        watcher.types(line);
        watcher.sees(told);
    }
    let denied = run.until("tool_finished", &[("tool", "b2")]);
    assert!(denied["output"].as_str().unwrap().contains("use a pen"), "{denied}");
    assert_eq!(watcher.leaves().0, Some(0));
    assert_eq!(run.end().status, Some(0));
}

/// How many clients read events of the place's process.
fn followers(place: &Place) -> u64 {
    let said = place.midturn("repo", &["stats", "--json"]).output().unwrap();
    serde_json::from_slice::<Value>(&said.stdout).unwrap()["sse_clients"].as_u64().unwrap()
}

#[test]
fn who_comes_later_sees_what_is_asked_already() {
    for words in [&["watch"][..], &["attach", "--plain"]] {
        let place = Place::new();
        let mut person = Person::start(run(&place, &twice()), false);
        person.sees(ASKS);
        let mut watcher = Person::start(place.midturn("repo", words), true);
        watcher.sees(ASKS);
        watcher.types("/always");
        watcher.sees("lead: finished after 3 turns");
        assert_eq!((watcher.leaves().0, person.leaves().0), (Some(0), Some(0)), "{words:?}");
    }
}

#[test]
fn what_is_asked_is_answered_from_another_terminal() {
    for (words, made) in [(&["approve", "lead", "b1", "--always"][..], true), (&["deny", "lead"], false)] {
        let place = Place::new();
        let mut person = Person::start(run(&place, &twice()), false);
        person.sees(ASKS);
        let listed = place.midturn("repo", &["approvals"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("call b1: bash\n  command: echo x >> out.txt\n"), "{listed}");
        let ps = place.midturn("repo", &["ps"]).output().unwrap();
        let ps = String::from_utf8(ps.stdout).unwrap();
        assert!(ps.contains("asks: bash ") && ps.contains("\nmode ask; "), "{ps}");
        assert!(place.midturn("repo", words).status().unwrap().success());
        if !made {
            person.sees("lead: denied by user");
            person.sees(ASKS);
            person.types("/no");
        }
        assert_eq!(person.leaves().0, Some(0));
        assert_eq!(place.path("repo/out.txt").exists(), made);
    }
}
