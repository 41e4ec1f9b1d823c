//! Events as lines for people.

use std::fmt::Write as _;

use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::event::{Event, EventKind, Trigger};

use crate::error::short;

/// How many events are shown before and after the one a failure is about.
const AROUND: usize = 8;

/// The events around one of them (the last, when none is named), the one itself marked.
pub(crate) fn around(events: &[Event], about: Option<usize>) -> Vec<String> {
    let Some(last) = events.len().checked_sub(1) else { return Vec::new() };
    let centre = about.unwrap_or(last).min(last);
    let first = centre.saturating_sub(AROUND);
    let end = centre.saturating_add(AROUND).min(last);
    let shown = events[first..=end].iter().zip(first..);
    let mut lines: Vec<String> = shown
        .map(|(event, index)| {
            let mark = if about == Some(index) { '>' } else { ' ' };
            format!("{mark} {}", line(event))
        })
        .collect();
    if first > 0 {
        lines.insert(0, format!("  … {first} before"));
    }
    if end < last {
        lines.push(format!("  … {} after", last - end));
    }
    lines
}

/// An event as one line: when, who, in which run and turn, what.
pub(crate) fn line(event: &Event) -> String {
    let agent = event.at.agent.as_ref().map_or("-", |agent| agent.as_str());
    let place = match (event.at.run, event.at.turn) {
        (Some(run), Some(turn)) => format!("{run}.{turn}"),
        _ => String::new(),
    };
    let mut line = format!("{:>10} {agent:<12} {place:<4} {}", event.t.to_string(), event.kind.type_name());
    details(&mut line, &event.kind);
    line
}

/// What a call is for, where that is not its turn.
fn apart(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "",
        Purpose::Summary => " for a summary",
    }
}

/// Writing to a `String` can't fail, so the results say nothing.
fn details(line: &mut String, kind: &EventKind) {
    let _ = match kind {
        EventKind::LimitRaised { by, limits } => write!(line, " by {by}: {}", limits.words()),
        EventKind::AgentSpawned { parent: Some(parent), .. } => write!(line, " by {parent}"),
        EventKind::RunStarted { trigger: Trigger::Prompt } => write!(line, " by its prompt"),
        EventKind::RunStarted { trigger: Trigger::Mail(ids) } => write!(line, " by {ids:?}"),
        EventKind::ModelStarted { call, messages, purpose } => {
            write!(line, " call {call}{}, {messages} messages", apart(*purpose))
        }
        EventKind::ModelFinished { stop_reason, text, tools, purpose, .. } => {
            let ids: Vec<&str> = tools.iter().map(|tool| tool.id.as_str()).collect();
            write!(line, "{} {stop_reason} {:?} tools {ids:?}", apart(*purpose), short(text))
        }
        EventKind::ModelInterrupted { reason, text, .. } => write!(line, " {reason:?} {:?}", short(text)),
        EventKind::ModelRetry { attempt, error, wait } => {
            write!(line, " {attempt} after {wait}: {}", short(error))
        }
        EventKind::ToolStarted { tool, name, batch, .. } => write!(line, " {tool} {name} batch {batch}"),
        EventKind::ToolFinished { tool, name, status, output, .. } => {
            write!(line, " {tool} {name} {status:?} {:?}", short(output))
        }
        EventKind::MessageQueued { message, from, urgency, text } => {
            write!(line, " {message} from {from} {} {:?}", urgency.as_str(), short(text))
        }
        EventKind::MessageRefused { message, from, reason } => {
            write!(line, " {message} from {from}: {reason}")
        }
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            let point = point.as_str();
            write!(line, " {messages:?} at {point}, skipped {skipped:?}, interrupted {interrupted:?}")
        }
        EventKind::MessageReturned { message, reason } => write!(line, " {message}: {reason:?}"),
        EventKind::StopRequested { by, scope, reason, still_queued } => {
            write!(line, " by {by}, {}, {scope:?}, still queued {still_queued:?}", reason.as_str())
        }
        EventKind::PlanUpdated { steps } => write!(line, " {} steps", steps.len()),
        EventKind::ApprovalRequested { tool, name, always, .. } => {
            write!(line, " {tool} {name}, always is {:?}", short(always))
        }
        EventKind::ApprovalResolved { tool, decision, by, reason } => {
            write!(line, " {tool} {decision:?} by {by}: {:?}", short(reason.as_deref().unwrap_or_default()))
        }
        EventKind::Compacted { messages, tokens } => write!(
            line,
            " {} messages to {}, {} tokens to {}",
            messages.before, messages.after, tokens.before, tokens.after
        ),
        EventKind::RunFinished { outcome, error, turns, .. } => match error {
            Some(error) => write!(line, " {outcome:?} ({}) after {turns} turns", short(error)),
            None => write!(line, " {outcome:?} after {turns} turns"),
        },
        // Its type says all.
        _ => Ok(()),
    };
}
