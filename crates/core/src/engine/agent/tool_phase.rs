//! A turn's tools: start what the rules let start, wait, abort what was cut.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::{CancellationToken, ReusableBoxFuture};

use super::Driver;
use super::asking::{Requests, answered};
use super::guard::words_of;
use super::queue::{Queue, Starting};
use crate::engine::journal::Draft;
use crate::engine::output::{Capped, RESULT, capped};
use crate::engine::ports::{CallTraits, Output, Phase, Returned, Tool, ToolCall};
use crate::engine::session::{ActivityKind, Claimed};
use crate::engine::tools;
use crate::fail;
use crate::rules::batch::PlannedCall;
use crate::rules::conversation::{Entry, ToolUse};
use crate::rules::event::EventKind;
use crate::rules::time::Micros;
use crate::rules::turn::Given;
use crate::rules::wording::Cause;

/// The calls that run, and how far what cut them has been carried out.
#[derive(Default)]
pub(super) struct Bench {
    tasks: JoinSet<Returned>,
    running: HashMap<Id, RunningCall>,
    pub(super) requests: Requests,
    pub(super) queue: Queue,
    /// Something ended or was skipped, so the rules are to be asked.
    pub(super) news: bool,
    cut_by_mail: bool,
    /// By a stop, or by a limit in time: the run's own token is cancelled for good.
    cut_for_good: bool,
    /// When the calls that were told to abort are given up.
    deadline: Option<Deadline>,
    /// When all are, since the process ends: also those that can't be aborted.
    last: Option<Deadline>,
    hurries: bool,
}

/// An instant that is waited for from when it is known, so that its turn in that instant comes
/// whatever else does.
type Deadline = ReusableBoxFuture<'static, ()>;

/// The calls that are waited for no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Late {
    Aborted,
    All,
}

struct RunningCall {
    index: usize,
    cancel: CancellationToken,
    output: Arc<Capped>,
    task: AbortHandle,
}

impl Bench {
    /// Whether any call is running.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn cancel_all(&self) {
        self.running.values().for_each(|call| call.cancel.cancel());
    }

    /// Waits until one more call has ended; what it gives is nobody's any more.
    pub(super) async fn drained(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, _))) => drop(self.running.remove(&id)),
            Some(Err(error)) => drop(self.running.remove(&error.id())),
            None => self.running.clear(),
        }
    }

    /// What has not ended by now is waited for no longer.
    pub(super) fn abandon(&mut self) {
        self.queue.leave();
        self.running.clear();
        self.tasks.abort_all();
    }

    /// New work was armed: nothing has cut it yet.
    pub(super) fn rearm(&mut self) {
        (self.cut_by_mail, self.cut_for_good, self.deadline) = (false, false, None);
    }
}

/// What the driver waited for.
enum Woken {
    Call(Result<(Id, Returned), JoinError>),
    Answer,
    Slot,
    Cut,
    Late(Late),
    Shutdown,
}

impl Driver {
    /// What the tool says of a call; an unknown tool is a serial call that fails.
    pub(super) fn plan(&self, call: &ToolUse) -> PlannedCall {
        let traits = self.tool(call).map_or(CallTraits::SERIAL, |tool| tool.traits(call));
        PlannedCall {
            id: call.id.clone(),
            name: call.name.clone(),
            safe: traits.safe,
            abortable: traits.abortable,
            edits: traits.edits,
        }
    }

    pub(super) fn tool(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        let toolbox = self.body.equipment.as_ref().map(|equipment| &equipment.toolbox);
        match (tools::find(&self.session, &self.cell, &call.name), toolbox) {
            (Some(own), Some(toolbox)) => Some(toolbox.own(call, own)),
            (None, Some(toolbox)) => toolbox.find(call),
            (own, None) => own,
        }
    }

    /// Starts what may start, then waits until something ended and the boundary is reached.
    pub(super) async fn run_tools(&mut self, start: Vec<usize>) {
        self.start(start).await;
        self.wait_for_calls().await;
        self.until_boundary().await;
    }

    async fn start(&mut self, calls: Vec<usize>) {
        let came = self.bench.queue.take();
        if calls.is_empty() {
            return;
        }
        // No tool starts after its token is cancelled: what was cut in between is skipped.
        if self.work.is_cancelled() {
            self.apply_cuts();
            return;
        }
        let asked: Vec<(usize, ToolUse)> =
            calls.into_iter().filter_map(|index| Some((index, self.asked(index)?.clone()))).collect();
        let mut draft = Draft::default();
        let admitted = self.admit(&mut draft, asked);
        let starting = self.with_slots(came, admitted);
        for (index, call, _) in &starting {
            let batch = self.run.tools().map_or(0, |turn| turn.batch(*index));
            let (tool, name, input) = (call.id.clone(), call.name.clone(), call.input.clone());
            draft.tell(self.place(), EventKind::ToolStarted { tool, name, input, batch });
        }
        // Before the first of them begins: a crash in between would leave a call that ran and looks as if
        // it never had.
        match self.record_start(draft).await {
            Ok(true) => {}
            Ok(false) => return self.never_asked(),
            Err(error) => {
                self.obey(Err(error));
                return;
            }
        }
        for (index, call, slot) in starting {
            // What came while that was recorded: it never runs, though it was told to start.
            match self.mailbox().cause().filter(|_| self.work.is_cancelled()) {
                Some(cause) => self.cut_at_its_start(index, &cause),
                None => self.spawn((index, call, slot)),
            }
        }
        fail::point("tools_started");
    }

