//! When each agent did what, when a message was sent, where it went in and what it cost: the events of a
//! session folded into what a picture of them needs (faces.md, section 4).
//!
//! [`Timeline`] keeps what happened, [`Picture`] is that laid out from left to right. [`crate::svg`] and
//! [`crate::strip`] draw a picture, and so does the page, which makes the same one. Nothing here knows pixels, columns or colours.

mod axis;
mod lane;
mod parts;
mod picture;
mod words;

use std::collections::BTreeMap;

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::ending::InterruptReason;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Urgency;

use self::lane::{Key, Lane};
pub use self::parts::{Ahead, Bar, End, Kind, Letter, Mark, MarkKind, Moment, Tick};
pub use self::picture::{Drawn, LaneDrawn, LetterDrawn, MarkDrawn, Picture};
pub use self::picture::{cells, sign_of};
use crate::agents::WAIT;
use crate::clean::one_line;
use crate::words::{gist, short};

/// How many agents have a lane.
pub const LANES_MAX: usize = 512;

/// How many bars, messages and marks are kept, of each the newest.
pub const KEPT_MAX: usize = 20_000;

/// What a session's picture is made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The last event.
    now: Moment,
    lanes: Vec<Lane>,
    /// The place of each agent's lane.
    places: BTreeMap<AgentName, usize>,
    /// How many agents have no lane any more.
    beyond: u64,
    /// By the event that began them.
    bars: BTreeMap<u64, Bar>,
    letters: BTreeMap<u64, Letter>,
    marks: BTreeMap<u64, Mark>,
    /// When the session was taken up again, after a crash or a shutdown.
    lives: Vec<Moment>,
    /// How much was let go.
    left_out: u64,
}

