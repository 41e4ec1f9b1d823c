//! All figures of the process, under their names. The names, the units and the words of the
//! labels are stable: dashboards and alerts are written against them (docs/operations.md).

use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};
use midturn_core::rules::view::Agent;
use midturn_wire::stats::{
    AgentStats, ApprovalStats, CallStats, MessageStats, ModelStats, Quantiles, RunStats, Stats, StopStats,
    StoreStats,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::asked::Asked;
use super::spread::Spread;
use super::words::{self, Label};

/// Counters that differ in one label.
pub(super) type Counters = Family<[Label; 1], Counter>;

/// Spreads that differ in `N` labels.
pub(super) type Spreads<const N: usize> = Family<[Label; N], Spread, fn() -> Spread>;

/// What is counted. Clones share their counts.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) sessions: Gauge,
    agents: Family<[Label; 1], Gauge>,
    runs_started: Counters,
    runs_ended: Counters,
    stops: Counters,
    pub(super) stops_followed: Counter,
    stop_seconds: Spreads<1>,
    partial_reply_tokens: Spreads<1>,
    messages_accepted: Counters,
    messages_refused: Counters,
    messages_injected: Counters,
    pub(super) messages_answered: Counter,
    messages_returned: Counters,
    pub(super) messages_waiting: Gauge,
    pub(super) messages_untracked: Counter,
    message_wait_seconds: Spreads<2>,
    calls_cut_by_mail: Counters,
    tool_calls: Counters,
    approvals: Counters,
    pub(super) approvals_open: Gauge,
    pub(super) compactions: Counter,
    pub(super) model_calls: Counter,
    pub(super) model_retries: Counter,
    tokens: Counters,
    pub(super) cached_tokens: Counter,
    pub(super) store_commit_seconds: Spread,
    pub(super) stale_writes: Asked,
    pub(super) stale_events: Counter,
    pub(super) sse_clients: Gauge,
}

impl Default for Figures {
    /// Nothing counted yet. Series whose words are few are there from the start, so that a
    /// rate over them is 0 and not absent.
    fn default() -> Self {
        Self {
            sessions: Gauge::default(),
            agents: Family::default(),
            runs_started: zeros("trigger", words::TRIGGERS),
            runs_ended: zeros("outcome", words::OUTCOMES.map(Outcome::as_str)),
            stops: zeros("by", words::STOPPERS),
            stops_followed: Counter::default(),
            stop_seconds: Family::new_with_constructor(Spread::of_stops),
            partial_reply_tokens: Family::new_with_constructor(Spread::of_tokens),
            messages_accepted: zeros("urgency", Urgency::ALL.map(Urgency::as_str)),
            messages_refused: zeros("reason", words::refusals()),
            messages_injected: zeros("point", POINTS.map(Point::as_str)),
            messages_answered: Counter::default(),
            messages_returned: zeros("reason", words::RETURNS.map(ReturnReason::as_str)),
            messages_waiting: Gauge::default(),
            messages_untracked: Counter::default(),
            message_wait_seconds: Family::new_with_constructor(Spread::of_waits),
            calls_cut_by_mail: zeros("how", [SKIPPED, INTERRUPTED]),
            tool_calls: zeros("status", words::STATUSES.map(ToolStatus::as_str)),
            approvals: zeros("decision", words::DECISIONS.map(Decision::as_str)),
            approvals_open: Gauge::default(),
            compactions: Counter::default(),
            model_calls: Counter::default(),
            model_retries: Counter::default(),
            tokens: zeros("direction", [INPUT, OUTPUT]),
            cached_tokens: Counter::default(),
            store_commit_seconds: Spread::of_commits(),
            stale_writes: Asked::default(),
            stale_events: Counter::default(),
            sse_clients: Gauge::default(),
        }
    }
}

const POINTS: [Point; 7] = [Point::Start, Point::Stream, Point::A, Point::B, Point::C, Point::D, Point::Wait];
const SKIPPED: &str = "skipped";
const INTERRUPTED: &str = "interrupted";
const INPUT: &str = "input";
const OUTPUT: &str = "output";
const UNTIL_CUT: &str = "cut";
const UNTIL_END: &str = "end";

