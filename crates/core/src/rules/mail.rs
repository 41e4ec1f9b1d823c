//! Messages: who may send what, how urgent it is, and where it stands.

mod refusal;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conversation::{InterruptReason, MessageKey};
use super::event::Outcome;
use super::id::{AgentName, CallId, MessageId, RunId, TurnId};
use super::settings::Settings;
use super::time::Micros;

pub use self::refusal::Refusal;

/// How soon a message acts: the ladder of semantics.md, section 2. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Urgency {
    /// When the agent would otherwise finish, or at once if it is idle.
    FollowUp = 1,
    /// When all tool results of the turn are in.
    AfterTools = 2,
    /// At the next boundary; what has not started is skipped.
    NextBoundary = 3,
    /// Now: what runs is aborted.
    Urgent = 4,
}

impl Urgency {
    /// All four, from the mildest.
    pub const ALL: [Self; 4] = [Self::FollowUp, Self::AfterTools, Self::NextBoundary, Self::Urgent];

    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FollowUp => "follow_up",
            Self::AfterTools => "after_tools",
            Self::NextBoundary => "next_boundary",
            Self::Urgent => "urgent",
        }
    }
}

/// Who a message is from. Stamped by the coordinator, never taken from a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sender {
    /// A person.
    User,
    /// An agent.
    Agent(AgentName),
    /// The coordinator itself, about the agent named.
    Coordinator(AgentName),
}

impl Sender {
    /// The name that results use: `the user` for a person (semantics.md, section 4).
    pub fn spoken(&self) -> &str {
        match self {
            Self::User => "the user",
            Self::Agent(name) | Self::Coordinator(name) => name.as_str(),
        }
    }
}

impl Sender {
    /// The sender that a word of the wire means; for records of our own. Who the coordinator
    /// wrote about is not in its word.
    pub fn of_word(word: &str) -> Self {
        AgentName::new(word).map_or(Self::User, Self::Agent)
    }
}

impl fmt::Display for Sender {
    /// The word of the wire: `user`, an agent's name, `coordinator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Agent(name) => f.write_str(name.as_str()),
            Self::Coordinator(_) => f.write_str("coordinator"),
        }
    }
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MailKind {
    /// Words of a person or an agent.
    Words,
    /// The end of a subagent's run, told by the coordinator.
    End(End),
}

/// How a subagent's run ended, for the mail to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum End {
    /// It had nothing more to do.
    Finished,
    /// It failed.
    Failed,
    /// It reached a limit.
    Limit,
    /// It was stopped.
    Stopped,
    /// It was stopped, and the next run follows at once.
    StoppedGoesOn,
    /// A person superseded it: the next run follows at once.
    Superseded,
}

impl End {
    /// What is told of a run with this outcome that no other one follows at once.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Finished => Self::Finished,
            Outcome::Failed => Self::Failed,
            Outcome::Limit => Self::Limit,
            Outcome::Stopped => Self::Stopped,
        }
    }

    /// What is told of a run that the next one follows at once, stopped for this reason.
    pub fn followed(outcome: Outcome, reason: Option<InterruptReason>) -> Self {
        match (outcome, reason) {
            (Outcome::Stopped, Some(InterruptReason::Superseded)) => Self::Superseded,
            (Outcome::Stopped, _) => Self::StoppedGoesOn,
            (Outcome::Finished | Outcome::Failed | Outcome::Limit, _) => Self::of(outcome),
        }
    }

    /// Whether the agent works on: then it is nobody's answer, and ends no wait.
    pub fn goes_on(self) -> bool {
        match self {
            Self::StoppedGoesOn | Self::Superseded => true,
            Self::Finished | Self::Failed | Self::Limit | Self::Stopped => false,
        }
    }
}

