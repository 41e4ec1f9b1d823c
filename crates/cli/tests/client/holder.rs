//! The process that holds a store, asked as any program would ask it, while sessions begin, are
//! watched, and end.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::common::Place;
use super::remote::{Serving, lead};

/// Where the holder of the place's project answers.
pub(crate) struct Holder {
    socket: PathBuf,
    token: String,
}

impl Holder {
    /// `None`: nobody answers yet.
    pub(crate) fn find(place: &Place) -> Option<Self> {
        let projects = std::fs::read_dir(place.path("state/midturn/projects")).ok()?;
        let files = projects.map(|project| project.unwrap().path().join("interface.json"));
        let text = files.filter_map(|file| std::fs::read_to_string(file).ok()).next()?;
        let said: Value = serde_json::from_str(&text).ok()?;
        let (socket, token) = (said["socket"].as_str()?.into(), said["token"].as_str()?.to_owned());
        Some(Self { socket, token })
    }

    /// Sends a request. `None`: nobody is there.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<BufReader<UnixStream>> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} /v1/{path} HTTP/1.1\r\nHost: midturn\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        Some(BufReader::new(stream))
    }

    /// The status and the body of an answer; status 0 of one that never came.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut answer = String::new();
        let Some(mut stream) = self.send(method, path, body) else { return (0, Value::Null) };
        if stream.read_to_string(&mut answer).is_err() || answer.is_empty() {
            return (0, Value::Null);
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, Some(body))
    }

    /// Begins a session whose lead says one word, and waits until it has said it.
    fn session(&self, place: &Place) -> String {
        let model = format!("scripted:{}", place.path("scenario.yaml").display());
        let (status, session) = self.post("sessions", &json!({"task": "the task", "model": model}));
        assert_eq!(status, 201, "{session}");
        let id = session["session"].as_str().unwrap().to_owned();
        let mut events = self.watch(&id, 0);
        assert!(events.any(|line| line == "event: run_finished"));
        id
    }

    /// The lines of a session's event stream.
    fn watch(&self, session: &str, after: u64) -> impl Iterator<Item = String> + use<> {
        let stream = self.send("GET", &format!("sessions/{session}/events?after={after}"), None).unwrap();
        stream.lines().map(Result::unwrap)
    }

    fn is_live(&self, session: &str) -> bool {
        self.get(&format!("sessions/{session}")).1["live"] == true
    }
}

/// A11: sessions that somebody watches stay; of the others the one that came first is let go.
#[test]
fn a_session_that_is_watched_is_not_let_go() {
    let place = Place::new();
    place.write("scenario.yaml", &lead("      - text: Done.\n"));
    let _serving = Serving::start(&place);
    let holder = Holder::find(&place).unwrap();
    let mut sessions = vec![holder.session(&place)];
    let mut watching = holder.watch(&sessions[0], 0);
    assert!(watching.any(|line| line == "event: run_finished"));
    // 16 rest at most without being watched.
    for _ in 1..18 {
        sessions.push(holder.session(&place));
    }
    assert!(holder.is_live(&sessions[0]), "it is watched");
    assert!(!holder.is_live(&sessions[1]), "nobody watches it, and it was the first that rested");
    assert!(holder.is_live(&sessions[2]));
    let sent = json!({"text": "once more"});
    let (status, receipt) = holder.post(&format!("sessions/{}/agents/lead/messages", sessions[0]), &sent);
    assert_eq!(status, 202, "{receipt}");
    assert!(watching.any(|line| line == "event: message_queued"), "its stream is alive");
}

/// E5: from the moment on when a session is found, its lead is there: agents can be put below it.
#[test]
fn a_session_that_is_found_has_its_lead() {
    let place = Place::new();
    place.write(
        "scenario.yaml",
        &lead("      - tools: [{id: b, name: bash, input: {command: 'sleep 300'}}]\n"),
    );
    let words = ["run", "the task", "--model", "scripted:../scenario.yaml"];
    let mut run = place.midturn("repo", &words).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut found = None;
    // The process is there after a moment; if it ends instead, it will never be found.
    while found.is_none() && run.try_wait().unwrap().is_none() {
        let answer = Holder::find(&place).map(|holder| holder.get("sessions/current/agents"));
        found = answer.filter(|(status, _)| *status == 200);
    }
    let (_, agents) = found.expect("the session is found while it runs");
    assert_eq!(agents["agents"][0]["name"], "lead", "{agents}");
    run.kill().unwrap();
    run.wait().unwrap();
}
