//! All figures of the process, under their names. The names, the units and the words of the
//! labels are stable: dashboards and alerts are written against them (docs/operations.md).
//!
//! Every word of a label is a `&'static str` from here or from core's own enums, so that no name,
//! id or text of a session can ever become one: a label with unbounded values would cost the
//! memory of whoever scrapes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::Outcome;
use midturn_core::rules::mail::{Point, Refusal, ReturnReason, Urgency};
use midturn_core::rules::view::Agent;
use midturn_wire::spent::Spent;
use midturn_wire::stats::{
    AgentStats, ApprovalStats, CallStats, MessageStats, ModelStats, Quantiles, RunStats, Stats, StopStats,
    StoreStats,
};
use parking_lot::Mutex;

use super::page::Page;
use super::spread::{Histogram, Spread};

/// A word of a label; empty where there is none.
pub(super) type Word = &'static str;

/// A figure that is counted, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Figure(&'static str);

pub(super) const AGENTS: Figure = Figure("agents");
pub(super) const APPROVALS: Figure = Figure("approvals");
pub(super) const APPROVALS_OPEN: Figure = Figure("approvals_open");
pub(super) const CACHED_TOKENS: Figure = Figure("cached_tokens");
pub(super) const CALLS_CUT_BY_MAIL: Figure = Figure("calls_cut_by_mail");
pub(super) const COMPACTIONS: Figure = Figure("compactions");
pub(super) const MESSAGES_ACCEPTED: Figure = Figure("messages_accepted");
pub(super) const MESSAGES_ANSWERED: Figure = Figure("messages_answered");
pub(super) const MESSAGES_INJECTED: Figure = Figure("messages_injected");
pub(super) const MESSAGES_REFUSED: Figure = Figure("messages_refused");
pub(super) const MESSAGES_RETURNED: Figure = Figure("messages_returned");
pub(super) const MESSAGES_UNTRACKED: Figure = Figure("messages_untracked");
pub(super) const MESSAGES_WAITING: Figure = Figure("messages_waiting");
pub(super) const MODEL_CALLS: Figure = Figure("model_calls");
pub(super) const MODEL_RETRIES: Figure = Figure("model_retries");
pub(super) const RUNS_ENDED: Figure = Figure("runs_ended");
pub(super) const RUNS_STARTED: Figure = Figure("runs_started");
pub(super) const SESSIONS: Figure = Figure("sessions");
pub(super) const SSE_CLIENTS: Figure = Figure("sse_clients");
pub(super) const STALE_EVENTS: Figure = Figure("stale_events");
const STALE_WRITES: Figure = Figure("stale_writes");
pub(super) const STOPS: Figure = Figure("stops");
pub(super) const STOPS_FOLLOWED: Figure = Figure("stops_followed");
pub(super) const TOKENS: Figure = Figure("tokens");
pub(super) const TOOL_CALLS: Figure = Figure("tool_calls");

