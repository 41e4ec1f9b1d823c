//! What all agents of a session share: who there is, who is whose parent, who waits for whom.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approvals::Approvals;
use super::body::Body;
use super::fence::{Around, Fence, Fences, Spawns};
use super::journal::Journal;
use super::mailbox::{Mailbox, Queued};
use super::ports::store::{AgentRecord, RunEnd};
use super::ports::{Clock, ModelFactory, ToolSpec, Workplace};
use super::report::Report;
use super::session_budget::SessionBudget;
use super::slots::Slots;
use super::templates::Templates;
use super::until::until;
use crate::rules::conversation::{MessageKey, Usage};
use crate::rules::event::{Place, PlanStep};
use crate::rules::id::{AgentName, CallId, RunId, SessionId, TurnId};
use crate::rules::limits::Budget;
use crate::rules::mail::{Relation, Role, Sender, Standing};
use crate::rules::secrets::Secrets;
use crate::rules::settings::Settings;
use crate::rules::time::{Micros, Span};
use crate::rules::waiting::Waits;

/// One agent, as everybody but its driver sees it. While it is idle this is all there is.
pub(crate) struct AgentCell {
    pub(crate) name: AgentName,
    /// Its place in the session's order.
    pub(crate) index: u32,
    pub(crate) role: Role,
    pub(crate) parent: Option<AgentName>,
    pub(crate) depth: u32,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) system: Arc<str>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) mailbox: Mailbox,
    /// How many agents were ever spawned below it.
    pub(crate) below: AtomicU32,
    /// Told when a person has answered a request of this agent.
    pub(crate) answered: Notify,
    pub(crate) state: Mutex<AgentState>,
    /// What only the driver works with; here while the agent is idle.
    pub(crate) body: Mutex<Option<Box<Body>>>,
}

/// What is told of an agent when somebody asks.
#[derive(Default)]
pub(crate) struct AgentState {
    pub(crate) prompt: Option<Arc<str>>,
    /// The last run that has begun, and its turn.
    pub(crate) run: RunId,
    pub(crate) turn: TurnId,
    /// What is under way, and since when.
    pub(crate) activity: Vec<Activity>,
    /// The last run whose begin is recorded.
    pub(crate) begun: RunId,
    /// What its model calls have used in all its runs.
    pub(crate) usage: Usage,
    /// How many tokens its conversation holds, as the provider counted them last.
    pub(crate) context: u64,
    /// What it may use, and what it has used. Here, so that a person can set it while it works.
    pub(crate) budget: Budget,
    pub(crate) last_end: Option<RunEnd>,
    /// The last merge of its branch, if that conflicted and none has gone through since. In no record: git has the branch.
    pub(crate) conflict: Option<Conflict>,
    pub(crate) plan: Vec<PlanStep>,
    /// What a call has taken to tell in its result, which is not recorded yet.
    pub(crate) claims: HashMap<CallId, Claimed>,
    /// The report on the last run is on its way to the parent.
    pub(crate) reporting: bool,
    /// The parent's call that stopped the run was lost with its process: it is told by mail.
    pub(crate) unheard: bool,
    /// Who waits for the report on the stopped run instead of getting mail.
    pub(crate) report_to: Option<tokio::sync::oneshot::Sender<Report>>,
}

/// What a call tells in its result instead of a message. If the result doesn't come, it is
/// mail after all.
pub(crate) enum Claimed {
    /// Answers that `wait_agents` took out of the mailbox.
    Answers(Vec<Queued>),
    /// The report on a child that the call has stopped.
    Report(AgentName, Report),
    /// That report, for which a call that was cut waits no longer: it may come until the call has ended.
    Awaited(AgentName, oneshot::Receiver<Report>),
}

impl Claimed {
    /// What the result carries.
    pub(crate) fn keys(&self) -> Arc<[MessageKey]> {
        match self {
            Self::Answers(mail) => mail.iter().map(|queued| queued.mail.key()).collect(),
            Self::Report(about, report) => [report.key(about)].into(),
            Self::Awaited(..) => Arc::default(),
        }
    }
}

/// A merge of an agent's branch that would not go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The agent's current or last run when it was tried.
    pub run: RunId,
    /// When, in the session's time.
    pub at: Micros,
    /// The files that conflict; the first of them where they are many.
    pub files: Vec<String>,
}

/// Something that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What.
    pub what: ActivityKind,
    /// Since when, in the session's time.
    pub since: Micros,
}

