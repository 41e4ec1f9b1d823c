//! The state of a simulation: agents, their mail, their run and its turn.

use super::model::*;
use super::result::*;
use std::collections::BTreeSet;

/// Who a mail is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    User,
    Agent(usize),
    /// The coordinator's own mail: the end of a subagent's run.
    Report {
        about: usize,
        run: u32,
        outcome: Outcome,
        then: Then,
    },
}

/// What follows a run that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Rests,
    /// It was stopped and the next run follows at once.
    GoesOn,
    /// It was superseded and the next run follows at once.
    Superseded,
}

/// A message in a mailbox.
#[derive(Clone, Debug)]
pub struct Mail {
    /// Counts all mail of the session, for who committed what.
    pub uid: u64,
    pub id: String,
    pub from: Sender,
    pub urgency: Urgency,
    pub text: String,
    pub expires_at: Option<Micros>,
    pub only_run: Option<u32>,
    /// It has cancelled a token or caused a skip: it can't be withdrawn, superseded or expire.
    pub committed: bool,
    /// A result that it cost is recorded: it is committed after a crash too.
    pub cost: bool,
    /// It asks for the run that is to begin: it wakes the idle agent, or the stopped one once its run has ended.
    pub wakes: bool,
    /// Index in `Findings::messages`; the coordinator's own mail has none.
    pub record: Option<usize>,
}

/// What the coordinator does for one of its own tools.
#[derive(Clone, Debug)]
pub enum Duty {
    /// A simulated tool: it ends by the clock.
    Timed,
    /// Acts at once; ends in the next round.
    Instant,
    Wait {
        names: Vec<usize>,
        all: bool,
        until: Micros,
    },
    /// `stop_agent` or `close_agent`: ends when these runs have. The reports are its result, or mail if it has none.
    Halt {
        targets: Vec<(usize, u32)>,
        reports: Vec<(usize, Mail)>,
    },
}

/// What cost a call its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: it ran to its end.
    Own,
    Mail,
    Stop,
    Crash,
}

/// An abort in progress.
#[derive(Clone, Debug)]
pub struct Abort {
    pub status: Status,
    pub cause: Cause,
    pub by: String,
    pub begun: Micros,
    pub ends: Micros,
    pub round: u64,
}

/// Where a call is.
#[derive(Clone, Debug)]
pub enum Phase {
    Waiting,
    Running {
        started: Micros,
        round: u64,
        duty: Duty,
        failed: bool,
        returned: bool,
        abort: Option<Abort>,
    },
    /// A crash took it; recorded when the agent goes on. With its start, when it had started.
    Lost(Option<Micros>),
    Done(Status, Cause),
}

/// One call of the turn.
#[derive(Clone, Debug)]
pub struct Job {
    pub call: Call,
    pub phase: Phase,
}

impl Job {
    /// Whether it has its result.
    pub fn done(&self) -> bool {
        matches!(self.phase, Phase::Done(..))
    }

    /// Whether it occupies its segment: started, without a result, and no continuation returned.
    pub fn busy(&self) -> bool {
        matches!(self.phase, Phase::Running { returned: false, .. })
    }

    /// Whether it has not started and has no result.
    pub fn waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting)
    }
}

/// What runs between two boundaries.
#[derive(Clone, Debug)]
pub struct Segment {
    pub jobs: Vec<usize>,
    /// Only urgent mail acts at the boundary before it (`keep_edits_together`).
    pub glued: bool,
}

/// The tools of one turn.
#[derive(Clone, Debug)]
pub struct Turn {
    pub jobs: Vec<Job>,
    pub segments: Vec<Segment>,
    pub at: usize,
    /// The sender whose urgent message cancelled the turn's running token, and the message.
    pub cut: Option<(String, u64)>,
    /// The progress guard takes next_boundary as after_tools here.
    pub protected: bool,
}

impl Turn {
    /// Whether a crash took calls of it.
    pub fn lost(&self) -> bool {
        self.jobs.iter().any(|j| matches!(j.phase, Phase::Lost(_)))
    }
}

/// How a model call ended.
#[derive(Clone, Debug)]
pub enum ModelEnd {
    Reply,
    Error(ModelError),
    Exhausted,
    Cut,
}

/// What a run is at.
#[derive(Clone, Debug)]
pub enum Step {
    /// A message or `resume` has woken the agent: its run is there and passes its first boundary in step (3).
    Start,
    Model {
        entry: Option<Entry>,
        started: Micros,
        cut: bool,
        cut_round: Option<u64>,
        end: Option<ModelEnd>,
        record: usize,
    },
    /// Between two attempts.
    Pause {
        until: Micros,
        /// An urgent message has cancelled the wait's token.
        cut: bool,
    },
    Tools(Turn),
    /// A crash took the model call, or the wait between two attempts: it is over as if cut. The index in
    /// `Findings::calls` of a call that was under way.
    LostModel(Option<usize>),
}

/// What ends a run from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    Stop,
    Supersede,
    Close,
    Shutdown,
    /// A limit in time, by its name.
    Limit(&'static str),
}

