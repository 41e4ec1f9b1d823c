//! What makes an agent's folder ready is heard while it runs, by whoever follows: not only when it is over.

use std::fs;
use std::process::Command;

use super::common::{Ended, Place, Running};
use super::remote::{Serving, lead};
use super::terminal::Person;

/// A project whose setup says a line, waits for whoever writes into a pipe, and says another one.
fn begun() -> Place {
    let place = Place::new();
    place.write("repo/a.txt", "one\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "--message", "begin"]);
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let setup = format!("echo one; cat {}; echo -n two", place.path("pipe").display());
    place.write("config/midturn/midturn.toml", &format!("folder.setup = '{setup}'\n"));
    let spawn = "          - {id: s, name: spawn_agent, input: {name: worker, prompt: go}}\n";
    let lead = lead(&format!("      - tools:\n{spawn}      - text: Waiting.\n      - text: It is done.\n"));
    let worker = "  - name: worker\n    parent: lead\n    start: spawned\n    model:\n      - text: Done.\n";
    place.write("scenario.yaml", &format!("{lead}{worker}"));
    place
}

const RUN: [&str; 7] =
    ["run", "the task", "--once", "--plain", "--no-sandbox", "--model", "scripted:../scenario.yaml"];

#[test]
fn what_a_setup_says_is_seen_while_it_runs_and_by_who_comes_later() {
    for guest in [false, true] {
        let place = begun();
        let serving = guest.then(|| Serving::start(&place));
        let mut person = Person::start(place.midturn("repo", &RUN), false);
        person.sees("worker $ + echo one; cat ");
        person.sees("worker $ one");
        let mut late = Person::start(place.midturn("repo", &["watch"]), true);
        late.sees("worker $ + echo one; cat ");
        late.sees("worker $ one");
        fs::write(place.path("pipe"), "").unwrap();
        late.sees("worker $ two");
        person.sees("worker $ two");
        // It is said behind all that it said.
        if !guest {
            person.sees("worker: the setup `echo one; cat ");
            person.sees("is done after ");
        }
        person.sees("worker: Done.");
        assert_eq!(person.leaves().0, Some(0));
        drop(serving);
        late.leaves();
    }
}

#[test]
fn a_program_hears_a_setup_and_nothing_of_it_is_recorded() {
    let place = begun();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    let mut run = Running::start(&place, &scenario, &["--no-sandbox"]);
    let heard = run.until("setup_output", &[("agent", "worker"), ("text", "one\n")]);
    assert_eq!((&heard["run"], &heard["turn"]), (&1.into(), &0.into()), "{heard}");
    fs::write(place.path("pipe"), "").unwrap();
    run.until("setup_output", &[("text", "two")]);
    let Ended { status, told, .. } = run.end();
    assert_eq!(status, Some(0), "{told}");
    let log = place.midturn("repo", &["log", "last", "--json"]).output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    assert!(log.contains("agent_spawned") && !log.contains("setup_output"), "{log}");
}
