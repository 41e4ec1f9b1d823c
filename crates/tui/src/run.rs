//! The loop: waits for keys, for what is told and for what was done, and draws what came of it. Keys come first,
//! and what they change is drawn at once; all else is drawn at most 30 times a second.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossterm::event::{Event as Typed, EventStream, MouseEventKind};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use midturn_client::events::{Told, Wanted, follow};
use midturn_client::{Client, SessionClient};
use midturn_core::rules::time::Micros;
use midturn_view::inbox::Need;
use midturn_wire::replay::Played;
use ratatui::layout::Size;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::composer::drafts::{Drafts, Opened, Saved};
use crate::effect::{Done, Effect};
use crate::look::Tone;
use crate::perform::{is_mail, perform};
use crate::player::Player;
use crate::screen::{Screen, Surface};
use crate::settings::Settings;
use crate::state::{Opening, Standing, State};
use crate::update::{Input, update, wakes_at};
use crate::what_if;

#[cfg(test)]
mod tests;

/// The shortest time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(33);

/// How many events are taken in before somebody looks whether a key was pressed.
const BATCH: usize = 256;

/// How many keys wait to be looked at.
const QUEUE: usize = 256;

/// How many lines the wheel scrolls.
const WHEEL: i16 = 3;

/// How many things are done at once.
const DOING_MAX: usize = 64;

/// How often a session is looked for that was lost.
const LOOKS: Duration = Duration::from_secs(1);

/// Finds the process that carries the session now, if there is one.
pub type Finder = Arc<dyn Fn() -> Option<Client> + Send + Sync>;

/// Is told, too, of what waits for a person who doesn't look: their own way. It must not wait.
pub type Notifier = Arc<dyn Fn(&str, &Need) + Send + Sync>;

/// Plays what is only read again, with a message moved as `midturn replay --shift` moves it; what it says why it can't is for people.
pub type Replayer = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Played, String>> + Send + Sync>;

/// What the terminal is opened on.
pub struct Place {
    /// What is known of the session.
    pub opening: Opening,
    /// Where its events come from.
    pub source: Source,
    /// Where drafts are kept; without it they are not.
    pub drafts: Option<PathBuf>,
    /// The person's own way to be told.
    pub notifier: Option<Notifier>,
}

/// Where events come from.
pub enum Source {
    /// A process that carries the session, and how it is found again.
    Live(SessionClient, Finder),
    /// All there are: the session is only read. It can be played back; `plays`: from its beginning, at once.
    Read {
        /// They come in their order.
        told: mpsc::Receiver<Told>,
        /// Whether it plays when it is opened.
        plays: bool,
        /// Plays it again.
        replayer: Replayer,
    },
}

/// Shows the session until the person leaves, or the process is to end. What was known then comes back.
///
/// # Errors
/// The terminal can't be used.
pub async fn run(place: Place, settings: Settings, interrupted: &CancellationToken) -> io::Result<State> {
    let (drafts, saved, note) = open_drafts(place.drafts.as_deref());
    let mut screen = Screen::enter(settings.mouse, settings.notify)?;
    let mut state = State::new(place.opening, settings, saved, screen.size(), now());
    let notes: Vec<String> = state.opening.notes.drain(..).chain(note).collect();
    if !notes.is_empty() {
        state.say(Tone::Asks, notes.join("; "));
    }
    if let Source::Read { plays, .. } = place.source {
        state.player = Some(Player::new(plays, state.opening.last_seq, now()));
    }
    let (mut keys, mut reading) = typing();
    let mut running = Running::new(place.source, drafts);
    running.notifier = place.notifier;
    loop {
        match running.until_lent(&mut state, &mut screen, &mut keys, interrupted).await? {
            None => break,
            Some(effect) => {
                // Whoever has the terminal meanwhile has its keys, too: an abort is all that can be told.
                reading.abort();
                let _ = reading.await;
                lend(&mut state, &mut screen, effect)?;
                (keys, reading) = typing();
            }
        }
    }
    if let (Some(drafts), Some(saved)) = (&mut running.drafts, state.composer.unsaved()) {
        // The draft is still on the screen that is left: there is nobody to tell.
        let _ = drafts.save(&saved);
    }
    Ok(state)
}

