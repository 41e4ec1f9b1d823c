//! `--shift ID=±DURATION`: the same scenario with a message or action moved, and what that
//! changes (scenarios.md, section 3).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use midturn_core::rules::event::EventKind;
use midturn_core::rules::time::Span;

use crate::error::{Error, one_of};
use crate::expect::messages::fates;
use crate::record::Record;
use crate::scenario::{Item, Scenario, When, beginning};

/// A message or action to move, and by how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shift {
    id: String,
    later: bool,
    by: Span,
}

/// Why a text names no shift.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shift: write ID=+500ms or ID=-2s")]
pub struct ShiftError(String);

impl FromStr for Shift {
    type Err = ShiftError;

    fn from_str(text: &str) -> Result<Self, ShiftError> {
        let wrong = || ShiftError(text.chars().take(80).collect());
        let (id, amount) = text.rsplit_once('=').ok_or_else(wrong)?;
        let (later, span) = match amount.strip_prefix('-') {
            Some(span) => (false, span),
            None => (true, amount.strip_prefix('+').unwrap_or(amount)),
        };
        let by = span.parse().map_err(|_| wrong())?;
        if id.is_empty() { Err(wrong()) } else { Ok(Self { id: id.to_owned(), later, by }) }
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}{}", self.id, if self.later { '+' } else { '-' }, self.by)
    }
}

impl Shift {
    /// The span moved; `None`: it would be negative.
    fn of(&self, span: Span) -> Option<Span> {
        let moved = if self.later { span.0.checked_add(self.by.0) } else { span.0.checked_sub(self.by.0) };
        moved.map(Span)
    }

    fn moved(&self, item: &Item) -> Result<When, &'static str> {
        match &item.when {
            When::After(anchor, plus) => {
                let too_soon = match *anchor == beginning() {
                    true => "that is before the replay begins",
                    false => "that is before the event it comes after",
                };
                Ok(When::After(anchor.clone(), self.of(*plus).ok_or(too_soon)?))
            }
            When::Upon(_) => Err("that comes with an event and has no time of its own"),
        }
    }
}

/// The scenario with its items moved.
///
/// # Errors
/// No such message or action, or it would come before the begin or before
/// the event it is anchored to.
pub fn moved(scenario: &Scenario, shifts: &[Shift]) -> Result<Scenario, Error> {
    let mut moved = scenario.clone();
    for shift in shifts {
        let wrong = |why: String| Error::of(&scenario.source.path, format!("--shift {shift}: {why}"));
        let ids: Vec<&str> =
            scenario.items.iter().filter_map(|item| Some(item.id.as_ref()?.as_str())).collect();
        let found =
            moved.items.iter_mut().find(|item| item.id.as_ref().is_some_and(|id| id.as_str() == shift.id));
        let item = found.ok_or_else(|| {
            wrong(format!("no message or action has this id; expected {}", one_of(&shift.id, ids)))
        })?;
        item.when = shift.moved(item).map_err(|why| wrong(why.to_owned()))?;
    }
    Ok(moved)
}

/// What differs between two replays: outcomes of calls, injections, ends of runs.
pub fn changes(before: &Record, after: &Record) -> Vec<String> {
    let (before, after) = (facts(before), facts(after));
    let keys: BTreeSet<&Fact> = before.keys().chain(after.keys()).collect();
    let told = |fact: Option<&String>| fact.map_or_else(|| "not at all".to_owned(), String::clone);
    let differs = |key: &&Fact| before.get(key) != after.get(key);
    let line = |key: &Fact| format!("{key}: {} -> {}", told(before.get(key)), told(after.get(key)));
    keys.into_iter().filter(differs).map(line).collect()
}

/// What a replay is compared by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Message { id: String, to: String },
    Call { agent: String, id: String },
    Run { agent: String, run: u64 },
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { id, to } => write!(f, "message {id} to {to}"),
            Self::Call { agent, id } => write!(f, "{agent}: call {id}"),
            Self::Run { agent, run } => write!(f, "{agent}: run {run}"),
        }
    }
}

fn facts(record: &Record) -> BTreeMap<Fact, String> {
    let fates = fates(&record.events).into_iter().map(|((id, to), (fate, _))| {
        let to = to.map(ToString::to_string).unwrap_or_default();
        (Fact::Message { id: id.to_string(), to }, fate.to_string())
    });
    let mut facts: BTreeMap<Fact, String> = fates.collect();
    for event in &record.events {
        let agent = event.at.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        let run = event.at.run.unwrap_or_default();
        let at = event.t;
        let (fact, told) = match &event.kind {
            EventKind::RunStarted { .. } => (Fact::Run { agent, run }, "not ended".to_owned()),
            EventKind::RunFinished { outcome, .. } => {
                (Fact::Run { agent, run }, format!("{} at {at} s", outcome.as_str()))
            }
            EventKind::ToolFinished { tool, status, .. } => {
                (Fact::Call { agent, id: tool.to_string() }, format!("{} at {at} s", status.as_str()))
            }
            _ => continue,
        };
        facts.insert(fact, told);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::play::play;

    fn example() -> Scenario {
        let text = include_str!("../../../scenarios/boundaries/a-correction-between-two-edits.yaml");
        file::parse("example.yaml".into(), text.as_bytes()).unwrap()
    }

    fn shift(text: &str) -> Shift {
        text.parse().unwrap()
    }

    #[test]
    fn a_shift_is_an_id_and_a_signed_duration() {
        for (text, shown) in [("fix=-500ms", "fix=-500ms"), ("fix=+2s", "fix=+2s"), ("a=b=1m", "a=b=+1m")] {
            assert_eq!(shift(text).to_string(), shown);
        }
        for bad in ["", "fix", "fix=", "=1s", "fix=soon", "fix=--1s", "fix=1"] {
            assert!(bad.parse::<Shift>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_message_moved_over_a_boundary_changes_what_ran() {
        let scenario = example();
        let earlier = moved(&scenario, &[shift("fix=-1s")]).unwrap();
        let before = play(&scenario, None).unwrap().record;
        let after = play(&earlier, None).unwrap().record;
        let changes = changes(&before, &after);
        let expected = [
            "message fix to worker: injected at C, run 1, turn 1, 2.0 s -> injected at A, run 1, turn 1, 1.0 s",
            "worker: call e1: completed at 2.0 s -> skipped at 1.0 s",
            "worker: call e2: skipped at 2.0 s -> skipped at 1.0 s",
            "worker: call r1: skipped at 2.0 s -> skipped at 1.0 s",
            "worker: run 1: finished at 2.0 s -> finished at 1.0 s",
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn moving_too_far_and_moving_nothing_are_errors() {
        for (text, why) in [("fix=-2s", "before the replay begins"), ("fiks=+1s", "`fix`")] {
            let error = moved(&example(), &[shift(text)]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let anchored = "midturn: 1\nagents: [{name: a, role: lead}]\nmessages:\n  - {id: x, after: {agent: a, agent_spawned: any, plus: 1s}, stop: a}\n";
        let scenario = file::parse("a.yaml".into(), anchored.as_bytes()).unwrap();
        assert!(moved(&scenario, &[shift("x=-1s")]).is_ok());
        let error = moved(&scenario, &[shift("x=-1.5s")]).unwrap_err().to_string();
        assert!(error.contains("before the event it comes after"), "{error}");
    }
}
