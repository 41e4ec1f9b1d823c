//! One turn's tool calls: which start, which are skipped, what each one's result is.
//!
//! The driver tells what happened and asks which calls start next; it decides nothing.
//! semantics.md, sections 3 to 5.

use std::sync::Arc;

use super::batch::{PlannedCall, Segment, segments};
use super::boundary::{Inbox, Moment, closing_point, look};
use super::conversation::{ToolResult, ToolStatus, ToolUse};
use super::id::CallId;
use super::mail::{MessageKey, Point, Urgency};
use super::record::Open;
use super::settings::{Concurrency, Settings};
use super::time::{Micros, Span};
use super::wording::{self, Cause};

/// A turn's calls on their way to their results.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    calls: Vec<Call>,
    segments: Vec<Segment>,
    /// The segment that is under way; `segments.len()` when the last one is done.
    current: Option<usize>,
    guarded: bool,
    /// A call was told to start.
    started: bool,
    /// `next_boundary` mail skipped every call at A.
    starved: bool,
    /// The cause that ended the turn before its last call started.
    over: bool,
    news: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Call {
    plan: PlannedCall,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// Its segment is not entered, or it waits for a free slot or for its file.
    Waiting,
    /// A person was asked whether it may start.
    Asking,
    /// A person said yes: it starts next.
    Approved,
    Running(Running),
    Ended(Ended),
}

#[derive(Clone, Debug)]
struct Ended {
    result: ToolResult,
    /// Whether mail skipped it or cut it short.
    by_mail: bool,
}

#[derive(Clone, Debug, Default)]
struct Running {
    since: Micros,
    /// It has returned a continuation.
    continues: bool,
    /// The first cause that cut it, and how long it had run then.
    cut: Option<(Cause, Span)>,
}

/// What a call gave when it ended.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What the model reads; the output so far, if the call was cut.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// Messages that the result carries.
    pub messages: Arc<[MessageKey]>,
}

impl Turn {
    /// A turn whose calls are all still to start.
    pub fn new(plan: Vec<PlannedCall>, settings: &Settings, guarded: bool) -> Self {
        let segments = segments(&plan, settings);
        let calls = plan.into_iter().map(|plan| Call { plan, state: State::Waiting }).collect();
        Self { calls, segments, guarded, ..Self::default() }
    }

    /// A turn that the process did not live to close; `started` are the calls that had. Those without
    /// a result are lost, and that is news. What mail cost the others says the record, and a crash
    /// costs nothing in anybody's name.
    pub fn recovered(open: &Open, started: &[CallId]) -> Self {
        let state = |call: &ToolUse| match open.result(call) {
            Some(result) => State::Ended(Ended { by_mail: !result.cost.is_empty(), result: result.clone() }),
            None if started.contains(&call.id) => State::Running(Running::default()),
            None => State::Waiting,
        };
        let plan = |call: &ToolUse| PlannedCall::serial(call.id.clone(), call.name.clone());
        let calls = open.reply.calls().map(|call| Call { plan: plan(call), state: state(call) }).collect();
        let mut turn = Self { calls, started: !started.is_empty(), ..Self::default() };
        turn.lost();
        turn
    }

    /// Passes a boundary, if one is reached, and says which calls start now, in call order.
    pub fn step(&mut self, inbox: &dyn Inbox, settings: &Settings) -> Vec<usize> {
        while !self.over && self.current_calls().all(|i| self.has_returned(i)) {
            let next = self.current.map_or(0, |current| current + 1);
            if next == self.segments.len() {
                break;
            }
            if let Some(committed) = look(self.moment(next), self.guarded, settings, inbox) {
                self.starved = next == 0 && committed.highest < Urgency::Urgent;
                self.skip_rest(&Cause::Mail(committed.sender));
                break;
            }
            self.current = Some(next);
            let ready = self.ready(settings);
            if !ready.is_empty() {
                return ready;
            }
        }
        if self.over { Vec::new() } else { self.still_ready(settings, inbox) }
    }

