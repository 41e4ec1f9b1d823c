//! What undoing turns makes of each file: pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::Wanted;
use super::ledger::Turn;
use super::trees::{Change, Entry};

/// How many files of a kind an agent is told by name.
const NAMED_MAX: usize = 20;

/// Why a file stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Somebody changed it after that turn.
    ChangedSince,
    /// Git has let go of what was in it before.
    Lost,
}

/// What undoing one turn did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// Which one.
    pub turn: Turn,
    /// Files that are again what they were before it.
    pub restored: Vec<PathBuf>,
    /// Files that it had made, and that are gone.
    pub removed: Vec<PathBuf>,
    /// Files that stay, and why.
    pub kept: Vec<(PathBuf, Kept)>,
}

/// A turn, and what it changed.
pub(super) struct TurnChanges<'a> {
    pub(super) turn: &'a Turn,
    pub(super) changes: Vec<Change>,
}

/// What is to be done.
pub(super) struct Plan {
    pub(super) undone: Vec<Undone>,
    pub(super) wanted: Wanted,
}

impl Plan {
    /// `turns`: the last one first. `now`: all files. `missing`: contents that are gone.
    pub(super) fn new(
        turns: &[TurnChanges<'_>],
        mut now: BTreeMap<PathBuf, Entry>,
        missing: &[Entry],
    ) -> Self {
        let mut wanted = Wanted::new();
        let undone = turns.iter().map(|turn| undo(turn, &mut now, missing, &mut wanted)).collect();
        Self { undone, wanted }
    }
}

fn undo(
    TurnChanges { turn, changes }: &TurnChanges<'_>,
    now: &mut BTreeMap<PathBuf, Entry>,
    missing: &[Entry],
    wanted: &mut Wanted,
) -> Undone {
    let mut undone =
        Undone { turn: (*turn).clone(), restored: Vec::new(), removed: Vec::new(), kept: Vec::new() };
    for Change { path, before, after } in changes {
        let is = now.get(path);
        if is == before.as_ref() {
            continue;
        }
        if is != after.as_ref() {
            undone.kept.push((path.clone(), Kept::ChangedSince));
        } else if before.as_ref().is_some_and(|before| missing.contains(before)) {
            undone.kept.push((path.clone(), Kept::Lost));
        } else {
            wanted.insert(path.clone(), before.clone());
            match before {
                Some(before) => {
                    now.insert(path.clone(), before.clone());
                    undone.restored.push(path.clone());
                }
                None => {
                    now.remove(path);
                    undone.removed.push(path.clone());
                }
            }
        }
    }
    undone
}

/// What the agents read of it.
pub(super) fn note(undone: &[Undone]) -> String {
    let turns = if undone.len() == 1 {
        "the last turn".to_owned()
    } else {
        format!("the last {} turns", undone.len())
    };
    let mut note = format!("Note: the user has undone what {turns} changed in this folder.");
    let kept = |undone: &Undone| undone.kept.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    let told: [(&str, Vec<PathBuf>); 3] = [
        ("As they were before", undone.iter().flat_map(|undone| undone.restored.clone()).collect()),
        ("Removed", undone.iter().flat_map(|undone| undone.removed.clone()).collect()),
        ("Left as they are, since they were changed later", undone.iter().flat_map(kept).collect()),
    ];
    for (what, paths) in told.into_iter().filter(|(_, paths)| !paths.is_empty()) {
        let names: Vec<_> = paths.iter().take(NAMED_MAX).map(|path| path.display().to_string()).collect();
        let _ = write!(note, " {what}: {}", names.join(", "));
        let more = paths.len().saturating_sub(NAMED_MAX);
        note += &if more > 0 { format!(" and {more} more.") } else { ".".to_owned() };
    }
    note + " Read a file again before you change it."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, before: &str, after: &str) -> Change {
        let entry = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        Change { path: path.into(), before: entry(before), after: entry(after) }
    }

    fn turn() -> Turn {
        let (who, left_out) = Default::default();
        Turn { who, began_at: 0, committed: false, files: 0, left_out, before: String::new(), after: None }
    }

    /// Two turns, of which each is undone as if it were the last one.
    #[test]
    fn a_file_becomes_what_it_was_before_unless_somebody_changed_it_since() {
        let turn = turn();
        let turns = [
            TurnChanges {
                turn: &turn,
                changes: vec![
                    change("both", "1", "2"),
                    change("late", "a", "b"),
                    change("new", "", "n"),
                    change("gone", "g", ""),
                ],
            },
            TurnChanges {
                turn: &turn,
                changes: vec![
                    change("both", "0", "1"),
                    change("theirs", "x", "y"),
                    change("between", "p", "q"),
                    change("lost", "l", "m"),
                ],
            },
        ];
        let now =
            [("both", "2"), ("late", "b"), ("new", "n"), ("theirs", "z"), ("between", "r"), ("lost", "m")];
        let now = now.into_iter().map(|(path, entry)| (path.into(), entry.to_owned())).collect();
        let plan = Plan::new(&turns, now, &["l".to_owned()]);
        let wanted: Vec<_> =
            plan.wanted.iter().map(|(path, to)| (path.to_str().unwrap_or_default(), to.as_deref())).collect();
        assert_eq!(wanted, [("both", Some("0")), ("gone", Some("g")), ("late", Some("a")), ("new", None)]);
        let [last, first] = &plan.undone[..] else { panic!("two turns") };
        assert_eq!(last.removed, [PathBuf::from("new")]);
        assert_eq!(last.restored, ["both", "late", "gone"].map(PathBuf::from));
        let kept = [("theirs", Kept::ChangedSince), ("between", Kept::ChangedSince), ("lost", Kept::Lost)];
        assert_eq!(first.kept, kept.map(|(path, why)| (PathBuf::from(path), why)));
        let note = note(&plan.undone);
        assert!(
            note.contains("Removed: new. Left as they are, since they were changed later: theirs"),
            "{note}"
        );
    }
}