/// A figure; its label and the words of it that are there from the start, so that a rate over
/// them is 0 and not absent; and what it says.
type Row = (Figure, &'static str, &'static [Word], &'static str);

/// The one series of a figure without a label.
const ALONE: &[Word] = &[""];

const GAUGES: [Row; 5] = [
    (AGENTS, "state", &[], "Agents that are not closed, in sessions that live"),
    (APPROVALS_OPEN, "", ALONE, "Requests that wait for a person now"),
    (MESSAGES_WAITING, "", ALONE, "Messages in mailboxes now"),
    (SESSIONS, "", ALONE, "Sessions that live in this process"),
    (SSE_CLIENTS, "", ALONE, "Clients that read events now"),
];

const COUNTERS: [Row; 20] = [
    (APPROVALS, "decision", Decision::WORDS, "Requests for a person's word, by what became of them"),
    (CACHED_TOKENS, "", ALONE, "Input tokens that came from the provider's cache"),
    (CALLS_CUT_BY_MAIL, "how", &[SKIPPED, INTERRUPTED], "Tool calls that a message cost"),
    (COMPACTIONS, "", ALONE, "Conversations whose older part was summarised"),
    (MESSAGES_ACCEPTED, "urgency", &[], "Messages accepted into a mailbox"),
    (MESSAGES_ANSWERED, "", ALONE, "Messages a whole reply came after"),
    (MESSAGES_INJECTED, "point", Point::WORDS, "Messages injected, by point"),
    (MESSAGES_REFUSED, "reason", &Refusal::CODES, "Messages refused at the send"),
    (MESSAGES_RETURNED, "reason", ReturnReason::WORDS, "Messages that will never be injected"),
    (MESSAGES_UNTRACKED, "", ALONE, UNTRACKED),
    (MODEL_CALLS, "", ALONE, "Model calls that began, retries included"),
    (MODEL_RETRIES, "", ALONE, "Model calls that were tried again"),
    (RUNS_ENDED, "outcome", Outcome::WORDS, "Runs that ended, by outcome"),
    (RUNS_STARTED, "trigger", &["prompt", "message", "resume"], "Runs that began, by what began them"),
    (STALE_EVENTS, "", ALONE, "Ends of calls that nobody waited for any more; they changed nothing"),
    (STALE_WRITES, "", ALONE, "Writes refused because another process had taken their session over"),
    (STOPS, "by", &[USER, AGENT], "Stops that stopped an agent, by who asked"),
    (STOPS_FOLLOWED, "", ALONE, FOLLOWED),
    (TOKENS, "direction", DIRECTIONS, "Tokens of whole replies; input includes what came from the cache"),
    (TOOL_CALLS, "status", ToolStatus::WORDS, "Tool calls that ended, by status"),
];

const DIRECTIONS: &[Word] = &[INPUT, OUTPUT];
const UNTRACKED: &str = "Messages whose wait is not measured, because too many were waiting";
const FOLLOWED: &str = "Stops after which somebody wrote to the agent, or its next run began, within 60 s";

const SPREADS: [&Spread; 4] = [&MESSAGE_WAIT, &PARTIAL_REPLY, &STOP, &STORE_COMMIT];

/// From "at once" to "in half an hour".
pub(super) static MESSAGE_WAIT: Spread = Spread {
    name: "message_wait_seconds",
    unit: "seconds",
    labels: &["urgency", "point"],
    bounds: &[
        0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0,
    ],
    help: "From being accepted to being injected",
};

/// The first bucket holds the empty ones.
pub(super) static PARTIAL_REPLY: Spread = Spread {
    name: "partial_reply_tokens",
    unit: "tokens",
    labels: &["reason"],
    bounds: &[0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0],
    help: "Length of replies that were cut, by reason",
};

/// A process that ignores SIGTERM costs the grace (0.1 s), a call that ignores its token 2 s.
pub(super) static STOP: Spread = Spread {
    name: "stop_seconds",
    unit: "seconds",
    labels: &["until"],
    bounds: &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0],
    help: "From a stop to the last cut of a reply or call, and to the end of the run",
};

/// 20 ms is the target's p99.
pub(super) static STORE_COMMIT: Spread = Spread {
    name: "store_commit_seconds",
    unit: "seconds",
    labels: &[],
    bounds: &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0],
    help: "From a step to its being durable",
};

pub(super) const SKIPPED: Word = "skipped";
pub(super) const INTERRUPTED: Word = "interrupted";
pub(super) const INPUT: Word = "input";
pub(super) const OUTPUT: Word = "output";
pub(super) const UNTIL_CUT: Word = "cut";
pub(super) const UNTIL_END: Word = "end";
const USER: Word = "user";
const AGENT: Word = "agent";
const WORKING: Word = "working";
const OTHER: Word = "other";

/// The word of a refusal (semantics.md, section 8), and one for what is none of them.
pub(super) fn refusal(code: &str) -> Word {
    Refusal::CODES.into_iter().find(|known| *known == code).unwrap_or(OTHER)
}

/// Who stops: a person, or anybody else.
pub(super) fn stopper(by: &str) -> Word {
    if by == USER { USER } else { AGENT }
}