fn zeros(label: &'static str, words: impl IntoIterator<Item = &'static str>) -> Counters {
    let counters = Counters::default();
    for word in words {
        drop(counters.get_or_create(&[(label, word)]));
    }
    counters
}

/// What an agent is doing, as far as figures go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// Not there: not yet, or closed.
    #[default]
    Nothing,
    /// No run is under way.
    Resting,
    /// A run is under way.
    Working,
}

impl Doing {
    /// What an agent does, if it is known.
    pub(super) fn of(agent: Option<&Agent>) -> Self {
        match agent {
            Some(agent) if agent.is_working() => Self::Working,
            Some(agent) if !agent.is_closed => Self::Resting,
            Some(_) | None => Self::Nothing,
        }
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Resting => Some("resting"),
            Self::Working => Some("working"),
        }
    }
}

impl Figures {
    /// An agent changes what it does.
    pub(super) fn agent(&self, was: Doing, is: Doing) {
        for (doing, by) in [(was, -1), (is, 1)] {
            if let Some(word) = doing.word() {
                self.agents.get_or_create(&[("state", word)]).inc_by(by);
            }
        }
    }

    pub(super) fn run_started(&self, trigger: &'static str) {
        self.runs_started.get_or_create(&[("trigger", trigger)]).inc();
    }

