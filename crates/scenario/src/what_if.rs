//! What if a message had come at another time: a scenario played as it is and with items moved, and what that spares
//! (scenarios.md, section 3, `--shift`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, CallId};
use serde_json::Value;

use crate::error::Error;
use crate::shift::{Shift, changes, moved};
use crate::{file, play};

/// The tools that write files.
const WRITERS: [&str; 2] = ["write", "edit"];

/// A scenario, played twice.
pub struct WhatIf {
    /// What the scenario is called.
    pub name: String,
    /// What happens.
    pub before: Vec<Event>,
    /// What would have happened.
    pub after: Vec<Event>,
    /// What differs, in lines.
    pub changes: Vec<String>,
    /// What would not have been done.
    pub spared: Spared,
}

/// What the one play does and the other doesn't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spared {
    /// Calls that start in the first and not in the second.
    pub calls: u64,
    /// The files that those would have written and no call of the second does.
    pub files: Vec<String>,
    /// How many tokens fewer the second one takes; negative: more.
    pub tokens: i64,
}

/// Plays the text of a scenario as it is, and with these items moved. Expectations are not checked.
///
/// # Errors
/// The text is no scenario, has real tools, or can't be played; there is no such item, or it would come too early.
pub fn what_if(name: &str, yaml: &str, shifts: &[Shift]) -> Result<WhatIf, Error> {
    let scenario = file::parse(Arc::from(name), yaml.as_bytes())?;
    let shifted = moved(&scenario, shifts)?;
    let before = play::play(&scenario, None)?.record;
    let after = match shifts.is_empty() {
        true => before.clone(),
        false => play::play(&shifted, None)?.record,
    };
    let (changes, spared) = (changes(&before, &after), Spared::of(&before.events, &after.events));
    Ok(WhatIf { name: scenario.name, before: before.events, after: after.events, changes, spared })
}

impl Spared {
    /// What `before` does and `after` doesn't.
    fn of(before: &[Event], after: &[Event]) -> Self {
        let (first, second) = (started(before), started(after));
        let still: BTreeSet<&str> = second.values().copied().flatten().collect();
        let spared = || first.iter().filter(|(call, _)| !second.contains_key(*call));
        let files: BTreeSet<&str> =
            spared().filter_map(|(_, file)| *file).filter(|file| !still.contains(file)).collect();
        Self {
            calls: spared().count() as u64,
            files: files.into_iter().map(str::to_owned).collect(),
            tokens: tokens(before) - tokens(after),
        }
    }
}

/// The calls that start, each with the file that it writes. A model may use an id again: the n-th is another call.
fn started(events: &[Event]) -> BTreeMap<(&AgentName, &CallId, usize), Option<&str>> {
    let mut seen: BTreeMap<(&AgentName, &CallId), usize> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for event in events {
        if let (Some(agent), EventKind::ToolStarted { tool, name, input, .. }) =
            (&event.at.agent, &event.kind)
        {
            let nth = seen.entry((agent, tool)).or_default();
            *nth += 1;
            let file = WRITERS.contains(&&**name).then(|| written(input)).flatten();
            all.insert((agent, tool, *nth), file);
        }
    }
    all
}

fn written(input: &Value) -> Option<&str> {
    ["path", "file_path"].into_iter().find_map(|field| input.get(field)?.as_str())
}

fn tokens(events: &[Event]) -> i64 {
    let used = events.iter().map(|event| match &event.kind {
        EventKind::ModelFinished { usage, .. } => i64::try_from(usage.total()).unwrap_or(i64::MAX),
        _ => 0,
    });
    used.fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: &str = "\
midturn: 1
name: two files
agents:
  - {name: lead, role: lead}
  - name: worker
    parent: lead
    prompt: Go.
    model:
      - text: Two.
        takes: 1s
        usage: {input: 100, output: 10}
        tools:
          - {id: e1, name: edit, takes: 1s, input: {path: a.rs}}
          - {id: e2, name: write, takes: 1s, input: {path: b.rs}}
      - {text: Done., usage: {input: 50, output: 5}}
      - {text: Again., usage: {input: 50, output: 5}}
messages:
  - {id: fix, at: 2.5s, from: lead, to: worker, text: Stop.}
";

    #[test]
    fn a_message_that_comes_sooner_spares_calls_and_the_files_they_write() {
        let shift: Shift = "fix=-1s".parse().unwrap();
        let played = what_if("w.yaml", WORK, &[shift]).unwrap();
        assert_eq!(played.spared, Spared { calls: 1, files: vec!["b.rs".into()], tokens: 0 });
        assert!(
            played.changes.iter().any(|line| line.starts_with("worker: call e2: ")),
            "{:?}",
            played.changes
        );
        assert_ne!(played.before, played.after);
    }

    #[test]
    fn unmoved_nothing_is_spared_and_too_early_is_an_error() {
        let played = what_if("w.yaml", WORK, &[]).unwrap();
        assert_eq!((played.spared, played.changes.len()), (Spared::default(), 0));
        assert_eq!(played.name, "two files");
        assert!(what_if("w.yaml", WORK, &["fix=-3s".parse().unwrap()]).is_err());
        assert!(what_if("w.yaml", WORK, &["other=+3s".parse().unwrap()]).is_err());
    }
}
