//! The events of a session from a running Midturn, in order, without a gap and without one
//! twice: a lost stream is taken up again after the last event (docs/protocol.md, "Events").
//!
//! A task of its own reads; whoever asks gets what came from a bounded queue, so that a slow
//! reader slows the stream and nothing piles up.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use midturn_core::rules::event::{Event, LiveEvent};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::view::View;
use midturn_core::sse::{Decoder, Frame, TooLarge};
use midturn_wire::session::Session;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::http::{Client, Path, Streaming, Trouble};

/// How many events may wait for whoever asks.
const QUEUE: usize = 256;

/// The largest event that is read, in bytes: a tool's output is capped far below.
const EVENT_MAX: usize = 16 << 20;

/// After so long a silence it is asked whether the session still lives.
const SILENCE: Duration = Duration::from_secs(5);

/// The pauses between attempts: from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Something that was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// An event, and its JSON as it came.
    Event(String, Box<Event>),
    /// A part of what is recorded later.
    Live(LiveEvent),
    /// Something of a kind that this version doesn't know: its JSON, and its number if it is
    /// an event.
    Other(String, Option<u64>),
    /// Nothing comes any more.
    Ended(Ended),
}

/// Why nothing comes any more.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The session no longer lives in the process.
    Session,
    /// The process, or the way to it, is gone.
    Lost(Trouble),
}

/// What is to be told.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The session's id: not `current`, which may become another.
    pub session: String,
    /// Only this agent's.
    pub agent: Option<AgentName>,
    /// What comes after the event of this number.
    pub after: u64,
    /// Whether somebody reads it who answers what agents ask.
    pub answers: bool,
}

/// Starts to read. The last thing told is [`Told::Ended`].
pub fn follow(client: Client, wanted: Wanted) -> (mpsc::Receiver<Told>, AbortOnDropHandle<()>) {
    let (queue, told) = mpsc::channel(QUEUE);
    let reader = Reader { client, after: wanted.after, wanted, queue, view: View::default() };
    (told, AbortOnDropHandle::new(tokio::spawn(reader.run())))
}

struct Reader {
    client: Client,
    wanted: Wanted,
    /// The last event that was told.
    after: u64,
    queue: mpsc::Sender<Told>,
    /// What was told: who takes a stream up again gets what was said so far in one piece, and most
    /// of that was told before.
    view: View,
}

/// How a stream came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The other side ended it, or it broke: it can be taken up again.
    Again,
    /// Nobody wants more.
    Unwanted,
}

impl Reader {
    async fn run(mut self) {
        if let Some(ended) = self.until_ended().await {
            // An error means that nobody wants to know.
            let _ = self.queue.send(Told::Ended(ended)).await;
        }
    }

    /// `None`: nobody wants more.
    async fn until_ended(&mut self) -> Option<Ended> {
        let mut pause = PAUSES.0;
        loop {
            let is_live = match self.is_live().await {
                Ok(is_live) => is_live,
                Err(trouble) => return Some(Ended::Lost(trouble)),
            };
            let before = self.after;
            match self.stream().await {
                Ok(Cut::Unwanted) => return None,
                // Of a session that no longer lives a stream has all there is, and ends.
                Ok(Cut::Again) if !is_live => return Some(Ended::Session),
                Ok(Cut::Again) => {}
                Err(trouble) if trouble.code() == Some("too_many_requests") => {}
                Err(trouble) => return Some(Ended::Lost(trouble)),
            }
            pause = if self.after == before { (pause * 2).min(PAUSES.1) } else { PAUSES.0 };
            tokio::time::sleep(pause).await;
        }
    }

    async fn is_live(&self) -> Result<bool, Trouble> {
        let session: Session = self.client.get(&Path::in_session(&self.wanted.session, &[])).await?;
        Ok(session.live)
    }

