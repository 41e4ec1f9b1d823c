//! A process that holds a project and answers as a test tells it to.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use midturn_client::Interface;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::common::Place;

const TOKEN: &str = "the-token-of-the-fake";

/// What is answered.
#[derive(Clone)]
pub(crate) enum Answer {
    /// This, with status 200.
    Json(Value),
    /// A problem with this status, code and sentence.
    Problem(u16, &'static str, &'static str),
    /// These bytes of an event stream, and its end.
    Stream(String),
}

/// Answers by method and path (`/v1` left out); the last of several answers is given again and again.
pub(crate) type Answers = BTreeMap<&'static str, Vec<Answer>>;

/// The process.
pub(crate) struct Fake {
    asked: Arc<Asked>,
    /// The listening socket once more, to shut it down.
    socket: UnixStream,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

struct Asked {
    answers: Mutex<Answers>,
    requests: Mutex<Vec<String>>,
}

/// The folder of state of the place's repository, made as a holder makes it. Where it is to be is
/// asked of the binary, which names the store in it.
fn state(place: &Place) -> PathBuf {
    let said = place.midturn("repo", &["sessions"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let store = said.strip_prefix("no session is kept in ").and_then(|rest| rest.split(" yet").next());
    let folder = Path::new(store.unwrap()).parent().unwrap().to_owned();
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    folder
}

impl Fake {
    /// Starts to answer.
    pub(crate) fn start(place: &Place, answers: Answers) -> Self {
        let state = state(place);
        let socket = place.path("fake.sock");
        let interface = Interface {
            pid: std::process::id(),
            socket: socket.clone(),
            token: TOKEN.into(),
            version: "9.9.9".into(),
            tcp: None,
        };
        let asked = Arc::new(Asked { answers: Mutex::new(answers), requests: Mutex::default() });
        let end = CancellationToken::new();
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let socket = UnixStream::from(OwnedFd::from(listener.try_clone().unwrap()));
        let serving = (asked.clone(), end.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (asked, end) = serving;
            runtime.block_on(async move {
                let listener = UnixListener::from_std(listener).unwrap();
                let app = Router::new().fallback(answer).with_state(asked);
                tokio::select! {
                    served = axum::serve(listener, app).into_future() => served.unwrap(),
                    () = end.cancelled() => {}
                }
            });
        });
        interface.write(&state.join("interface.json")).unwrap();
        Self { asked, socket, end, thread: Some(thread) }
    }

    /// What was asked so far, a line each: method, path, the last event's number, body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.asked.requests.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.end.cancel();
        self.thread.take().unwrap().join().unwrap();
        // A process that another test starts has the socket open until it executes its program: whoever
        // connects meanwhile would be accepted, and then cut off.
        self.socket.shutdown(Shutdown::Both).unwrap();
    }
}

async fn answer(State(asked): State<Arc<Asked>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let authorization = format!("Bearer {TOKEN}");
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let is_ours =
        header("host").as_deref() == Some("midturn") && header("authorization") == Some(authorization);
    let is_json = header("content-type").as_deref() == Some("application/json");
    if !is_ours || (parts.method == Method::POST) != is_json {
        return respond(&Answer::Problem(401, "wrong_token", "this is not how to ask"));
    }
    let path = parts.uri.to_string();
    let asks = format!("{} {}", parts.method, path.strip_prefix("/v1").unwrap());
    let after = header("last-event-id").map(|id| format!(" after {id}")).unwrap_or_default();
    let text = String::from_utf8(body.to_vec()).unwrap();
    asked.requests.lock().unwrap().push(format!("{asks}{after} {text}").trim_end().to_owned());
    let mut answers = asked.answers.lock().unwrap();
    match answers.get_mut(asks.split('?').next().unwrap()) {
        None => respond(&Answer::Problem(404, "not_found", "the test has no answer to this")),
        Some(all) if all.len() > 1 => respond(&all.remove(0)),
        Some(all) => respond(&all[0]),
    }
}

fn respond(answer: &Answer) -> Response {
    let (status, kind, body) = match answer {
        Answer::Json(value) => (200, "application/json", value.to_string()),
        Answer::Problem(status, code, detail) => {
            let problem = json!({"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail});
            (*status, "application/problem+json", problem.to_string())
        }
        Answer::Stream(text) => (200, "text/event-stream", text.clone()),
    };
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("content-type", kind)
        .body(Body::from(body))
        .unwrap()
}
