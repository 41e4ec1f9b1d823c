//! One agent of a joined session: the lines of its transcript and its mail, folded into events.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use midturn_core::rules::boundary::closing_point;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::{CallRef, EventKind, Halt, Outcome, Place, Scope, Trigger};
use midturn_core::rules::id::{AgentName, CallId, MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, Role, Urgency};
use midturn_core::rules::wording;
use serde_json::Value;

use super::Timed;
use super::letters::{Letters, Moved};
use super::lines::{By, Part, Said, What, behind};
use crate::claude::agents::Known;
use crate::claude::wire::{says_cut, says_skipped};
use crate::spool::{Joined, Landed, MAIN, Message};

/// The program writes the blocks of a reply one after the other; so long behind the last one it is whole.
const REPLY_MICROS: u64 = 300_000;

/// So long the last words of a run may be behind its end.
const LAST_WORDS_MICROS: u64 = 2_000_000;

/// Whoever is told of a call's output needs no more of it.
const MOST_OUTPUT: usize = 32 * 1024;

/// Tools that the program starts at once.
const READERS: [&str; 6] = ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch"];

/// One agent.
pub(super) struct Followed {
    pub(super) id: String,
    pub(super) name: AgentName,
    parent: Option<AgentName>,
    is_told_of: bool,
    /// How far its transcript was read.
    offset: u64,
    letters: Letters,
    run: RunId,
    turn: TurnId,
    is_running: bool,
    /// What its run has used, and how often its model was asked in all.
    usage: Usage,
    asked: u64,
    /// Its model is asked next.
    is_due: bool,
    /// It was asked, and nothing of its reply is there.
    awaits_reply: bool,
    /// When what was told last of its turn happened.
    at: u64,
    reply: Option<Part>,
    calls: VecDeque<Call>,
    turn_calls: TurnCalls,
    /// What was not fetched yet.
    told: Vec<Timed>,
}

/// A call that has no result yet.
struct Call {
    id: CallId,
    name: Arc<str>,
    input: Value,
    /// When its reply was whole.
    asked_at: u64,
    has_started: bool,
}

/// How the calls of a turn went.
#[derive(Default)]
struct TurnCalls {
    all: usize,
    skipped: Vec<CallId>,
    interrupted: Vec<CallId>,
}

impl TurnCalls {
    fn point(&self) -> Point {
        closing_point(self.all, self.skipped.len(), self.interrupted.len())
    }
}

impl Followed {
    pub(super) fn new(known: &Known, name: AgentName, parent: Option<AgentName>) -> Self {
        Self {
            id: known.id.clone(),
            name,
            parent,
            is_told_of: false,
            offset: 0,
            letters: Letters::default(),
            run: 0,
            turn: 0,
            is_running: false,
            usage: Usage::default(),
            asked: 0,
            is_due: false,
            awaits_reply: false,
            at: 0,
            reply: None,
            calls: VecDeque::new(),
            turn_calls: TurnCalls::default(),
            told: Vec::new(),
        }
    }

    /// What was told since this was asked last.
    pub(super) fn told(&mut self) -> Vec<Timed> {
        std::mem::take(&mut self.told)
    }

    /// Reads on.
    ///
    /// # Errors
    /// The spool or the transcript can't be read.
    pub(super) fn look(&mut self, joined: &Joined, now: u64) -> io::Result<()> {
        // Before the mailbox: what a line shows was in it.
        let (lines, offset) = match joined.transcript(&self.id) {
            Some(transcript) => behind(&transcript, self.offset)?,
            None => (Vec::new(), self.offset),
        };
        let moved = self.letters.look(joined, &self.id)?;
        // Not before: what was read, and not folded, would be read by nobody.
        self.offset = offset;
        self.is_met(&lines, &moved, now);
        self.hears(&moved);
        lines.into_iter().for_each(|said| self.reads(said));
        self.returns(moved);
        self.finds_unseen(joined, now)?;
        self.goes_on(joined.rests_since(&self.id), now);
        Ok(())
    }

    fn tells(&mut self, at: u64, kind: EventKind) {
        self.told.push(Timed { at, place: Place::of(&self.name, self.run, self.turn), kind });
    }

