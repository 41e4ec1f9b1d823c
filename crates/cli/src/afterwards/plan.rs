//! What is removed of sessions, and what stays: decided, and said, from what was found. Pure.

use midturn_core::engine::ports::archive::{SessionSize, SessionSummary};
use midturn_core::rules::time::{Micros, Span};
use midturn_tools::workplace::Remains;
use midturn_view::figures::{bytes, count};
use midturn_view::words;
use midturn_wire::session::Removed;

/// How old a session is that is removed where nobody says anything else.
pub(super) const OLD: Span = Span::secs(30 * 86_400);

/// A session, and what is left of it.
pub(super) struct Found {
    pub(super) session: SessionSummary,
    pub(super) size: SessionSize,
    pub(super) remains: Vec<Remains>,
}

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// This very session goes.
    Remove,
    /// What is done with goes.
    Prune {
        /// Now, in microseconds since 1970.
        now: u64,
        older_than: Option<Span>,
    },
}

/// What becomes of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// Whether it is one of those that somebody means: it is old enough.
    pub(super) is_meant: bool,
    /// Whether what is recorded of it goes.
    pub(super) session: bool,
    /// What becomes of each of its [`Remains`].
    pub(super) remains: Vec<Part>,
}

/// What becomes of an agent's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part {
    pub(super) branch: bool,
    pub(super) folder: bool,
}

/// Decides about one session that nobody carries.
pub(super) fn fate(found: &Found, wish: Wish, force: bool) -> Fate {
    let Found { session, remains, .. } = found;
    let is_unfinished = session.running + session.shut_down + session.waiting > 0;
    let (is_meant, takes_session) = match wish {
        Wish::Remove => (true, true),
        Wish::Prune { now, older_than } => {
            let last = session.record.began_at.saturating_add(session.last_t.0);
            let age = Micros(now).since(Micros(last));
            (older_than.is_none_or(|least| age >= least), age >= older_than.unwrap_or(OLD))
        }
    };
    // One that stays for what is on no branch stays whole.
    let is_kept = !force && wish == Wish::Remove && remains.iter().any(|left| left.unsaved.is_some());
    let is_at_work = !force && wish != Wish::Remove && is_unfinished;
    let takes_work = is_meant && !is_kept && !is_at_work;
    let part = |left: &Remains| {
        let is_safe = force || left.unsaved.is_none();
        let is_merged = force || left.unmerged == 0;
        // The branch of a session that goes has all of its work.
        let folder = is_safe && (is_merged || wish == Wish::Remove);
        Part {
            branch: takes_work && is_safe && is_merged && left.branch.is_some(),
            folder: takes_work && folder && left.folder.is_some(),
        }
    };
    let parts: Vec<Part> = remains.iter().map(part).collect();
    let stays = |(left, part): (&Remains, &Part)| {
        let branch = left.branch.is_some() && !part.branch && wish != Wish::Remove;
        branch || left.folder.is_some() && !part.folder
    };
    let session = takes_work && takes_session && !remains.iter().zip(&parts).any(stays);
    Fate { is_meant, session, remains: parts }
}

impl Fate {
    /// Whether anything goes.
    pub(super) fn is_any(&self) -> bool {
        self.session || self.remains.iter().any(|part| part.branch || part.folder)
    }
}

/// How much goes, in all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    sessions: usize,
    branches: usize,
    folders: usize,
    bytes: u64,
}

impl Sum {
    pub(super) fn of<'a>(all: impl IntoIterator<Item = &'a (Found, Fate)>) -> Self {
        let mut sum = Self::default();
        for (found, fate) in all {
            sum.sessions += usize::from(fate.session);
            sum.bytes += if fate.session { found.size.bytes } else { 0 };
            for (left, part) in found.remains.iter().zip(&fate.remains) {
                sum.branches += usize::from(part.branch);
                sum.folders += usize::from(part.folder);
                sum.bytes += left.folder.as_ref().filter(|_| part.folder).map_or(0, |(_, bytes)| *bytes);
            }
        }
        sum
    }

    pub(super) fn is_nothing(self) -> bool {
        self.sessions + self.branches + self.folders == 0
    }

    pub(super) fn and(self, removed: &Removed) -> Self {
        Self {
            sessions: self.sessions + usize::from(removed.session),
            branches: self.branches + removed.branches,
            folders: self.folders + removed.folders,
            bytes: self.bytes + removed.bytes,
        }
    }
}

impl From<Sum> for Removed {
    fn from(Sum { sessions, branches, folders, bytes }: Sum) -> Self {
        Self { session: sessions > 0, branches, folders, bytes }
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            (self.sessions, "session", "sessions"),
            (self.branches, "branch", "branches"),
            (self.folders, "folder", "folders"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(number, ..)| *number > 0)
            .map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }))
            .collect();
        write!(f, "{}; {}", parts.join(", "), bytes(self.bytes))
    }
}

/// What will be removed, and what stays though somebody might think that it goes.
pub(super) fn said(all: &[(Found, Fate)]) -> String {
    all.iter().map(|(found, fate)| lines(found, fate)).collect()
}

