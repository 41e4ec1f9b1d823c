//! What is done to agents: stop, supersede, resume, limits, close; and what they did: diff, merge.

use midturn_core::engine::{self, Resumed, StopReply, ports};
use midturn_core::rules::event;
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Micros;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::text::{Amount, Duration, Id, NUMBER_MAX, Number, Text};

/// Nothing more to say.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// A stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// How far it reaches; `agent` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The run that is meant; if another is current nothing is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_run_id: Option<Number>,
}

mirror! {
    /// How far a stop reaches.
    #[derive(Default)]
    pub enum Scope of event::Scope {
        /// One agent; its children go on.
        #[default]
        Agent,
        /// The agent and all below it.
        Subtree,
    }
}

/// What a stop did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopped {
    /// The agents whose run was stopped.
    pub stopped: Vec<String>,
    /// A person's messages that wait for the next run.
    pub still_queued: Vec<String>,
    /// That there was nothing to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
}

impl From<StopReply> for Stopped {
    fn from(reply: StopReply) -> Self {
        let nothing = reply.stopped.is_empty();
        Self {
            stopped: reply.stopped.iter().map(ToString::to_string).collect(),
            still_queued: reply.still_queued.iter().map(ToString::to_string).collect(),
            note: nothing.then(|| "nothing was running that was not being stopped already".to_owned()),
        }
    }
}

/// A stop and what is to be done instead, as one action.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Supersede {
    /// What is to be done instead.
    pub text: Text,
    /// The sender's id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// The run that is meant; if another is current nothing is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_run_id: Option<Number>,
}

/// What a resume did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Started {
    /// Whether a run starts.
    pub started: bool,
    /// Whether anybody may wake the agent again; if not, nothing was changed.
    pub wakeable: bool,
    /// Why no run starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
}

impl From<Resumed> for Started {
    fn from(resumed: Resumed) -> Self {
        let (started, note) = match resumed {
            Resumed::Starts => (true, None),
            Resumed::OnlyWakeable => (false, Some("no run starts; anybody may wake it again")),
            Resumed::Nothing => (false, Some("it does not rest with work unfinished: nothing was changed")),
        };
        Self { started, wakeable: resumed != Resumed::Nothing, note: note.map(str::to_owned) }
    }
}

/// Limits that are set: of an agent, or of all agents of a session together. What is not named
/// stays as it is; 0 is no limit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How many turns in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<Number>,
    /// How many tokens, read and written, in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Number>,
    /// What the model calls may cost in all, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Amount>,
    /// How long an agent may be at work in all; how long the session may last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Duration>,
}

impl From<Limits> for LimitsPatch {
    fn from(limits: Limits) -> Self {
        Self {
            max_turns: limits.max_turns.map(|number| number.0),
            max_tokens: limits.max_tokens.map(|number| number.0),
            max_cost: limits.max_cost.map(|amount| amount.0),
            max_time: limits.max_time.map(|duration| duration.0),
        }
    }
}

impl From<LimitsPatch> for Limits {
    fn from(patch: LimitsPatch) -> Self {
        Self {
            max_turns: patch.max_turns.map(Number),
            max_tokens: patch.max_tokens.map(Number),
            max_cost: patch.max_cost.map(Amount),
            max_time: patch.max_time.map(Duration),
        }
    }
}

/// What a close did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Closed {
    /// The agents that were closed, leaves first.
    pub closed: Vec<String>,
}

/// What an agent's branch changed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// The branch.
    pub branch: String,
    /// The commit it began at.
    pub start: String,
    /// As `git diff` has it.
    pub patch: String,
    /// Whether the patch was too long to be given whole.
    pub truncated: bool,
}

impl From<ports::Diff> for Diff {
    fn from(diff: ports::Diff) -> Self {
        Self { branch: diff.branch, start: diff.start, patch: diff.patch, truncated: diff.truncated }
    }
}

