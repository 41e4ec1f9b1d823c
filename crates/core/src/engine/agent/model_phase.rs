//! A model call: attempts, retries, and the cut of a stream. What a summary is asked for, and
//! what comes of it, is `compaction`'s.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Driver;
use super::budget::Waits;
use super::stream::{Stream, without_secrets};
use crate::engine::body::{Equipment, Inbound};
use crate::engine::journal::{Draft, Journal};
use crate::engine::limits;
use crate::engine::ports::{Clock, ErrorKind, ModelFailure, Phase, Request, StoreError};
use crate::engine::session::{ActivityKind, AgentCell};
use crate::fail;
use crate::rules::batch::PlannedCall;
use crate::rules::boundary::{Moment, look};
use crate::rules::compaction::Purpose;
use crate::rules::conversation::{Block, Entry, InterruptReason, Partial, Reply, ToolUse};
use crate::rules::event::{CallRef, EventKind, ThinkingState};
use crate::rules::mail::ReceiptState;
use crate::rules::prompt::Prompt;
use crate::rules::record::Line;
use crate::rules::run::retrying;
use crate::rules::time::{Micros, Span};
use crate::rules::validate::Validator;
use crate::rules::wording::Cause;

/// Why an attempt gave no whole reply.
pub(super) enum NoReply {
    /// Something cut it, or the wait for it.
    Cut,
    Failed(ModelFailure),
    /// It was not made: the setting forbids it.
    Limit(&'static str),
}

/// A failure of ours: the same request will fail again.
fn ours(error: impl ToString) -> ModelFailure {
    ModelFailure::new(ErrorKind::InvalidRequest, error.to_string())
}

impl Driver {
    /// Calls the model until it has replied, was cut, or failed for good.
    pub(super) async fn call_model(&mut self) {
        let forbidden = self.counts_turn();
        if let Some(limit) = forbidden {
            limits::reaches(&self.session, &self.cell, limit);
        }
        if !self.run.turn_begins(forbidden) {
            return;
        }
        self.is_at(self.run.turn());
        if !self.has_room().await {
            return;
        }
        if let Some(reply) = self.hear(None).await {
            self.replied(reply).await;
            self.at_boundary().await;
        }
    }

    /// Calls the model until it has replied; with a summary's prompt, for that. `None`: it was
    /// cut or has failed for good, and the run knows.
    pub(super) async fn hear(&mut self, summary: Option<&Prompt>) -> Option<Reply> {
        let began = self.session.clock.now();
        let mut failed = 0;
        loop {
            self.arm(self.cell.settings.urgent_cuts_stream);
            if self.forbidden(Moment::Streaming) {
                self.run.model_cut();
                return None;
            }
            match self.attempt(summary).await {
                Ok(reply) => return Some(reply),
                Err(NoReply::Cut) => {
                    self.run.model_cut();
                    break;
                }
                Err(NoReply::Limit(setting)) => {
                    self.reaches(setting);
                    break;
                }
                Err(NoReply::Failed(failure)) => {
                    failed += 1;
                    if !self.waits_to_try_again(failure, failed, began).await {
                        break;
                    }
                }
            }
        }
        self.at_boundary().await;
        None
    }

    /// A new token for the work that begins now, a child of the run's.
    pub(super) fn arm(&mut self, urgent_cuts: bool) {
        self.work = self.run_token.child_token();
        self.bench.rearm();
        self.mailbox().arm(self.work.clone(), urgent_cuts);
    }

    /// The look after the token was armed: mail or a stop that came in between.
    fn forbidden(&self, moment: Moment) -> bool {
        let settings = &self.cell.settings;
        self.work.is_cancelled() || look(moment, false, settings, self.mailbox()).is_some()
    }

