//! The thread that writes. It may wait for whoever reads as long as that takes: nothing of the
//! engine waits for it.

use std::io::{BufWriter, StdoutLock, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use midturn_core::rules::event::Event;
use midturn_core::rules::view::Ask;
use midturn_view::words::{Line, Shown};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::run::progress;

/// What is written where.
pub(super) enum Piece {
    /// A line of standard output.
    Out(String),
    /// A line of standard error.
    Told(Line),
    /// The same, of no use afterwards.
    Passing(Line),
    /// An event: its line of standard error, if it has one, and its JSON, if that is wanted.
    Event(Option<String>, Box<Event>),
    /// A request that was open before the first event.
    Asked(Box<Ask>),
}

/// Who writes.
pub(super) struct Writer {
    pub(super) pieces: mpsc::Receiver<Piece>,
    /// What was written of the session.
    pub(super) shown: Arc<Mutex<Shown>>,
    pub(super) colours: bool,
    /// The screen lies over it.
    pub(super) is_covered: Arc<AtomicBool>,
    /// What waits for its end.
    pub(super) held: Vec<Line>,
}

/// How many lines wait for the end of the screen.
const HELD_MAX: usize = 256;

type Out = BufWriter<StdoutLock<'static>>;

impl Writer {
    /// Writes until nobody can send any more. `broken` is cancelled when standard output is gone;
    /// progress that nobody can read is no reason to stop.
    pub(super) fn run(mut self, broken: &CancellationToken) {
        let mut out = BufWriter::new(std::io::stdout().lock());
        if self.write_all(&mut out).is_err() {
            broken.cancel();
            // Whoever still sends must not wait for ever: what comes is dropped, the run is being stopped.
            while self.pieces.blocking_recv().is_some() {}
        }
    }

    fn write_all(&mut self, out: &mut Out) -> std::io::Result<()> {
        while let Some(first) = self.pieces.blocking_recv() {
            let mut next = Some(first);
            while let Some(piece) = next {
                self.write(out, piece)?;
                next = self.pieces.try_recv().ok();
            }
            out.flush()?;
        }
        out.flush()
    }

    fn write(&mut self, out: &mut Out, piece: Piece) -> std::io::Result<()> {
        match piece {
            Piece::Out(line) => writeln!(out, "{line}")?,
            Piece::Passing(_) if self.is_covered.load(Ordering::Relaxed) => {}
            Piece::Told(line) if self.is_covered.load(Ordering::Relaxed) => {
                if self.held.len() < HELD_MAX {
                    self.held.push(line);
                }
            }
            Piece::Passing(line) | Piece::Told(line) => {
                // On a terminal both are one page, and an answer stands before what is said of it.
                out.flush()?;
                let held = std::mem::take(&mut self.held);
                held.into_iter().chain([line]).for_each(|line| self.tell(line));
            }
            Piece::Asked(ask) => {
                let line = self.shown.lock().asked(&ask);
                self.tell(line);
            }
            Piece::Event(json, event) => {
                // A request counts as shown just before it is: who reads it may answer at once.
                let line = self.shown.lock().event(&event);
                if let Some(json) = json {
                    writeln!(out, "{json}")?;
                }
                let line = line.filter(|_| !self.is_covered.load(Ordering::Relaxed));
                line.into_iter().for_each(|line| self.tell(line));
            }
        }
        Ok(())
    }

    fn tell(&self, (tone, line): Line) {
        let line = if self.colours { progress::coloured(tone, &line) } else { line };
        // Progress that nobody can read is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