/// What an agent is doing, as far as figures go; none of an agent that is not there: not yet, or
/// closed.
pub(super) fn doing(agent: Option<&Agent>) -> Option<Word> {
    let agent = agent.filter(|agent| agent.is_working() || !agent.is_closed)?;
    Some(if agent.is_working() { WORKING } else { "resting" })
}

/// What is counted.
pub(super) struct Figures {
    counted: Mutex<Counted>,
    /// Who counts the writes that were stale, once it is known whom to ask.
    pub(super) stale_writes: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
}

/// What was counted by some moment.
#[derive(Clone)]
pub(super) struct Counted {
    counts: BTreeMap<(Figure, Word), i64>,
    spreads: BTreeMap<(&'static str, [Word; 2]), Histogram>,
}

impl Default for Figures {
    /// Nothing counted yet.
    fn default() -> Self {
        let words = |(figure, _, words, _): Row| words.iter().map(move |word| ((figure, *word), 0));
        let mut counts: BTreeMap<_, _> = GAUGES.into_iter().chain(COUNTERS).flat_map(words).collect();
        counts.extend(Urgency::ALL.map(|urgency| ((MESSAGES_ACCEPTED, urgency.as_str()), 0)));
        counts.insert((MESSAGES_REFUSED, OTHER), 0);
        let commits = ((STORE_COMMIT.name, ["", ""]), Histogram::of(&STORE_COMMIT));
        let counted = Counted { counts, spreads: [commits].into() };
        Self { counted: Mutex::new(counted), stale_writes: OnceLock::new() }
    }
}

impl Figures {
    /// Counts so many of a figure without a label.
    pub(super) fn count(&self, figure: Figure, more: i64) {
        self.add(figure, "", more);
    }

    /// An agent changes what it does.
    pub(super) fn agent(&self, was: Option<Word>, is: Option<Word>) {
        was.into_iter().for_each(|word| self.add(AGENTS, word, -1));
        is.into_iter().for_each(|word| self.add(AGENTS, word, 1));
    }

    /// Counts so many under this word of the figure's label.
    pub(super) fn add(&self, figure: Figure, word: Word, more: i64) {
        if more == 0 {
            return;
        }
        *self.counted.lock().counts.entry((figure, word)).or_default() += more;
    }

    /// Counts a value under these words of the spread's labels.
    pub(super) fn observe(&self, spread: &'static Spread, words: [Word; 2], value: f64) {
        let mut counted = self.counted.lock();
        let of = counted.spreads.entry((spread.name, words));
        of.or_insert_with(|| Histogram::of(spread)).observe(value);
    }

    /// What was counted by now. A copy: whoever counts must not wait for whoever reads.
    pub(super) fn now(&self) -> Counted {
        let stale = self.stale_writes.get().map_or(0, |count| count());
        let mut counted = self.counted.lock().clone();
        counted.counts.insert((STALE_WRITES, ""), stale.cast_signed());
        counted
    }
}

impl Counted {
    /// As Prometheus reads it.
    pub(super) fn page(&self) -> String {
        let mut page = Page::default();
        page.head("build", "info", "The version that runs");
        page.sample("build_info", [("version", env!("CARGO_PKG_VERSION"))], 1);
        let gauges = GAUGES.iter().map(|row| ("gauge", "", row));
        let counters = COUNTERS.iter().map(|row| ("counter", "_total", row));
        for (kind, suffix, (figure, label, _, help)) in gauges.chain(counters) {
            let Figure(name) = figure;
            if self.of(*figure).next().is_some() {
                page.head(name, kind, help);
            }
            for (word, value) in self.of(*figure) {
                page.sample(&format!("{name}{suffix}"), [(*label, word)], value);
            }
        }
        for spread in SPREADS {
            let all = self.spreads.iter().filter(|((name, _), _)| *name == spread.name);
            let all: Vec<_> = all.map(|((_, words), histogram)| (*words, histogram)).collect();
            page.spread(spread, &all);
        }
        page.end()
    }

    fn of(&self, figure: Figure) -> impl Iterator<Item = (Word, i64)> {
        let all = self.counts.iter().filter(move |((of, _), _)| *of == figure);
        all.map(|((_, word), value)| (*word, *value))
    }