/// What an agent can be waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// The reply to this model call.
    Model(u64),
    /// What is left of the session's budget, which others hold.
    Budget,
    /// The time until a model call that failed is tried again.
    Retry {
        /// When that is.
        until: Micros,
        /// The number of that call in its turn.
        attempt: u32,
    },
    /// The end of a tool call.
    Tool {
        /// The call.
        id: CallId,
        /// The tool.
        name: Arc<str>,
    },
    /// A slot for this call: as many commands run as may at once.
    Slot {
        /// The call.
        id: CallId,
        /// The tool.
        name: Arc<str>,
    },
    /// A person's word on this call.
    Approval {
        /// The call.
        id: CallId,
        /// The tool.
        name: Arc<str>,
    },
}

impl AgentCell {
    /// The cell of an agent that was made so, and stands so deep below a lead.
    pub(crate) fn new(record: AgentRecord, depth: u32, mailbox: Mailbox, state: AgentState) -> Self {
        Self {
            name: record.name,
            index: record.index,
            role: record.role,
            parent: record.parent,
            depth,
            model: record.model,
            system: record.system,
            settings: record.settings,
            mailbox,
            answered: Notify::new(),
            below: AtomicU32::new(0),
            state: Mutex::new(state),
            body: Mutex::default(),
        }
    }

    /// Whether its first run is still to start with a prompt.
    pub(crate) fn has_prompt(&self) -> bool {
        self.state.lock().prompt.is_some()
    }

    /// Whether a run is under way or about to start, or its end is still to be told.
    pub(crate) fn is_at_work(&self) -> bool {
        self.mailbox.is_running() || self.state.lock().reporting
    }

    /// Whether its mail is returned.
    pub(crate) fn is_closed(&self) -> bool {
        self.mailbox.standing().is_closed()
    }

    /// Where the agent is now, for events. A run that has not begun has no turn yet.
    pub(crate) fn place(&self) -> Place {
        let (run, state) = (self.mailbox.run(), self.state.lock());
        Place::of(&self.name, run, if state.run == run { state.turn } else { 0 })
    }
}

/// An agent as it was left, until the session goes on.
pub(crate) struct LeftAgent {
    pub(crate) cell: Arc<AgentCell>,
    /// What it goes on for besides mail.
    pub(crate) resumes: bool,
    /// The end of its last run, which its parent may not have been told.
    pub(crate) owed: Option<(AgentName, Report)>,
    /// It was closed in a run that has ended, and nobody was told that it is closed.
    pub(crate) closes: bool,
}

/// Drives an agent until it rests.
pub(crate) type Drive = fn(Arc<Session>, Arc<AgentCell>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// A session.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) settings: Arc<Settings>,
    /// What is taken out of every text that comes in.
    pub(crate) secrets: Secrets,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Journal,
    pub(crate) models: Arc<dyn ModelFactory>,
    pub(crate) workplace: Arc<dyn Workplace>,
    pub(crate) templates: Arc<dyn Templates>,
    pub(crate) agents: DashMap<AgentName, Arc<AgentCell>>,
    /// The parents of agents that are still to be spawned.
    pub(crate) announced: BTreeMap<AgentName, AgentName>,
    /// Names in the session's order.
    pub(crate) order: Mutex<Vec<AgentName>>,
    pub(crate) waits: Mutex<Waits>,
    pub(crate) approvals: Arc<Approvals>,
    /// In which commands run, where as many as agents start are too many.
    pub(crate) slots: Option<Slots>,
    pub(crate) budget: SessionBudget,
    pub(crate) fences: Arc<Fences>,
    pub(crate) spawns: Arc<Spawns>,
    pub(crate) urgent: Mutex<HashMap<(AgentName, AgentName), VecDeque<Micros>>>,
    pub(crate) tasks: TaskTracker,
    /// How an agent is driven. Given to the session: whoever wakes one knows no driver.
    pub(crate) drive: Drive,
    /// The process ends: from then on nothing is accepted, and nobody is woken.
    pub(crate) shutting_down: CancellationToken,
    pub(crate) expiries: std::sync::atomic::AtomicU64,
    /// How many drivers are at work.
    pub(crate) busy: AtomicUsize,
    /// Told whenever an agent comes to rest.
    pub(crate) rested: Notify,
    /// Agents as they were left, until the session goes on.
    pub(crate) left: Mutex<Vec<LeftAgent>>,
    /// What models are told of `spawn_agent`; made when the first agent is equipped.
    pub(crate) spawn_spec: OnceLock<Arc<ToolSpec>>,
}

impl Session {
    /// Does something with the session to its end, whether or not the asker still waits for it then.
    pub(crate) async fn whole<T, F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match self.tasks.spawn(work(self.clone())).await {
            Ok(done) => done,
            // Nobody aborts it, so it panicked: that is the asker's to hear.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Whether the process ends.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.is_cancelled()
    }