impl Timeline {
    /// The timeline of all events of a session.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut session = crate::fold::Session::default();
        for event in events {
            session.event(event);
        }
        session.timeline
    }

    /// The messages that were accepted, in the order in which they were sent.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Letter> {
        self.letters.values().filter(|letter| letter.urgency.is_some())
    }

    /// A message in a sentence: from whom to whom, what it says, and what became of it.
    pub fn says(&self, letter: &Letter) -> String {
        words::letter(letter, self.lanes.get(letter.to).map_or("", |lane| lane.name.as_str()))
    }

    /// The next event, one that core's fold took for no stale one.
    pub fn event(&mut self, event: &Event) {
        let here = Moment::of(event);
        let before = std::mem::replace(&mut self.now, here);
        let Some(name) = &event.at.agent else {
            if let EventKind::SessionResumed { .. } = &event.kind {
                self.resumed(before, here);
            }
            return;
        };
        if let Some(lane) = self.lane(name, &event.kind) {
            self.happens(lane, here, event);
            self.bounded();
        }
    }

    /// The lane of an agent; none for one agent more than there are lanes for.
    fn lane(&mut self, name: &AgentName, kind: &EventKind) -> Option<usize> {
        if let Some(lane) = self.places.get(name) {
            return Some(*lane);
        }
        // What is refused may be for names that nobody has.
        if matches!(kind, EventKind::MessageRefused { .. }) {
            return None;
        }
        if self.lanes.len() >= LANES_MAX {
            self.beyond += u64::from(matches!(kind, EventKind::AgentSpawned { .. }));
            return None;
        }
        let parent = match kind {
            EventKind::AgentSpawned { parent: Some(parent), .. } => self.places.get(parent),
            _ => None,
        };
        let depth = parent.map_or(0, |parent| self.lanes[*parent].depth.saturating_add(1));
        let place = self.lanes.len();
        self.places.insert(name.clone(), place);
        self.lanes.push(Lane::new(name.clone(), depth));
        Some(place)
    }

    /// Whose lane it is, by the name that a sender has.
    fn place_of(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    fn happens(&mut self, lane: usize, here: Moment, event: &Event) {
        match &event.kind {
            EventKind::ModelStarted { .. }
            | EventKind::ModelFinished { .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. } => self.replies(lane, here, event),
            EventKind::ToolStarted { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalResolved { .. } => self.calls(lane, here, event),
            EventKind::MessageQueued { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::MessageInjected { .. }
            | EventKind::MessageReturned { .. } => self.mail(lane, here, event),
            EventKind::StopRequested { by, reason, .. } => {
                self.mark(lane, here, MarkKind::Stop { by: short(by), reason: *reason });
            }
            EventKind::RunFinished { outcome, .. } => {
                self.rests(lane, here);
                self.mark(lane, here, MarkKind::RunEnd { outcome: *outcome });
            }
            EventKind::AgentClosed {} => self.mark(lane, here, MarkKind::Closed),
            EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::AgentSpawned { .. }
            | EventKind::RunStarted { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::LimitRaised { .. }
            | EventKind::Compacted { .. } => {}
        }
    }

    fn replies(&mut self, lane: usize, here: Moment, event: &Event) {
        match &event.kind {
            EventKind::ModelStarted { purpose, .. } => {
                self.close(lane, &Key::Retry, here, End::Done);
                let (kind, name) = match purpose {
                    Purpose::Turn => (Kind::Model, "model"),
                    Purpose::Summary => (Kind::Summary, "summary"),
                };
                self.open(lane, Key::Model, event, kind, name.to_owned(), String::new());
            }
            EventKind::ModelFinished { .. } => self.close(lane, &Key::Model, here, End::Done),
            EventKind::ModelInterrupted { reason, .. } => {
                self.close(lane, &Key::Retry, here, cut(*reason));
                self.close(lane, &Key::Model, here, cut(*reason));
            }
            EventKind::ModelRetry { error, .. } => {
                self.close(lane, &Key::Model, here, End::Failed);
                self.open(lane, Key::Retry, event, Kind::Wait, "retry".to_owned(), short(error));
            }
            _ => {}
        }
    }

    fn calls(&mut self, lane: usize, here: Moment, event: &Event) {
        match &event.kind {
            EventKind::ToolStarted { tool, name, input, .. } => {
                let kind = if &**name == WAIT { Kind::Wait } else { Kind::Tool };
                self.open(lane, Key::Call(tool.clone()), event, kind, one_line(name), gist(input));
            }
            EventKind::ToolFinished { tool, name, status, .. } => {
                let key = Key::Call(tool.clone());
                if !self.lanes[lane].is_open(&key) {
                    self.open(lane, key.clone(), event, Kind::Tool, one_line(name), String::new());
                    return self.close(lane, &key, here.behind(), ended(*status));
                }
                self.close(lane, &key, here, ended(*status));
            }
            EventKind::ApprovalRequested { tool, name, input, .. } => {
                let what = format!("{} {}", one_line(name), gist(input));
                self.open(lane, Key::Ask(tool.clone()), event, Kind::Wait, "asks".to_owned(), what);
            }
            EventKind::ApprovalResolved { tool, decision, .. } => {
                let end = match decision {
                    Decision::Once | Decision::Session => End::Done,
                    Decision::Denied => End::Failed,
                    Decision::NotAnswered => End::Unknown,
                };
                self.close(lane, &Key::Ask(tool.clone()), here, end);
            }
            _ => {}
        }
    }

    fn mail(&mut self, lane: usize, here: Moment, event: &Event) {
        match &event.kind {
            EventKind::MessageQueued { message, from, urgency, text } => {
                self.letter(lane, here, (message, from.as_str()), Some(*urgency), short(text), Ahead::Waits);
            }
            EventKind::MessageRefused { message, from, reason } => {
                let ahead = Ahead::Refused { reason: short(reason) };
                self.letter(lane, here, (message, from.as_str()), None, String::new(), ahead);
                self.mark(lane, here, MarkKind::Refused { reason: short(reason) });
            }
            EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
                for id in messages {
                    self.arrives(lane, id, Ahead::Injected { at: here, point: *point });
                }
                let (skipped, interrupted) = (skipped.len() as u64, interrupted.len() as u64);
                let mark = MarkKind::Injected {
                    point: *point,
                    messages: messages.len() as u64,
                    skipped,
                    interrupted,
                };
                self.mark(lane, here, mark);
            }
            EventKind::MessageReturned { message, reason } => {
                self.arrives(lane, message, Ahead::Returned { at: here, reason: *reason });
                self.mark(lane, here, MarkKind::Returned { reason: *reason });
            }
            _ => {}
        }
    }

    fn letter(
        &mut self,
        to: usize,
        sent: Moment,
        (id, from): (&MessageId, &str),
        urgency: Option<Urgency>,
        text: String,
        ahead: Ahead,
    ) {
        if ahead == Ahead::Waits {
            self.lanes[to].mail.insert(id.clone(), sent.order);
        }
        let letter = Letter { id: id.clone(), from: short(from), to, sent, urgency, text, ahead };
        self.letters.insert(sent.order, letter);
    }

    /// The message has left the mailbox.
    fn arrives(&mut self, to: usize, id: &MessageId, ahead: Ahead) {
        let sent = self.lanes[to].mail.remove(id);
        if let Some(letter) = sent.and_then(|sent| self.letters.get_mut(&sent)) {
            letter.ahead = ahead;
        }
    }

    fn mark(&mut self, lane: usize, at: Moment, kind: MarkKind) {
        self.marks.insert(at.order, Mark { lane, at, kind });
    }

    fn open(&mut self, lane: usize, key: Key, event: &Event, kind: Kind, name: String, what: String) {
        let from = Moment::of(event);
        let Some(row) = self.lanes[lane].opens(key, from) else {
            return self.hidden(lane);
        };
        let (run, turn) = (event.at.run.unwrap_or_default(), event.at.turn.unwrap_or_default());
        let bar = Bar { lane, row, kind, name, what, from, to: None, end: End::Open, run, turn, hides: 0 };
        self.bars.insert(from.order, bar);
    }

    /// One call more than there are rows for runs beside that of the last row.
    fn hidden(&mut self, lane: usize) {
        let last = self.lanes[lane].last_row();
        if let Some(bar) = last.and_then(|from| self.bars.get_mut(&from)) {
            bar.hides += 1;
        }
    }

    fn close(&mut self, lane: usize, key: &Key, to: Moment, end: End) {
        let bar = self.lanes[lane].closes(key).and_then(|from| self.bars.get_mut(&from));
        if let Some(bar) = bar {
            (bar.to, bar.end) = (Some(to), end);
        }
    }

    /// A run is over: nothing of it goes on.
    fn rests(&mut self, lane: usize, here: Moment) {
        for from in self.lanes[lane].rests() {
            if let Some(bar) = self.bars.get_mut(&from) {
                (bar.to, bar.end) = (Some(here), End::Unknown);
            }
        }
    }

    /// The process is gone that called models and asked people; its calls of tools are ended by events.
    fn resumed(&mut self, before: Moment, here: Moment) {
        for lane in &mut self.lanes {
            for from in lane.loses() {
                if let Some(bar) = self.bars.get_mut(&from) {
                    (bar.to, bar.end) = (Some(before.behind()), End::Unknown);
                }
            }
        }
        self.lives.push(here);
        if self.lives.len() > LANES_MAX {
            self.lives.remove(0);
        }
    }

    /// The oldest message is let go; one that waits is no longer waited for.
    fn forgets(&mut self) {
        let Some((sent, letter)) = self.letters.pop_first() else { return };
        let mail = &mut self.lanes[letter.to].mail;
        if mail.get(&letter.id) == Some(&sent) {
            mail.remove(&letter.id);
        }
    }

    fn bounded(&mut self) {
        while self.bars.len() > KEPT_MAX {
            self.bars.pop_first();
            self.left_out += 1;
        }
        while self.letters.len() > KEPT_MAX {
            self.forgets();
        }
        while self.marks.len() > KEPT_MAX {
            self.marks.pop_first();
        }
    }
}

/// How a reply that was cut ends.
fn cut(reason: InterruptReason) -> End {
    match reason {
        InterruptReason::MessageInterrupt => End::Interrupted,
        InterruptReason::UserCancelled
        | InterruptReason::Superseded
        | InterruptReason::StoppedByParent
        | InterruptReason::Shutdown
        | InterruptReason::Limit => End::Stopped,
        InterruptReason::Error => End::Failed,
    }
}

fn ended(status: ToolStatus) -> End {
    match status {
        ToolStatus::Completed => End::Done,
        ToolStatus::Failed => End::Failed,
        ToolStatus::Interrupted => End::Interrupted,
        ToolStatus::Skipped => End::Skipped,
        ToolStatus::Stopped => End::Stopped,
        ToolStatus::Unknown => End::Unknown,
    }
}