/// What is typed, as far as a task has read it.
type Keys = mpsc::Receiver<io::Result<Typed>>;

/// Starts to read what is typed. The task lets the terminal go when it is aborted.
fn typing() -> (Keys, AbortOnDropHandle<()>) {
    let (queue, keys) = mpsc::channel(QUEUE);
    let reading = tokio::spawn(async move {
        let mut stream = EventStream::new();
        while let Some(typed) = stream.next().await {
            if queue.send(typed).await.is_err() {
                return;
            }
        }
    });
    (keys, AbortOnDropHandle::new(reading))
}

fn open_drafts(folder: Option<&std::path::Path>) -> (Option<Drafts>, Saved, Option<String>) {
    match folder.map(Drafts::open) {
        None => (None, Saved::default(), None),
        Some(Ok(Opened { drafts, saved, notes })) => {
            (Some(drafts), saved, (!notes.is_empty()).then(|| notes.join("; ")))
        }
        Some(Err(error)) => (None, Saved::default(), Some(error.to_string())),
    }
}

/// What time it is: since 1970.
fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// What goes on around the state.
struct Running {
    told: mpsc::Receiver<Told>,
    /// Reads what is told as long as this lives.
    _reader: Option<AbortOnDropHandle<()>>,
    /// Whom to ask, and how to find it again.
    session: Option<(SessionClient, Finder)>,
    /// Who plays again what no process can be asked for.
    replayer: Option<Replayer>,
    doing: JoinSet<Option<Done>>,
    /// What came and was not looked at yet.
    inputs: VecDeque<Input>,
    /// Messages that wait for the one before: as many as `update` lets be on their way.
    mail: VecDeque<Effect>,
    /// Whether a message is on its way.
    is_sending: bool,
    drafts: Option<Drafts>,
    notifier: Option<Notifier>,
    frames: Frames,
    looked: Instant,
}

/// When the next frame is due.
struct Frames {
    last: Option<Instant>,
    /// Something changed.
    dirty: bool,
    /// A key changed it.
    at_once: bool,
}

impl Frames {
    fn due(&self, now: Instant) -> Option<Duration> {
        let since = self.last.map_or(FRAME, |last| now.saturating_duration_since(last));
        self.dirty.then(|| if self.at_once { Duration::ZERO } else { FRAME.saturating_sub(since) })
    }
}

impl Running {
    fn new(source: Source, drafts: Option<Drafts>) -> Self {
        let (told, reader, session, replayer) = match source {
            Source::Live(session, finder) => {
                let (told, reader) = listen(&session, 0);
                (told, Some(reader), Some((session, finder)), None)
            }
            Source::Read { told, replayer, .. } => (told, None, None, Some(replayer)),
        };
        Self {
            told,
            _reader: reader,
            session,
            replayer,
            doing: JoinSet::new(),
            inputs: VecDeque::new(),
            mail: VecDeque::new(),
            is_sending: false,
            drafts,
            notifier: None,
            frames: Frames { last: None, dirty: true, at_once: true },
            looked: Instant::now(),
        }
    }

    /// Goes on until somebody else is to have the terminal; `None`: until it is left.
    async fn until_lent(
        &mut self,
        state: &mut State,
        screen: &mut impl Surface,
        keys: &mut Keys,
        interrupted: &CancellationToken,
    ) -> io::Result<Option<Effect>> {
        loop {
            if state.leaves || interrupted.is_cancelled() {
                return Ok(None);
            }
            if self.inputs.is_empty() {
                self.inputs = self.next(state, screen, keys, interrupted).await?.into();
            }
            while let Some(input) = self.inputs.pop_front() {
                let mut lent = None;
                for effect in self.take(state, input) {
                    lent = self.begin(state, screen, effect)?.or(lent);
                }
                // What came with it waits until the terminal is back.
                if lent.is_some() {
                    return Ok(lent);
                }
            }
            self.look_again(state);
        }
    }