    async fn attempt(&mut self, summary: Option<&Prompt>) -> Result<Reply, NoReply> {
        let checked = match summary {
            None => self.body.validator.check(self.body.prompt.entries()),
            Some(prompt) => Validator::default().check(prompt.entries()),
        };
        checked.map_err(|breach| NoReply::Failed(ours(breach)))?;
        let holding = self.hold(summary).await?;
        if !self.starts_call(summary).await.map_err(|error| NoReply::Failed(ours(error)))? {
            return Err(NoReply::Cut);
        }
        let purpose = purpose_of(summary);
        let stream = Stream::new(self.session.clone(), self.place(), purpose);
        self.begins(ActivityKind::Model(self.body.calls));
        let heard =
            without_secrets(self.listen(&stream, summary, holding.max_output()).await, &self.session.secrets);
        stream.ends();
        self.cell.state.lock().activity.clear();
        fail::point("reply_heard");
        match &heard {
            Ok(reply) => self.settles(holding, reply.usage),
            Err(_) => self.settles_lost(holding, summary, &stream),
        }
        let failure = match heard {
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        if failure.kind == ErrorKind::Cancelled {
            self.cut_short(&stream, self.cut_reason()).await;
            return Err(NoReply::Cut);
        }
        // What failed before anything came is no partial reply: the retry tells of it.
        if !stream.is_empty() {
            self.cut_short(&stream, InterruptReason::Error).await;
        }
        Err(NoReply::Failed(failure))
    }

    /// Tells that a call begins. `false`: it may not any more.
    async fn starts_call(&mut self, summary: Option<&Prompt>) -> Result<bool, StoreError> {
        let (call, messages) = (self.body.calls + 1, summary.unwrap_or(&self.body.prompt).messages());
        let started = EventKind::ModelStarted { call, messages, purpose: purpose_of(summary) };
        let draft = Draft::event(self.place(), started);
        let starts = self.record_start(draft).await?;
        self.body.calls += u64::from(starts);
        Ok(starts)
    }

    /// Waits for the model, and no longer than the deadline for one that ignores its token.
    async fn listen(
        &mut self,
        stream: &Stream,
        summary: Option<&Prompt>,
        max_output: Option<u64>,
    ) -> Result<Reply, ModelFailure> {
        let Some(Equipment { model, system, specs, .. }) = &mut self.body.equipment else {
            return Err(ours("the agent has no model"));
        };
        // What came while its start was recorded: no request leaves.
        if self.work.is_cancelled() {
            return Err(ModelFailure::new(ErrorKind::Cancelled, "cut before it left"));
        }
        let prompt = summary.unwrap_or(&self.body.prompt);
        let request = Request {
            agent_index: self.cell.index,
            call: self.body.calls,
            system,
            tools: specs,
            purpose: purpose_of(summary),
            compactions: self.body.prompt.compactions(),
            entries: prompt.entries(),
            messages: prompt.messages(),
            max_output,
            cancel: &self.work,
            progress: stream,
        };
        let ignored = ignores(&self.work, &self.cell, &*self.session.clock);
        // A summary's request holds nothing that is not answered.
        let mut held_back = Vec::new();
        let unsent = if summary.is_none() { &mut self.body.unsent } else { &mut held_back };
        let journal = &self.session.journal;
        let mut handed_over = Handover { unsent, unanswered: &mut self.body.unanswered };
        let mut reply = model.call(request);
        tokio::pin!(ignored);
        let result = loop {
            tokio::select! {
                biased;
                result = &mut reply => break result,
                () = stream.sent.notified() => {
                    fail::point("request_sent");
                    if let Err(error) = handed_over.sent(journal, self.body.calls).await {
                        break Err(ours(error));
                    }
                }
                () = &mut ignored => break Err(ModelFailure::new(ErrorKind::Cancelled, "it ignored its token")),
            }
        };
        drop(reply);
        if stream.was_sent() {
            handed_over.sent(journal, self.body.calls).await.map_err(ours)?;
        }
        result
    }

    fn cut_reason(&self) -> InterruptReason {
        match (self.mailbox().cause(), self.mailbox().stop_order()) {
            (Some(Cause::Limit(_)), _) => InterruptReason::Limit,
            (Some(Cause::Mail(_)), _) | (_, None) => InterruptReason::MessageInterrupt,
            (_, Some(order)) => order.reason(),
        }
    }

    /// Records what there was of the reply: never as a whole one, and even when it is empty.
    async fn cut_short(&mut self, stream: &Stream, reason: InterruptReason) {
        let (partial, thinking) = stream.partial(reason, self.run.id());
        self.interrupted(partial, thinking).await;
    }

    pub(super) async fn interrupted(&mut self, partial: Partial, thinking: Vec<ThinkingState>) {
        let kind = EventKind::ModelInterrupted {
            reason: partial.reason,
            text: partial.text.clone(),
            thinking,
            partial_tokens: partial.partial_tokens,
        };
        let mut draft = Draft::event(self.place(), kind);
        self.line(&mut draft, Line::Interrupted(Arc::new(partial)));
        self.record_or_end(draft).await;
    }

    /// Counts what a call has cost.
    pub(super) fn spends(&mut self, reply: &Reply) {
        self.usage.add(reply.usage);
        self.cell.state.lock().usage.add(reply.usage);
    }

    /// Records a whole reply and arms the token of its calls.
    async fn replied(&mut self, reply: Reply) {
        self.spends(&reply);
        self.cell.state.lock().context = reply.usage.total();
        let plan: Vec<PlannedCall> = reply.calls().map(|call| self.plan(call)).collect();
        if !plan.is_empty() {
            self.arm(true);
        }
        let mut draft = Draft::default();
        for (mail, injection) in self.body.unanswered.drain(..) {
            draft.moves(&mail, ReceiptState::Answered { injection, call: self.body.calls });
        }
        draft.tell(self.place(), finished(&reply, Purpose::Turn));
        self.body.last_text = reply.text().into();
        let shortened = self.shortened.take().filter(|_| plan.is_empty() && reply.is_cut_at_its_limit());
        self.run.model_replied(&reply, plan);
        // It was shorter than it would have been because a budget is all but used.
        if let Some(setting) = shortened {
            self.reaches(setting);
        }
        let reply = Arc::new(reply);
        self.line(&mut draft, Line::Reply(reply.clone()));
        self.append(Entry::Assistant(reply));
        // The start of its calls follows at once. What ends a run is told before anything else is waited for.
        if self.run.tools().is_some() {
            self.put_off(draft).await;
        } else {
            self.record_or_end(draft).await;
        }
    }

    /// Waits for the next attempt. `false`: there is none, the run fails or the wait was cut.
    async fn waits_to_try_again(&mut self, failure: ModelFailure, failed: u32, began: Micros) -> bool {
        let retry = &self.cell.settings.retry;
        let elapsed = self.session.clock.now().since(began);
        let decided = retrying(retry, failed, elapsed, failure.kind.is_retryable(), failure.retry_after);
        let Some(wait) = decided else {
            self.run.failed(&describe(&failure));
            return false;
        };
        let wait = Span(wait.0 + self.jitter(retry.jitter));
        let kind = EventKind::ModelRetry { attempt: failed, error: describe(&failure), wait };
        if !self.record_or_end(Draft::event(self.place(), kind)).await {
            return false;
        }
        self.arm(true);
        if self.forbidden(Moment::Retrying) {
            self.run.model_cut();
            return false;
        }
        let clock = &self.session.clock;
        let until = clock.now().after(wait);
        let _waits =
            Waits::begin(&self.cell, ActivityKind::Retry { until, attempt: failed + 1 }, clock.now());
        tokio::select! {
            biased;
            () = clock.until(until, Phase::ModelEnd(self.cell.index)) => true,
            () = self.work.cancelled() => {
                clock.turn(Phase::Cut(self.cell.index)).await;
                self.run.model_cut();
                false
            }
        }
    }

    /// Up to `most`, so that agents that failed together don't come back together.
    fn jitter(&self, most: Span) -> u64 {
        let jitters = self.body.equipment.as_ref().is_some_and(|equipment| equipment.model.jitters());
        if !jitters || most == Span::ZERO {
            return 0;
        }
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(self.body.calls) % (most.0 + 1)
    }
}

/// Waits until the deadline for a model that ignores its token.
async fn ignores(token: &CancellationToken, cell: &AgentCell, clock: &dyn Clock) {
    token.cancelled().await;
    let at = clock.now().after(cell.settings.abort_deadline);
    clock.until(at, Phase::Deadline(cell.index)).await;
}

/// The messages that the request under way carries.
struct Handover<'a> {
    unsent: &'a mut Vec<Inbound>,
    unanswered: &'a mut Vec<Inbound>,
}

impl Handover<'_> {
    async fn sent(&mut self, journal: &Journal, call: u64) -> Result<(), StoreError> {
        let mut draft = Draft::default();
        for (mail, injection) in self.unsent.drain(..) {
            draft.moves(&mail, ReceiptState::Sent { injection: injection.clone(), call });
            self.unanswered.push((mail, injection));
        }
        journal.record(draft).await
    }
}

fn purpose_of(summary: Option<&Prompt>) -> Purpose {
    summary.map_or(Purpose::Turn, |_| Purpose::Summary)
}

fn describe(failure: &ModelFailure) -> String {
    match failure.message.as_str() {
        "" => failure.kind.to_string(),
        message => format!("{}: {message}", failure.kind),
    }
}

fn named(call: &ToolUse) -> CallRef {
    CallRef { id: call.id.clone(), name: call.name.clone(), input: call.input.clone() }
}

pub(super) fn finished(reply: &Reply, purpose: Purpose) -> EventKind {
    let thinking = |block: &Block| match block {
        Block::Thinking(_) => Some(ThinkingState::Completed),
        Block::Text(_) | Block::ToolUse(_) | Block::Provider(_) => None,
    };
    EventKind::ModelFinished {
        stop_reason: reply.stop_reason.as_str().into(),
        usage: reply.usage,
        text: reply.text(),
        thinking: reply.blocks.iter().filter_map(thinking).collect(),
        // What is asked for beside a summary is nobody's call: nothing will come of it.
        tools: reply.calls().filter(|_| purpose.is_turn()).map(named).collect(),
        purpose,
    }
}
