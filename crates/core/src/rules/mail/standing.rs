//! Who may write to whom in which state, and whom that wakes (semantics.md, sections 2, 3 and 6).
//!
//! The tables that the mailbox asks; nothing here keeps a message or knows what it says.

use super::ReturnReason;
use crate::rules::settings::Settings;
use crate::rules::urgency::Urgency;
use crate::rules::words::words;

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

words! {
    /// What the receiver is.
    pub enum Role {
        /// The agent a person talks to.
        Lead = "lead",
        /// An agent that another one spawned.
        Subagent = "subagent",
    }
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

    /// Whether mail is returned: nothing of it starts any more.
    pub fn is_closed(self) -> bool {
        match self {
            Self::Resting(rest) | Self::Winding { then: rest, .. } => rest == Rest::Closed,
            Self::Running => false,
        }
    }
}

impl Default for Standing {
    /// Before its first run.
    fn default() -> Self {
        Self::Resting(Rest::Idle)
    }
}

/// What an agent is between runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rest {
    /// Idle after `finished`, `failed` or `limit`, or before its first run: anybody wakes it.
    #[default]
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
