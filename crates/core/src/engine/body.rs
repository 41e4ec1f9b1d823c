//! What an agent's driver works with from run to run, and how that comes back when its session
//! goes on. It knows no driver.

use std::sync::Arc;

use super::ports::archive::{AgentJournal, KeptMail};
use super::ports::store::Row;
use super::ports::{Model, ToolSpec, Toolbox};
use crate::rules::conversation::Reply;
use crate::rules::limits::{Prices, Spent};
use crate::rules::mail::{Injection, Mail, ReceiptState, Sender};
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
    pub(super) left: Option<OpenRun>,
}

/// An injected message whose receipt has not come to its end.
pub(super) type Inbound = (Arc<Mail>, Injection);

pub(super) struct Equipment {
    pub(super) model: Box<dyn Model>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    /// The agent's own system prompt, and what its workplace tells it.
    pub(super) system: String,
    pub(super) specs: Vec<Arc<ToolSpec>>,
    /// How many bytes the specs have in a request, about.
    pub(super) spec_bytes: u64,
}

impl Body {
    /// The body of an agent whose session goes on, and which has this mail; with `stopped_by` its
    /// open run had been stopped.
    pub(crate) fn recovered<'a>(
        journal: &AgentJournal,
        is_open: bool,
        stopped_by: Option<Sender>,
        mail: impl Iterator<Item = &'a KeptMail>,
    ) -> Self {
        let fold: Fold = journal.rows.iter().map(|row| &row.line).collect();
        let (prompt, left) = match is_open {
            false => (fold.closed(), None),
            true => {
                let (prompt, open) = unless_over(fold, journal);
                (prompt, Some(open_run(journal, open, stopped_by)))
            }
        };
        let last_text = replies(journal).next().map(|(_, reply)| reply.text()).unwrap_or_default();
        let mut body = Self {
            prompt,
            calls: journal.stands.calls,
            last_text: last_text.into(),
            left,
            ..Self::default()
        };
        for KeptMail { accepted, state, .. } in mail {
            let mail = accepted.mail.clone();
            match state {
                ReceiptState::Injected(injection) => body.unsent.push((mail, injection.clone())),
                ReceiptState::Sent { injection, .. } => body.unanswered.push((mail, injection.clone())),
                ReceiptState::Queued | ReceiptState::Answered { .. } | ReceiptState::Returned(_) => {}
            }
        }
        body
    }
}

/// What an agent had spent of its budget when its session was left.
pub(crate) fn spent(journal: &AgentJournal, prices: Prices) -> Spent {
    let (usage, turns) = (journal.usage(|_| true), journal.stands.turns);
    Spent { turns, tokens: usage.total(), cost: prices.cost(&usage), time: journal.worked }
}

/// The whole replies, the newest first.
fn replies(journal: &AgentJournal) -> impl Iterator<Item = (&Row, &Reply)> {
    journal.rows.iter().rev().filter_map(|row| match &row.line {
        Line::Reply(reply) => Some((row, &**reply)),
        _ => None,
    })
}

/// The prompt, and the turn that is not closed: none when the next one had begun.
fn unless_over(fold: Fold, journal: &AgentJournal) -> (Prompt, Option<Open>) {
    let replied = replies(journal).next().map(|(row, _)| (row.run, row.turn));
    if replied < Some((journal.stands.run, recovery::turn(&journal.tail))) {
        return (fold.closed(), None);
    }
    fold.open()
}

fn open_run(journal: &AgentJournal, open: Option<Open>, stopped_by: Option<Sender>) -> OpenRun {
    let last = journal.rows.last().filter(|row| row.run == journal.stands.run).map(|row| &row.line);
    let left = left(open, last, &journal.tail);
    let usage = journal.usage(|row| row.run == journal.stands.run);
    OpenRun { run: journal.stands.run, turn: recovery::turn(&journal.tail), left, usage, stopped_by }
}
