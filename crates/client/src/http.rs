//! Requests to a running Midturn over its Unix socket, one connection each, and a sentence
//! for everything that can go wrong. It knows the way to a session and no other route, and prints
//! nothing.

use std::io::ErrorKind;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use midturn_wire::problem::Problem;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;

use crate::interface::Interface;

/// The only name that the socket answers to.
const HOST_NAME: &str = "midturn";

/// The largest answer that is read, in bytes: a patch may be large.
const ANSWER_MAX: usize = 64 << 20;

/// After how long without the first byte of an answer it is looked whether the process is suspended.
const FIRST_BYTE: Duration = Duration::from_secs(2);

/// How long an answer may take that nobody asked to wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an answer may take that has to wait for what agents run.
const LONG_PATIENCE: Duration = Duration::from_secs(3_600);

/// Why a request did not do what it was for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Trouble {
    /// Nobody listens.
    #[error("no Midturn is running in this project: start one with `midturn serve` or `midturn run`")]
    Nobody,
    /// It was refused, in the words of the process.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// No answer in time.
    #[error(
        "the running Midturn did not answer within {0} s; `midturn ps` tells whether it is alive, and what it does"
    )]
    Slow(u64),
    /// The process is stopped by a signal: it answers when it goes on, and not before.
    #[error(
        "the Midturn that holds this project is suspended (process {0}): `fg` in its terminal, or `kill -CONT {0}`, lets it go on; \
         `midturn sessions`, `midturn log` and `midturn show` work meanwhile"
    )]
    Suspended(u32),
    /// The connection failed under way: whether the request was obeyed is not known.
    #[error("the connection to the running Midturn broke ({0}): look with `midturn ps` before you try again")]
    Broken(String),
    /// It was not sent: it can't be put into JSON.
    #[error("the request can't be written: {0}")]
    Unwritten(String),
    /// An answer that is none.
    #[error("the running Midturn (version {version}) answered what this one (version {own}) can't read: {what}; \
             start it anew with this version", own = env!("CARGO_PKG_VERSION"))]
    Strange {
        /// The other's version.
        version: String,
        /// What can't be read.
        what: String,
    },
}

impl Trouble {
    /// Whether the process that was asked is gone: asking again may find another.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Nobody | Self::Broken(_))
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        let Self::Refused(problem) = self else { return None };
        Some(&problem.code)
    }
}

/// The way to a running Midturn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    interface: Interface,
}

/// An answer whose body goes on: the connection lives as long as this does.
pub struct Streaming {
    /// The body.
    pub body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

impl Client {
    /// The process that an `interface.json` speaks of. It may have died.
    pub fn of(interface: Interface) -> Self {
        Self { interface }
    }

    /// What is asked for with `GET`: a type of `midturn-wire`, or the JSON as it came.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<T, Trouble> {
        self.read(&self.exchange(Method::GET, path, None, PATIENCE).await?)
    }

