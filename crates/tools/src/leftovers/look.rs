//! One look at the system's table: who belongs to a dead daemon's sessions.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::mark::{Mark, Owner, Purpose};
use crate::process::table::{Process, pids};

/// How much of an environment is read. The kernel takes no longer one unless told so.
const ENVIRON_MAX: u64 = 4 << 20;

/// How long a line of parents may be: numbers that are given anew could make it a ring.
const LINE_MAX: usize = 10_000;

/// A process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) process: Process,
    pub(super) purpose: Purpose,
}

/// How much a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nobody can have been overlooked.
    Clear,
    /// Somebody may have been.
    Hazy,
    /// Somebody was forked by a process like us and has executed nothing yet: its mark is to come.
    Begins,
}

/// Looks for the processes of some sessions.
pub(super) struct Look {
    sessions: HashSet<String>,
    us: Owner,
    /// The program that gives out marks: ours.
    program: PathBuf,
    /// Whom we descend from, and ourselves.
    above: HashSet<i32>,
    /// Owners of the sessions' processes that are alive, and not us.
    pub(super) live: HashSet<(i32, u64)>,
    /// Who was there the last time, with when it started, and what there was to be known of it.
    last: HashMap<i32, (u64, Carried)>,
}

impl Look {
    pub(super) fn new(sessions: HashSet<String>) -> io::Result<Self> {
        let us = Owner::ourselves()?;
        let above = line_of(us.pid).collect();
        let program = program_of("self")?;
        Ok(Self { sessions, us, program, above, live: HashSet::new(), last: HashMap::new() })
    }

    /// Hands over who is there now, each at least once, those with a mark as soon as they are
    /// seen: in a moment they may be gone.
    ///
    /// The table can't be read in one instant. A process that is gone when its line is read may
    /// have started another one behind our back, and one that is just executing a program shows
    /// no environment: then the sight is not clear. A chain of processes that go on forking has
    /// at each instant one that is listed, so a clear sight without it means that it has ended.
    /// The new ones are read first: they are the ones that may be gone soon.
    ///
    /// Who was forked a moment ago and has executed nothing yet shows its parent's environment,
    /// which has no mark even if it is given one: such a child of a daemon can outlive it, and on a
    /// busy machine for long. So it is looked at again until it has become something else.
    pub(super) fn again(&mut self, take: &mut dyn FnMut(Leftover) -> io::Result<()>) -> io::Result<Sight> {
        let mut pids = pids()?;
        pids.sort_by_key(|pid| self.last.contains_key(pid));
        let (mut table, mut known, mut now) = (Vec::new(), Known::default(), HashMap::new());
        let (mut is_clear, mut one_begins) = (true, false);
        for pid in pids {
            let Some(process) = Process::read(pid) else {
                is_clear = false;
                continue;
            };
            table.push(process);
            let before = self.last.remove(&pid).filter(|(started, _)| *started == process.started);
            let carried = match before.map(|(_, carried)| carried) {
                // Nobody that has executed a program is given a mark later on.
                Some(Carried::None) => Carried::None,
                before => {
                    let carried = match mark_of(pid) {
                        Carried::None if !process.has_executed() => Carried::NoneYet,
                        carried => carried,
                    };
                    one_begins |= matches!(carried, Carried::NoneYet) && self.may_be_marked(&process);
                    // One that shows nothing for the second time is no forking chain's.
                    is_clear &= !matches!(carried, Carried::Unclear) || before.is_some();
                    carried
                }
            };
            if let Carried::Mark(mark) = &carried
                && self.judge(&mut known, pid, mark)
            {
                take(Leftover { process, purpose: mark.purpose })?;
            }
            now.insert(pid, (process.started, carried));
        }
        self.last = now;
        known.spare_our_own(self.us.pid, &table);
        known.all(&table).into_iter().try_for_each(take)?;
        Ok(match (one_begins, is_clear) {
            (true, _) => Sight::Begins,
            (false, true) => Sight::Clear,
            (false, false) => Sight::Hazy,
        })
    }

    /// Whether a process that has executed nothing is one that a daemon starts, and not we.
    fn may_be_marked(&self, process: &Process) -> bool {
        let runs = program_of(&process.pid.to_string());
        let runs_ours = runs.is_ok_and(|program| program == self.program);
        runs_ours && process.is_alive() && line_of(process.pid).all(|above| above != self.us.pid)
    }

