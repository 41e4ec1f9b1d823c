//! A tiny HTTP server for the tests: it answers with the very bytes a test wrote, in the pieces
//! the test cut them into, and keeps what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What one request gets.
pub(crate) enum Answer {
    /// A status with headers and a body, and the connection can be used again.
    Whole(String),
    /// The head of a streaming response and these pieces, then the end of the response.
    Stream(Vec<Vec<u8>>),
    /// As `Stream`, but then nothing more, and the connection stays open.
    Hang(Vec<Vec<u8>>),
    /// As `Stream`, but then the connection ends in the middle of the response.
    Break(Vec<Vec<u8>>),
    /// No answer at all.
    Silence,
}

/// One request as it came.
pub(crate) struct Asked {
    /// Request line and headers.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
}

impl Asked {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The server. It ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) url: String,
    /// What was asked, in order.
    pub(crate) asked: mpsc::Receiver<Asked>,
    /// A connection was closed by the client.
    pub(crate) closed: mpsc::Receiver<usize>,
}

impl Server {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let (ask, asked) = mpsc::channel(64);
        let (close, closed) = mpsc::channel(64);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (answers, ask, close) = (answers.clone(), ask.clone(), close.clone());
                tokio::spawn(async move {
                    serve(stream, connection, &answers, &ask).await;
                    close.send(connection).await.unwrap();
                });
            }
        });
        Self { url, asked, closed }
    }
}

/// Serves one connection until it ends.
async fn serve(
    mut stream: TcpStream,
    connection: usize,
    answers: &Mutex<VecDeque<Answer>>,
    ask: &mpsc::Sender<Asked>,
) {
    while let Some((head, body)) = request(&mut stream).await {
        ask.send(Asked { head, body, connection }).await.unwrap();
        let answer = answers.lock().unwrap().pop_front().unwrap_or(Answer::Silence);
        let ends = match answer {
            Answer::Whole(text) => stream.write_all(text.as_bytes()).await.is_err(),
            Answer::Stream(pieces) => send(&mut stream, pieces, "0\r\n\r\n").await.is_err(),
            Answer::Hang(pieces) => send(&mut stream, pieces, "").await.is_err(),
            Answer::Break(pieces) => {
                send(&mut stream, pieces, "").await.ok();
                true
            }
            Answer::Silence => false,
        };
        if ends {
            return;
        }
    }
}

/// The end goes out with the last piece, so that a client that has read one has the other.
async fn send(stream: &mut TcpStream, pieces: Vec<Vec<u8>>, end: &str) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut parts = vec![head.as_bytes().to_vec()];
    parts.extend(pieces.into_iter().map(|piece| {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(&piece);
        chunk.extend_from_slice(b"\r\n");
        chunk
    }));
    parts.last_mut().unwrap().extend_from_slice(end.as_bytes());
    for part in parts {
        stream.write_all(&part).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The next request of a connection; `None` when the client has closed it.
async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("a body of known length").parse().unwrap();
    while bytes.len() < end + length {
        read(stream, &mut bytes).await?;
    }
    Some((head, String::from_utf8(bytes[end..end + length].to_vec()).unwrap()))
}

async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(bytes).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}