/// A message, once it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Its id, unique per sender.
    pub id: MessageId,
    /// Who sent it.
    pub from: Sender,
    /// Who it is for.
    pub to: AgentName,
    /// What it says, as sent.
    pub text: Arc<str>,
    /// How soon it acts.
    pub urgency: Urgency,
    /// Words, or the end of a subagent.
    pub kind: MailKind,
    /// The only run it may be injected in.
    pub only_run: Option<RunId>,
    /// When it is returned as `expired`, if it is still queued and not committed.
    pub expires_at: Option<Micros>,
}

impl Mail {
    /// What it is known by.
    pub fn key(&self) -> MessageKey {
        MessageKey { from: self.from.clone(), id: self.id.clone() }
    }

    /// Whether the coordinator wrote it: such mail is never returned at a stop, and has room of its own.
    pub fn is_coordinators(&self) -> bool {
        matches!(self.from, Sender::Coordinator(_))
    }
}

/// What the sender is to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// A person.
    Person,
    /// The parent, or the parent's parent, and so on.
    Ancestor,
    /// Any other agent.
    Other,
    /// The coordinator.
    Coordinator,
}

/// What the receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent a person talks to.
    Lead,
    /// An agent that another one spawned.
    Subagent,
}

/// The urgency of `send_message(…, urgent: false)` (semantics.md, section 2).
pub fn default_urgency(role: Role, relation: Relation, settings: &Settings) -> Urgency {
    let defaults = &settings.default_urgency;
    match (role, relation) {
        (Role::Lead, _) => defaults.to_lead,
        (Role::Subagent, Relation::Person | Relation::Ancestor) => defaults.from_above,
        (Role::Subagent, Relation::Other | Relation::Coordinator) => defaults.from_others,
    }
}

/// Whether this sender may send `urgent` at all. The rate is the coordinator's to count.
pub fn may_be_urgent(relation: Relation, settings: &Settings) -> bool {
    match relation {
        Relation::Person | Relation::Ancestor | Relation::Coordinator => true,
        Relation::Other => settings.urgent_from_peers,
    }
}

/// What an agent is doing, as far as mail is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// A run is under way, or about to start.
    Running,
    /// A run is ending: its last calls end, its end is being recorded.
    Winding {
        /// What the agent will then be.
        then: Rest,
        /// Whether the next run starts as soon as this one has ended.
        restart: bool,
    },
    /// No run is under way.
    Resting(Rest),
}

impl Standing {
    /// Whether a run is under way or about to start.
    pub fn is_in_a_run(self) -> bool {
        match self {
            Self::Running | Self::Winding { .. } => true,
            Self::Resting(_) => false,
        }
    }
}

/// What an agent is between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rest {
    /// Idle after `finished`, `failed` or `limit`, or before its first run: anybody wakes it.
    Idle,
    /// Idle after a stop: a person, an ancestor or `resume` wakes it.
    Stopped,
    /// Closed: no mail any more.
    Closed,
}

/// What becomes of a message at the mailbox's door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It is queued.
    Queue,
    /// It is queued and starts the next run (now, or when the stopped one has ended).
    Wake,
    /// It was accepted and is returned at once.
    Return(ReturnReason),
    /// It is not accepted: the limit that has to be raised before anybody wakes the agent.
    Refuse(&'static str),
}

/// Who may write to whom in which state, and whom that wakes: semantics.md, sections 3 and 6.
/// While a run is winding down, mail is accepted as by the agent it will then be; once the next
/// run is asked for, as by one that is at work. `limit` is one that the agent has reached.
pub fn admission(standing: Standing, limit: Option<&'static str>, relation: Relation) -> Admission {
    use Admission::{Queue, Refuse, Return, Wake};
    let (rest, asked_for) = match standing {
        Standing::Running => (Rest::Idle, true),
        Standing::Winding { then, restart } => (then, restart),
        Standing::Resting(rest) => (rest, false),
    };
    match (rest, relation, limit) {
        (Rest::Closed, _, _) => Return(ReturnReason::Closed),
        (Rest::Stopped, Relation::Other, _) if !asked_for => Return(ReturnReason::Stopped),
        (_, Relation::Coordinator, Some(_)) => Queue,
        (_, _, Some(limit)) => Refuse(limit),
        _ if standing == Standing::Running => Queue,
        (Rest::Idle, _, None) => Wake,
        (Rest::Stopped, Relation::Person | Relation::Ancestor, None) => Wake,
        (Rest::Stopped, Relation::Coordinator | Relation::Other, None) => Queue,
    }
}