    async fn stream(&mut self) -> Result<Cut, Trouble> {
        let mut path = Path::in_session(&self.wanted.session, &["events"]);
        if let Some(agent) = &self.wanted.agent {
            path = path.with("agent", agent.as_str());
        }
        if self.wanted.answers {
            path = path.with("answers", "true");
        }
        let mut streaming = self.client.stream(&path, self.after).await?;
        self.view.rejoined();
        let mut decoder = Decoder::new(EVENT_MAX);
        let mut frames = VecDeque::new();
        while let Some(bytes) = self.next(&mut streaming).await? {
            let keep = |frame: Frame<'_>| -> Result<(), TooLarge> {
                frames
                    .push_back((frame.event == b"resync", String::from_utf8_lossy(frame.data).into_owned()));
                Ok(())
            };
            decoder.feed(&bytes, keep).map_err(|error| Trouble::Broken(error.to_string()))?;
            while let Some((is_resync, data)) = frames.pop_front() {
                if is_resync {
                    self.resync(&data);
                } else if self.tell(data).await.is_none() {
                    return Ok(Cut::Unwanted);
                }
            }
        }
        Ok(Cut::Again)
    }

    /// The next bytes; none at the end, or when the session ended in silence.
    async fn next(&self, streaming: &mut Streaming) -> Result<Option<bytes::Bytes>, Trouble> {
        loop {
            match tokio::time::timeout(SILENCE, streaming.body.frame()).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_) => continue,
                },
                // A stream that breaks is taken up again like one that ends.
                Ok(Some(Err(_)) | None) => return Ok(None),
                Err(_) => match self.is_live().await {
                    // A process that is suspended goes on where it was.
                    Ok(true) | Err(Trouble::Suspended(_)) => {}
                    Ok(false) => return Ok(None),
                    Err(trouble) => return Err(trouble),
                },
            }
        }
    }

    /// The stream lost its place. If there never were so many events, it goes on after the last.
    fn resync(&mut self, data: &str) {
        #[derive(Deserialize)]
        struct Resync {
            last: u64,
        }
        if let Ok(Resync { last }) = serde_json::from_str(data)
            && last < self.after
        {
            self.after = last;
            self.view = View::default();
        }
    }

    /// `None`: nobody wants more.
    async fn tell(&mut self, data: String) -> Option<()> {
        let told = match read(data) {
            Told::Live(delta) => self.view.rest(delta).map(Told::Live),
            Told::Event(raw, event) => self.is_new(event.seq).then(|| {
                self.view.event(&event);
                Told::Event(raw, event)
            }),
            Told::Other(raw, Some(seq)) => self.is_new(seq).then_some(Told::Other(raw, Some(seq))),
            told @ (Told::Other(..) | Told::Ended(_)) => Some(told),
        };
        match told {
            Some(told) => self.queue.send(told).await.ok(),
            None => Some(()),
        }
    }

    fn is_new(&mut self, seq: u64) -> bool {
        let is_new = seq > self.after;
        self.after = self.after.max(seq);
        is_new
    }
}

/// What a frame's data say.
pub fn read(data: String) -> Told {
    if let Ok(event) = serde_json::from_str::<Event>(&data) {
        return Told::Event(data, Box::new(event));
    }
    match serde_json::from_str::<LiveEvent>(&data) {
        Ok(delta) => Told::Live(delta),
        Err(_) => {
            let seq = serde_json::from_str::<Number>(&data).ok().filter(|number| number.n.is_none());
            Told::Other(data, seq.map(|number| number.seq))
        }
    }
}

/// The number of an event; what has an `n` besides is none.
#[derive(Deserialize)]
struct Number {
    seq: u64,
    n: Option<u64>,
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::event::{EventKind, LiveKind};
    use midturn_core::rules::id::CallId;
    use midturn_core::rules::time::Micros;

    use super::*;

    #[test]
    fn frames_are_events_deltas_or_what_a_newer_version_says() {
        let event = r#"{"v":1,"seq":3,"t":1.5,"agent":"w","run":1,"turn":1,"type":"agent_closed"}"#;
        let Told::Event(raw, parsed) = read(event.to_owned()) else { panic!("{event}") };
        assert_eq!((raw.as_str(), parsed.seq, &parsed.kind), (event, 3, &EventKind::AgentClosed {}));
        let delta = LiveEvent {
            v: 1,
            seq: 3,
            n: 2,
            t: Micros(1_500_000),
            at: parsed.at.clone(),
            kind: LiveKind::ToolOutput { tool: CallId::new("c"), text: "hi\n".into() },
        };
        let raw = serde_json::to_string(&delta).unwrap();
        assert_eq!(read(raw), Told::Live(delta));
        for (new, seq) in [
            (r#"{"v":2,"seq":4,"t":2.0,"type":"something_new"}"#, Some(4)),
            (r#"{"v":2,"seq":4,"n":1,"t":2.0,"type":"new_delta"}"#, None),
            ("nonsense", None),
        ] {
            assert_eq!(read(new.to_owned()), Told::Other(new.to_owned(), seq));
        }
    }
}