    /// What is asked for with `GET`, where the answer may take so much longer.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn wait(&self, path: &Path, patience: Duration) -> Result<Value, Trouble> {
        self.exchange(Method::GET, path, None, PATIENCE.saturating_add(patience)).await
    }

    /// A change.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn post<T: DeserializeOwned>(&self, path: &Path, body: &impl Serialize) -> Result<T, Trouble> {
        self.read(&self.exchange(Method::POST, path, Some(written(body)?), PATIENCE).await?)
    }

    /// A change that may have to wait for what agents run.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn post_patiently<T: DeserializeOwned>(
        &self,
        path: &Path,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        self.read(&self.exchange(Method::POST, path, Some(written(body)?), LONG_PATIENCE).await?)
    }

    /// A stream of events that goes on after the event of this number.
    ///
    /// # Errors
    /// [`Trouble`]; what goes wrong later is told by the body.
    pub async fn stream(&self, path: &Path, after: u64) -> Result<Streaming, Trouble> {
        let mut request = self.request(Method::GET, path, None)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        request.headers_mut().insert("last-event-id", after.into());
        let sent = tokio::time::timeout(PATIENCE, self.unless_suspended(self.send(request)));
        let (response, connection) = sent.await.map_err(|_| Trouble::Slow(PATIENCE.as_secs()))??;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response).await);
        }
        Ok(Streaming { body: response.into_body(), _connection: connection })
    }

    /// An answer as what it should be.
    ///
    /// # Errors
    /// [`Trouble::Strange`].
    pub fn read<T: DeserializeOwned>(&self, answer: &Value) -> Result<T, Trouble> {
        T::deserialize(answer).map_err(|error| self.strange(error.to_string()))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &Path,
        body: Option<Bytes>,
        patience: Duration,
    ) -> Result<Value, Trouble> {
        let request = self.request(method, path, body)?;
        let exchange = async {
            let (response, _connection) = self.unless_suspended(self.send(request)).await?;
            if !response.status().is_success() {
                return Err(self.refusal(response).await);
            }
            let body = whole(response.into_body()).await?;
            serde_json::from_slice(&body).map_err(|error| self.strange(error.to_string()))
        };
        let answered = tokio::time::timeout(patience, exchange).await;
        answered.map_err(|_| Trouble::Slow(patience.as_secs()))?
    }

    /// The answer, unless it doesn't begin to come because the process is suspended. A process that is only
    /// slow is waited for.
    async fn unless_suspended<T>(
        &self,
        answer: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let mut answer = std::pin::pin!(answer);
        if self.interface.is_suspended() {
            // Nothing is asked yet: what its socket takes now it would obey whenever it goes on.
            tokio::time::sleep(FIRST_BYTE).await;
            if self.interface.is_suspended() {
                return Err(Trouble::Suspended(self.interface.pid));
            }
        }
        loop {
            match tokio::time::timeout(FIRST_BYTE, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) if self.interface.is_suspended() => {
                    return Err(Trouble::Suspended(self.interface.pid));
                }
                Err(_) => {}
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &Path,
        body: Option<Bytes>,
    ) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut request = Request::builder()
            .method(method)
            .uri(&path.0)
            .header(HOST, HOST_NAME)
            .header(AUTHORIZATION, format!("Bearer {}", self.interface.token))
            .header(ACCEPT, "application/json");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.unwrap_or_default())).map_err(|error| Trouble::Broken(error.to_string()))
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), Trouble> {
        let stream = UnixStream::connect(&self.interface.socket).await.map_err(unconnected)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // The request and the body are told of what goes wrong with it.
            let _ = connection.await;
        }));
        Ok((sender.send_request(request).await.map_err(broken)?, connection))
    }

    async fn refusal(&self, response: Response<Incoming>) -> Trouble {
        let status = response.status();
        let body = match whole(response.into_body()).await {
            Ok(body) => body,
            Err(trouble) => return trouble,
        };
        match serde_json::from_slice(&body) {
            Ok(problem) => Trouble::Refused(problem),
            Err(_) => self.strange(format!("status {status} without a reason")),
        }
    }

    fn strange(&self, what: String) -> Trouble {
        Trouble::Strange { version: self.interface.version.clone(), what }
    }
}

/// A request's body, its fields in the order of their names.
fn written(body: &impl Serialize) -> Result<Bytes, Trouble> {
    let body = serde_json::to_value(body).map_err(|error| Trouble::Unwritten(error.to_string()))?;
    Ok(Bytes::from(body.to_string()))
}

async fn whole(body: Incoming) -> Result<Bytes, Trouble> {
    let body = Limited::new(body, ANSWER_MAX).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| Trouble::Broken(error.to_string()))
}

fn broken(error: hyper::Error) -> Trouble {
    Trouble::Broken(error.to_string())
}

fn unconnected(error: std::io::Error) -> Trouble {
    match error.kind() {
        // A process that was killed leaves its socket behind.
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Trouble::Nobody,
        _ => Trouble::Broken(error.to_string()),
    }
}

/// A path below `/v1`, with a query: every part is encoded, so that none can be taken for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// `/v1/PART/PART…`.
    pub fn of(parts: &[&str]) -> Self {
        let mut path = "/v1".to_owned();
        for part in parts {
            path.push('/');
            path.extend(utf8_percent_encode(part, NON_ALPHANUMERIC));
        }
        Self(path)
    }

    /// `/v1/sessions/SESSION/PART…`.
    pub fn in_session(session: &str, parts: &[&str]) -> Self {
        Self::of(&[&["sessions", session], parts].concat())
    }

    /// With one more pair in its query.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_path_can_be_taken_for_another() {
        for (parts, expected) in [
            (&["sessions", "current"][..], "/v1/sessions/current"),
            (&["messages", "a/../b?c=d"], "/v1/messages/a%2F%2E%2E%2Fb%3Fc%3Dd"),
            (&["messages", ".."], "/v1/messages/%2E%2E"),
            (&["messages", "é\n"], "/v1/messages/%C3%A9%0A"),
        ] {
            assert_eq!(Path::of(parts).0, expected);
        }
        let query = Path::of(&["events"]).with("agent", "a&b").with("after", "3");
        assert_eq!(query.0, "/v1/events?agent=a%26b&after=3");
    }
}