    /// Waits for what comes next, and draws what is due until then. Keys come before all else.
    async fn next(
        &mut self,
        state: &State,
        screen: &mut impl Surface,
        keys: &mut Keys,
        interrupted: &CancellationToken,
    ) -> io::Result<Vec<Input>> {
        let mut pressed = Vec::new();
        while let Ok(typed) = keys.try_recv() {
            pressed.extend(input(Some(typed))?);
        }
        if !pressed.is_empty() {
            return Ok(pressed);
        }
        let due = self.frames.due(Instant::now());
        if due == Some(Duration::ZERO) {
            screen.draw(state)?;
            self.frames = Frames { last: Some(Instant::now()), dirty: false, at_once: false };
            return Ok(Vec::new());
        }
        let wake = self.wake(state, due);
        tokio::select! {
            biased;
            () = interrupted.cancelled() => Ok(Vec::new()),
            typed = keys.recv() => Ok(input(typed)?.into_iter().collect()),
            Some(done) = self.doing.join_next() => Ok(self.was_done(done).map(Input::Done).into_iter().collect()),
            Some(told) = self.told.recv() => Ok(self.batch(told)),
            () = tokio::time::sleep(wake.unwrap_or_default()), if wake.is_some() => Ok(vec![Input::Tick]),
        }
    }

    /// How long until something changes without an input.
    fn wake(&self, state: &State, frame: Option<Duration>) -> Option<Duration> {
        let state_wakes = wakes_at(state).map(|at| at.since(now()).duration());
        let looks = self.is_lost(state).then_some(LOOKS);
        [frame, state_wakes, looks].into_iter().flatten().min()
    }

    /// All that is told already, up to a bound.
    fn batch(&mut self, first: Told) -> Vec<Input> {
        let mut all = vec![Input::Told(first)];
        while all.len() < BATCH
            && let Ok(told) = self.told.try_recv()
        {
            all.push(Input::Told(told));
        }
        all
    }

    fn take(&mut self, state: &mut State, input: Input) -> Vec<Effect> {
        let is_key = !matches!(input, Input::Told(_) | Input::Done(_) | Input::Looked(_) | Input::Tick);
        let effects = update(state, input, now());
        self.frames.dirty = true;
        self.frames.at_once |= is_key;
        effects
    }

    /// Begins an effect. One that needs the terminal for itself comes back.
    fn begin(
        &mut self,
        state: &mut State,
        screen: &mut impl Surface,
        effect: Effect,
    ) -> io::Result<Option<Effect>> {
        match effect {
            Effect::Editor(_) | Effect::Suspend => return Ok(Some(effect)),
            Effect::Redraw => screen.redraw()?,
            Effect::Copy(text) => {
                let copied = screen.copy(&text).map_err(|error| format!("not copied: {error}"));
                let says = copied.map(|()| "copied".to_owned());
                state.say(if says.is_ok() { Tone::Good } else { Tone::Bad }, says.unwrap_or_else(|why| why));
            }
            Effect::Save(saved) => self.save(state, &saved),
            Effect::Title(title) => screen.title(&title)?,
            Effect::Tell(needs) => self.tell(state, screen, &needs)?,
            effect if is_mail(&effect) => {
                self.mail.push_back(effect);
                self.send_next(state);
            }
            effect => self.spawn(state, effect),
        }
        Ok(None)
    }

    /// Tells a person who doesn't look what waits for them.
    fn tell(&self, state: &State, screen: &mut impl Surface, needs: &[Need]) -> io::Result<()> {
        if let Some(notifier) = &self.notifier {
            needs.iter().for_each(|need| notifier(&state.opening.id, need));
        }
        match needs {
            [] => Ok(()),
            [one] => screen.tell(&one.line()),
            [first, ..] => screen.tell(&format!("{} wait for you: {}, …", needs.len(), first.line())),
        }
    }

    fn save(&mut self, state: &mut State, saved: &Saved) {
        let Some(drafts) = &mut self.drafts else { return };
        if let Err(error) = drafts.save(saved) {
            state.composer.not_saved();
            state.keep_drafts();
            state.say(Tone::Bad, error.to_string());
        }
    }