    /// What has a slot, a free file or its approval by now, unless mail that cuts what runs has
    /// come meanwhile: then it doesn't begin, and what runs is cut.
    fn still_ready(&mut self, settings: &Settings, inbox: &dyn Inbox) -> Vec<usize> {
        let ready = self.ready(settings);
        if ready.is_empty() {
            return ready;
        }
        let Some(committed) = look(Moment::Working, self.guarded, settings, inbox) else { return ready };
        for i in ready {
            self.skip(i, &Cause::Mail(committed.sender.clone()));
        }
        self.step(inbox, settings)
    }

    fn moment(&self, next: usize) -> Moment {
        match (next, self.segments[next].glued) {
            (0, _) => Moment::BeforeTools,
            (_, true) => Moment::WithinEdits,
            (_, false) => Moment::BetweenCalls,
        }
    }

    fn current_calls(&self) -> std::ops::Range<usize> {
        self.current.map_or(0..0, |current| self.segments[current].calls.clone())
    }

    fn has_returned(&self, call: usize) -> bool {
        match &self.calls[call].state {
            State::Waiting | State::Asking | State::Approved => false,
            State::Running(running) => running.continues,
            State::Ended(_) => true,
        }
    }

    /// The calls of the current segment that have a free slot, and whose file is free.
    fn ready(&self, settings: &Settings) -> Vec<usize> {
        let busy = self.current_calls().filter(|i| self.occupies(*i)).count();
        let mut free = (settings.max_parallel_tools.max(1) as usize).saturating_sub(busy);
        let mut ready: Vec<usize> = Vec::new();
        for i in self.current_calls() {
            match self.calls[i].state {
                // It has its slot since it was asked about.
                State::Approved => ready.push(i),
                State::Waiting if free > 0 && self.file_is_free(i, settings) => {
                    ready.push(i);
                    free -= 1;
                }
                State::Waiting | State::Asking | State::Running(_) | State::Ended(_) => {}
            }
        }
        ready
    }

    fn occupies(&self, call: usize) -> bool {
        match &self.calls[call].state {
            State::Asking | State::Approved => true,
            State::Running(running) => !running.continues,
            State::Waiting | State::Ended(_) => false,
        }
    }

    /// Under `concurrency = "all"` edits of the same file wait for each other, in call order.
    /// As between serial calls, a continuation lets the next one start.
    fn file_is_free(&self, call: usize, settings: &Settings) -> bool {
        let Some(file) = &self.calls[call].plan.edits else { return true };
        let same_file = |earlier: &usize| self.calls[*earlier].plan.edits.as_ref() == Some(file);
        let mut earlier = self.current_calls().take_while(|i| *i < call).filter(same_file);
        settings.concurrency == Concurrency::Safe || earlier.all(|earlier| self.has_returned(earlier))
    }

    /// A person is asked whether the call may start.
    pub fn asks(&mut self, call: usize) {
        self.calls[call].state = State::Asking;
    }

    /// Whether a person is being asked about the call.
    pub fn is_asking(&self, call: usize) -> bool {
        matches!(self.calls[call].state, State::Asking)
    }

    /// Whether a person said that the call may start.
    pub fn is_approved(&self, call: usize) -> bool {
        matches!(self.calls[call].state, State::Approved)
    }

    /// A person said yes: the call is the next to start, unless something cuts it first.
    pub fn approved(&mut self, call: usize) {
        if self.is_asking(call) {
            self.calls[call].state = State::Approved;
        }
    }

    /// The call may not start; `text` says by whose word.
    pub fn denied(&mut self, call: usize, text: String) {
        if matches!(self.calls[call].state, State::Waiting | State::Asking) {
            self.end(call, ToolStatus::Failed, text, Arc::default(), None);
        }
    }

    /// Nobody answered in time. No message has skipped it, so it is none of the skipped.
    pub fn unanswered(&mut self, call: usize, patience: Span) {
        self.denied(call, wording::unanswered(patience));
    }

    /// A call has started.
    pub fn started(&mut self, call: usize, at: Micros) {
        self.runs(call, Running { since: at, ..Running::default() });
    }