/// Why a message will never be injected (semantics.md, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnReason {
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

impl ReturnReason {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Stopped => "stopped",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Superseded => "superseded",
            Self::Error => "error",
        }
    }
}

/// Where mail comes into a conversation (semantics.md, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Point {
    /// A run starts.
    #[serde(rename = "start")]
    Start,
    /// The model's stream was cut.
    #[serde(rename = "stream")]
    Stream,
    /// Every call was skipped before any started.
    A,
    /// The reply asked for no tools.
    B,
    /// A call was skipped or interrupted.
    C,
    /// All tools ran.
    D,
    /// `wait_agents` returned it.
    #[serde(rename = "wait")]
    Wait,
}

impl Point {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stream => "stream",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::Wait => "wait",
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_section_2() {
        let settings = Settings::default();
        let urgency = |role, relation| default_urgency(role, relation, &settings);
        for relation in [Relation::Person, Relation::Ancestor, Relation::Other, Relation::Coordinator] {
            assert_eq!(urgency(Role::Lead, relation), Urgency::AfterTools);
        }
        assert_eq!(urgency(Role::Subagent, Relation::Person), Urgency::NextBoundary);
        assert_eq!(urgency(Role::Subagent, Relation::Ancestor), Urgency::NextBoundary);
        assert_eq!(urgency(Role::Subagent, Relation::Other), Urgency::AfterTools);
    }

    #[test]
    fn a_stopped_agent_is_woken_by_a_person_and_an_ancestor_only() {
        use Admission::{Queue, Return, Wake};
        let stopping = Standing::Winding { then: Rest::Stopped, restart: false };
        for standing in [Standing::Resting(Rest::Stopped), stopping] {
            assert_eq!(admission(standing, None, Relation::Person), Wake);
            assert_eq!(admission(standing, None, Relation::Ancestor), Wake);
            assert_eq!(admission(standing, None, Relation::Other), Return(ReturnReason::Stopped));
            assert_eq!(admission(standing, None, Relation::Coordinator), Queue);
        }
        let closing = Standing::Winding { then: Rest::Closed, restart: true };
        for standing in [Standing::Resting(Rest::Closed), closing] {
            assert_eq!(admission(standing, None, Relation::Person), Return(ReturnReason::Closed));
        }
        assert_eq!(admission(Standing::Resting(Rest::Idle), None, Relation::Other), Wake);
    }

    #[test]
    fn a26_mail_waits_for_a_run_that_somebody_has_asked_for() {
        use Admission::{Queue, Wake};
        let asked_for = Standing::Winding { then: Rest::Stopped, restart: true };
        assert_eq!(admission(asked_for, None, Relation::Other), Queue);
        assert_eq!(admission(asked_for, None, Relation::Person), Wake);
    }

    #[test]
    fn at_a_limit_mail_is_refused_but_what_goes_back_at_once_and_the_coordinators_own() {
        use Admission::{Queue, Refuse, Return};
        let at_limit = |standing, relation| admission(standing, Some("max_turns"), relation);
        for standing in [Standing::Running, Standing::Resting(Rest::Idle), Standing::Resting(Rest::Stopped)] {
            assert_eq!(at_limit(standing, Relation::Person), Refuse("max_turns"));
            assert_eq!(at_limit(standing, Relation::Coordinator), Queue);
        }
        let returned = at_limit(Standing::Resting(Rest::Stopped), Relation::Other);
        assert_eq!(returned, Return(ReturnReason::Stopped));
        assert_eq!(at_limit(Standing::Resting(Rest::Closed), Relation::Person), Return(ReturnReason::Closed));
    }
}