fn lines(found: &Found, fate: &Fate) -> String {
    let Found { session, size, remains } = found;
    if !fate.is_meant {
        return String::new();
    }
    let parts: Vec<String> =
        remains.iter().zip(&fate.remains).map(|(left, part)| line(left, *part)).collect();
    let parts: String = parts.into_iter().filter(|line| !line.is_empty()).collect();
    if !fate.session && parts.is_empty() {
        return String::new();
    }
    let what = if fate.session {
        format!("all that is recorded: {} entries, {}", count(size.entries), bytes(size.bytes))
    } else {
        "the session stays".to_owned()
    };
    format!("{}  {}\n  {what}\n{parts}", session.record.id, words::short(&session.record.title))
}

fn line(left: &Remains, part: Part) -> String {
    let Remains { name, branch, unmerged, folder, unsaved } = left;
    let mut goes = Vec::new();
    goes.extend(branch.as_ref().filter(|_| part.branch).map(|branch| format!("branch {branch}")));
    let held = folder.as_ref().filter(|_| part.folder);
    goes.extend(held.map(|(folder, held)| format!("folder {}, {}", folder.display(), bytes(*held))));
    let mut text = String::new();
    if !goes.is_empty() {
        text = format!("  {name}: {}\n", goes.join("; "));
    }
    if let (Some((folder, _)), Some(why), false) = (folder, unsaved, part.folder) {
        text += &format!("  {name}: stays: {why} in {}; --force removes it too\n", folder.display());
    } else if let (Some(branch), false, true) = (branch, part.branch, *unmerged > 0) {
        let commits = if *unmerged == 1 { "1 commit".to_owned() } else { format!("{unmerged} commits") };
        text += &format!("  {name}: stays: {branch}, {commits} not merged; --force removes it too\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use midturn_core::engine::ports::archive::SessionRecord;
    use midturn_core::rules::id::SessionId;
    use serde_json::Value;

    use super::*;

    const DAY: u64 = 86_400_000_000;

    /// A session whose last event was on day 100.
    fn found(unfinished: u64, remains: Vec<Remains>) -> Found {
        let record = SessionRecord {
            id: SessionId::new("s"),
            began_at: 99 * DAY,
            folder: "/w".into(),
            title: "Port".into(),
            memo: Value::Null,
        };
        let session = SessionSummary {
            record,
            epoch: 1,
            agents: 2,
            running: 0,
            shut_down: unfinished,
            waiting: 0,
            last_seq: 9,
            last_t: Micros(DAY),
        };
        Found { session, size: SessionSize { entries: 1_200, bytes: 3_100 }, remains }
    }

    fn left(unmerged: u64, unsaved: Option<&str>) -> Remains {
        Remains {
            name: "w".into(),
            branch: Some("midturn/s/w".into()),
            unmerged,
            folder: Some(("/f/w".into(), 2_000_000)),
            unsaved: unsaved.map(str::to_owned),
        }
    }

    /// What goes: the session, the branch, the folder.
    fn goes(found: &Found, wish: Wish, force: bool) -> [bool; 3] {
        let Fate { session, remains, .. } = fate(found, wish, force);
        [session, remains[0].branch, remains[0].folder]
    }

    #[test]
    fn what_is_not_merged_or_not_saved_stays_without_force() {
        let prune = |day: u64, older: Option<u64>| Wish::Prune {
            now: day * DAY,
            older_than: older.map(|days| Span(days * DAY)),
        };
        let (merged, open, unsaved) = (
            found(0, vec![left(0, None)]),
            found(0, vec![left(3, None)]),
            found(0, vec![left(0, Some("not committed: a"))]),
        );
        for (of, wish, expected) in [
            (&merged, Wish::Remove, [true, true, true]),
            (&open, Wish::Remove, [true, false, true]),
            (&unsaved, Wish::Remove, [false, false, false]),
            (&merged, prune(101, None), [false, true, true]),
            (&merged, prune(130, None), [true, true, true]),
            (&merged, prune(101, Some(7)), [false, false, false]),
            (&merged, prune(107, Some(7)), [true, true, true]),
            (&open, prune(200, None), [false, false, false]),
            (&unsaved, prune(200, None), [false, false, false]),
            (&found(1, vec![left(0, None)]), prune(200, None), [false, false, false]),
        ] {
            assert_eq!(goes(of, wish, false), expected, "{wish:?}: {:?}", of.remains);
        }
        for of in [&merged, &open, &unsaved, &found(1, vec![left(3, Some("x"))])] {
            for wish in [Wish::Remove, prune(130, None)] {
                assert_eq!(goes(of, wish, true), [true; 3], "{wish:?}: {:?}", of.remains);
            }
        }
    }

    #[test]
    fn what_goes_is_said_with_its_size_and_what_stays_with_the_reason() {
        let of = |left| {
            let found = found(0, vec![left]);
            let fate = fate(&found, Wish::Remove, false);
            [(found, fate)]
        };
        let all = of(left(2, None));
        assert_eq!(
            said(&all),
            "s  Port\n  all that is recorded: 1.2k entries, 3.1 kB\n  w: folder /f/w, 2.0 MB\n  \
             w: stays: midturn/s/w, 2 commits not merged; --force removes it too\n"
        );
        assert_eq!(Sum::of(&all).to_string(), "1 session, 1 folder; 2.0 MB");
        let all = of(left(0, Some("not committed: a")));
        assert_eq!(
            said(&all),
            "s  Port\n  the session stays\n  w: stays: not committed: a in /f/w; --force removes it too\n"
        );
        assert!(Sum::of(&all).is_nothing());
        assert_eq!(Sum::of(&of(left(0, None))).to_string(), "1 session, 1 branch, 1 folder; 2.0 MB");
    }
}
