//! One agent, while the events of its session are read: where its timeline is, what is under
//! way, what waits in its mailbox, and what its export has so far.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use midturn_core::engine::ports::archive::AgentJournal;
use midturn_core::rules::conversation::{Partial, Reply, ToolResult};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::{CallId, MessageId, RunId, TurnId};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::record::Line;

use super::moments::{BEGIN, Moment};
use super::plan::{CallPlan, EntryPlan, Landmark, LandmarkKind};

/// How an agent came into the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It was there from the begin.
    AtOnce,
    /// A `spawn_agent` call made it.
    Spawned,
    /// Somebody added it later: it is there from the begin, and its prompt is a message.
    Late,
}

/// A message that is queued.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) from: String,
    pub(super) id: MessageId,
    pub(super) seq: u64,
    pub(super) at: Moment,
    pub(super) urgency: Urgency,
    /// Whether the file sends it. What an agent causes can't come in the same part of an
    /// instant as an end.
    pub(super) item: bool,
}

/// What the agent does between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A run starts.
    Start,
    /// The model is called; the index is the entry's.
    Calling(usize),
    /// A reply without calls, or a failure, is there.
    Replied,
    /// It waits for the next attempt, or has its summary: no look at the mailbox comes before the
    /// turn's next call.
    Retrying,
    /// The stream, or the wait, was cut.
    Cut,
    /// The calls of the entry's reply.
    Tools(usize),
    /// No run is under way.
    Resting,
}

/// A call of the turn that is under way.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) call: CallId,
    /// The event of its start, when that was, and the number of its batch.
    pub(super) started: Option<(u64, u32)>,
    /// The event of its end.
    pub(super) ended: Option<u64>,
    /// Where the agent's timeline was when it was skipped, and whether others ran then.
    pub(super) skipped_at: Option<(Moment, bool)>,
}

impl Live {
    pub(super) fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }
}

/// The end of an agent's last run.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) run: RunId,
    pub(super) seq: u64,
    pub(super) at: Moment,
    pub(super) outcome: Outcome,
    /// The error that the run ended with, as far as a replay says the same.
    pub(super) error: Option<String>,
}

/// A stop of the current run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    pub(super) seq: u64,
    pub(super) run: RunId,
    pub(super) at: Moment,
    pub(super) item: bool,
    /// The item that does it, by its place among all.
    pub(super) deed: Option<usize>,
}

/// An agent and what was read of it.
pub(super) struct Actor<'a> {
    pub(super) journal: &'a AgentJournal,
    pub(super) opening: Opening,
    pub(super) now: Moment,
    /// When something of it last began: what comes later has not been seen by then.
    pub(super) began: Option<Moment>,
    pub(super) run: RunId,
    pub(super) turn: TurnId,
    /// The turn of its last model call: a cut without one was before the call began.
    pub(super) called: Option<(RunId, TurnId)>,
    pub(super) phase: Phase,
    pub(super) entries: Vec<EntryPlan>,
    pub(super) live: Vec<Live>,
    pub(super) pending: Vec<Pending>,
    /// When mail left the mailbox other than by an injection, since the last look.
    pub(super) gone: Vec<Moment>,
    pub(super) stop: Option<Stopping>,
    pub(super) ended: Vec<Ended>,
    pub(super) landmarks: Vec<Landmark>,
    /// The progress guard's count.
    pub(super) starved: u32,
    /// When it was closed, and the event that tells of it.
    pub(super) closed: Option<(u64, Moment)>,
    replies: VecDeque<Arc<Reply>>,
    partials: VecDeque<Arc<Partial>>,
    results: HashMap<CallId, VecDeque<&'a ToolResult>>,
    ids: HashSet<String>,
}