/// What became of a merge. Nothing is forced.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Merge {
    /// The result.
    pub result: MergeResult,
    /// The commit that was made, when it was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub commit: Option<String>,
    /// The files that conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<Vec<String>>,
    /// What is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

/// How a merge ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeResult {
    /// The branch is in.
    Merged,
    /// It was in already.
    UpToDate,
    /// Files conflict; nothing was changed.
    Conflicts,
    /// Something is in the way; nothing was changed.
    Refused,
}

impl From<ports::Merge> for Merge {
    fn from(merge: ports::Merge) -> Self {
        let bare = |result| Self { result, commit: None, files: None, reason: None };
        match merge {
            ports::Merge::Merged(commit) => Self { commit: Some(commit), ..bare(MergeResult::Merged) },
            ports::Merge::UpToDate => bare(MergeResult::UpToDate),
            ports::Merge::Conflicts(files) => Self { files: Some(files), ..bare(MergeResult::Conflicts) },
            ports::Merge::Refused(reason) => Self { reason: Some(reason), ..bare(MergeResult::Refused) },
        }
    }
}

/// A merge that was tried and would not go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Conflict {
    /// The agent's current or last run then.
    pub run: u64,
    /// When: seconds since the session began.
    #[schema(value_type = f64)]
    pub since: Micros,
    /// The files that conflict; the first of them where they are many.
    pub files: Vec<String>,
}

impl From<engine::Conflict> for Conflict {
    fn from(conflict: engine::Conflict) -> Self {
        let engine::Conflict { run, at, files } = conflict;
        Self { run, since: at, files }
    }
}

/// Which events.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Of this agent only.
    #[param(nullable = false)]
    pub agent: Option<String>,
    /// After this number, for who can't set `Last-Event-ID`.
    #[serde(default, deserialize_with = "number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub after: Option<u64>,
    /// Whether somebody reads it who answers requests: then agents ask while the stream is open.
    #[param(nullable = false)]
    pub answers: Option<bool>,
}

/// Which part of the recorded events.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Of this agent only.
    #[param(nullable = false)]
    pub agent: Option<String>,
    /// The events after this number; 0, the beginning, without it.
    #[serde(default, deserialize_with = "number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub after: Option<u64>,
    /// The last events before this number; not beside `after`.
    #[serde(default, deserialize_with = "number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub before: Option<u64>,
    /// How many at most: 1 to 1,000; 200 without it.
    #[serde(default, deserialize_with = "number")]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000, nullable = false)]
    pub limit: Option<u64>,
}

/// A part of the recorded events.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Log {
    /// The events, in order, as they are stored (docs/scenarios.md, section 4).
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Box<RawValue>>,
    /// What to give as `after` for the part that follows; absent when nothing follows yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<u64>,
    /// What to give as `before` for the part that comes before; absent when none does. Of one agent it
    /// may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub previous: Option<u64>,
    /// The number of the last event that this knows of.
    pub as_of: u64,
}

/// From where on.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// After this number, for who can't set `Last-Event-ID`.
    #[serde(default, deserialize_with = "number")]
    #[param(value_type = Option<Number>, nullable = false)]
    pub after: Option<u64>,
}

/// A number in a query: digits only.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_number(&text)
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("write a whole number from 0 to {NUMBER_MAX}, digits only")))
}

/// The number that these digits are.
pub fn parse_number(text: &str) -> Option<u64> {
    let digits = (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|number| *number <= NUMBER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resume_says_which_of_three_it_was() {
        for (resumed, started, wakeable, note) in [
            (Resumed::Starts, true, true, None),
            (Resumed::OnlyWakeable, false, true, Some("no run starts; anybody may wake it again")),
            (
                Resumed::Nothing,
                false,
                false,
                Some("it does not rest with work unfinished: nothing was changed"),
            ),
        ] {
            let answer = Started::from(resumed);
            assert_eq!((answer.started, answer.wakeable, answer.note.as_deref()), (started, wakeable, note));
        }
    }
}