/// A stop of the current run, or a limit in time that ends it.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The agent whose stop it is; none for a person, a limit and a shutdown.
    pub by: Option<usize>,
    /// NAME in the texts.
    pub name: String,
    pub kind: StopKind,
    /// The call of `by` whose result the report will be.
    pub call: Option<CallRef>,
    /// The reason of a reply that it cuts; none where the pages give none.
    pub reason: Option<&'static str>,
}

impl Stop {
    /// Whether somebody stopped it, rather than a limit or a shutdown.
    pub fn ordered(&self) -> bool {
        !matches!(self.kind, StopKind::Limit(_) | StopKind::Shutdown)
    }
}

/// The current run.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: u32,
    pub turn: u32,
    pub starved: u32,
    pub attempt: u32,
    pub began: Micros,
    pub turn_began: Micros,
    pub stop: Option<Stop>,
    pub step: Step,
    /// Index in `Findings::runs`.
    pub record: usize,
}

/// Whether an agent exists and takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Unspawned,
    Open,
    Closed,
}

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentState {
    pub life: Life,
    pub parent: Option<usize>,
    pub depth: u32,
    pub mailbox: Vec<Mail>,
    pub last: Option<Outcome>,
    pub run: Option<Run>,
    pub runs: u32,
    /// Its prompt asks for the first run.
    pub prompt: bool,
    /// `resume`, or a raised limit, asks for the next run.
    pub resume: bool,
    /// It was stopped: only who may wake it does.
    pub stopped: bool,
    /// A shutdown stopped its last run, which the take-up resumes.
    pub shut_down: bool,
    /// The conversation ends with something that the model has not answered.
    pub unanswered: bool,
    /// Its parent has read the end of its last run.
    pub end_read: bool,
    pub next_entry: usize,
    pub calls: u32,
    pub spent: Spent,
    /// The limits of its own that are reached.
    pub reached: BTreeSet<&'static str>,
    pub last_text: String,
    pub settings: Effective,
}

/// What was used of limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub turns: u64,
    pub tokens: u64,
    /// A call whose tokens the pages don't give is among them.
    pub unsure: bool,
    /// The time of the runs that have ended.
    pub time: Micros,
}

/// The settings of one agent with the defaults filled in.
#[derive(Clone, Debug)]
pub struct Effective {
    pub to_lead: Urgency,
    pub from_above: Urgency,
    pub from_others: Urgency,
    pub urgent_cuts_stream: bool,
    pub keep_edits_together: bool,
    pub concurrency_all: bool,
    pub max_parallel: usize,
    pub return_on_error: bool,
    pub mailbox_messages: usize,
    pub abort_deadline: Micros,
    pub urgent_from_peers: bool,
    pub urgent_per_minute: usize,
    pub max_depth: u32,
    pub max_agents: usize,
    pub limits: Limits,
    pub retry_attempts: u32,
    pub retry_time: Micros,
    pub retry_base: Micros,
    pub retry_cap: Micros,
}

impl Effective {
    /// An agent's settings over the file's over the defaults.
    pub fn new(file: &Settings, own: &Settings) -> Effective {
        macro_rules! pick {
            ($field:ident, $default:expr) => {
                own.$field.or(file.$field).unwrap_or($default)
            };
        }
        Effective {
            to_lead: pick!(to_lead, Urgency::AfterTools),
            from_above: pick!(from_above, Urgency::NextBoundary),
            from_others: pick!(from_others, Urgency::AfterTools),
            urgent_cuts_stream: pick!(urgent_cuts_stream, true),
            keep_edits_together: pick!(keep_edits_together, false),
            concurrency_all: pick!(concurrency_all, false),
            max_parallel: pick!(max_parallel_tools, 8),
            return_on_error: pick!(return_on_error, false),
            mailbox_messages: pick!(mailbox_messages, 1024),
            abort_deadline: pick!(abort_deadline, 2_000_000),
            urgent_from_peers: pick!(urgent_from_peers, false),
            urgent_per_minute: pick!(urgent_per_minute, 6),
            max_depth: pick!(max_depth, 4),
            max_agents: pick!(max_agents, 64),
            limits: own.limits.or(file.limits),
            retry_attempts: pick!(retry_attempts, 5),
            retry_time: pick!(retry_time, 300_000_000),
            retry_base: pick!(retry_base, 500_000),
            retry_cap: pick!(retry_cap, 30_000_000),
        }
    }
}

/// Something an agent caused that arrives in the next round.
#[derive(Clone, Debug)]
pub enum Caused {
    Message { from: usize, call: CallRef, id: String, message: Message },
    Spawn { by: usize, agent: usize, prompt: String, call: CallRef },
    Stop { by: usize, target: usize, subtree: bool, call: CallRef },
    Close { by: usize, target: usize, call: CallRef },
    Report { to: usize, mail: Mail },
}

/// Which call of which run caused it, so that it can be told what came of it.
#[derive(Clone, Copy, Debug)]
pub struct CallRef {
    pub agent: usize,
    pub run: u32,
    pub turn: u32,
    pub job: usize,
}
