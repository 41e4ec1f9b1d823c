//! What stands in a picture, before anybody has said where.

use midturn_core::rules::event::{Event, Halt, Outcome};
use midturn_core::rules::id::{MessageId, RunId, TurnId};
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};
use midturn_core::rules::time::Micros;
use serde::{Deserialize, Serialize};

/// A place among the events: what came in one instant has an order, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Twice the number of the event; one more is just behind it.
    pub order: u64,
    /// When.
    pub at: Micros,
}

impl Moment {
    /// The place of an event.
    pub(super) fn of(event: &Event) -> Self {
        Self { order: event.seq.saturating_mul(2), at: event.t }
    }

    /// The place behind it, before the next event.
    pub(super) fn behind(self) -> Self {
        Self { order: self.order | 1, at: self.at }
    }
}

/// What an agent does for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Whose: the number of the lane.
    pub lane: usize,
    /// Which of the lane's rows: calls that run at once stand below each other.
    pub row: usize,
    /// What kind of thing.
    pub kind: Kind,
    /// The tool, or what else it is, in a word.
    pub name: String,
    /// What it is about, on one line.
    pub what: String,
    /// From when on.
    pub from: Moment,
    /// Until when; `None`: it goes on.
    pub to: Option<Moment>,
    /// How it ended.
    pub end: End,
    /// In which run.
    pub run: RunId,
    /// In which turn of it.
    pub turn: TurnId,
    /// How many calls have no row of their own, and began beside this one.
    pub hides: u64,
}

/// What kind of thing a bar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call of the model.
    Model,
    /// One that makes a summary of what was said.
    Summary,
    /// A call of a tool.
    Tool,
    /// It waits: for other agents, a person's word, or until the model is asked again.
    Wait,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It goes on.
    Open,
    /// Well.
    Done,
    /// With an error.
    Failed,
    /// Cut short by a message.
    Interrupted,
    /// Cut short by a stop.
    Stopped,
    /// Nobody can say.
    Unknown,
    /// It never began.
    Skipped,
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// Its id.
    pub id: MessageId,
    /// Who sent it.
    pub from: String,
    /// Whose mailbox: the number of the lane.
    pub to: usize,
    /// When it was sent.
    pub sent: Moment,
    /// How soon it acts; unknown of one that was refused.
    pub urgency: Option<Urgency>,
    /// Its text, on one short line.
    pub text: String,
    /// What became of it.
    pub ahead: Ahead,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Ahead {
    /// It waits in the mailbox.
    Waits,
    /// It went into the conversation.
    Injected {
        /// When.
        at: Moment,
        /// Where.
        point: Point,
    },
    /// It never will.
    Returned {
        /// When.
        at: Moment,
        /// Why.
        reason: ReturnReason,
    },
    /// It was not accepted.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Something that happened to an agent at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// To whom: the number of the lane.
    pub lane: usize,
    /// When.
    pub at: Moment,
    /// What.
    pub kind: MarkKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkKind {
    /// Messages went into the conversation.
    Injected {
        /// Where.
        point: Point,
        /// How many.
        messages: u64,
        /// How many calls they skipped.
        skipped: u64,
        /// How many calls they cut.
        interrupted: u64,
    },
    /// A message was given back.
    Returned {
        /// Why.
        reason: ReturnReason,
    },
    /// A message was not accepted.
    Refused {
        /// Why.
        reason: String,
    },
    /// Somebody asked it to stop.
    Stop {
        /// Who.
        by: String,
        /// Why.
        reason: Halt,
    },
    /// Its run ended.
    RunEnd {
        /// How.
        outcome: Outcome,
    },
    /// It was closed.
    Closed,
}

/// An instant that is written at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// How far from the left.
    pub x: u64,
    /// The instant, as it is written.
    pub text: String,
}
