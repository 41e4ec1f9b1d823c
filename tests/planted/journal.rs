//! Faults of what is read back: the record is whole, and the next process doesn't believe it.

use std::collections::HashSet;
use std::sync::Arc;

use midturn_core::engine::ports::SessionJournal;
use midturn_core::engine::ports::archive::{AgentJournal, KeptMail, SessionSummary};
use midturn_core::engine::ports::store::{Row, RunEnd};
use midturn_core::engine::ports::tool::Changes;
use midturn_core::rules::conversation::{Block, Reply, ToolResult, ToolStatus};
use midturn_core::rules::event::{EventKind, Halt, Outcome};
use midturn_core::rules::id::CallId;
use midturn_core::rules::mail::ReceiptState;
use midturn_core::rules::progress::Closed;
use midturn_core::rules::record::{Fold, Line};
use midturn_core::rules::time::Micros;
use serde_json::Value;

use super::Fault;

/// The journal as a process with this fault reads it.
pub(super) fn with(fault: Fault, mut journal: SessionJournal) -> SessionJournal {
    match fault {
        Fault::QueueIsClearedOnError => clear_on_error(&mut journal),
        Fault::MailIsTurnedRound => journal.mail.reverse(),
        Fault::LastMailIsDropped => {
            if let Some(at) = journal.mail.iter().rposition(is_queued) {
                journal.mail.remove(at);
            }
        }
        Fault::LastMailIsDoubled => {
            let last = journal.mail.iter().rfind(|kept| is_queued(kept)).cloned();
            journal.mail.extend(last);
        }
        Fault::SettledMailIsForgotten => journal.mail.retain(|kept| !kept.state.is_final()),
        Fault::ModesAreForgotten => {
            let set = journal.record.memo.get_mut("set").and_then(Value::as_array_mut);
            set.into_iter().for_each(|set| set.retain(|said| !is_of_approvals(said)));
        }
        Fault::TimeBeginsAnew => {
            journal.record.began_at = u64::MAX;
            journal.last_t = Micros(0);
        }
        _ => journal.agents.iter_mut().for_each(|agent| of_agent(fault, agent, journal.last_seq)),
    }
    journal
}

/// A session as a process with this fault finds it in the list.
pub(super) fn of_summary(fault: Fault, mut summary: SessionSummary) -> SessionSummary {
    if fault == Fault::GuestsAreLeft
        && let Some(served) = summary.record.memo.get_mut("served")
    {
        *served = Value::Bool(false);
    }
    summary
}

fn of_agent(fault: Fault, agent: &mut AgentJournal, last_seq: u64) {
    match fault {
        Fault::ResultsAreNotKept => {
            while agent.rows.last().is_some_and(|row| matches!(row.line, Line::Result(_))) {
                agent.rows.pop();
            }
        }
        Fault::StartedCallsLookUnstarted => {
            agent.tail.retain(|event| !matches!(event.kind, EventKind::ToolStarted { .. }));
        }
        Fault::RequestsLookStarted => agent.tail.iter_mut().for_each(|event| as_started(&mut event.kind)),
        Fault::LostCallsAreCompleted => complete(agent),
        Fault::LostCallsRunAgain => forget_turn(agent),
        Fault::LastRowIsDropped => drop(agent.rows.pop()),
        Fault::RunsBeginAnew => begin_anew(agent),
        Fault::ClosesAreForgotten => {
            agent.stands.closed = Closed::No;
            agent.tail.retain(|event| !is_close(&event.kind));
        }
        Fault::LimitsAreForgotten => agent.limits = Default::default(),
        Fault::OpenRunsAreLeft => leave(agent, last_seq),
        // Faults of lines, of what is written, or of the whole session.
        _ => agent.rows.iter_mut().for_each(|row| of_line(fault, &mut row.line)),
    }
}

fn of_line(fault: Fault, line: &mut Line) {
    match (fault, &mut *line) {
        (Fault::CommittedIsForgotten, Line::Result(result)) => result.cost = Arc::default(),
        (Fault::CompactionsKeepNoTurns, Line::Compacted(compaction)) => Arc::make_mut(compaction).kept = 0,
        (Fault::PartialRepliesAreWhole, Line::Interrupted(partial)) if !partial.text.is_empty() => {
            let blocks = vec![Block::Text(partial.text.clone())];
            *line = Line::Reply(Arc::new(Reply { blocks, ..Reply::default() }));
        }
        _ => {}
    }
}

