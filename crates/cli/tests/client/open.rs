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

/// The address, the code and the session of a printed link.
fn link(place: &Place, words: &[&str]) -> (String, String, String) {
    let (status, printed, error) = says(place, &[&["open", "--print"], words].concat());
    assert_eq!(status, Some(0), "{printed}{error}");
    let url = printed.lines().next().unwrap();
    let (address, fragment) = url.strip_prefix("http://").unwrap().split_once("/#code=").unwrap();
    let (code, session) = fragment.split_once("&session=").unwrap_or((fragment, ""));
    let tunnel = format!("ssh -N -L {}:{address} ", address.rsplit(':').next().unwrap());
    assert!(printed.contains(&tunnel), "{printed}");
    (address.to_owned(), code.to_owned(), session.to_owned())
}

/// Signs in as the page does.
fn sign_in(address: &str, code: &str) -> (u16, Value) {
    let body = json!({"code": code}).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/sign_in HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
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
