//! Where a message stands, and where it came into the conversation (semantics.md, sections 3 and 8).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Urgency;
use crate::rules::id::{CallId, RunId, TurnId};
use crate::rules::words::words;

words! {
    /// Why a message will never be injected (semantics.md, section 8).
    pub enum ReturnReason {
        /// The receiver is closed.
        Closed = "closed",
        /// The receiver was stopped.
        Stopped = "stopped",
        /// Its time was up, or its run ended first.
        Expired = "expired",
        /// The sender took it back.
        Withdrawn = "withdrawn",
        /// A newer message, or a supersede, took its place.
        Superseded = "superseded",
        /// The run failed and the settings give mail back.
        Error = "error",
    }
}

words! {
    /// Where mail comes into a conversation (semantics.md, section 3).
    #[derive(PartialOrd, Ord)]
    pub enum Point {
        /// A run starts.
        Start = "start",
        /// The model's stream was cut.
        Stream = "stream",
        /// Every call was skipped before any started.
        A = "A",
        /// The reply asked for no tools.
        B = "B",
        /// A call was skipped or interrupted.
        C = "C",
        /// All tools ran.
        D = "D",
        /// `wait_agents` returned it.
        Wait = "wait",
    }
}

impl Point {
    /// The least urgency that is injected here: `follow_up` waits for `B` or the next run's start.
    pub fn takes(self) -> Urgency {
        match self {
            Self::Start | Self::B => Urgency::FollowUp,
            Self::Stream | Self::A | Self::C | Self::D | Self::Wait => Urgency::AfterTools,
        }
    }
}

/// Where a message came into the conversation, and what that cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The point.
    pub point: Point,
    /// The receiver's run.
    pub run: RunId,
    /// The turn it closed; 0 at `start`.
    pub turn: TurnId,
    /// The calls that were skipped for what was injected together.
    pub skipped: Arc<[CallId]>,
    /// The calls that were interrupted for it.
    pub interrupted: Arc<[CallId]>,
}

/// Where a message stands (semantics.md, section 8). States only move forward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// In the mailbox, as durable as the store is.
    Queued,
    /// In the conversation.
    Injected(Injection),
    /// A model request with it was handed to the connection.
    Sent {
        /// Where it was injected.
        injection: Injection,
        /// The number of the call.
        call: u64,
    },
    /// The model has replied after it.
    Answered {
        /// Where it was injected.
        injection: Injection,
        /// The number of the call that was answered.
        call: u64,
    },
    /// It will never be injected.
    Returned(ReturnReason),
}

impl ReceiptState {
    /// The word of the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Injected(_) => "injected",
            Self::Sent { .. } => "sent",
            Self::Answered { .. } => "answered",
            Self::Returned(_) => "returned",
        }
    }

    /// How far along it is; a state is only ever replaced by one of a higher rank.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Injected(_) => 1,
            Self::Sent { .. } => 2,
            Self::Answered { .. } => 3,
            Self::Returned(_) => 4,
        }
    }

    /// Whether nothing can follow.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Returned(_))
    }

    /// Where it was injected, if it was.
    pub fn injection(&self) -> Option<&Injection> {
        match self {
            Self::Injected(injection) | Self::Sent { injection, .. } | Self::Answered { injection, .. } => {
                Some(injection)
            }
            Self::Queued | Self::Returned(_) => None,
        }
    }
}
