//! `midturn open`: a link that signs one page in, from the process that is there or from one that is started.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use super::common::Place;
use super::holder::Holder;

/// A place whose agents work without a sandbox: none of these tests has any at work.
pub(crate) fn place() -> Place {
    let place = Place::new();
    place.write("config/midturn/midturn.toml", "[sandbox]\ntier = \"none\"\n");
    place
}

/// What `midturn` with these words says, and its status.
fn says(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

/// The address, the code and the session of a printed link; of a replay what the link says of it.
fn link(place: &Place, words: &[&str]) -> (String, String, String) {
    let (status, printed, error) = says(place, &[&["open", "--print"], words].concat());
    assert_eq!(status, Some(0), "{printed}{error}");
    let url = printed.lines().next().unwrap();
    let (address, fragment) = url.strip_prefix("http://").unwrap().split_once("/#code=").unwrap();
    let (code, shown) = fragment.split_at(fragment.find('&').unwrap_or(fragment.len()));
    let session = shown.strip_prefix("&session=").unwrap_or(shown);
    let tunnel = format!("ssh -N -L {}:{address} ", address.rsplit(':').next().unwrap());
    assert!(printed.contains(&tunnel), "{printed}");
    (address.to_owned(), code.to_owned(), session.to_owned())
}

/// Signs in as the page does.
fn sign_in(address: &str, code: &str) -> (u16, Value) {
    ask(address, "POST", "sign_in", "", &json!({"code": code}).to_string())
}

/// Asks as the page does.
fn ask(address: &str, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} /v1/{path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// The process that was started in the background, which ends with the test.
pub(crate) struct Started(String);

impl Started {
    pub(crate) fn of(place: &Place) -> Self {
        Self(pid(place))
    }
}

fn pid(place: &Place) -> String {
    Holder::find(place).unwrap().get("health").1["pid"].to_string()
}

impl Drop for Started {
    fn drop(&mut self) {
        Command::new("kill").arg(&self.0).status().unwrap();
    }
}

#[test]
fn a_page_is_opened_where_nobody_runs_and_each_link_lets_one_in() {
    let place = place();
    let (address, code, session) = link(&place, &[]);
    let started = Started::of(&place);
    assert_eq!(session, "");
    let (status, signed_in) = sign_in(&address, &code);
    assert_eq!((status, signed_in["token"].as_str().unwrap().len()), (200, 64));
    assert_eq!(sign_in(&address, &code).1["code"], "wrong_code");
    // The next one asks the same process.
    let (again, other, _) = link(&place, &[]);
    assert_eq!(pid(&place), started.0);
    assert_eq!(again, address);
    assert_eq!(sign_in(&again, &other).0, 200);
}

#[test]
fn a_session_is_named_in_the_link_and_one_that_is_none_is_refused() {
    let place = place();
    let scenario =
        "midturn: 1\nname: s\nagents:\n  - name: lead\n    role: lead\n    model:\n      - text: Done.\n";
    place.write("scenario.yaml", scenario);
    let (status, _, error) = says(&place, &["run", "--once", "--model", "scripted:../scenario.yaml", "Go."]);
    assert_eq!(status, Some(0), "{error}");
    let (_, sessions, _) = says(&place, &["sessions", "--json"]);
    let id = serde_json::from_str::<Value>(&sessions).unwrap()["sessions"][0]["session"].clone();
    let (_, _, session) = link(&place, &["last"]);
    let _started = Started::of(&place);
    assert_eq!(Value::from(session), id);
    let (status, _, error) = says(&place, &["open", "--print", "nothing-of-that-kind"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("there is no session `nothing-of-that-kind`"), "{error}");
}

/// A scenario that somebody has as a file.
const FIX: &str = "midturn: 1\nname: a fix comes in time\nagents:\n  - name: lead\n    role: lead\n    prompt: Go.\n    model:\n      \
                   - {takes: 1s, text: Done.}\n";

#[test]
fn a_file_is_handed_over_and_the_link_opens_its_replay() {
    let place = place();
    place.write("fix.yaml", FIX);
    let (address, code, replay) = link(&place, &["../fix.yaml"]);
    let started = Started::of(&place);
    let id = replay.strip_prefix("&replay=").unwrap();
    let (_, signed_in) = sign_in(&address, &code);
    let token = signed_in["token"].as_str().unwrap();
    let (status, played) = ask(&address, "GET", &format!("replays/{id}"), token, "");
    assert_eq!((status, &played["name"]), (200, &"a fix comes in time".into()), "{played}");
    let events = played["before"]["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["type"], "run_finished");
    // A session's export is such a file, and the process that is there takes it.
    let (status, _, error) = says(&place, &["run", "--once", "--model", "scripted:../fix.yaml", "Go."]);
    assert_eq!(status, Some(0), "{error}");
    let (status, _, error) = says(&place, &["export", "last", "-o", "../exported.yaml"]);
    assert_eq!(status, Some(0), "{error}");
    let (_, _, other) = link(&place, &["../exported.yaml"]);
    assert!(other.starts_with("&replay=r2-"), "{other}");
    assert_eq!(pid(&place), started.0);
}

#[test]
fn what_is_no_scenario_or_cannot_be_played_on_a_page_is_refused_with_what_to_do_and_nothing_is_started() {
    let place = place();
    place.write("repo/broken.yaml", "midturn: 1\nagents:\n  - nam: lead\n");
    place.write("repo/large.yaml", &format!("{FIX}# {}\n", "x".repeat(1 << 20)));
    let real = FIX.replace("agents:", "tools: real\nworkspace: .\nagents:");
    place.write("repo/real.yaml", &real);
    for (file, status, expected) in [
        ("broken.yaml", 2, "broken.yaml:3:5"),
        ("./nothing", 2, "can't be read"),
        ("nothing.yaml", 2, "can't be read"),
        (".", 2, "can't be read"),
        (
            "large.yaml",
            2,
            "a page takes at most 1.0 MB; `midturn replay --view large.yaml` plays it on the terminal",
        ),
        ("real.yaml", 2, "`midturn replay --view real.yaml` plays it"),
    ] {
        let (is, printed, error) = says(&place, &["open", "--print", file]);
        assert_eq!((is, printed.as_str()), (Some(status), ""), "{file}: {error}");
        assert!(error.contains(expected), "{file}: {error}");
    }
    assert!(Holder::find(&place).is_none());
}

#[test]
fn a_process_that_cannot_begin_says_why_where_the_page_was_asked_for() {
    let place = place();
    place.write("config/midturn/midturn.toml", "[sandbox]\ntier = \"nothing\"\n");
    let (status, _, error) = says(&place, &["open", "--print"]);
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("no Midturn could be started") && error.contains("midturn.toml:2"), "{error}");
}

#[test]
fn a_process_that_nobody_needs_ends_by_itself() {
    let place = place();
    let (status, _, error) = says(&place, &["serve", "--until-idle", "100ms"]);
    assert_eq!(status, Some(0), "{error}");
    assert!(error.contains("nobody has asked anything"), "{error}");
    assert!(Holder::find(&place).is_none());
}