fn is_queued(kept: &KeptMail) -> bool {
    kept.state == ReceiptState::Queued
}

fn is_of_approvals(said: &Value) -> bool {
    said.as_str().is_some_and(|said| said.starts_with("approvals."))
}

fn as_started(kind: &mut EventKind) {
    if let EventKind::ApprovalRequested { tool, name, input, .. } = kind {
        let (tool, name, input) = (tool.clone(), name.clone(), input.clone());
        *kind = EventKind::ToolStarted { tool, name, input, batch: 1 };
    }
}

fn is_close(kind: &EventKind) -> bool {
    matches!(kind, EventKind::StopRequested { reason: Halt::Close, .. })
}

fn clear_on_error(journal: &mut SessionJournal) {
    let failed = |agent: &&AgentJournal| {
        let end = agent.last_end.as_ref();
        end.is_some_and(|(end, _)| end.outcome == Outcome::Failed && end.run == agent.stands.run)
    };
    let cleared: Vec<_> = journal
        .agents
        .iter()
        .filter(failed)
        .filter_map(|agent| Some((agent.record.name.clone(), agent.last_end.as_ref()?.1)))
        .collect();
    journal.mail.retain(|kept| {
        let waited = |(name, seq): &(_, u64)| kept.accepted.mail.to == *name && kept.seq < *seq;
        !(is_queued(kept) && cleared.iter().any(waited))
    });
}

/// The reply of the open turn, and its calls without a result.
fn lost(agent: &AgentJournal) -> Option<(Arc<Reply>, Vec<CallId>)> {
    let (_, open) = agent.rows.iter().map(|row| &row.line).collect::<Fold>().open();
    let open = open?;
    let calls = open.reply.calls().filter(|call| open.result(call).is_none());
    let calls = calls.map(|call| call.id.clone()).collect();
    Some((open.reply, calls))
}

fn started(agent: &AgentJournal) -> HashSet<CallId> {
    let started = agent.tail.iter().filter_map(|event| match &event.kind {
        EventKind::ToolStarted { tool, .. } => Some(tool.clone()),
        _ => None,
    });
    started.collect()
}

fn complete(agent: &mut AgentJournal) {
    let Some((reply, lost)) = lost(agent) else { return };
    let started = started(agent);
    let Some(last) = agent.rows.last().cloned() else { return };
    for call in reply.calls().filter(|call| lost.contains(&call.id) && started.contains(&call.id)) {
        let result = ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            status: ToolStatus::Completed,
            is_error: false,
            text: "at work".into(),
            messages: Arc::default(),
            cost: Default::default(),
        };
        agent.rows.push(Row { line: Line::Result(result), ..last.clone() });
    }
}

/// Of a turn of which calls were lost nothing is remembered but what came before it.
fn forget_turn(agent: &mut AgentJournal) {
    if lost(agent).is_none_or(|(_, lost)| lost.is_empty()) {
        return;
    }
    let reply = agent.rows.iter().rposition(|row| matches!(row.line, Line::Reply(_)));
    agent.rows.truncate(reply.unwrap_or_default());
    agent.tail.clear();
}

fn begin_anew(agent: &mut AgentJournal) {
    if let Some((end, _)) = &mut agent.last_end
        && end.run == agent.stands.run
    {
        agent.stands.run -= 1;
        agent.stands.resumed = agent.stands.resumed.min(agent.stands.run);
        end.run -= 1;
    }
}

fn leave(agent: &mut AgentJournal, last_seq: u64) {
    if !agent.is_open() {
        return;
    }
    let end = RunEnd {
        agent: agent.record.name.clone(),
        run: agent.stands.run,
        outcome: Outcome::Finished,
        reason: None,
        text: "".into(),
        changes: Changes::default(),
        restarts: false,
        owed_to: None,
    };
    agent.last_end = Some((end, last_seq));
}