    /// A limit of the session is reached: it is every resting agent's.
    pub(crate) fn reaches(&self, limit: Option<&'static str>) {
        self.budget.reaches(limit);
        for cell in self.agents.iter() {
            cell.mailbox.session_reaches(limit);
        }
    }

    /// The agent of that name.
    pub(crate) fn agent(&self, name: &str) -> Option<Arc<AgentCell>> {
        self.agents.get(name).map(|cell| cell.clone())
    }

    /// All agents, in the session's order.
    pub(crate) fn in_order(&self) -> Vec<Arc<AgentCell>> {
        let names = self.order.lock().clone();
        names.iter().filter_map(|name| self.agent(name.as_str())).collect()
    }

    /// Whether `above` is the parent of `below`, or its parent's parent, and so on.
    pub(crate) fn is_ancestor(&self, above: &AgentName, below: &AgentCell) -> bool {
        let mut parent = below.parent.clone();
        // Parents are spawned before their children, so the walk ends.
        while let Some(name) = parent {
            if name == *above {
                return true;
            }
            let spawned = self.agent(name.as_str()).map(|cell| cell.parent.clone());
            parent = spawned.unwrap_or_else(|| self.announced.get(&name).cloned());
        }
        false
    }

    /// An agent's settings. Most have those of the agent that was spawned before them, and a
    /// million agents one copy.
    pub(crate) fn shared(&self, settings: Settings, before: Option<&AgentName>) -> Arc<Settings> {
        let before = before.and_then(|name| self.agent(name.as_str()));
        let known = before.map_or_else(|| self.settings.clone(), |cell| cell.settings.clone());
        if *known == settings { known } else { Arc::new(settings) }
    }

    /// From now on nobody is spawned in there: who is being spawned is in the order already, or
    /// will be refused.
    pub(crate) fn fence(&self, around: Around) -> Fence {
        let _order = self.order.lock();
        self.fences.put(around)
    }

    /// What a sender is to a receiver.
    pub(crate) fn relation(&self, from: &Sender, to: &AgentCell) -> Relation {
        match from {
            Sender::User => Relation::Person,
            Sender::Coordinator(_) => Relation::Coordinator,
            Sender::Agent(name) if self.is_ancestor(name, to) => Relation::Ancestor,
            Sender::Agent(_) => Relation::Other,
        }
    }

    /// The agent and all below it, parents first.
    pub(crate) fn subtree(&self, root: &AgentName) -> Vec<Arc<AgentCell>> {
        let below = |cell: &Arc<AgentCell>| cell.name == *root || self.is_ancestor(root, cell);
        let mut cells: Vec<_> = self.in_order().into_iter().filter(below).collect();
        cells.sort_by_key(|cell| cell.depth);
        cells
    }

    /// Whether one agent may send another an urgent message now: not too many in 60 seconds.
    pub(crate) fn urgent_in_rate(&self, from: &AgentName, to: &AgentCell) -> bool {
        let now = self.clock.now();
        let mut urgent = self.urgent.lock();
        let Some(recent) = urgent.get_mut(&(from.clone(), to.name.clone())) else {
            return to.settings.urgent_per_minute > 0;
        };
        while recent.front().is_some_and(|at| now.since(*at) >= Span::secs(60)) {
            recent.pop_front();
        }
        recent.len() < to.settings.urgent_per_minute as usize
    }

    /// Counts an urgent message that was accepted.
    pub(crate) fn count_urgent(&self, from: &AgentName, to: &AgentName) {
        let now = self.clock.now();
        self.urgent.lock().entry((from.clone(), to.clone())).or_default().push_back(now);
    }

    /// Somebody is at work until the guard is dropped, by a panic too.
    pub(crate) fn at_work(self: &Arc<Self>) -> AtWork {
        self.busy.fetch_add(1, Ordering::AcqRel);
        AtWork(self.clone())
    }

    /// Waits until the run that an agent is ending has ended.
    pub(crate) async fn at_rest(&self, name: &AgentName) {
        let Some(cell) = self.agent(name.as_str()) else { return };
        until(&self.rested, || !matches!(cell.mailbox.standing(), Standing::Winding { .. })).await;
    }

    /// Whether anybody is at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// Waits until no agent works.
    pub(crate) async fn quiet(&self) {
        until(&self.rested, || !self.is_busy()).await;
    }
}

/// Work that who waits for quiet waits for.
pub(crate) struct AtWork(Arc<Session>);

impl Drop for AtWork {
    fn drop(&mut self) {
        let before = self.0.busy.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "more came to rest than were at work");
        self.0.rested.notify_waiters();
    }
}
