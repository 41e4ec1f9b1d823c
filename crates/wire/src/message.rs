//! Messages and their receipts.

use midturn_core::engine;
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{self, ReceiptState, Sender};
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::view;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::Problem;
use crate::text::{AnyId, Duration, Id, Number, Text};

/// The longest that one request waits.
pub const WAIT_MAX: Span = Span::secs(600);

/// A message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What it says.
    pub text: Text,
    /// `true` is `urgent`, `false` the receiver's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgent: Option<bool>,
    /// How soon it acts, in full; not beside `urgent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgency: Option<Urgency>,
    /// The sender's id for it: the same id with the same content is the same message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Returned as `expired` if it is still queued after that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<Duration>,
    /// An earlier message to the same receiver that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Id>,
    /// With `supersedes`: where that is too late, the message is refused (`too_late`) instead of accepted beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_queued: Option<bool>,
    /// The only run it may be injected in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_run: Option<Number>,
    /// The receiver's run that the sender saw; if another is current it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_run_id: Option<Number>,
}

mirror! {
    /// How soon a message acts (semantics.md, section 2).
    pub enum Urgency of mail::Urgency {
        /// When the agent would otherwise finish.
        FollowUp,
        /// When all tool results of the turn are in.
        AfterTools,
        /// At the next boundary.
        NextBoundary,
        /// Now.
        Urgent,
    }
}

/// Seed 000's request, to the lead.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SoftInterrupt {
    /// The sender's id for it: a number, as the seed has it, or a text.
    pub id: AnyId,
    /// What it says.
    pub content: Text,
    /// `false` is `after_tools`, `true` is `next_boundary`.
    #[serde(default)]
    pub urgent: bool,
}

impl SoftInterrupt {
    /// The engine's message, from whoever the token says.
    pub fn sent_by(self, from: Sender, lead: &AgentName) -> engine::Message {
        let mut message = engine::Message::new(from, lead.as_str(), self.content.0);
        message.id = Some(self.id.id());
        message.urgency =
            Some(if self.urgent { mail::Urgency::NextBoundary } else { mail::Urgency::AfterTools });
        message
    }
}

/// Where a message stands at one receiver (semantics.md, section 8).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// The receiver.
    pub to: String,
    /// How far it is.
    pub state: ReceiptWord,
    /// Where it was injected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub point: Option<Point>,
    /// In which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run: Option<u64>,
    /// Which turn it closed; 0 at `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub turn: Option<u32>,
    /// The model call that took it along.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub call: Option<u64>,
    /// The calls that were skipped for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub skipped: Option<Vec<String>>,
    /// The calls that were interrupted for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub interrupted: Option<Vec<String>>,
    /// Why it was returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<ReturnReason>,
    /// The message it was to replace had acted already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub too_late_to_supersede: Option<bool>,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptWord {
    /// In the mailbox.
    Queued,
    /// In the conversation.
    Injected,
    /// On its way to the model.
    Sent,
    /// Answered.
    Answered,
    /// It will never be injected.
    Returned,
}

mirror! {
    /// Where mail comes in (semantics.md, section 3).
    pub enum Point of mail::Point {
        /// A run starts.
        Start,
        /// The model's stream was cut.
        Stream,
        /// Every call was skipped before any started.
        #[serde(rename = "A")]
        A,
        /// The reply asked for no tools.
        #[serde(rename = "B")]
        B,
        /// A call was skipped or interrupted.
        #[serde(rename = "C")]
        C,
        /// All tools ran.
        #[serde(rename = "D")]
        D,
        /// `wait_agents` returned it.
        Wait,
    }
}

mirror! {
    /// Why a message was returned.
    pub enum ReturnReason of mail::ReturnReason {
        /// The receiver is closed.
        Closed,
        /// The receiver was stopped.
        Stopped,
        /// Its time was up, or its run ended first.
        Expired,
        /// The sender took it back.
        Withdrawn,
        /// A newer message, or a supersede, took its place.
        Superseded,
        /// The run failed and the settings give mail back.
        Error,
    }
}

impl Receipt {
    /// What is known of a message at one receiver.
    pub fn of(id: &MessageId, to: &AgentName, state: &ReceiptState) -> Self {
        let injection = state.injection();
        let calls = |calls: &[CallId]| calls.iter().map(ToString::to_string).collect();
        Self {
            id: id.to_string(),
            to: to.to_string(),
            state: state.into(),
            point: injection.map(|at| at.point.into()),
            run: injection.map(|at| at.run),
            turn: injection.map(|at| at.turn),
            call: match state {
                ReceiptState::Sent { call, .. } | ReceiptState::Answered { call, .. } => Some(*call),
                ReceiptState::Queued | ReceiptState::Injected(_) | ReceiptState::Returned(_) => None,
            },
            skipped: injection.map(|at| calls(&at.skipped)),
            interrupted: injection.map(|at| calls(&at.interrupted)),
            reason: match state {
                ReceiptState::Returned(reason) => Some((*reason).into()),
                _ => None,
            },
            too_late_to_supersede: None,
        }
    }