    pub(super) fn run_ended(&self, outcome: &'static str) {
        self.runs_ended.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(super) fn stop(&self, by: &'static str) {
        self.stops.get_or_create(&[("by", by)]).inc();
    }

    /// A stop came to its end; `cut`: seconds to the last cut, if anything was cut.
    pub(super) fn stopped(&self, cut: Option<f64>, end: f64) {
        if let Some(cut) = cut {
            self.stop_seconds.get_or_create(&[("until", UNTIL_CUT)]).observe(cut);
        }
        self.stop_seconds.get_or_create(&[("until", UNTIL_END)]).observe(end);
    }

    pub(super) fn partial(&self, reason: &'static str, tokens: u64) {
        self.partial_reply_tokens.get_or_create(&[("reason", reason)]).observe(tokens as f64);
    }

    pub(super) fn accepted(&self, urgency: Urgency) {
        self.messages_accepted.get_or_create(&[("urgency", urgency.as_str())]).inc();
    }

    pub(super) fn refused(&self, reason: &'static str) {
        self.messages_refused.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn injected(&self, point: Point, messages: u64) {
        self.messages_injected.get_or_create(&[("point", point.as_str())]).inc_by(messages);
    }

    pub(super) fn returned(&self, reason: &'static str) {
        self.messages_returned.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn waited(&self, urgency: Urgency, point: Point, seconds: f64) {
        let labels = [("urgency", urgency.as_str()), ("point", point.as_str())];
        self.message_wait_seconds.get_or_create(&labels).observe(seconds);
    }

    /// So many calls were skipped and interrupted for what was injected together.
    pub(super) fn cut_by_mail(&self, skipped: usize, interrupted: usize) {
        for (how, count) in [(SKIPPED, skipped), (INTERRUPTED, interrupted)] {
            self.calls_cut_by_mail.get_or_create(&[("how", how)]).inc_by(count as u64);
        }
    }

    pub(super) fn tool_call(&self, status: &'static str) {
        self.tool_calls.get_or_create(&[("status", status)]).inc();
    }

    pub(super) fn approval(&self, decision: &'static str) {
        self.approvals.get_or_create(&[("decision", decision)]).inc();
    }

    pub(super) fn tokens(&self, input: u64, output: u64, cached: u64) {
        self.tokens.get_or_create(&[("direction", INPUT)]).inc_by(input);
        self.tokens.get_or_create(&[("direction", OUTPUT)]).inc_by(output);
        self.cached_tokens.inc_by(cached);
    }

    /// Puts everything under its name.
    pub(super) fn register(&self, registry: &mut Registry) {
        self.register_work(registry);
        self.register_stops(registry);
        self.register_messages(registry);
        self.register_process(registry);
    }

    fn register_work(&self, to: &mut Registry) {
        let all = self.clone();
        to.register("agents", "Agents that are not closed, in sessions that live", all.agents);
        to.register("runs_started", "Runs that began, by what began them", all.runs_started);
        to.register("runs_ended", "Runs that ended, by outcome", all.runs_ended);
        to.register("tool_calls", "Tool calls that ended, by status", all.tool_calls);
        to.register("approvals", "Requests for a person's word, by what became of them", all.approvals);
        to.register("approvals_open", "Requests that wait for a person now", all.approvals_open);
        to.register("compactions", "Conversations whose older part was summarised", all.compactions);
        to.register("calls_cut_by_mail", "Tool calls that a message cost", all.calls_cut_by_mail);
        to.register("model_calls", "Model calls that began, retries included", all.model_calls);
        to.register("model_retries", "Model calls that were tried again", all.model_retries);
        to.register("tokens", "Tokens of whole replies; input includes what came from the cache", all.tokens);
        to.register("cached_tokens", "Input tokens that came from the provider's cache", all.cached_tokens);
    }

    fn register_stops(&self, to: &mut Registry) {
        let all = self.clone();
        to.register("stops", "Stops that stopped an agent, by who asked", all.stops);
        let followed = "Stops after which somebody wrote to the agent, or its next run began, within 60 s";
        to.register("stops_followed", followed, all.stops_followed);
        let took = "From a stop to the last cut of a reply or call, and to the end of the run";
        to.register_with_unit("stop", took, Unit::Seconds, all.stop_seconds);
        let tokens = Unit::Other("tokens".to_owned());
        let length = "Length of replies that were cut, by reason";
        to.register_with_unit("partial_reply", length, tokens, all.partial_reply_tokens);
    }

    fn register_messages(&self, to: &mut Registry) {
        let all = self.clone();
        to.register("messages_accepted", "Messages accepted into a mailbox", all.messages_accepted);
        to.register("messages_refused", "Messages refused at the send", all.messages_refused);
        to.register("messages_injected", "Messages injected, by point", all.messages_injected);
        to.register("messages_answered", "Messages a whole reply came after", all.messages_answered);
        to.register("messages_returned", "Messages that will never be injected", all.messages_returned);
        to.register("messages_waiting", "Messages in mailboxes now", all.messages_waiting);
        let untracked = "Messages whose wait is not measured, because too many were waiting";
        to.register("messages_untracked", untracked, all.messages_untracked);
        let wait = "From being accepted to being injected";
        to.register_with_unit("message_wait", wait, Unit::Seconds, all.message_wait_seconds);
    }

    fn register_process(&self, to: &mut Registry) {
        let all = self.clone();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        to.register("build", "The version that runs", version);
        to.register("sessions", "Sessions that live in this process", all.sessions);
        let commit = "From a step to its being durable";
        to.register_with_unit("store_commit", commit, Unit::Seconds, all.store_commit_seconds);
        let stale = "Writes refused because another process had taken their session over";
        to.register("stale_writes", stale, all.stale_writes);
        let stale = "Ends of calls that nobody waited for any more; they changed nothing";
        to.register("stale_events", stale, all.stale_events);
        to.register("sse_clients", "Clients that read events now", all.sse_clients);
    }

    /// The figures condensed.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            sessions: self.sessions.get(),
            agents: self.agent_stats(),
            runs: self.run_stats(),
            stops: self.stop_stats(),
            messages: self.message_stats(),
            calls: self.call_stats(),
            approvals: ApprovalStats {
                open: self.approvals_open.get(),
                ended: each(&self.approvals, "decision", words::DECISIONS.map(Decision::as_str)).collect(),
            },
            model: self.model_stats(),
            store: StoreStats {
                commit_seconds: self.store_commit_seconds.quantiles(),
                stale_writes: self.stale_writes.get(),
            },
            sse_clients: self.sse_clients.get(),
        }
    }

    fn agent_stats(&self) -> AgentStats {
        let of = |doing: Doing| {
            let gauge = doing.word().and_then(|word| self.agents.get(&[("state", word)]));
            gauge.map_or(0, |gauge| gauge.get())
        };
        let working = of(Doing::Working);
        AgentStats { live: of(Doing::Resting) + working, working }
    }

    fn run_stats(&self) -> RunStats {
        RunStats {
            started: total(&self.runs_started, "trigger", words::TRIGGERS),
            ended: each(&self.runs_ended, "outcome", words::OUTCOMES.map(Outcome::as_str)).collect(),
        }
    }

    fn stop_stats(&self) -> StopStats {
        let requested = total(&self.stops, "by", words::STOPPERS);
        let outcomes = words::OUTCOMES.map(Outcome::as_str);
        let stopped = counted(&self.runs_ended, "outcome", "stopped");
        let until = |word| self.stop_seconds.get(&[("until", word)]).map(|spread| spread.quantiles());
        let none = Quantiles { count: 0, p50: None, p99: None };
        let partial = Spread::of_tokens();
        for reason in words::CUTS.map(InterruptReason::as_str) {
            self.partial_reply_tokens.get(&[("reason", reason)]).iter().for_each(|some| partial.absorb(some));
        }
        StopStats {
            requested,
            stop_rate: rate(stopped, total(&self.runs_ended, "outcome", outcomes)),
            follow_up_rate: rate(self.stops_followed.get(), requested),
            cut_seconds: until(UNTIL_CUT).unwrap_or(none),
            end_seconds: until(UNTIL_END).unwrap_or(none),
            partial_tokens: partial.quantiles(),
        }
    }

    fn message_stats(&self) -> MessageStats {
        let waits = |urgencies: &[Urgency], points: &[Point]| {
            let all = Spread::of_waits();
            for urgency in urgencies {
                for point in points {
                    let labels = [("urgency", urgency.as_str()), ("point", point.as_str())];
                    self.message_wait_seconds.get(&labels).iter().for_each(|some| all.absorb(some));
                }
            }
            Some(all.quantiles()).filter(|quantiles| quantiles.count > 0)
        };
        let by_urgency = Urgency::ALL.iter().filter_map(|u| Some((u.as_str(), waits(&[*u], &POINTS)?)));
        let by_point = POINTS.iter().filter_map(|p| Some((p.as_str(), waits(&Urgency::ALL, &[*p])?)));
        MessageStats {
            accepted: total(&self.messages_accepted, "urgency", Urgency::ALL.map(Urgency::as_str)),
            refused: total(&self.messages_refused, "reason", words::refusals()),
            injected: total(&self.messages_injected, "point", POINTS.map(Point::as_str)),
            answered: self.messages_answered.get(),
            returned: total(&self.messages_returned, "reason", words::RETURNS.map(ReturnReason::as_str)),
            waiting: self.messages_waiting.get(),
            wait_seconds: by_urgency.collect(),
            wait_seconds_by_point: by_point.collect(),
        }
    }

    fn call_stats(&self) -> CallStats {
        CallStats {
            ended: each(&self.tool_calls, "status", words::STATUSES.map(ToolStatus::as_str)).collect(),
            skipped_by_mail: counted(&self.calls_cut_by_mail, "how", SKIPPED),
            interrupted_by_mail: counted(&self.calls_cut_by_mail, "how", INTERRUPTED),
        }
    }

    fn model_stats(&self) -> ModelStats {
        let cut = |reason| self.partial_reply_tokens.get(&[("reason", reason)]).map(|s| s.quantiles().count);
        ModelStats {
            calls: self.model_calls.get(),
            retries: self.model_retries.get(),
            cut: words::CUTS.map(InterruptReason::as_str).into_iter().filter_map(cut).sum(),
            input_tokens: counted(&self.tokens, "direction", INPUT),
            cached_tokens: self.cached_tokens.get(),
            output_tokens: counted(&self.tokens, "direction", OUTPUT),
        }
    }
}

fn counted(counters: &Counters, label: &'static str, word: &'static str) -> u64 {
    counters.get(&[(label, word)]).map_or(0, |counter| counter.get())
}

fn each(
    counters: &Counters,
    label: &'static str,
    words: impl IntoIterator<Item = &'static str>,
) -> impl Iterator<Item = (&'static str, u64)> {
    words.into_iter().map(move |word| (word, counted(counters, label, word)))
}

fn total(counters: &Counters, label: &'static str, words: impl IntoIterator<Item = &'static str>) -> u64 {
    each(counters, label, words).map(|(_, count)| count).sum()
}

/// A share; none of nothing.
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
