//! The end of a run: what is recorded, what goes back, and the report to the parent.

use std::sync::Arc;

use super::Driver;
use crate::engine::journal::Draft;
use crate::engine::output::{SHOWN, capped};
use crate::engine::ports::store::RunEnd;
use crate::engine::ports::{Changes, Phase};
use crate::engine::report::Report;
use crate::engine::{deliver, limits, stop};
use crate::fail;
use crate::rules::characters::quoted;
use crate::rules::conversation::{Entry, ToolResult, ToolStatus};
use crate::rules::event::{EventKind, Halt, Outcome, PlanStatus};
use crate::rules::id::AgentName;
use crate::rules::limits::reached;
use crate::rules::mail::{End, ReturnReason, Sender, Standing};
use crate::rules::run::Ending;
use crate::rules::settings::OnError;

impl Driver {
    /// Ends the run. `false`: mail came meanwhile, and the run goes on.
    pub(super) async fn finish(&mut self, ending: Ending) -> bool {
        match ending.outcome {
            Outcome::Finished if !self.mailbox().wind_down_if_empty() => return false,
            Outcome::Finished | Outcome::Stopped => {}
            Outcome::Failed | Outcome::Limit => self.mailbox().wind_down(),
        }
        self.forget_requests();
        self.counts_time();
        limits::looks(&self.session, &self.cell);
        self.stops_are_told().await;
        self.sync().await;
        let changes = self.wind_up_workplace().await;
        let results = self.run.tools().map(|turn| turn.results()).unwrap_or_default();
        let mut draft = Draft::default();
        if !results.is_empty() {
            self.append(Entry::ToolResults { results: results.clone(), mail: None });
        }
        self.give_back(&mut draft, ending.outcome);
        if !self.body.prompt.awaits_reply() {
            self.mailbox().settle_resume();
        }
        self.close_plan(&mut draft, ending.outcome);
        let text = self.last_word(&ending, &results, &changes);
        self.ends_with(draft, ending, text, changes).await;
        true
    }

    /// Records the end of the run with what is in the draft, and tells the parent of it.
    pub(super) async fn ends_with(
        &mut self,
        mut draft: Draft,
        ending: Ending,
        text: Arc<str>,
        changes: Changes,
    ) {
        let end = self.end_of_run(&ending, &text, changes);
        let goes_on = self.mailbox().goes_on();
        let told = if goes_on { End::followed(end.outcome, end.reason) } else { End::of(end.outcome) };
        draft.ends(end.clone());
        self.cell.state.lock().last_end = Some(end);
        let Ending { outcome, error } = ending;
        let kind = EventKind::RunFinished { outcome, error, turns: self.run.turn(), usage: self.usage };
        draft.tell(self.place(), kind);
        if let Err(error) = self.record(draft).await {
            tracing::error!(agent = %self.cell.name, %error, "the end of the run is not recorded");
        }
        fail::point("run_ended");
        self.tell_parent(told, text);
    }

    /// Whoever reads the events finds the stop before what came of it.
    pub(super) async fn stops_are_told(&mut self) {
        let tellings = self.mailbox().tellings();
        if !tellings.is_empty() {
            self.sync().await;
        }
        for told in tellings {
            told.cancelled().await;
        }
    }

    async fn wind_up_workplace(&self) -> Changes {
        let words = self.session.secrets.redacted(self.body.last_text.to_string());
        self.session.workplace.last_words(&self.cell.name, &words);
        let ended = self.session.workplace.run_ended(&self.cell.name, self.run.id()).await;
        let changes =
            ended.unwrap_or_else(|error| Changes { notes: vec![error.to_string()], ..Changes::default() });
        changes.without(&self.session.secrets)
    }

    /// What can't be injected any more goes back to its sender.
    fn give_back(&mut self, draft: &mut Draft, outcome: Outcome) {
        let place = self.place();
        let failed = matches!(outcome, Outcome::Failed | Outcome::Limit);
        // First, so that whoever wrote for this run only reads why it ended.
        if failed && self.cell.settings.on_error == OnError::Return {
            draft.returns(&self.mailbox().take_returnable(), ReturnReason::Error, &place);
        }
        let bound = self.mailbox().take_bound_to(self.run.id());
        draft.returns(&bound, ReturnReason::Expired, &place);
    }