    fn send_next(&mut self, state: &mut State) {
        if !self.is_sending
            && let Some(effect) = self.mail.pop_front()
        {
            self.is_sending = true;
            self.spawn(state, effect);
        }
    }

    fn spawn(&mut self, state: &mut State, effect: Effect) {
        if let (Effect::Replay(shift), Some(replayer)) = (&effect, &self.replayer) {
            let (shift, playing) = (shift.clone(), replayer(shift.to_string()));
            self.doing.spawn(async move {
                let played = playing.await.map(|played| Box::new(what_if::Played::of(&played)));
                Some(Done::Replayed(shift, played))
            });
            return;
        }
        let Some((session, _)) = &self.session else { return };
        if self.doing.len() >= DOING_MAX && !is_mail(&effect) {
            state.say(Tone::Bad, "too much is under way: wait for an answer");
            return;
        }
        self.doing.spawn(perform(session.clone(), effect));
    }

    fn was_done(&mut self, done: Result<Option<Done>, tokio::task::JoinError>) -> Option<Done> {
        let done = done.ok().flatten();
        if matches!(done, None | Some(Done::Sent(..) | Done::Withdrawn { .. } | Done::Stopped { .. })) {
            self.is_sending = false;
            if let (Some(effect), Some((session, _))) = (self.mail.pop_front(), &self.session) {
                self.is_sending = true;
                self.doing.spawn(perform(session.clone(), effect));
            }
        }
        done
    }

    fn is_lost(&self, state: &State) -> bool {
        self.session.is_some() && matches!(state.standing, Standing::Lost(_))
    }

    /// Looks whether a session that was lost is there again, and goes on behind the last event.
    fn look_again(&mut self, state: &mut State) {
        if !self.is_lost(state) || self.looked.elapsed() < LOOKS {
            return;
        }
        self.looked = Instant::now();
        let Some((session, finder)) = &mut self.session else { return };
        // The same process is asked again only if it was there and had not taken the session up.
        let is_new = |client: &Client| state.found.is_some() || *client != session.client;
        if let Some(client) = finder().filter(is_new) {
            session.client = client;
            let (told, reader) = listen(session, state.session.view().seq());
            (self.told, self._reader) = (told, Some(reader));
            state.found_again(Standing::Theirs);
            self.frames.dirty = true;
        }
    }
}

/// Starts to listen to what comes after the event of this number.
fn listen(session: &SessionClient, after: u64) -> (mpsc::Receiver<Told>, AbortOnDropHandle<()>) {
    let wanted = Wanted { session: session.id.clone(), agent: None, after, answers: true };
    follow(session.client.clone(), wanted)
}

/// What was typed, as an input. A terminal that is gone is an error.
fn input(typed: Option<io::Result<Typed>>) -> io::Result<Option<Input>> {
    let typed = typed.ok_or_else(|| io::Error::other("the terminal is gone"))??;
    Ok(match typed {
        Typed::Key(key) => Some(Input::Key(key)),
        Typed::Paste(text) => Some(Input::Paste(text)),
        Typed::Resize(width, height) => Some(Input::Resize(Size::new(width, height))),
        Typed::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Input::Wheel(-WHEEL)),
            MouseEventKind::ScrollDown => Some(Input::Wheel(WHEEL)),
            _ => None,
        },
        Typed::FocusGained => Some(Input::Looked(true)),
        Typed::FocusLost => Some(Input::Looked(false)),
    })
}

/// Lends the terminal to what needs it for itself.
fn lend(state: &mut State, screen: &mut Screen, effect: Effect) -> io::Result<()> {
    match effect {
        Effect::Editor(text) => {
            let mut edited = Err("the editor did not run".to_owned());
            screen.lend(&mut || edited = crate::editor::edit(&text))?;
            update(state, Input::Done(Done::Edited(edited)), now());
        }
        _ => screen.lend(&mut suspend)?,
    }
    // Its size may have changed meanwhile.
    update(state, Input::Resize(screen.size()), now());
    Ok(())
}

/// Stops this process, and what the shell started with it, until the shell goes on with it.
fn suspend() {
    // One that can't be stopped goes on: there is nothing to tell.
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}