    fn is_met(&mut self, lines: &[Said], moved: &Moved, now: u64) {
        if std::mem::replace(&mut self.is_told_of, true) {
            return;
        }
        let first_line = lines.first().map(|said| said.at);
        let first_letter = moved.came.first().map(|place| self.letters.at(*place).message.sent_at);
        let at = first_line.into_iter().chain(first_letter).min().unwrap_or(now);
        self.at = at;
        let role = if self.id == MAIN { Role::Lead } else { Role::Subagent };
        let prompt = match lines.first().map(|said| &said.what) {
            Some(What::Asked { text, .. }) if role == Role::Subagent => Some(Arc::from(text.as_str())),
            _ => None,
        };
        let parent = self.parent.clone();
        self.tells(at, EventKind::AgentSpawned { parent, role, model: None, prompt });
    }

    fn hears(&mut self, moved: &Moved) {
        for place in &moved.came {
            let Message { id, from, urgency, text, sent_at, .. } = self.letters.at(*place).message.clone();
            self.tells(sent_at, queued(id, from, urgency, &text));
        }
    }

    fn returns(&mut self, moved: Moved) {
        for (at, place, reason) in moved.returned {
            let message = self.letters.at(place).message.id.clone();
            self.tells(at, EventKind::MessageReturned { message, reason });
        }
    }

    fn reads(&mut self, Said { at, what }: Said) {
        if !matches!(what, What::Replied(_)) {
            self.replied(self.at);
        }
        let last = self.at;
        self.at = last.max(at);
        match what {
            What::Asked { text, by } => self.is_asked(at, &text, by),
            What::Replied(part) => self.replies(last, part),
            What::Ended { call, text, is_error } => self.ends_call(at, &call, text, is_error),
            What::Given { event, texts } => self.is_given(at, &event, &texts),
            What::Delivered { text, by } => self.is_delivered(at, &text, by),
            What::Interrupted => self.is_interrupted(at),
        }
    }

    /// A run starts, or goes on where another prompt came before its end was seen.
    fn is_asked(&mut self, at: u64, text: &str, by: By) {
        if self.calls.is_empty() {
            self.ends(at, Outcome::Finished);
        }
        let woken = self
            .read(|message| text.contains(&message.told()) || message.own && text.contains(&message.text));
        let is_prompt = self.run == 0 && self.id != MAIN;
        if is_prompt {
            self.starts(at, Trigger::Prompt);
        } else if !woken.is_empty() {
            self.starts(at, Trigger::Mail(woken.iter().map(|message| message.id.clone()).collect()));
            self.injects(at, woken, Point::Start);
        } else if by == By::Program {
            self.starts(at, Trigger::Mail(Vec::new()));
        } else {
            let message = self.types(at, text, by);
            self.starts(at, Trigger::Mail(vec![message.id.clone()]));
            self.injects(at, vec![message], Point::Start);
        }
    }

    /// Words that came by the program's own way, as a message like any other.
    fn types(&mut self, at: u64, text: &str, by: By) -> Message {
        let from = match (by, &self.parent) {
            (By::Coordinator, Some(parent)) => parent.to_string(),
            _ if self.id == MAIN => "user".to_owned(),
            (_, Some(parent)) => parent.to_string(),
            (_, None) => "user".to_owned(),
        };
        let id = MessageId::new(format!("typed-{}-{at:x}", self.id));
        let (urgency, own) = (Urgency::AfterTools, true);
        self.tells(at, queued(id.clone(), from.clone(), urgency, text));
        Message { id, from, text: text.to_owned(), urgency, sent_at: at, expires_at: None, own }
    }

    fn starts(&mut self, at: u64, trigger: Trigger) {
        if self.is_running {
            return;
        }
        self.run += 1;
        (self.turn, self.is_running, self.is_due) = (0, true, true);
        self.usage = Usage::default();
        self.turn_calls = TurnCalls::default();
        self.tells(at, EventKind::RunStarted { trigger });
    }

    fn ends(&mut self, at: u64, outcome: Outcome) {
        if !std::mem::replace(&mut self.is_running, false) {
            return;
        }
        (self.is_due, self.awaits_reply) = (false, false);
        let (turns, usage) = (self.turn, self.usage);
        self.tells(at, EventKind::RunFinished { outcome, error: None, turns, usage });
    }

    /// Its model is asked, as what came before says.
    fn asks(&mut self, at: u64) {
        if !std::mem::replace(&mut self.is_due, false) {
            return;
        }
        self.turn += 1;
        self.asked += 1;
        self.awaits_reply = true;
        self.turn_calls = TurnCalls::default();
        let (call, purpose) = (self.asked, Purpose::Turn);
        self.tells(at, EventKind::ModelStarted { call, messages: self.asked, purpose });
    }