    fn each(&self, figure: Figure) -> BTreeMap<Word, u64> {
        self.of(figure).map(|(word, value)| (word, value.cast_unsigned())).collect()
    }

    fn gauge(&self, figure: Figure) -> i64 {
        self.of(figure).map(|(_, value)| value).sum()
    }

    fn total(&self, figure: Figure) -> u64 {
        self.gauge(figure).cast_unsigned()
    }

    fn word(&self, figure: Figure, word: Word) -> u64 {
        self.each(figure).get(word).copied().unwrap_or_default()
    }

    /// The quantiles of all that was observed under such words.
    fn quantiles(&self, spread: &'static Spread, wanted: impl Fn(&[Word; 2]) -> bool) -> Quantiles {
        let mut all = Histogram::of(spread);
        for ((name, words), some) in &self.spreads {
            if *name == spread.name && wanted(words) {
                all.absorb(some);
            }
        }
        all.quantiles()
    }

    /// The same, for each word of one label.
    fn waits(&self, label: usize) -> BTreeMap<Word, Quantiles> {
        let waits = self.spreads.keys().filter(|(name, _)| *name == MESSAGE_WAIT.name);
        let words = waits.map(|(_, words)| words[label]);
        words.map(|word| (word, self.quantiles(&MESSAGE_WAIT, |words| words[label] == word))).collect()
    }

    /// The figures condensed.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            sessions: self.gauge(SESSIONS),
            agents: AgentStats {
                live: self.gauge(AGENTS),
                working: self.word(AGENTS, WORKING).cast_signed(),
            },
            runs: RunStats { started: self.total(RUNS_STARTED), ended: self.each(RUNS_ENDED) },
            stops: self.stop_stats(),
            messages: self.message_stats(),
            calls: CallStats {
                ended: self.each(TOOL_CALLS),
                skipped_by_mail: self.word(CALLS_CUT_BY_MAIL, SKIPPED),
                interrupted_by_mail: self.word(CALLS_CUT_BY_MAIL, INTERRUPTED),
            },
            approvals: ApprovalStats { open: self.gauge(APPROVALS_OPEN), ended: self.each(APPROVALS) },
            model: ModelStats {
                calls: self.total(MODEL_CALLS),
                retries: self.total(MODEL_RETRIES),
                cut: self.quantiles(&PARTIAL_REPLY, |_| true).count,
                input_tokens: self.word(TOKENS, INPUT),
                cached_tokens: self.total(CACHED_TOKENS),
                output_tokens: self.word(TOKENS, OUTPUT),
            },
            // Money is no figure of a scrape: whoever asks for all this adds it.
            spent: Spent::default(),
            store: StoreStats {
                commit_seconds: self.quantiles(&STORE_COMMIT, |_| true),
                stale_writes: self.total(STALE_WRITES),
            },
            sse_clients: self.gauge(SSE_CLIENTS),
        }
    }

    fn stop_stats(&self) -> StopStats {
        let requested = self.total(STOPS);
        let stopped = self.word(RUNS_ENDED, Outcome::Stopped.as_str());
        StopStats {
            requested,
            stop_rate: rate(stopped, self.total(RUNS_ENDED)),
            follow_up_rate: rate(self.total(STOPS_FOLLOWED), requested),
            cut_seconds: self.quantiles(&STOP, |[until, _]| *until == UNTIL_CUT),
            end_seconds: self.quantiles(&STOP, |[until, _]| *until == UNTIL_END),
            partial_tokens: self.quantiles(&PARTIAL_REPLY, |_| true),
        }
    }

    fn message_stats(&self) -> MessageStats {
        MessageStats {
            accepted: self.total(MESSAGES_ACCEPTED),
            refused: self.total(MESSAGES_REFUSED),
            injected: self.total(MESSAGES_INJECTED),
            answered: self.total(MESSAGES_ANSWERED),
            returned: self.total(MESSAGES_RETURNED),
            waiting: self.gauge(MESSAGES_WAITING),
            wait_seconds: self.waits(0),
            wait_seconds_by_point: self.waits(1),
        }
    }
}

/// A share; none of nothing.
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