    /// A plan that is cut off marks what it did not come to as skipped.
    fn close_plan(&self, draft: &mut Draft, outcome: Outcome) {
        let mut state = self.cell.state.lock();
        let open = |status| matches!(status, PlanStatus::Pending | PlanStatus::InProgress);
        if outcome != Outcome::Stopped || !state.plan.iter().any(|step| open(step.status)) {
            return;
        }
        for step in state.plan.iter_mut().filter(|step| open(step.status)) {
            step.status = PlanStatus::Skipped;
        }
        let steps = state.plan.clone();
        draft.tell(self.place(), EventKind::PlanUpdated { steps });
    }

    /// What the parent reads: the answer, the error, or the report on a stopped run.
    fn last_word(&self, ending: &Ending, results: &[ToolResult], changes: &Changes) -> Arc<str> {
        let error = ending.error.as_deref().unwrap_or("unknown error");
        let mut text = match ending.outcome {
            Outcome::Finished => self.body.last_text.to_string(),
            Outcome::Failed => error.to_owned(),
            Outcome::Limit => reached(error),
            Outcome::Stopped => self.report(results),
        };
        if let Some(branch) = &changes.branch {
            text.push_str(&format!("\nBranch: {branch}"));
        }
        if !changes.files.is_empty() {
            let files: Vec<_> = changes.files.iter().map(|file| quoted(file)).collect();
            text.push_str(&format!("\nFiles changed: {}", files.join(", ")));
        }
        for note in &changes.notes {
            text.push_str(&format!("\nNote: {note}"));
        }
        capped(&text, SHOWN).into()
    }

    fn report(&self, results: &[ToolResult]) -> String {
        let list = |wanted: fn(ToolStatus) -> bool| {
            let ids = results.iter().filter(|result| wanted(result.status));
            let ids: Vec<String> = ids.map(|result| format!("{} ({})", result.id, result.name)).collect();
            if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
        };
        let done = list(|status| matches!(status, ToolStatus::Completed | ToolStatus::Failed));
        let cut = list(|status| !matches!(status, ToolStatus::Completed | ToolStatus::Failed));
        let unread = self.mailbox().ids().len();
        let said = if self.body.last_text.is_empty() { "nothing" } else { &self.body.last_text };
        format!("calls done: {done}; calls cut: {cut}; unread messages: {unread}; last text: {said}")
    }

    fn end_of_run(&self, ending: &Ending, text: &Arc<str>, changes: Changes) -> RunEnd {
        let order = self.mailbox().stop_order().filter(|_| ending.outcome == Outcome::Stopped);
        RunEnd {
            agent: self.cell.name.clone(),
            run: self.run.id(),
            outcome: ending.outcome,
            reason: order.map(|order| order.reason()),
            text: text.clone(),
            changes,
            restarts: matches!(self.mailbox().standing(), Standing::Winding { restart: true, .. }),
            owed_to: self.cell.parent.clone().filter(|parent| self.is_owed(parent)),
        }
    }

    /// Whether the parent has to be told of the end: not by whom it was that stopped the run, unless a
    /// call of its waits for the report, which may not live to tell it; and not of what a shutdown
    /// stopped, which goes on.
    fn is_owed(&self, parent: &AgentName) -> bool {
        let waits = {
            let state = self.cell.state.lock();
            state.report_to.is_some() || state.unheard
        };
        match self.mailbox().stop_order() {
            Some(order) if order.halt == Halt::Shutdown => false,
            Some(order) => waits || order.by != Sender::Agent(parent.clone()),
            None => true,
        }
    }

    /// A subagent's end is mail for its parent, unless the parent waits for it as the result
    /// of its own stop.
    fn tell_parent(&self, end: End, text: Arc<str>) {
        let Some(parent) = self.cell.parent.clone().filter(|parent| self.is_owed(parent)) else { return };
        let waiting = {
            let mut state = self.cell.state.lock();
            state.unheard = false;
            state.report_to.take()
        };
        let report = Report { run: self.run.id(), end, text };
        let unheard = match waiting {
            Some(waiting) => waiting.send(report).err(),
            None => Some(report),
        };
        if let Some(report) = unheard {
            deliver::report(Phase::Caused, &self.session, &self.cell, &parent, report);
        }
    }

    /// The run has not begun: the agent rests, as if nobody had driven it.
    pub(super) fn goes_back(self) {
        *self.cell.body.lock() = Some(self.body);
        self.session.rested.notify_waiters();
    }

    /// Everything of the run is recorded: the agent rests, or its next run starts.
    pub(super) async fn settle(self) -> Standing {
        let Self { session, cell, body, .. } = self;
        let awaits = body.prompt.awaits_reply();
        *cell.body.lock() = Some(body);
        let standing = cell.mailbox.settle(awaits);
        session.rested.notify_waiters();
        stop::tell_closed(&session, &cell, standing).await;
        standing
    }
}