    /// Whether a process with this mark is one to end.
    fn judge(&mut self, known: &mut Known, pid: i32, mark: &Mark) -> bool {
        let owner = (mark.owner.pid, mark.owner.started);
        let of_session = self.sessions.contains(&*mark.session);
        if !*known.dead.entry(owner).or_insert_with(|| mark.owner.is_dead(&self.us)) {
            known.spared.insert(pid);
            if of_session && owner != (self.us.pid, self.us.started) {
                self.live.insert(owner);
            }
            return false;
        }
        if !of_session {
            return false;
        }
        if self.above.contains(&pid) || line_of(pid).any(|above| above == self.us.pid) {
            known.spared.insert(pid);
            return false;
        }
        known.marked.insert(pid, mark.clone());
        true
    }
}

/// A process, its parent, the parent's parent and so on.
fn line_of(pid: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| Process::read(*pid).map(|process| process.parent).filter(|&pid| pid > 0);
    std::iter::successors(Some(pid), parent).take(LINE_MAX)
}

/// The program that a process runs; one that was replaced meanwhile is the same to us.
fn program_of(process: &str) -> io::Result<PathBuf> {
    let program = std::fs::read_link(format!("/proc/{process}/exe"))?;
    let name = program.to_string_lossy();
    Ok(name.strip_suffix(" (deleted)").map_or_else(|| program.clone(), PathBuf::from))
}

/// What an environment says.
enum Carried {
    Mark(Mark),
    /// No mark, or one that is not for us to read.
    None,
    /// No mark, in the environment of the process that forked it.
    NoneYet,
    /// There is no environment, now at least.
    Unclear,
}

/// The mark that a process of our user carries.
fn mark_of(pid: i32) -> Carried {
    match environ_of(pid) {
        Ok(Some(environ)) if environ.is_empty() => Carried::Unclear,
        Ok(Some(environ)) => Mark::find(&environ).map_or(Carried::None, Carried::Mark),
        Ok(None) => Carried::None,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Carried::None,
        Err(_) => Carried::Unclear,
    }
}

/// `None`: it is another user's.
fn environ_of(pid: i32) -> io::Result<Option<Vec<u8>>> {
    let file = std::fs::File::open(format!("/proc/{pid}/environ"))?;
    let owner = file.metadata()?.uid();
    let mut environ = Vec::new();
    file.take(ENVIRON_MAX).read_to_end(&mut environ)?;
    // What a dying process has is shown as the system's; it is empty then.
    Ok((owner == rustix::process::geteuid().as_raw() || environ.is_empty()).then_some(environ))
}

/// What the marks say.
#[derive(Default)]
struct Known {
    /// Who carries a session's mark, from an owner that is dead.
    marked: HashMap<i32, Mark>,
    /// Who is not to be touched.
    spared: HashSet<i32>,
    /// Which owners are dead.
    dead: HashMap<(i32, u64), bool>,
}

impl Known {
    /// Ourselves, whom we descend from, and what we started.
    fn spare_our_own(&mut self, us: i32, table: &[Process]) {
        let parents: HashMap<i32, i32> = table.iter().map(|p| (p.pid, p.parent)).collect();
        let ancestors = |of: i32| std::iter::successors(Some(of), |pid| parents.get(pid).copied());
        // A table that changes while it is read could hold a cycle.
        let bounded = |of: i32| ancestors(of).take(table.len() + 1);
        let below_us = table.iter().map(|p| p.pid).filter(|&pid| bounded(pid).any(|above| above == us));
        let ours: Vec<i32> = bounded(us).chain(below_us).collect();
        self.spared.extend(ours);
        // Where it is the system's or the container's first process.
        self.spared.insert(1);
    }

