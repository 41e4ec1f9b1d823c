//! What an agent's driver works with from run to run, and how that comes back when its session
//! goes on. It knows no driver.

use std::sync::Arc;

use super::ports::archive::AgentJournal;
use super::ports::store::Row;
use super::ports::{Model, ToolSpec, Toolbox};
use crate::rules::conversation::Usage;
use crate::rules::limits::{Prices, Spent};
use crate::rules::mail::{Injection, Mail, Sender};
use crate::rules::prompt::Prompt;
use crate::rules::record::{Fold, Line, Open};
use crate::rules::recovery::{self, OpenRun, left};
use crate::rules::validate::Validator;

/// What only the driver works with, from the first run on.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) prompt: Prompt,
    pub(super) validator: Validator,
    pub(super) equipment: Option<Equipment>,
    pub(super) calls: u64,
    /// Injected messages that no request has carried yet, and those without a reply yet.
    pub(super) unsent: Vec<Inbound>,
    pub(super) unanswered: Vec<Inbound>,
    pub(super) last_text: Arc<str>,
    /// The run that the process before this one left.
    pub(super) left: Option<LeftRun>,
}

/// A run that is gone on with.
pub(super) struct LeftRun {
    pub(super) open: OpenRun,
    /// What its calls have cost so far.
    pub(super) usage: Usage,
}

/// An injected message whose receipt has not come to its end.
pub(super) type Inbound = (Arc<Mail>, Injection);

pub(super) struct Equipment {
    pub(super) model: Box<dyn Model>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    pub(super) specs: Vec<Arc<ToolSpec>>,
    /// How many bytes the specs have in a request, about.
    pub(super) spec_bytes: u64,
}

/// Messages in the conversation whose receipts have not come to their end.
#[derive(Default)]
pub(crate) struct Underway {
    pub(crate) unsent: Vec<Inbound>,
    pub(crate) unanswered: Vec<Inbound>,
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