impl<'a> Actor<'a> {
    pub(super) fn new(journal: &'a AgentJournal) -> Self {
        let mut actor = Self {
            journal,
            opening: Opening::AtOnce,
            now: BEGIN,
            began: None,
            run: 0,
            turn: 0,
            called: None,
            phase: Phase::Resting,
            entries: Vec::new(),
            live: Vec::new(),
            pending: Vec::new(),
            gone: Vec::new(),
            stop: None,
            ended: Vec::new(),
            landmarks: Vec::new(),
            starved: 0,
            closed: None,
            replies: VecDeque::new(),
            partials: VecDeque::new(),
            results: HashMap::new(),
            ids: HashSet::new(),
        };
        for row in &journal.rows {
            match &row.line {
                Line::Reply(reply) => actor.replies.push_back(reply.clone()),
                Line::Interrupted(partial) => actor.partials.push_back(partial.clone()),
                Line::Result(result) => {
                    actor.results.entry(result.id.clone()).or_default().push_back(result);
                }
                Line::Unused(reply) => actor.replies.push_back(reply.clone()),
                // What was said is in the event.
                Line::Compacted(compaction) => {
                    let reply = Reply { usage: compaction.usage, ..Reply::default() };
                    actor.replies.push_back(Arc::new(reply));
                }
                Line::Prompt(_) | Line::Alone(..) | Line::Beside(..) => {}
            }
        }
        actor
    }

    /// The next whole reply of the record.
    pub(super) fn next_reply(&mut self) -> Option<Arc<Reply>> {
        self.replies.pop_front()
    }

    /// The next cut reply of the record.
    pub(super) fn next_partial(&mut self) -> Option<Arc<Partial>> {
        self.partials.pop_front()
    }

    /// The text of a call's next result, in full.
    pub(super) fn next_result(&mut self, call: &CallId) -> Option<&'a ToolResult> {
        self.results.get_mut(call)?.pop_front()
    }

    /// An id for a call that can stand in the file, once.
    pub(super) fn file_id(&mut self, call: &str) -> String {
        let printable: String = call.chars().filter(|c| !c.is_control()).take(60).collect();
        let base = match printable.trim() {
            "" | "any" => "call".to_owned(),
            _ => printable,
        };
        let mut id = base.clone();
        let mut n = 1;
        while !self.ids.insert(id.clone()) {
            n += 1;
            id = format!("{base}.{n}");
        }
        id
    }

    /// The entry whose calls are under way.
    pub(super) fn entry(&mut self) -> Option<&mut EntryPlan> {
        match self.phase {
            Phase::Tools(entry) | Phase::Calling(entry) => self.entries.get_mut(entry),
            Phase::Start | Phase::Replied | Phase::Retrying | Phase::Cut | Phase::Resting => None,
        }
    }

    /// A call of the turn, by the model's id: its place, and its plan.
    pub(super) fn call(&mut self, id: &CallId) -> Option<(usize, &mut CallPlan)> {
        let index = self.live.iter().position(|live| live.call == *id && live.ended.is_none())?;
        let Phase::Tools(entry) = self.phase else { return None };
        let own = self.entries.get_mut(entry)?.calls.iter_mut();
        let plan = own.filter(|call| call.kind != super::plan::CallKind::Provider).nth(index)?;
        Some((index, plan))
    }

    /// The plan of the turn's n-th call.
    pub(super) fn plan(&mut self, index: usize) -> Option<&mut CallPlan> {
        let entry = self.entry()?;
        entry.calls.iter_mut().filter(|call| call.kind != super::plan::CallKind::Provider).nth(index)
    }

    /// The number of the model call that is under way in a replay.
    pub(super) fn calls_made(&self) -> usize {
        self.entries.len()
    }

    /// Notes an event that an item can follow.
    pub(super) fn landmark(
        &mut self,
        seq: u64,
        event: &'static str,
        id: Option<String>,
        at: Moment,
        kind: LandmarkKind,
    ) {
        self.landmarks.push(Landmark { seq, at, event, id, kind });
    }

    /// The message that cuts what runs: the earliest urgent one that waits.
    pub(super) fn urgent(&self) -> Option<&Pending> {
        self.pending.iter().find(|mail| mail.urgency == Urgency::Urgent)
    }

    /// Whether the guard lets no `next_boundary` mail act in this turn.
    pub(super) fn is_guarded(&self) -> bool {
        let threshold = self.journal.record.settings.progress_guard.0;
        threshold != 0 && self.starved >= threshold
    }

    /// How its run ended whose end the event of this number tells, or a later one.
    pub(super) fn end_after(&self, seq: u64) -> Option<&Ended> {
        self.ended.iter().find(|end| end.seq > seq)
    }
}