    /// The marked ones, their descendants, and the POSIX sessions that they made.
    fn all(&self, table: &[Process]) -> Vec<Leftover> {
        // A marked process is in the session where its daemon was, until it makes one itself.
        let not_theirs: HashSet<i32> =
            self.marked.values().map(|mark| mark.owner.session).chain([0]).collect();
        let mut found: HashMap<i32, Leftover> = HashMap::new();
        let mut sessions: HashMap<i32, Purpose> = HashMap::new();
        loop {
            let before = found.len();
            for &process in table {
                if found.contains_key(&process.pid) || self.spared.contains(&process.pid) {
                    continue;
                }
                let purpose = self.marked.get(&process.pid).map(|mark| mark.purpose);
                let by_parent = || found.get(&process.parent).map(|parent| parent.purpose);
                let by_session = || sessions.get(&process.session).copied();
                let Some(purpose) = purpose.or_else(by_parent).or_else(by_session) else { continue };
                found.insert(process.pid, Leftover { process, purpose });
                if !not_theirs.contains(&process.session) {
                    sessions.entry(process.session).or_insert(purpose);
                }
            }
            if found.len() == before {
                return found.into_values().collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Rows are `PID, PARENT, SESSION`.
    fn table(rows: &[(i32, i32, i32)]) -> Vec<Process> {
        rows.iter()
            .map(|&(pid, parent, session)| Process {
                pid,
                parent,
                session,
                state: b'S',
                flags: 0,
                threads: 1,
                started: 1,
            })
            .collect()
    }

    /// A daemon with the number 90, in session 80, that is dead; we are 50.
    fn found(marked: &[i32], spared: &[i32], rows: &[(i32, i32, i32)]) -> Vec<i32> {
        let owner = Owner { pid: 90, started: 1, session: 80, namespace: "n".into() };
        let mark = Mark { owner, purpose: Purpose::Command, session: "s".into() };
        let mut known = Known {
            marked: marked.iter().map(|&pid| (pid, mark.clone())).collect(),
            spared: spared.iter().copied().collect(),
            dead: HashMap::new(),
        };
        let table = table(rows);
        known.spare_our_own(50, &table);
        let mut pids: Vec<_> = known.all(&table).iter().map(|found| found.process.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// A claim, who is marked, who is spared, the table, and who is found.
    type Row = (&'static str, &'static [i32], &'static [i32], &'static [(i32, i32, i32)], &'static [i32]);

    #[test]
    fn a_tree_is_found_by_marks_parents_and_sessions_and_nobody_else() {
        let rows: [Row; 8] = [
            ("marked", &[100], &[], &[(100, 1, 100), (101, 1, 101)], &[100]),
            (
                "below it, scrubbed",
                &[100],
                &[],
                &[(102, 101, 102), (101, 100, 101), (100, 1, 100)],
                &[100, 101, 102],
            ),
            ("its session, orphaned", &[101], &[], &[(101, 1, 100), (102, 1, 100)], &[101, 102]),
            ("not yet a session of its own", &[100], &[], &[(100, 1, 80), (80, 1, 80), (81, 80, 80)], &[100]),
            ("a session from outside", &[100], &[], &[(100, 1, 0), (101, 1, 0)], &[100]),
            ("a live daemon's", &[100], &[101], &[(100, 1, 100), (101, 100, 100), (102, 101, 102)], &[100]),
            (
                "we ourselves",
                &[60, 50, 51, 100],
                &[],
                &[(60, 1, 60), (50, 60, 60), (51, 50, 51), (100, 1, 100)],
                &[100],
            ),
            ("beside us", &[60], &[], &[(60, 1, 60), (50, 60, 60), (61, 60, 60)], &[]),
        ];
        for (claim, marked, spared, table, expected) in rows {
            assert_eq!(found(marked, spared, table), expected, "{claim}");
        }
    }

    /// Waits until somebody with this in their environment runs, and has executed a program.
    fn until_executed(pid: i32, environ: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        let seen = || std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        while !String::from_utf8_lossy(&seen()).contains(environ) {
            assert!(Instant::now() < until, "{pid} never showed {environ}");
            std::thread::yield_now();
        }
    }

    /// E9: a daemon's child that has executed nothing when its daemon dies is found all the same.
    #[test]
    fn who_gets_its_mark_after_the_first_look_is_found_by_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
        // One that is dead for sure: nobody has this number and this start.
        let us = Owner::ourselves().unwrap();
        let owner = Owner { started: us.started + 1, ..us.clone() };
        let (name, value) = Mark { owner, purpose: Purpose::Command, session: "e9".into() }.entry();
        let marked = format!("{}='{}'", name.display(), value.display());
        let text = format!("(read x < \"$0\"; exec env {marked} sleep 600) & echo $!; kill -9 $$");
        let mut said =
            Command::new("/bin/bash").arg("-c").arg(&text).arg(&go).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(said.stdout.take().unwrap()).read_line(&mut line).unwrap();
        said.wait().unwrap();
        let child: i32 = line.trim().parse().unwrap();
        let mut look = Look::new(["e9".to_owned()].into()).unwrap();
        look.program = program_of(&child.to_string()).unwrap();
        let found = |look: &mut Look| {
            let mut pids = Vec::new();
            let mut note = |found: Leftover| {
                pids.push(found.process.pid);
                Ok(())
            };
            let sight = look.again(&mut note).unwrap();
            (sight, pids.contains(&child))
        };
        assert_eq!([found(&mut look), found(&mut look)], [(Sight::Begins, false); 2]);
        std::fs::write(&go, "x\n").unwrap();
        until_executed(child, "_MIDTURN_TREE=");
        let (_, is_found) = found(&mut look);
        Process::read(child).unwrap().signal(nix::sys::signal::Signal::SIGKILL).unwrap();
        assert!(is_found);
    }
}
