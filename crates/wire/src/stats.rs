//! The figures condensed, for `midturn stats` and `GET /v1/stats`: counts, rates, and two
//! quantiles of each spread. All of them since this process began.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::spent::Spent;

/// The figures of a process, condensed.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Stats {
    /// How many sessions live.
    pub sessions: i64,
    /// Their agents.
    pub agents: AgentStats,
    /// Their runs.
    pub runs: RunStats,
    /// What people stop.
    pub stops: StopStats,
    /// Messages.
    pub messages: MessageStats,
    /// Tool calls that ended, by status, those cut by mail among them.
    pub calls: CallStats,
    /// Requests for a person's word.
    pub approvals: ApprovalStats,
    /// Model calls.
    pub model: ModelStats,
    /// What the agents of the sessions that live have used, in earlier processes too.
    pub spent: Spent,
    /// The store.
    pub store: StoreStats,
    /// How many clients read events now.
    pub sse_clients: i64,
}

/// How many agents there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AgentStats {
    /// Not closed.
    pub live: i64,
    /// Of these, with a run under way.
    pub working: i64,
}

/// How runs begin and end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunStats {
    /// Begun.
    pub started: u64,
    /// Ended, by outcome.
    pub ended: BTreeMap<&'static str, u64>,
}

/// What people stop, and what comes of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct StopStats {
    /// Stops that stopped something: one for each agent.
    pub requested: u64,
    /// Runs that were stopped, of those that ended.
    pub stop_rate: Option<f64>,
    /// Stops after which the person (or who stopped) wrote to that agent, or its next run
    /// began, within 60 s; of all stops.
    pub follow_up_rate: Option<f64>,
    /// Seconds from the stop to the last cut of the reply or a call.
    pub cut_seconds: Quantiles,
    /// Seconds from the stop to the end of the run.
    pub end_seconds: Quantiles,
    /// Tokens of replies that were cut, for whatever reason.
    pub partial_tokens: Quantiles,
}

/// Where messages stand.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MessageStats {
    /// Accepted.
    pub accepted: u64,
    /// Refused at the send.
    pub refused: u64,
    /// Injected.
    pub injected: u64,
    /// Answered by a whole reply.
    pub answered: u64,
    /// Returned.
    pub returned: u64,
    /// In mailboxes now.
    pub waiting: i64,
    /// Seconds from being accepted to being injected, by urgency.
    pub wait_seconds: BTreeMap<&'static str, Quantiles>,
    /// Seconds from being accepted to being injected, by point.
    pub wait_seconds_by_point: BTreeMap<&'static str, Quantiles>,
}

/// Tool calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CallStats {
    /// Ended, by status.
    pub ended: BTreeMap<&'static str, u64>,
    /// Skipped because of a message.
    pub skipped_by_mail: u64,
    /// Interrupted by a message.
    pub interrupted_by_mail: u64,
}

/// Requests for a person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ApprovalStats {
    /// That wait now.
    pub open: i64,
    /// Ended, by decision.
    pub ended: BTreeMap<&'static str, u64>,
}

/// Model calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ModelStats {
    /// Begun, retries included.
    pub calls: u64,
    /// Retries.
    pub retries: u64,
    /// Replies that were cut.
    pub cut: u64,
    /// Tokens read, those from the cache included.
    pub input_tokens: u64,
    /// Of these, from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct StoreStats {
    /// Seconds from a step to its being durable.
    pub commit_seconds: Quantiles,
    /// Writes refused because another process had taken their session over.
    pub stale_writes: u64,
}

/// A quantity that is spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Quantiles {
    /// How many were counted.
    pub count: u64,
    /// Half of them are at most this; none while nothing was counted.
    pub p50: Option<f64>,
    /// All but one in a hundred are at most this.
    pub p99: Option<f64>,
}