    /// `last`: when what came before was.
    fn replies(&mut self, last: u64, part: Part) {
        match &mut self.reply {
            Some(reply) if reply.id == part.id => {
                reply.text.push_str(&part.text);
                reply.calls.extend(part.calls);
                reply.stop_reason = part.stop_reason.or(reply.stop_reason.take());
                reply.usage = part.usage;
            }
            _ => {
                self.replied(last);
                // Of a transcript that is read from its middle.
                self.starts(last, Trigger::Mail(Vec::new()));
                self.is_due = !self.awaits_reply;
                self.asks(last);
                self.awaits_reply = false;
                self.reply = Some(part);
            }
        }
    }

    /// Its reply is whole.
    fn replied(&mut self, at: u64) {
        let Some(reply) = self.reply.take() else { return };
        let usage = Usage {
            input: reply.usage.input_tokens
                + reply.usage.cache_read_input_tokens
                + reply.usage.cache_creation_input_tokens,
            output: reply.usage.output_tokens,
            cached: reply.usage.cache_read_input_tokens,
        };
        self.usage.add(usage);
        let call = |(id, name, input): (String, String, Value)| Call {
            id: CallId::new(id),
            name: name.into(),
            input,
            asked_at: at,
            has_started: false,
        };
        let calls: Vec<Call> = reply.calls.into_iter().map(call).collect();
        let named =
            |call: &Call| CallRef { id: call.id.clone(), name: call.name.clone(), input: call.input.clone() };
        let tools = calls.iter().map(named).collect();
        self.turn_calls.all += calls.len();
        self.calls.extend(calls);
        let stop_reason = Arc::from(reply.stop_reason.as_deref().unwrap_or("end_turn"));
        let (thinking, purpose) = (Vec::new(), Purpose::Turn);
        let kind =
            EventKind::ModelFinished { stop_reason, usage, text: reply.text, thinking, tools, purpose };
        self.tells(at, kind);
    }

    fn ends_call(&mut self, at: u64, id: &str, text: String, is_error: bool) {
        let Some(place) = self.calls.iter().position(|call| call.id.as_str() == id) else { return };
        let Some(call) = self.calls.remove(place) else { return };
        let status = match () {
            () if says_skipped(&text) => ToolStatus::Skipped,
            () if says_cut(&text) => ToolStatus::Interrupted,
            () if is_error => ToolStatus::Failed,
            () => ToolStatus::Completed,
        };
        match status {
            ToolStatus::Skipped => self.turn_calls.skipped.push(call.id.clone()),
            ToolStatus::Interrupted => self.turn_calls.interrupted.push(call.id.clone()),
            _ => {}
        }
        if status != ToolStatus::Skipped && !call.has_started {
            self.starts_call(&call);
        }
        self.finishes(at, call, status, text);
        self.is_due |= self.calls.is_empty();
    }

    fn finishes(&mut self, at: u64, call: Call, status: ToolStatus, text: String) {
        // What the program puts before a hook's words says nothing to people.
        let mut output = match (status, text.find("[Skipped: ")) {
            (ToolStatus::Skipped, Some(begins)) => text[begins..].to_owned(),
            _ => text,
        };
        let bytes = output.len() as u64;
        output.truncate(output.floor_char_boundary(MOST_OUTPUT));
        let is_error = status != ToolStatus::Completed;
        self.tells(
            at,
            EventKind::ToolFinished { tool: call.id, name: call.name, status, is_error, bytes, output },
        );
    }

    fn starts_call(&mut self, call: &Call) {
        let is_reader = READERS.contains(&&*call.name);
        let last_end =
            self.told.iter().rev().find(|timed| matches!(timed.kind, EventKind::ToolFinished { .. }));
        let at = last_end.map_or(0, |timed| timed.at);
        let at = if is_reader { call.asked_at } else { at.max(call.asked_at) };
        let (tool, name, input) = (call.id.clone(), call.name.clone(), call.input.clone());
        self.tells(at, EventKind::ToolStarted { tool, name, input, batch: 1 });
    }

    fn read(&mut self, fits: impl Fn(&Message) -> bool) -> Vec<Message> {
        self.letters.read(fits).into_iter().cloned().collect()
    }

    fn is_given(&mut self, at: u64, event: &str, texts: &[String]) {
        let shows =
            |message: &Message| !message.own && texts.iter().any(|text| text.contains(&message.told()));
        let read = self.read(shows);
        if read.is_empty() {
            return;
        }
        let point = match event {
            "PostToolBatch" => self.turn_calls.point(),
            "Stop" | "SubagentStop" => Point::B,
            _ => Point::Start,
        };
        self.starts(at, Trigger::Mail(read.iter().map(|message| message.id.clone()).collect()));
        self.injects(at, read, point);
    }

