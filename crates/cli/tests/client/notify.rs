//! A person's own way to be told, `notify.command`: run where nobody is there who could answer.

use std::fs::File;
use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::common::Place;

/// Longer than any of it takes.
const PATIENCE: Duration = Duration::from_secs(60);

const SAYS: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    model:
      - {text: \"Done; $(touch pwned) `touch pwned` ' \\\" \\u001b]0;x\\u0007.\"}
";

const FAILS: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    model:
      - {tools: [{id: b, name: bash, input: {command: 'true'}}]}
";

/// A place whose person is told through a pipe: what comes out of it is what one command said.
fn place(scenario: &str) -> Place {
    let place = Place::new();
    place.write("scenario.yaml", scenario);
    let pipe = place.path("told");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let command = format!("(pwd; printf '%s\\n' \"$NEED_LINE\" \"$NEED_WHAT\"; cat) > '{}'", pipe.display());
    place.write("config/midturn/midturn.toml", &format!("[notify]\ncommand = {}\n", Value::from(command)));
    place
}

/// What the command says, once it runs.
fn told(place: &Place) -> mpsc::Receiver<String> {
    let (pipe, (said, told)) = (place.path("told"), mpsc::sync_channel(1));
    std::thread::spawn(move || {
        let mut text = String::new();
        File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
        said.send(text)
    });
    told
}

#[test]
fn a_person_who_is_not_there_is_told_once_how_it_ended_and_no_text_of_an_agent_is_run() {
    for (scenario, line, what) in [
        (SAYS, "lead has ended: Done; $(touch pwned) `touch pwned` ' \" .", "ended"),
        (FAILS, "lead failed: script exhausted", "failed"),
    ] {
        let place = place(scenario);
        place.write("repo/midturn.toml", "[notify]\ncommand = 'touch evil'\n");
        let told = told(&place);
        let words = ["run", "Go.", "--no-sandbox", "--model", "scripted:../scenario.yaml"];
        let said = place.midturn("repo", &words).output().unwrap();
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(complaint.contains("notify.command"), "a repository's isn't taken: {complaint}");
        let text = told.recv_timeout(PATIENCE).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["/", line, what], "{text}");
        let facts: Value = serde_json::from_str(lines[3]).unwrap();
        assert_eq!(
            (&facts["line"], &facts["what"], &facts["agent"]),
            (&line.into(), &what.into(), &"lead".into())
        );
        assert_eq!(lines.len(), 4, "{text}");
        for never in ["repo/evil", "repo/pwned"] {
            assert!(!place.path(never).exists(), "{never}");
        }
    }
}

#[test]
fn a_command_that_fails_or_is_not_there_spoils_no_run() {
    let place = place(SAYS);
    place.write("config/midturn/midturn.toml", "[notify]\ncommand = 'no-such-program'\n");
    let words = ["run", "Go.", "--no-sandbox", "--model", "scripted:../scenario.yaml"];
    let said = place.midturn("repo", &words).output().unwrap();
    let told = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(0), "{told}");
    assert!(told.contains("notify.command: it failed: exit status: 127"), "{told}");
}
