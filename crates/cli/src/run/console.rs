//! What the person and the programs around us read: progress on standard error, and on
//! standard output the answer or, with `--json`, the events.
//!
//! A task reads the session's events by number, as every event stream does, and one thread
//! writes, in order; the queue between them is bounded. Whoever stops reading holds up that
//! task and nothing else: what it misses it reads in the store. After Ctrl-C nobody waits long
//! for a reader that takes nothing, and what is left out then is left out to the end.

mod writer;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use midturn_client::events::{Told, read};
use midturn_core::rules::event::{Event, LiveEvent, LiveKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::view::{Ask, View};
use midturn_server::feed::{Follower, News};
use midturn_tools::workplace::Listener;
use midturn_view::clean::{clean, one_line};
use midturn_view::lines::{Lines, PRINTS, shown};
use midturn_view::words::{Shown, Tone};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::secrets;
use writer::{Piece, Writer};

/// How many pieces may wait for the writer.
const QUEUE: usize = 64;

/// After Ctrl-C, how long a reader may take nothing before it is given up.
const PATIENCE: Duration = Duration::from_millis(200);

/// Who writes: what is told of a session, and what the command itself has to say.
pub(crate) struct Console {
    events: bool,
    /// Whether somebody reads it who can type an answer.
    answers: bool,
    /// What was told of the session, and what of that was written.
    told: Mutex<View>,
    shown: Arc<Mutex<Shown>>,
    /// What setups print, as far as it was not written yet.
    setups: Mutex<BTreeMap<AgentName, Lines>>,
    /// Who writes what there is to say of agents' folders, behind what was told before.
    notes: Mutex<Option<mpsc::Sender<Note>>>,
    queue: Mutex<Option<mpsc::Sender<Piece>>>,
    /// Cancelled when the writer has ended.
    written: CancellationToken,
    /// The last event that was put into the queue; closed when nothing more is told.
    heard: Mutex<Option<watch::Receiver<u64>>>,
    broken: CancellationToken,
    interrupted: CancellationToken,
    /// The reader takes nothing and the process ends: nothing more is written.
    given_up: CancellationToken,
    /// The screen lies over it: lines wait until that is gone.
    is_covered: Arc<AtomicBool>,
    /// The lead's last run whose answer was given.
    answered: AtomicU64,
    /// Something was told of the session.
    more: Notify,
}

/// What there is to say of an agent's folder.
struct Note {
    agent: AgentName,
    text: String,
    /// Is told when it is on its way to whoever reads.
    written: oneshot::Sender<()>,
}

#[async_trait]
impl Listener for Console {
    async fn tell(&self, agent: &AgentName, text: &str) {
        let (written, is_written) = oneshot::channel();
        let note = Note { agent: agent.clone(), text: text.to_owned(), written };
        let notes = self.notes.lock().clone();
        if let Some(notes) = notes
            && notes.send(note).await.is_ok()
        {
            // An error means that nothing more is told, and nobody is told it.
            let _ = is_written.await;
        }
    }
}

impl Console {
    /// Starts the writer. `events` puts the events on standard output; from the moment on when
    /// `interrupted` is cancelled the process is to end.
    pub(crate) fn start(events: bool, env: &Env, interrupted: CancellationToken) -> Self {
        let (queue, pieces) = mpsc::channel(QUEUE);
        let written = CancellationToken::new();
        let is_read = std::io::stderr().is_terminal();
        let answers = is_read && std::io::stdin().is_terminal();
        let (broken, shown) = (CancellationToken::new(), Arc::new(Mutex::new(Shown::new(answers))));
        let colours = is_read && !env.is_set("NO_COLOR");
        let is_covered = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            pieces,
            shown: shown.clone(),
            colours,
            is_covered: is_covered.clone(),
            held: Vec::new(),
        };
        let (told, ended) = (broken.clone(), written.clone().drop_guard());
        // Nobody can join a thread that waits for whoever reads: it may end with the process.
        std::thread::spawn(move || {
            // Whether it ends or panics: there is nothing more to wait for.
            let _ended = ended;
            writer.run(&told);
        });
        Self {
            events,
            answers,
            told: Mutex::default(),
            shown,
            setups: Mutex::default(),
            notes: Mutex::default(),
            queue: Mutex::new(Some(queue)),
            written,
            heard: Mutex::default(),
            broken,
            interrupted,
            given_up: CancellationToken::new(),
            is_covered,
            answered: AtomicU64::default(),
            more: Notify::new(),
        }
    }

    /// Writes nothing while the screen is there, which shows what happens. What the command itself has to say
    /// is written behind it.
    pub(crate) async fn covered<T>(&self, screen: impl Future<Output = T>) -> T {
        self.is_covered.store(true, Ordering::Relaxed);
        let shown = screen.await;
        self.is_covered.store(false, Ordering::Relaxed);
        shown
    }

    /// Whether a person is at a terminal who reads what agents ask and can answer it: such a
    /// person counts as attached (docs/protocol.md, "Approvals").
    pub(crate) fn answers(&self) -> bool {
        self.answers
    }

    /// Waits until standard output is no longer there: nobody reads what the run is for.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Whether standard output is gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// A line for the person.
    pub(crate) async fn tell(&self, tone: Tone, line: impl Into<String>) {
        self.put(Piece::Told((tone, secrets::clean(&line.into()).into_owned()))).await;
    }

    /// What is asked already when the first event comes.
    pub(crate) async fn asked(&self, ask: &Ask) {
        self.put(Piece::Asked(Box::new(ask.clone()))).await;
    }

    /// What is asked, as far as whoever reads this knows.
    pub(crate) fn asking(&self) -> Vec<Ask> {
        self.shown.lock().asking().to_vec()
    }

    /// Looks at what was told of the session, whether or not it is written yet.
    pub(crate) fn told<T>(&self, of: impl FnOnce(&View) -> T) -> T {
        of(&self.told.lock())
    }

    /// Whether the answer of this run is still to be given; from now on it is not.
    pub(crate) fn answers_run(&self, run: u64) -> bool {
        self.answered.fetch_max(run, Ordering::Relaxed) < run
    }

    /// Waits until something more is told of the session than at this call.
    pub(crate) async fn more(&self) {
        self.more.notified().await;
    }

    /// The answer, unless the events are on standard output.
    pub(crate) async fn answer(&self, text: &str) {
        if self.events {
            return;
        }
        let is_terminal = std::io::stdout().is_terminal();
        let text = if is_terminal { clean(text) } else { text.to_owned() };
        self.put(Piece::Out(secrets::clean(&text).into_owned())).await;
    }

    /// An event, as it came.
    pub(crate) async fn event(&self, raw: String, event: Box<Event>) {
        if let Some(agent) = &event.at.agent {
            self.setup_rests(agent).await;
        }
        self.told.lock().event(&event);
        self.more.notify_one();
        self.put(Piece::Event(self.events.then_some(raw), event)).await;
    }

    /// What a setup has printed last, if it has no end.
    async fn setup_rests(&self, agent: &AgentName) {
        let rest = self.setups.lock().remove(agent).map(|mut lines| lines.rest());
        for line in shown(agent, rest.unwrap_or_default(), PRINTS) {
            self.put(Piece::Passing(line)).await;
        }
    }

    async fn note(&self, note: Note) {
        self.setup_rests(&note.agent).await;
        for line in note.text.lines() {
            self.tell(Tone::Quiet, format!("{}: {}", note.agent, one_line(line))).await;
        }
        // Whoever told it may wait for it no longer.
        let _ = note.written.send(());
    }

    /// A part of what is recorded later, and what is recorded nowhere.
    pub(crate) async fn live(&self, event: &LiveEvent) {
        if let (LiveKind::SetupOutput { text }, Some(agent)) = (&event.kind, &event.at.agent) {
            let lines = self.setups.lock().entry(agent.clone()).or_default().add(text);
            for line in shown(agent, lines, PRINTS) {
                self.put(Piece::Passing(line)).await;
            }
        }
        if !self.events {
            return;
        }
        match serde_json::to_string(event) {
            Ok(line) => self.put(Piece::Out(line)).await,
            Err(error) => self.tell(Tone::Bad, format!("a delta could not be written: {error}")).await,
        }
    }

    /// Starts to show what is told of a session, to its end.
    pub(crate) fn follow(self: &Arc<Self>, follower: Follower) {
        let (heard, reading) = watch::channel(follower.seq());
        *self.heard.lock() = Some(reading);
        let (sender, notes) = mpsc::channel(1);
        *self.notes.lock() = Some(sender);
        // It ends with its feed, or with the runtime.
        tokio::spawn(self.clone().read(follower, heard, notes));
    }

    async fn read(
        self: Arc<Self>,
        mut follower: Follower,
        heard: watch::Sender<u64>,
        mut notes: mpsc::Receiver<Note>,
    ) {
        loop {
            let next = tokio::select! {
                biased;
                next = follower.next() => next,
                Some(note) = notes.recv() => {
                    self.note(note).await;
                    continue;
                }
            };
            match next {
                Ok(Some(news)) => self.hear(news).await,
                Ok(None) => return,
                Err(error) => {
                    let told =
                        format!("error: the events can't be read any more: {error}; `midturn log` has them");
                    return self.tell(Tone::Bad, told).await;
                }
            }
            heard.send_replace(follower.seq());
        }
    }

    async fn hear(&self, news: News) {
        let json = match news {
            News::Rejoined => return self.told.lock().rejoined(),
            News::Delta(json) if !self.events && !is_of_setup(&json) => return,
            News::Delta(json) | News::Event(json) => String::from_utf8_lossy(&json).into_owned(),
        };
        match read(json) {
            Told::Event(raw, event) => self.event(raw, event).await,
            Told::Live(delta) => {
                let rest = self.told.lock().rest(delta);
                if let Some(rest) = rest {
                    self.live(&rest).await;
                }
            }
            // Whatever this process tells, it knows.
            Told::Other(..) | Told::Ended(_) => {}
        }
    }

    /// Waits until all events up to this number are on their way to whoever reads.
    pub(crate) async fn heard(&self, seq: u64) {
        let Some(mut reading) = self.heard.lock().clone() else { return };
        tokio::select! {
            biased;
            // An error means that nothing more is told.
            _ = reading.wait_for(|heard| *heard >= seq) => {}
            () = self.gives_up() => self.given_up.cancel(),
        }
    }

    /// Waits until all of a session that has ended is on its way to whoever reads.
    pub(crate) async fn heard_all(&self) {
        self.heard(u64::MAX).await;
    }

    /// Waits until everything is written. `false`: whoever reads takes nothing, and the process
    /// is to end.
    pub(crate) async fn finish(&self) -> bool {
        drop(self.queue.lock().take());
        tokio::select! {
            biased;
            // A writer that panicked has told so on standard error.
            () = self.written.cancelled() => true,
            () = self.gives_up() => false,
        }
    }

    async fn put(&self, piece: Piece) {
        let Some(queue) = self.queue.lock().clone() else { return };
        if self.given_up.is_cancelled() {
            return;
        }
        tokio::select! {
            biased;
            // The writer takes to its end, so this fails only if it panicked.
            _ = queue.send(piece) => {}
            () = self.gives_up() => self.given_up.cancel(),
        }
    }

    /// Waits until whoever reads has had time enough.
    async fn gives_up(&self) {
        self.interrupted.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Whether it is a delta of a setup's output. There are many others, which nobody is shown here: they are not read.
fn is_of_setup(json: &[u8]) -> bool {
    // In a text its quotes would be escaped.
    String::from_utf8_lossy(json).contains(r#""type":"setup_output""#)
}