    fn is_delivered(&mut self, at: u64, text: &str, by: By) {
        // What was to wake it, and came when it was at work again, is among it.
        let shows = |message: &Message| {
            if message.own { message.text == text } else { text.contains(&message.told()) }
        };
        let mut read = self.read(shows);
        match (read.is_empty(), by) {
            (false, _) => {}
            (true, By::Program) => return,
            (true, By::Asker | By::Coordinator) => read.push(self.types(at, text, by)),
        }
        let point = self.turn_calls.point();
        self.injects(at, read, point);
    }

    fn injects(&mut self, at: u64, read: Vec<Message>, point: Point) {
        let costs = matches!(point, Point::A | Point::C);
        let TurnCalls { skipped, interrupted, .. } =
            if costs { std::mem::take(&mut self.turn_calls) } else { TurnCalls::default() };
        self.is_due = self.calls.is_empty();
        let text = read.iter().map(|message| words(message, point)).collect::<Vec<_>>().join("\n\n");
        let messages = read.into_iter().map(|message| message.id).collect();
        let (skipped, interrupted) = (skipped.into(), interrupted.into());
        self.tells(
            at,
            EventKind::MessageInjected { messages, point, text: text.into(), skipped, interrupted },
        );
    }

    fn is_interrupted(&mut self, at: u64) {
        if !self.is_running {
            return;
        }
        let (by, scope, reason) = ("user".to_owned(), Scope::Agent, Halt::Stop);
        self.tells(at, EventKind::StopRequested { by, scope, reason, still_queued: Vec::new() });
        self.drops_calls(at, ToolStatus::Stopped);
        self.ends(at, Outcome::Stopped);
    }

    fn drops_calls(&mut self, at: u64, status: ToolStatus) {
        for call in std::mem::take(&mut self.calls) {
            let status = if call.has_started { status } else { ToolStatus::Skipped };
            self.finishes(at, call, status, String::new());
        }
    }

    /// What the mailbox knows as read, and no line shows.
    fn finds_unseen(&mut self, joined: &Joined, now: u64) -> io::Result<()> {
        let unseen: Vec<Message> = self.letters.read_unseen().into_iter().cloned().collect();
        let Some(mailbox) = joined.mailbox(&self.id) else { return Ok(()) };
        for message in unseen {
            let landed =
                mailbox.landed(&message.from, &message.id)?.unwrap_or_else(|| Landed::at(Point::Start));
            let calls = |ids: Vec<String>| ids.into_iter().map(CallId::new).collect();
            let (text, messages) = (message.told().into(), vec![message.id]);
            let (skipped, interrupted) = (calls(landed.skipped), calls(landed.interrupted));
            let point = landed.point;
            self.tells(now, EventKind::MessageInjected { messages, point, text, skipped, interrupted });
        }
        Ok(())
    }

    /// What is so although no line says it yet.
    fn goes_on(&mut self, rests_since: Option<u64>, now: u64) {
        let is_quiet = now >= self.at + REPLY_MICROS;
        if !is_quiet {
            return;
        }
        self.replied(self.at);
        // Its last words are written behind the hook that notes that it rests; of a request that failed there are none.
        let has_ended = |since: u64| !self.awaits_reply || now >= since + LAST_WORDS_MICROS;
        if self.calls.is_empty() && rests_since.is_some_and(has_ended) {
            self.ends(self.at, Outcome::Finished);
        }
        self.asks(self.at);
        if let Some(mut call) = self.calls.pop_front() {
            if !std::mem::replace(&mut call.has_started, true) {
                self.starts_call(&call);
            }
            self.calls.push_front(call);
        }
    }

    /// Its program has ended.
    pub(super) fn closes(&mut self, now: u64) {
        self.replied(self.at);
        let has_ended = self.calls.is_empty() && !self.is_due && !self.awaits_reply;
        self.drops_calls(now, ToolStatus::Unknown);
        self.ends(now, if has_ended { Outcome::Finished } else { Outcome::Stopped });
        self.tells(now, EventKind::AgentClosed {});
    }
}

/// How a message reads: what the program tells itself needs no mark where it is a prompt.
fn words(message: &Message, point: Point) -> String {
    match message.sender().filter(|_| message.own) {
        Some(from) => wording::words(point, &from, message.urgency, &message.text),
        None => message.told(),
    }
}

fn queued(message: MessageId, from: String, urgency: Urgency, text: &str) -> EventKind {
    EventKind::MessageQueued { message, from, urgency, text: text.into() }
}
