//! The invariants of semantics.md, section 10. Every replay is held against them, whatever its file
//! expects: its events here, its prompts on their way (`play/audit`).

use midturn_core::rules::audit::Auditor;

use super::Miss;
use crate::record::Record;

/// What every replay is expected to keep.
const EXPECTED: &str = "the invariants of semantics.md, section 10";

/// All breaches in a record, an instant that never let it go among them.
pub(super) fn check(record: &Record) -> Vec<Miss> {
    let miss = |what: String, about| Miss::new(EXPECTED, what, about);
    let mut misses: Vec<Miss> = record.breaches.iter().map(|breach| miss(breach.clone(), None)).collect();
    let mut auditor = Auditor::default();
    for (index, event) in record.events.iter().enumerate() {
        let breaches = auditor.event(event).into_iter();
        misses.extend(breaches.map(|breach| miss(breach.to_string(), Some(index))));
    }
    misses.extend(record.stuck.iter().map(|stuck| Miss::new("time advances", stuck, None)));
    misses
}