    /// A call of the last reply.
    fn asked(&self, index: usize) -> Option<&ToolUse> {
        match self.body.prompt.entries().last().map(|entry| &**entry) {
            Some(Entry::Assistant(reply)) => reply.calls().nth(index),
            _ => None,
        }
    }

    /// What was to start, or to be asked about, was cut before anybody was told.
    fn never_asked(&mut self) {
        self.apply_cuts();
        drop(self.bench.requests.take_resolved());
    }

    fn cut_at_its_start(&mut self, index: usize, cause: &Cause) {
        let now = self.session.clock.now();
        if let Some(turn) = self.run.tools() {
            turn.cut_at_its_start(index, now, cause);
            self.bench.news = true;
        }
    }

    fn spawn(&mut self, (index, call, slot): Starting) {
        let known = || self.body.equipment.as_ref().map(|equipment| equipment.specs.clone());
        let tool = self.tool(&call).ok_or_else(|| known().unwrap_or_default());
        let (session, now) = (self.session.clone(), self.session.clock.now());
        let Some(turn) = self.run.tools() else { return };
        turn.started(index, now);
        self.begins(ActivityKind::Tool { id: call.id.clone(), name: call.name.clone() });
        let output = Arc::new(Capped::new(self.session.clone(), self.place(), call.id.clone()));
        let cancel = CancellationToken::new();
        let call = ToolCall {
            agent: self.cell.name.clone(),
            agent_index: self.cell.index,
            run: self.run.id(),
            call,
            index,
            cancel: cancel.clone(),
            output: output.clone(),
        };
        let task = self.bench.tasks.spawn(async move {
            let _slot = slot;
            match tool {
                Ok(tool) => tool.call(call).await,
                Err(known) => tools::no_such_tool(&session, &known, &call).await,
            }
        });
        self.bench.running.insert(task.id(), RunningCall { index, cancel, output, task });
    }

    /// Waits until something ended, or nothing is left to wait for.
    async fn wait_for_calls(&mut self) {
        loop {
            self.collect_ended();
            let waits = !self.bench.running.is_empty()
                || !self.bench.requests.is_empty()
                || self.bench.queue.is_waiting();
            if std::mem::take(&mut self.bench.news) || !waits {
                break;
            }
            match self.woken().await {
                Woken::Call(ended) => self.came(ended),
                Woken::Answer => self.take_answers(),
                Woken::Slot => self.bench.news = true,
                Woken::Cut => {
                    self.session.clock.turn(Phase::Cut(self.cell.index)).await;
                    self.collect_ended();
                    self.apply_cuts();
                }
                Woken::Late(calls) => self.give_up(calls),
                Woken::Shutdown => self.hurries(),
            }
            self.tell_results().await;
        }
    }

    /// A result that is there is real: it wins over the message that came with it.
    async fn woken(&mut self) -> Woken {
        // Nobody would hear of what was put off for as long as the calls run.
        self.sync().await;
        let late = late(&mut self.bench.deadline, &mut self.bench.last);
        let answers = answered(&self.cell, &*self.session.clock, self.bench.requests.deadline());
        let (mail, for_good) = (self.bench.cut_by_mail, self.bench.cut_for_good);
        tokio::select! {
            biased;
            Some(ended) = self.bench.tasks.join_next_with_id() => Woken::Call(ended),
            () = self.run_token.cancelled(), if !for_good => Woken::Cut,
            () = self.work.cancelled(), if !mail && !for_good => Woken::Cut,
            () = self.session.shutting_down.cancelled(), if !self.bench.hurries => Woken::Shutdown,
            () = answers => Woken::Answer,
            () = self.bench.queue.comes() => Woken::Slot,
            calls = late => Woken::Late(calls),
        }
    }

    /// Lets all that ends in the same instant end, and waits for the agent's turn.
    async fn until_boundary(&mut self) {
        let clock = self.session.clock.clone();
        let boundary = clock.turn(Phase::Boundary(self.cell.index));
        tokio::pin!(boundary);
        loop {
            tokio::select! {
                biased;
                Some(ended) = self.bench.tasks.join_next_with_id() => {
                    self.came(ended);
                    self.tell_results().await;
                }
                calls = late(&mut self.bench.deadline, &mut self.bench.last) => {
                    self.give_up(calls);
                    self.tell_results().await;
                }
                () = &mut boundary => break,
            }
        }
        self.bench.news = false;
    }

