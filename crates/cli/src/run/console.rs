//! What the person and the programs around us read: progress on standard error, and on
//! standard output the answer or, with `--json`, the events. One thread writes, in order;
//! the queue to it is bounded, so a reader that is slow slows the run and nothing is lost.

use std::io::{BufWriter, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::{Event, LiveEvent};
use tokio_util::sync::CancellationToken;

use super::progress::{self, Asking, Tone};
use super::session::attending::Request;
use crate::env::Env;
use crate::secrets;

/// How many lines may wait for the writer.
const QUEUE: usize = 1_024;

/// What is written where.
enum Piece {
    /// A line of standard output.
    Out(String),
    /// A line of standard error.
    Told(Tone, String),
}

/// Who writes. The observer of a coordinator, and what the command itself has to say.
pub struct Console {
    events: bool,
    /// Whether somebody reads it who can type an answer.
    answers: bool,
    asking: Mutex<Asking>,
    queue: Mutex<Option<SyncSender<Piece>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    broken: CancellationToken,
}

impl Console {
    /// Starts the writer. `events` puts the events on standard output.
    pub fn start(events: bool, env: &Env) -> Self {
        let (queue, lines) = sync_channel(QUEUE);
        let is_read = std::io::stderr().is_terminal();
        let colours = is_read && !env.is_set("NO_COLOR");
        let broken = CancellationToken::new();
        let told = broken.clone();
        let writer = std::thread::spawn(move || {
            if write_all(&lines, colours).is_err() {
                told.cancel();
                // Whoever still sends must not wait for ever: what comes is dropped, the run is being stopped.
                lines.iter().for_each(drop);
            }
        });
        Self {
            events,
            answers: is_read && std::io::stdin().is_terminal(),
            asking: Mutex::default(),
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(Some(writer)),
            broken,
        }
    }

    /// Whether a person is at a terminal who reads what agents ask and can answer it: such a
    /// person counts as attached (docs/protocol.md, "Approvals").
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// Waits until standard output is no longer there: nobody reads what the run is for.
    pub async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Whether standard output is gone.
    pub fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// A line for the person.
    pub fn tell(&self, tone: Tone, line: impl Into<String>) {
        self.put(Piece::Told(tone, secrets::clean(&line.into()).into_owned()));
    }

    /// What is asked already when the first event comes.
    pub(crate) fn asked(&self, request: &Request) {
        let hint = lock(&self.asking).knows(&request.agent, &request.tool);
        self.tell(Tone::Asks, request.line() + if self.answers { &hint } else { "" });
    }

    /// The answer, unless the events are on standard output.
    pub fn answer(&self, text: &str) {
        if self.events {
            return;
        }
        let is_terminal = std::io::stdout().is_terminal();
        let text = if is_terminal { progress::harmless(text).collect() } else { text.to_owned() };
        self.put(Piece::Out(secrets::clean(&text).into_owned()));
    }

    /// Writes what is queued and ends the writer.
    pub fn finish(&self) {
        drop(lock(&self.queue).take());
        if let Some(writer) = lock(&self.writer).take() {
            // A writer that panicked has told so on standard error; there is nothing left to write.
            let _ = writer.join();
        }
    }

    fn put(&self, piece: Piece) {
        // The lock is held while waiting for room: that keeps events in order.
        if let Some(queue) = lock(&self.queue).as_ref() {
            // The writer takes to its end, so this fails only if it panicked.
            let _ = queue.send(piece);
        }
    }

    fn put_json(&self, event: &impl serde::Serialize) {
        match serde_json::to_string(event) {
            Ok(line) => self.put(Piece::Out(line)),
            Err(error) => self.tell(Tone::Bad, format!("an event could not be written: {error}")),
        }
    }
}

impl Observer for Console {
    fn event(&self, event: &Event) {
        if self.events {
            self.put_json(event);
        }
        let hint = lock(&self.asking).follow(event).filter(|_| self.answers).unwrap_or_default();
        if let Some((tone, line)) = progress::line(event) {
            self.tell(tone, line + &hint);
        }
    }

    fn live(&self, event: &LiveEvent) {
        if self.events {
            self.put_json(event);
        }
    }
}

/// A poisoned lock means that a thread panicked while it held plain data: the data is fine.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Writes until nobody can send any more. Fails when standard output does; progress that
/// nobody can read is no reason to stop.
fn write_all(lines: &Receiver<Piece>, colours: bool) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    while let Ok(first) = lines.recv() {
        let mut next = Some(first);
        while let Some(piece) = next {
            match piece {
                Piece::Out(line) => writeln!(out, "{line}")?,
                Piece::Told(tone, line) => {
                    let line = if colours { progress::coloured(tone, &line) } else { line };
                    let _ = writeln!(std::io::stderr(), "{line}");
                }
            }
            next = lines.try_recv().ok();
        }
        out.flush()?;
    }
    out.flush()
}
