//! A model server on loopback that speaks Anthropic's Messages and answers by a rule. It
//! notes when each request was there, whole.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request gets.
pub(crate) enum Answer {
    /// A text, and the run is over.
    Says(&'static str),
    /// A text and these calls: tool and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// Nothing; the connection stays open.
    Silence,
}

/// A request that came.
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) body: String,
}

type Rule = dyn Fn(&str) -> Answer + Send + Sync;

/// A server; it lives as long as this process.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) asked: Receiver<Asked>,
}

impl Server {
    /// Starts one that answers by this rule; it is given the request's body.
    pub(crate) fn start(rule: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let (tell, asked) = sync_channel(1 << 16);
        let (ready, url) = sync_channel(1);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(format!("http://{}", listener.local_addr().unwrap())).unwrap();
                let rule: Arc<Rule> = Arc::new(rule);
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    tokio::spawn(serve(stream, rule.clone(), tell.clone()));
                }
            });
        });
        Self { url: url.recv().unwrap(), asked }
    }

    /// The next request.
    pub(crate) fn next(&self) -> Asked {
        self.asked.recv().unwrap()
    }
}

/// How many calls a conversation holds the results of.
pub(crate) fn turns(body: &str) -> usize {
    body.matches("\"tool_use_id\"").count()
}

async fn serve(mut stream: TcpStream, rule: Arc<Rule>, tell: SyncSender<Asked>) {
    while let Some(body) = request(&mut stream).await {
        let at = Instant::now();
        let pieces = pieces(&rule(&body), turns(&body));
        // Nobody may be interested in when it came: then it is not kept.
        let _full = tell.try_send(Asked { at, body });
        if pieces.is_empty() {
            continue;
        }
        for piece in pieces {
            if stream.write_all(&piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::with_capacity(16 << 10);
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, &mut bytes).await?;
    };
    let told = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = told.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = head + length.unwrap().trim().parse::<usize>().unwrap();
    while bytes.len() < whole {
        more(stream, &mut bytes).await?;
    }
    String::from_utf8(bytes.split_off(head)).ok()
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(bytes).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

const SAYS: &str = "I have looked at the five call sites; next I change the one in the parser, because the \
                    others follow from it, and then I run the tests of that module to see that nothing broke.";

/// The answer as it goes over the connection: its head, a text of some thirty deltas in two
/// pieces, and the rest.
fn pieces(answer: &Answer, number: usize) -> Vec<Vec<u8>> {
    let (text, calls): (&str, &[_]) = match answer {
        Answer::Silence => return Vec::new(),
        Answer::Says(text) => (text, &[]),
        Answer::Calls(calls) => (SAYS, calls),
    };
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let (first, second) = words.split_at(words.len() / 2);
    let mut begin = event(
        "message_start",
        json!({"message": {"id": "msg_1", "type": "message",
        "role": "assistant", "model": "bench", "content": [], "stop_reason": null,
        "usage": {"input_tokens": 100, "output_tokens": 1}}}),
    );
    begin +=
        &event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
    let delta = |word: &&str| {
        event("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": word}}))
    };
    begin.extend(first.iter().map(delta));
    let mut end: String = second.iter().map(delta).collect();
    end += &event("content_block_stop", json!({"index": 0}));
    for (i, (tool, input)) in calls.iter().enumerate() {
        end += &call(i + 1, &format!("toolu_{number}_{i}"), tool, input);
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    end += &event("message_delta", json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 40}}));
    end += &event("message_stop", json!({}));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    vec![[head.as_bytes(), &chunk(&begin)].concat(), [&chunk(&end)[..], b"0\r\n\r\n"].concat()]
}

fn call(index: usize, id: &str, tool: &str, input: &Value) -> String {
    let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    event("content_block_start", json!({"index": index, "content_block": block}))
        + &event("content_block_delta", json!({"index": index, "delta": delta}))
        + &event("content_block_stop", json!({"index": index}))
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

fn chunk(text: &str) -> Vec<u8> {
    [format!("{:x}\r\n", text.len()).as_bytes(), text.as_bytes(), b"\r\n"].concat()
}