    /// A call was told to start and was cut before it did, so it never runs, also one that
    /// can't be aborted.
    pub fn cut_at_its_start(&mut self, call: usize, at: Micros, cause: &Cause) {
        let cut = Some((cause.clone(), Span::ZERO));
        self.runs(call, Running { since: at, cut, ..Running::default() });
        self.ended(call, Given::default());
    }

    fn runs(&mut self, call: usize, running: Running) {
        self.started = true;
        self.calls[call].state = State::Running(running);
    }

    /// A call has returned a continuation: what follows may start.
    pub fn continues(&mut self, call: usize) {
        if let State::Running(running) = &mut self.calls[call].state {
            running.continues = true;
        }
    }

    /// A call has ended. Once its abort had begun it is what the abort's cause made of it,
    /// whatever it gives, unless it can't be aborted (semantics.md, section 4).
    pub fn ended(&mut self, call: usize, given: Given) {
        let State::Running(running) = &self.calls[call].state else { return };
        match running.cut.clone() {
            Some((cause, ran)) => {
                let status = match cause {
                    Cause::Mail(_) => ToolStatus::Interrupted,
                    Cause::Stop(_) | Cause::Shutdown | Cause::Limit(_) => ToolStatus::Stopped,
                };
                let text = wording::cut(&cause, ran, &given.text);
                self.end(call, status, text, Arc::default(), Some(&cause));
            }
            None => {
                let status = if given.is_error { ToolStatus::Failed } else { ToolStatus::Completed };
                self.end(call, status, given.text, given.messages, None);
            }
        }
    }

    /// An urgent message, a stop or a limit takes effect: what can be aborted is to be aborted
    /// now (the returned calls), what has no slot yet is skipped. All but a message skip the rest.
    pub fn cut(&mut self, cause: &Cause, at: Micros) -> Vec<usize> {
        let mut abort = Vec::new();
        for (i, call) in self.calls.iter_mut().enumerate() {
            if let State::Running(running) = &mut call.state
                && call.plan.abortable
                && running.cut.is_none()
            {
                running.cut = Some((cause.clone(), at.since(running.since)));
                abort.push(i);
            }
        }
        match cause {
            Cause::Stop(_) | Cause::Shutdown | Cause::Limit(_) => self.skip_rest(cause),
            Cause::Mail(_) => {
                for i in self.current_calls() {
                    self.skip(i, cause);
                }
            }
        }
        abort
    }

    /// The calls that were told to abort and have not ended are waited for no longer. A shutdown
    /// waits for none, also for those that can't be aborted.
    pub fn give_up(&mut self, deadline: Span, shuts: bool) -> Vec<usize> {
        let is_stuck = |call: &Call| match &call.state {
            State::Running(running) => shuts || running.cut.is_some(),
            State::Waiting | State::Asking | State::Approved | State::Ended(_) => false,
        };
        let stuck: Vec<usize> = (0..self.calls.len()).filter(|i| is_stuck(&self.calls[*i])).collect();
        for i in &stuck {
            let State::Running(running) = &self.calls[*i].state else { continue };
            let cause = running.cut.as_ref().map(|(cause, _)| cause.clone());
            let text = wording::given_up(deadline);
            self.end(*i, ToolStatus::Unknown, text, Arc::default(), cause.as_ref());
        }
        stuck
    }

    /// Whoever drove the turn is gone, and nothing of its calls is known that is not told: they
    /// end as after a crash.
    pub fn lost(&mut self) {
        self.over = true;
        for i in 0..self.calls.len() {
            let (status, text) = match self.calls[i].state {
                State::Waiting | State::Asking | State::Approved => (ToolStatus::Skipped, wording::NEVER_RAN),
                State::Running(_) => (ToolStatus::Unknown, wording::LOST),
                State::Ended(_) => continue,
            };
            self.end(i, status, text.to_owned(), Arc::default(), None);
        }
    }

    fn skip_rest(&mut self, cause: &Cause) {
        self.over = true;
        for i in 0..self.calls.len() {
            self.skip(i, cause);
        }
    }