    /// What ended while nobody looked has ended.
    fn collect_ended(&mut self) {
        while let Some(ended) = self.bench.tasks.try_join_next_with_id() {
            self.came(ended);
        }
    }

    fn came(&mut self, ended: Result<(Id, Returned), JoinError>) {
        let (id, came) = match ended {
            Ok((id, returned)) => (id, Ok(returned)),
            Err(error) => (error.id(), Err(error)),
        };
        // A call that was given up is nobody's any more.
        let Some(call) = self.bench.running.remove(&id) else {
            self.session.journal.stale();
            return;
        };
        fail::point("tool_ended");
        self.bench.news = true;
        let output = match came {
            Ok(Returned::Done(output)) => output,
            Ok(Returned::Continues(work)) => return self.goes_on(call, work),
            Err(error) => Output::error(format!("[The tool failed: {}]", panic_of(error))),
        };
        self.ended(&call, output);
    }

    fn goes_on(&mut self, call: RunningCall, work: impl Future<Output = Output> + Send + 'static) {
        if let Some(turn) = self.run.tools() {
            turn.continues(call.index);
        }
        let task = self.bench.tasks.spawn(async move { Returned::Done(work.await) });
        self.bench.running.insert(task.id(), RunningCall { task, ..call });
    }

    fn ended(&mut self, call: &RunningCall, output: Output) {
        call.output.ends();
        let claimed = self
            .asked(call.index)
            .and_then(|asked| self.cell.state.lock().claims.get(&asked.id).map(Claimed::keys));
        let text = if output.text.is_empty() && call.cancel.is_cancelled() {
            call.output.text()
        } else {
            output.text
        };
        let given = Given {
            text: capped(&self.session.secrets.output(text), RESULT),
            is_error: output.is_error,
            messages: claimed.unwrap_or_default(),
        };
        if let Some(turn) = self.run.tools() {
            turn.ended(call.index, given);
        }
    }

    /// Carries out what has cancelled the work in hand: an urgent message, a stop or a limit
    /// in time, or one after the other. A call keeps the first cause that cut it.
    pub(super) fn apply_cuts(&mut self) {
        let now = self.session.clock.now();
        let mut causes = Vec::new();
        if let Some(cause @ Cause::Mail(_)) = self.mailbox().cause()
            && !std::mem::replace(&mut self.bench.cut_by_mail, true)
        {
            causes.push(cause);
        }
        if let Some(cause) = self.mailbox().cause_for_good()
            && !std::mem::replace(&mut self.bench.cut_for_good, true)
        {
            causes.push(cause);
        }
        for cause in causes {
            // What waits for a slot is skipped.
            self.bench.queue.leave();
            let abort = self.run.tools().map(|turn| turn.cut(&cause, now)).unwrap_or_default();
            self.abort(&abort, now);
            self.withdraw_requests(&cause.by());
        }
    }

    fn abort(&mut self, calls: &[usize], now: Micros) {
        if calls.is_empty() {
            return;
        }
        self.bench.deadline = Some(self.deadline(now));
        for call in self.bench.running.values().filter(|call| calls.contains(&call.index)) {
            call.cancel.cancel();
        }
    }

    /// The process ends, and nothing holds that up beyond the deadline: not what can't be
    /// aborted either.
    fn hurries(&mut self) {
        self.bench.hurries = true;
        self.bench.last = Some(self.deadline(self.session.clock.now()));
    }

    /// The abort deadline of what is cut now.
    fn deadline(&self, now: Micros) -> Deadline {
        let (clock, index) = (self.session.clock.clone(), self.cell.index);
        let at = now.after(self.cell.settings.abort_deadline);
        ReusableBoxFuture::new(async move { clock.until(at, Phase::Deadline(index)).await })
    }

    /// The calls that did not end in time are waited for no longer.
    fn give_up(&mut self, calls: Late) {
        match calls {
            Late::Aborted => self.bench.deadline = None,
            Late::All => self.bench.last = None,
        }
        let deadline = self.cell.settings.abort_deadline;
        let shuts = calls == Late::All;
        let stuck = self.run.tools().map(|turn| turn.give_up(deadline, shuts)).unwrap_or_default();
        self.bench.news = !stuck.is_empty();
        self.bench.running.retain(|_, call| {
            let given_up = stuck.contains(&call.index);
            if given_up {
                // The last that can be done: where the call waits, its future is dropped.
                call.task.abort();
            }
            !given_up
        });
    }
}

/// Waits for whichever deadline comes first.
async fn late(aborted: &mut Option<Deadline>, all: &mut Option<Deadline>) -> Late {
    tokio::select! {
        biased;
        () = comes(aborted) => Late::Aborted,
        () = comes(all) => Late::All,
    }
}

async fn comes(deadline: &mut Option<Deadline>) {
    match deadline {
        Some(deadline) => deadline.await,
        None => std::future::pending().await,
    }
}

fn panic_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => words_of(&*panic),
        Err(error) => error.to_string(),
    }
}