    /// The receipt of a message that was accepted just now.
    pub fn accepted(receipt: &engine::Receipt, too_late_to_supersede: bool) -> Self {
        Self { too_late_to_supersede: too_late_to_supersede.then_some(true), ..receipt.into() }
    }
}

impl From<&engine::Receipt> for Receipt {
    fn from(receipt: &engine::Receipt) -> Self {
        Self::of(&receipt.id, &receipt.to, &receipt.state())
    }
}

impl From<&ReceiptState> for ReceiptWord {
    fn from(state: &ReceiptState) -> Self {
        match state {
            ReceiptState::Queued => Self::Queued,
            ReceiptState::Injected(_) => Self::Injected,
            ReceiptState::Sent { .. } => Self::Sent,
            ReceiptState::Answered { .. } => Self::Answered,
            ReceiptState::Returned(_) => Self::Returned,
        }
    }
}

impl ReceiptWord {
    /// Whether a message that stands so has come as far as this word says.
    pub fn is_reached_by(self, state: &ReceiptState) -> bool {
        match (self, state) {
            (Self::Queued, _) | (Self::Returned, ReceiptState::Returned(_)) => true,
            (Self::Returned, _) | (_, ReceiptState::Returned(_)) => false,
            // The words stand in the order of the ranks.
            (word, state) => state.rank() >= word as u8,
        }
    }
}

/// What became of a message at one of several receivers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Delivery {
    /// It was accepted.
    Accepted(Receipt),
    /// It was not.
    Refused(RefusedDelivery),
}

/// Why one of several receivers did not get a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedDelivery {
    /// The receiver.
    pub to: String,
    /// Why.
    #[serde(flatten)]
    pub problem: Problem,
}

/// What a `202` has: the receipt, or one delivery for each receiver when the address is `all`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Accepted {
    /// To one agent.
    One(Receipt),
    /// To `all`.
    All(Deliveries),
}

/// One delivery for each receiver.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Deliveries {
    /// The deliveries, in the session's order of agents.
    pub deliveries: Vec<Delivery>,
}

/// The receipts of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Receipts {
    /// One for each receiver.
    pub receipts: Vec<Receipt>,
}

/// A message that waits in a mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueuedMessage {
    /// The message.
    pub id: String,
    /// The receiver.
    pub to: String,
    /// The sender: `user`, `coordinator` or an agent.
    pub from: String,
    /// How soon it acts.
    pub urgency: Urgency,
    /// What it says, as it was sent.
    pub text: String,
    /// How far it is.
    pub state: ReceiptWord,
    /// When it was accepted: seconds since the session began. Absent for one that an earlier process took.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub since: Option<Micros>,
}

impl QueuedMessage {
    /// A message of that mailbox.
    pub fn of(to: &AgentName, message: view::Message) -> Self {
        let view::Message { id, from, urgency, text, since, state } = message;
        Self {
            id: id.to_string(),
            to: to.to_string(),
            from,
            urgency: urgency.into(),
            text: text.to_string(),
            state: (&state).into(),
            since,
        }
    }
}

/// What waits in mailboxes, in each in order of arrival.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueuedMessages {
    /// The messages.
    pub messages: Vec<QueuedMessage>,
    /// The number of the last event that this knows of.
    pub as_of: u64,
}

/// What to wait for.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitQuery {
    /// The state; `answered` without it.
    #[param(nullable = false)]
    pub state: Option<ReceiptWord>,
    /// The longest wait: `30s` without it, `10m` at most.
    #[param(nullable = false)]
    pub timeout: Option<Duration>,
    /// At which receiver; needed when there are several.
    #[param(nullable = false)]
    pub to: Option<String>,
}

/// What came of waiting.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Waited {
    /// Whether the message has come so far.
    pub reached: bool,
    /// Where it stands.
    pub receipt: Receipt,
}

/// What came of withdrawing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Withdrawn {
    /// From how many mailboxes it came back.
    pub returned: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Both sides share the types, but what comes in is checked by code of its own.
    #[test]
    fn a_message_is_read_as_it_was_written_and_has_what_was_given_only() {
        for json in [
            json!({"text": "use load()"}),
            json!({"text": "x", "urgent": true, "id": "m1", "stream_run_id": 3}),
            json!({"text": "", "urgency": "next_boundary", "expires_after": "90s", "supersedes": "m0", "only_run": 2}),
        ] {
            let message: Message = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&message).unwrap(), json);
        }
    }

    #[test]
    fn a_delivery_is_a_receipt_or_a_problem_with_the_receiver() {
        let receipt = json!({"id": "m", "to": "a", "state": "queued"});
        let problem = json!({"to": "b", "type": "about:blank", "title": "Too Many Requests", "status": 429,
            "code": "mailbox_full", "detail": "the mailbox of `b` is full"});
        for (json, is_accepted) in [(receipt, true), (problem, false)] {
            let delivery: Delivery = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(matches!(delivery, Delivery::Accepted(_)), is_accepted);
            assert_eq!(serde_json::to_value(&delivery).unwrap(), json);
        }
    }
}
