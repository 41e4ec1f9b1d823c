//! A client of HTTP/1.1 that writes what it is told, well-formed or not.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

/// What came back.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The `code` of a problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub id: Option<u64>,
    pub name: String,
    pub data: String,
}

impl Told {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// How long something is waited for that has to come; what a test waits for comes at once, and one
/// for which it doesn't fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for it.
///
/// # Panics
/// It doesn't come.
pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("what is waited for has not come within {PATIENCE:?}"),
    }
}

/// A connection.
pub struct Client {
    stream: BufReader<Either<UnixStream, TcpStream>>,
    /// What of the body came and was not read as an event yet.
    text: String,
}

impl Client {
    pub async fn unix(path: &Path) -> Self {
        Self::of(Either::Left(UnixStream::connect(path).await.unwrap()))
    }

    /// A connection that somebody else has made.
    pub fn of_unix(stream: std::os::unix::net::UnixStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self::of(Either::Left(UnixStream::from_std(stream).unwrap()))
    }

    pub async fn tcp(address: &str) -> Self {
        Self::of(Either::Right(TcpStream::connect(address).await.unwrap()))
    }

    fn of(stream: Either<UnixStream, TcpStream>) -> Self {
        Self { stream: BufReader::new(stream), text: String::new() }
    }

    /// Writes as much as the other side takes: it may have hung up, and rightly.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Writes a request and reads the answer.
    pub async fn ask(&mut self, request: &[u8]) -> Answer {
        self.write(request).await;
        if request.starts_with(b"HEAD ") {
            return self.read_head().await;
        }
        self.answer().await
    }

    pub async fn answer(&mut self) -> Answer {
        let mut answer = self.read_head().await;
        if let Some(length) = answer.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            in_time(self.stream.read_exact(&mut body)).await.unwrap();
            answer.body = body;
        } else if answer.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// The head of the answer; of a connection that just ends, the status is 0.
    pub async fn read_head(&mut self) -> Answer {
        let mut answer = Answer::default();
        let first = self.line().await;
        answer.status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        loop {
            let line = self.line().await;
            let Some((key, value)) = line.split_once(':') else { return answer };
            answer.headers.push((key.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = in_time(self.stream.read_line(&mut line)).await;
        line.trim_end().to_owned()
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap_or(0);
        if size == 0 {
            return None;
        }
        let mut chunk = vec![0; size + 2];
        in_time(self.stream.read_exact(&mut chunk)).await.ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// The next event; none when the stream has ended. Comments are nobody's.
    pub async fn told(&mut self) -> Option<Told> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let frame: String = self.text.drain(..end + 2).collect();
                if frame.starts_with(':') {
                    continue;
                }
                return Some(parse(&frame));
            }
            let chunk = self.chunk().await?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All events up to the end of the stream.
    pub async fn all(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.told().await {
            all.push(told);
        }
        all
    }

    /// The next so many events.
    pub async fn next(&mut self, count: usize) -> Vec<Told> {
        let mut next = Vec::new();
        while next.len() < count {
            next.push(self.told().await.expect("the stream goes on"));
        }
        next
    }
}

fn parse(frame: &str) -> Told {
    let mut told = Told::default();
    for line in frame.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => told.id = Some(id.parse().unwrap()),
            Some(("event", name)) => name.clone_into(&mut told.name),
            Some(("data", data)) => data.clone_into(&mut told.data),
            None if line.is_empty() => {}
            _ => panic!("{line}"),
        }
    }
    told
}
