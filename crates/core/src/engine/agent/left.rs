//! A run that the process before this one left: what it takes to go on with it.

use std::sync::Arc;

use super::{Body, Driver, Inbound, LeftRun};
use crate::engine::journal::Draft;
use crate::engine::ports::archive::AgentJournal;
use crate::engine::ports::store::Row;
use crate::rules::conversation::{InterruptReason, Partial, Usage};
use crate::rules::event::EventKind;
use crate::rules::limits::{Prices, Spent};
use crate::rules::mail::Sender;
use crate::rules::prompt::Prompt;
use crate::rules::record::{Fold, Line, Open};
use crate::rules::recovery::{self, Left, OpenRun, left};

/// Messages in the conversation whose receipts have not come to their end.
#[derive(Default)]
pub(crate) struct Underway {
    pub(crate) unsent: Vec<Inbound>,
    pub(crate) unanswered: Vec<Inbound>,
}

/// What is to be recorded before a run goes on.
pub(super) enum GoesOn {
    /// Its begin: it was stopped before.
    NotBegun,
    /// A model call was lost: a partial reply of which nothing came.
    CallLost,
    /// Nothing; results of lost calls are recorded as any others.
    AsItWas,
}

impl From<&Left> for GoesOn {
    fn from(left: &Left) -> Self {
        match left {
            Left::NotBegun => Self::NotBegun,
            Left::Calling => Self::CallLost,
            Left::Start | Left::Between | Left::Replied(_) | Left::Tools { .. } => Self::AsItWas,
        }
    }
}

/// What an agent's replies have cost and said.
#[derive(Default)]
struct Said {
    usage: Usage,
    usage_of_run: Usage,
    last_text: String,
}

impl Said {
    fn of(journal: &AgentJournal) -> Self {
        let mut said = Self::default();
        for row in &journal.rows {
            let Some(usage) = row.line.usage() else { continue };
            said.usage.add(usage);
            if row.run == journal.run {
                said.usage_of_run.add(usage);
            }
            if let Line::Reply(reply) = &row.line {
                said.last_text = reply.text();
            }
        }
        said
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
        let said = Said::of(journal);
        let fold: Fold = journal.rows.iter().map(|row| &row.line).collect();
        let (prompt, left) = match is_open {
            false => (fold.closed(), None),
            true => {
                let (prompt, open) = unless_over(fold, journal);
                let open = open_run(journal, open, stopped_by);
                (prompt, Some(LeftRun { open, usage: said.usage_of_run }))
            }
        };
        Self {
            prompt,
            calls: journal.calls,
            unsent: underway.unsent,
            unanswered: underway.unanswered,
            last_text: said.last_text.into(),
            left,
            ..Self::default()
        }
    }
}

/// What an agent had used when its session was left.
pub(crate) fn spent(journal: &AgentJournal, prices: Prices) -> Spent {
    let said = Said::of(journal);
    let (tokens, cost) = (said.usage.total(), prices.cost(&said.usage));
    Spent { turns: journal.turns, tokens, cost, time: journal.worked }
}

/// The prompt, and the turn that is not closed: none when the next one had begun.
fn unless_over(fold: Fold, journal: &AgentJournal) -> (Prompt, Option<Open>) {
    let is_reply = |row: &&Row| matches!(row.line, Line::Reply(_));
    let replied = journal.rows.iter().rev().find(is_reply).map(|row| (row.run, row.turn));
    if replied < Some((journal.run, recovery::turn(&journal.tail))) {
        return (fold.closed(), None);
    }
    fold.open()
}

fn open_run(journal: &AgentJournal, open: Option<Open>, stopped_by: Option<Sender>) -> OpenRun {
    let last = journal.rows.last().filter(|row| row.run == journal.run).map(|row| &row.line);
    let left = left(open, last, &journal.tail);
    OpenRun { run: journal.run, turn: recovery::turn(&journal.tail), left, stopped_by }
}

impl Driver {
    /// Records what the end of the process before has made of the turn.
    pub(super) async fn go_on(&mut self, how: GoesOn) {
        self.is_at(self.run.turn());
        match how {
            GoesOn::NotBegun => self.begin().await,
            GoesOn::AsItWas => {}
            GoesOn::CallLost => self.call_was_lost().await,
        }
    }

    pub(super) async fn call_was_lost(&mut self) {
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
