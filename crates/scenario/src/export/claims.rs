//! What must come of an export again: what became of every call, how every run ended, where
//! every message went in.

use std::collections::BTreeMap;

use super::actor::Actor;
use super::out::{OutClaim, OutInjected};
use super::plan::CallPlan;
use super::read::{Fate, Letter, Reader};

/// The expectations of an export.
pub(super) fn claims(reader: &Reader<'_>) -> Vec<OutClaim> {
    let runs = reader.actors.iter().flat_map(runs);
    let messages = reader.letters.iter().filter_map(|letter| message(reader, letter));
    runs.chain(messages).collect()
}

fn runs(actor: &Actor<'_>) -> Vec<OutClaim> {
    let calls = || actor.entries.iter().flat_map(|entry| &entry.calls);
    let status = |call: &CallPlan| Some((call.id.clone(), call.status?));
    let one = |end: &super::actor::Ended| OutClaim {
        agent: Some(actor.journal.record.name.to_string()),
        run: Some(end.run),
        outcome: Some(end.outcome),
        error: end.error.clone(),
        tools: calls().filter(|call| call.run == end.run).filter_map(status).collect::<BTreeMap<_, _>>(),
        ..OutClaim::default()
    };
    actor.ended.iter().map(one).collect()
}

/// The claim about a message; none where its id stands for several.
fn message(reader: &Reader<'_>, letter: &Letter) -> Option<OutClaim> {
    let same = |other: &&Letter| other.file_id == letter.file_id && other.to == letter.to;
    if reader.letters.iter().filter(same).count() > 1 {
        return None;
    }
    let mut claim = OutClaim {
        message: Some(letter.file_id.clone()),
        to: Some(reader.actors[letter.to].journal.record.name.to_string()),
        ..OutClaim::default()
    };
    match letter.fate {
        Fate::Queued => claim.queued = Some(true),
        Fate::Returned(reason) => claim.returned = Some(reason),
        Fate::Injected { point, run, turn } => claim.injected = Some(OutInjected { point, run, turn }),
    }
    Some(claim)
}
