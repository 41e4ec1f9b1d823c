//! A run that the process before this one left: what it takes to go on with it.

use std::sync::Arc;

use super::{Body, Driver, Inbound, LeftRun};
use crate::engine::journal::Draft;
use crate::engine::ports::archive::AgentJournal;
use crate::rules::conversation::{InterruptReason, Partial, Usage};
use crate::rules::event::EventKind;
use crate::rules::mail::Sender;
use crate::rules::record::{Fold, Line};
use crate::rules::recovery::{Left, OpenRun, left};
use crate::rules::run::Spent;

/// Messages in the conversation whose receipts have not come to their end.
#[derive(Default)]
pub(crate) struct Underway {
    pub(crate) unsent: Vec<Inbound>,
    pub(crate) unanswered: Vec<Inbound>,
}

/// What is to be recorded before a run goes on.
pub(super) enum GoesOn {
    /// A model call was lost: a partial reply of which nothing came.
    CallLost,
    /// Nothing; results of lost calls are recorded as any others.
    AsItWas,
}

impl From<&Left> for GoesOn {
    fn from(left: &Left) -> Self {
        match left {
            Left::Calling => Self::CallLost,
            Left::Start | Left::Between | Left::Replied(_) | Left::Tools { .. } => Self::AsItWas,
        }
    }
}

impl Body {
    /// The body of an agent whose session goes on; with `stopped_by` its open run had been stopped.
    pub(crate) fn recovered(
        journal: &AgentJournal,
        is_open: bool,
        stopped_by: Option<Sender>,
        underway: Underway,
    ) -> Self {
        let replies = || journal.rows.iter().filter_map(|row| reply_of(&row.line).map(|reply| (row.run, reply)));
        let usage = |wanted: &dyn Fn(u64) -> bool| {
            let mut usage = Usage::default();
            replies().filter(|(run, _)| wanted(*run)).for_each(|(_, reply)| usage.add(reply.usage));
            usage
        };
        let fold: Fold = journal.rows.iter().map(|row| &row.line).collect();
        let (prompt, left_run) = if is_open {
            let (prompt, open) = fold.open();
            let last = journal.rows.last().filter(|row| row.run == journal.run).map(|row| &row.line);
            let turn = journal.tail.iter().filter_map(|event| event.at.turn).max().unwrap_or(0);
            let left = left(open, last, &journal.tail);
            let open = OpenRun { run: journal.run, turn, left, stopped_by };
            (prompt, Some(LeftRun { open, usage: usage(&|run| run == journal.run) }))
        } else {
            (fold.closed(), None)
        };
        Self {
            prompt,
            spent: Spent { turns: journal.turns, tokens: usage(&|_| true).total() },
            calls: journal.calls,
            unsent: underway.unsent,
            unanswered: underway.unanswered,
            last_text: replies().last().map(|(_, reply)| reply.text()).unwrap_or_default().into(),
            left: left_run,
            ..Self::default()
        }
    }

    /// Tokens read and written so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.spent.tokens
    }
}

fn reply_of(line: &Line) -> Option<&crate::rules::conversation::Reply> {
    match line {
        Line::Reply(reply) => Some(reply),
        Line::Prompt(_) | Line::Alone(..) | Line::Interrupted(_) | Line::Result(_) | Line::Beside(..) => None,
    }
}

impl Driver {
    /// Records what the end of the process before has made of the turn.
    pub(super) async fn go_on(&mut self, how: GoesOn) {
        self.cell.state.lock().turn = self.run.turn();
        match how {
            GoesOn::AsItWas => {}
            GoesOn::CallLost => self.call_was_lost().await,
        }
    }

    async fn call_was_lost(&mut self) {
        let reason = InterruptReason::Error;
        let partial = Partial {
            text: String::new(),
            thinking: String::new(),
            reason,
            stream_run_id: self.run_id(),
            partial_tokens: 0,
            interrupted_at: self.session.clock.now(),
        };
        let kind = EventKind::ModelInterrupted {
            reason,
            text: String::new(),
            thinking: Vec::new(),
            partial_tokens: 0,
        };
        let mut draft = Draft::event(self.place(), kind);
        self.line(&mut draft, Line::Interrupted(Arc::new(partial)));
        let recorded = self.session.journal.record(draft).await;
        self.obey(recorded);
    }
}