    fn skip(&mut self, call: usize, cause: &Cause) {
        let text = match self.calls[call].state {
            State::Waiting | State::Approved => wording::skipped(cause),
            State::Asking => wording::withdrawn(cause),
            State::Running(_) | State::Ended(_) => return,
        };
        self.end(call, ToolStatus::Skipped, text, Arc::default(), Some(cause));
    }

    fn end(
        &mut self,
        call: usize,
        status: ToolStatus,
        text: String,
        messages: Arc<[MessageKey]>,
        cause: Option<&Cause>,
    ) {
        let entry = &mut self.calls[call];
        let result = ToolResult {
            id: entry.plan.id.clone(),
            name: entry.plan.name.clone(),
            status,
            is_error: status != ToolStatus::Completed,
            text: text.into(),
            messages,
            cost: Arc::default(),
        };
        let by_mail = matches!(cause, Some(Cause::Mail(_)));
        entry.state = State::Ended(Ended { result, by_mail });
        self.news.push(call);
    }

    /// Whether a result is new that mail has cost.
    pub fn has_cost_news(&self) -> bool {
        self.news.iter().any(|i| matches!(&self.calls[*i].state, State::Ended(ended) if ended.by_mail))
    }

    /// The results that have come since the last question, in the order they came. `committed`
    /// is the mail that has acted: those that it cost say so, for whoever goes on after a crash.
    pub fn news(&mut self, committed: &Arc<[MessageKey]>) -> Vec<ToolResult> {
        let mut told = Vec::new();
        for i in std::mem::take(&mut self.news) {
            let State::Ended(ended) = &mut self.calls[i].state else { continue };
            if ended.by_mail {
                ended.result.cost = committed.clone();
            }
            told.push(ended.result.clone());
        }
        told
    }

    /// Whether every call has its result.
    pub fn is_complete(&self) -> bool {
        self.calls.iter().all(|call| matches!(call.state, State::Ended(_)))
    }

    /// The results so far, in call order.
    pub fn results(&self) -> Vec<ToolResult> {
        self.ended_calls().map(|ended| ended.result.clone()).collect()
    }

    fn ended_calls(&self) -> impl Iterator<Item = &Ended> {
        self.calls.iter().filter_map(|call| match &call.state {
            State::Ended(ended) => Some(ended),
            State::Waiting | State::Asking | State::Approved | State::Running(_) => None,
        })
    }

    /// The point of the injection that closes the turn.
    pub fn point(&self) -> Point {
        let (skipped, interrupted) = (self.skipped().len(), self.interrupted().len());
        closing_point(self.calls.len(), skipped, interrupted)
    }

    /// The calls that mail skipped.
    pub fn skipped(&self) -> Arc<[CallId]> {
        self.by_mail(|status| status == ToolStatus::Skipped)
    }

    /// The calls that mail interrupted, those that never stopped among them.
    pub fn interrupted(&self) -> Arc<[CallId]> {
        self.by_mail(|status| matches!(status, ToolStatus::Interrupted | ToolStatus::Unknown))
    }

    fn by_mail(&self, wanted: impl Fn(ToolStatus) -> bool) -> Arc<[CallId]> {
        let cost = self.ended_calls().filter(|ended| ended.by_mail && wanted(ended.result.status));
        cost.map(|ended| ended.result.id.clone()).collect()
    }

    /// The progress guard's count of starved turns, which was so many before this one (semantics.md,
    /// section 3).
    pub fn starved_after(&self, before: u32) -> u32 {
        if self.started { 0 } else { before + u32::from(self.starved) }
    }

    /// The number of the call's batch, from 1.
    pub fn batch(&self, call: usize) -> u32 {
        self.segments.iter().find(|segment| segment.calls.contains(&call)).map_or(0, |it| it.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_counts_starved_turns_and_a_start_clears_it() {
        for (started, starved, after) in [(false, true, 3), (false, false, 2), (true, false, 0)] {
            let turn = Turn { started, starved, ..Turn::default() };
            assert_eq!(turn.starved_after(2), after, "{started} {starved}");
        }
    }
}
