//! How much memory a tree has, where no cgroup counts it: looked up in the system's table again
//! and again. It measures and never ends anything; that is the watch's.
//!
//! What counts is what processes hold and no file holds for them: anonymous and shared memory,
//! swapped out or not, and their page tables. A look adds up what each process has by itself, which
//! counts twice what two of them share. Weighing counts exactly and takes as long as there is memory,
//! longer still where those that take the memory take the processors, too. So the tree is weighed
//! while there is room left, and from then on what grew of each process's own is known without it.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::table::Process;
use super::tree::Tree;

/// From one look to the next while there is plenty left. What grows meanwhile is too much.
const PACE: Duration = Duration::from_millis(100);

/// From half of the limit on.
const CLOSE_PACE: Duration = Duration::from_millis(20);

/// While it grows so fast that it would soon be too much, and from a look that finds too much to
/// the one that decides.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// A look is followed by a pause this many times as long as it kept a processor busy, up to
/// [`LONGEST_PAUSE`]: looking takes a small part of one processor at most, whatever there is to be
/// looked at. That it had to wait for a processor is no reason to look later: who keeps it waiting
/// may be the one to be looked at.
const REST: u32 = 4;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The processes that are looked at, at most. As many as that can be only where the system doesn't
/// limit them either.
const PROCESSES_MAX: usize = 4_096;

/// What is this many times the limit when counted roughly is too much without being weighed.
const FAR: u64 = 8;

/// From half of the limit on the tree is weighed when this part of the limit has never been.
const UNWEIGHED: u64 = 8;

/// What grows in one process alone.
const OWN: &[&str] = &["RssAnon", "VmSwap", "VmPTE"];

const SHARED: &[&str] = &["RssShmem"];

const EXACTLY: &[&str] = &["Pss_Anon", "Pss_Shmem", "SwapPss"];

/// One tree's memory, being watched.
pub(super) struct Scales {
    tree: Tree,
    /// In bytes.
    limit: u64,
    next: Instant,
    /// When it was looked last, and what there was, in bytes.
    last: (Instant, u64),
    weighed: HashMap<Name, Weighed>,
    in_doubt: bool,
}

/// A process for good: its number and when it was started.
type Name = (i32, u64);

/// What a process was found to have when the tree was weighed, in bytes.
struct Weighed {
    own: u64,
    exact: u64,
}

/// What a process has by itself, in bytes.
#[derive(Clone, Copy)]
struct Rough {
    own: u64,
    shared: u64,
}

impl Rough {
    fn all(self) -> u64 {
        self.own.saturating_add(self.shared)
    }
}

impl Scales {
    pub(super) fn new(tree: Tree, limit: u64) -> Self {
        let now = Instant::now();
        Self { tree, limit, next: now + PACE, last: (now, 0), weighed: HashMap::new(), in_doubt: false }
    }

    /// When it wants to look again.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks, if it is time to. True: the tree has more than it may have, two looks in a row. A
    /// process that is about to execute a program has its parent's memory for a moment, so one
    /// look decides nothing.
    pub(super) fn tip(&mut self) -> bool {
        let began = Instant::now();
        if began < self.next {
            return false;
        }
        let busy = processor_time();
        // Who can't be looked at now, for want of descriptors say, is at the next look.
        let mut members = self.tree.members().unwrap_or_default();
        members.truncate(PROCESSES_MAX);
        let held: Vec<(Process, Rough)> = members.into_iter().map(|p| (p, roughly(&p))).collect();
        let rough = sum_of(&held, |_, rough| rough.all());
        let too_much = self.is_too_much(&held, rough);
        let tips = too_much && self.in_doubt;
        self.in_doubt = too_much && !tips;
        let busy = processor_time().saturating_sub(busy);
        self.next = Instant::now() + self.pause(rough, began - self.last.0, busy);
        self.last = (began, rough);
        tips
    }

    fn is_too_much(&mut self, held: &[(Process, Rough)], rough: u64) -> bool {
        if rough / FAR > self.limit {
            return true;
        }
        let unweighed =
            sum_of(held, |name, rough| if self.weighed.contains_key(&name) { 0 } else { rough.all() });
        let may_be = rough > self.limit && self.at_least(held) <= self.limit;
        if may_be || rough > self.limit / 2 && unweighed > self.limit / UNWEIGHED {
            self.weighed =
                held.iter().map(|(process, rough)| (name(process), weigh(process, *rough))).collect();
        }
        self.at_least(held) > self.limit
    }

    /// What they have for certain: what was weighed, and what of their own has come since.
    fn at_least(&self, held: &[(Process, Rough)]) -> u64 {
        sum_of(held, |name, rough| {
            let weighed = self.weighed.get(&name);
            weighed.map_or(0, |w| w.exact.saturating_add(rough.own).saturating_sub(w.own))
        })
    }

    /// `since` is how long ago the last look was, `took` how long this one kept a processor busy.
    fn pause(&self, rough: u64, since: Duration, took: Duration) -> Duration {
        if self.in_doubt {
            return SHORTEST_PAUSE;
        }
        let pace = if rough > self.limit / 2 { CLOSE_PACE } else { PACE };
        let rest = (took * REST).min(LONGEST_PAUSE);
        pace.min(self.half_of_the_time_left(rough, since)).max(SHORTEST_PAUSE).max(rest)
    }

    /// Half of the time after which it is too much, should it go on as since the last look.
    fn half_of_the_time_left(&self, rough: u64, since: Duration) -> Duration {
        let grown = u128::from(rough.saturating_sub(self.last.1)).max(1);
        let left = u128::from(self.limit.saturating_sub(rough));
        let half = since.as_micros().saturating_mul(left) / grown / 2;
        Duration::from_micros(u64::try_from(half).unwrap_or(u64::MAX))
    }
}

/// What this thread has had of processors so far.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn name(process: &Process) -> Name {
    (process.pid, process.started)
}

fn sum_of(held: &[(Process, Rough)], of: impl Fn(Name, Rough) -> u64) -> u64 {
    held.iter().map(|(process, rough)| of(name(process), *rough)).fold(0, u64::saturating_add)
}

/// With all that it shares; nothing, when it can't be looked at.
fn roughly(process: &Process) -> Rough {
    let folder = format!("/proc/{}", process.pid);
    let own = rough_of(&Path::new(&folder).join("status"));
    own.or_else(|| of_a_thread(&folder)).unwrap_or(Rough { own: 0, shared: 0 })
}

/// When the first thread is gone, what the others have is not told of the process.
fn of_a_thread(folder: &str) -> Option<Rough> {
    let threads = std::fs::read_dir(Path::new(folder).join("task")).ok()?;
    threads.flatten().find_map(|thread| rough_of(&thread.path().join("status")))
}

fn rough_of(status: &Path) -> Option<Rough> {
    let status = read(status)?;
    Some(Rough { own: added(&status, OWN)?, shared: added(&status, SHARED).unwrap_or(0) })
}

/// With its part of what it shares. One that lets nobody look at it is taken for what it is
/// roughly.
fn weigh(process: &Process, rough: Rough) -> Weighed {
    let rollup = read(Path::new(&format!("/proc/{}/smaps_rollup", process.pid)));
    let exact = rollup.and_then(|rollup| added(&rollup, EXACTLY));
    Weighed { own: rough.own, exact: exact.unwrap_or_else(|| rough.all()) }
}

fn read(file: &Path) -> Option<String> {
    // A process may have a name that is no text.
    Some(String::from_utf8_lossy(&std::fs::read(file).ok()?).into_owned())
}

/// The sum of these fields of a table, in bytes; `None` when it has none of them.
///
/// `FIELD: NUMBER kB`, a line for each.
fn added(table: &str, fields: &[&str]) -> Option<u64> {
    let numbers = table.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim().strip_suffix(" kB").filter(|_| fields.contains(&name))?;
        value.parse::<u64>().ok()?.checked_mul(1 << 10)
    });
    numbers.reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_file_holds_is_added() {
        let status = "Name:\tRssAnon: 9 kB\nState:\tS (sleeping)\nVmRSS:\t  900 kB\nRssAnon:\t     100 kB\n\
                      RssFile:\t     500 kB\nRssShmem:\t      20 kB\nVmPTE:\t       3 kB\nVmSwap:\t       7 kB\n";
        assert_eq!(added(status, OWN), Some(110 << 10));
        assert_eq!(added(status, SHARED), Some(20 << 10));
        let rollup = "5581-7ffc ---p 00000000 00:00 0    [rollup]\nRss: 900 kB\nPss: 50 kB\nPss_Anon:  30 kB\n\
                      Pss_File: 5 kB\nPss_Shmem: 15 kB\nSwapPss: 1 kB\n";
        assert_eq!(added(rollup, EXACTLY), Some(46 << 10));
        assert_eq!(added("Name:\tzombie\nState:\tZ (zombie)\n", OWN), None);
    }

    #[test]
    fn a_process_is_weighed_and_what_it_holds_counts() {
        let us = Process::ourselves().unwrap();
        let held = std::hint::black_box(vec![1_u8; 32 << 20]);
        let nothing = Rough { own: 0, shared: 0 };
        for (bytes, how) in [(roughly(&us).own, "roughly"), (weigh(&us, nothing).exact, "exactly")] {
            assert!(bytes >= 32 << 20, "{how}: {bytes}");
        }
        assert_eq!(held.len(), 32 << 20);
    }

    #[test]
    fn one_look_decides_nothing_and_a_second_one_does() {
        let child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.unwrap();
        for (limit, expected) in [(0, [false, true, false, true]), (1 << 50, [false; 4])] {
            let mut scales = Scales::new(Tree::Descendants, limit);
            for expected in expected {
                scales.next = Instant::now() + LONGEST_PAUSE;
                assert!(!scales.tip(), "it looks before its time");
                scales.next = Instant::now();
                assert_eq!(scales.tip(), expected, "{limit}");
            }
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// With a limit of 1,000 bytes.
    fn scales(last: u64) -> Scales {
        let mut scales = Scales::new(Tree::Namespace, 1_000);
        scales.last.1 = last;
        scales
    }

    /// Nobody there, so it can be weighed no better than roughly.
    fn gone(own: u64, shared: u64) -> (Process, Rough) {
        (Process { pid: i32::MAX, ..Process::ourselves().unwrap() }, Rough { own, shared })
    }

    #[test]
    fn what_grew_since_the_weighing_is_known_without_another() {
        let mut scales = scales(0);
        let (process, _) = gone(0, 0);
        for (own, shared, too_much, exact) in [
            (800, 0, false, 300),
            (1_000, 0, false, 300),
            (1_501, 0, true, 300),
            // What may be somebody else's as well is weighed.
            (1_500, 1, true, 1_501),
        ] {
            scales.weighed.entry(name(&process)).or_insert(Weighed { own: 800, exact: 300 });
            assert_eq!(scales.is_too_much(&[gone(own, shared)], own + shared), too_much, "{own} {shared}");
            assert_eq!(scales.weighed[&name(&process)].exact, exact, "{own} {shared}");
        }
    }

    #[test]
    fn it_is_weighed_while_there_is_room_left() {
        for (own, weighed) in [(500, false), (501, true), (1_000, true)] {
            let mut scales = scales(0);
            assert!(!scales.is_too_much(&[gone(own, 0)], own), "{own}");
            assert_eq!(!scales.weighed.is_empty(), weighed, "{own}");
        }
    }

    #[test]
    fn a_look_that_took_long_is_followed_by_a_long_pause() {
        let scales = |in_doubt| Scales { in_doubt, ..scales(500) };
        let ms = Duration::from_millis;
        for (rough, took, in_doubt, expected) in [
            (500, ms(1), false, ms(100)),
            (501, ms(1), false, ms(20)),
            (501, ms(10), false, ms(40)),
            (10, ms(200), false, ms(800)),
            (10, ms(900), false, ms(1_000)),
            (1_001, ms(900), true, ms(5)),
        ] {
            assert_eq!(scales(in_doubt).pause(rough, ms(100), took), expected, "{rough} {took:?}");
        }
    }

    #[test]
    fn waiting_for_a_processor_makes_no_look_long() {
        let before = processor_time();
        let kept = Duration::from_millis(20);
        let other = std::thread::spawn(move || while processor_time() < kept {});
        other.join().unwrap();
        assert!(processor_time() - before < kept, "what another thread had was counted as ours");
    }

    #[test]
    fn what_grows_fast_is_looked_at_in_time() {
        let scales = scales(100);
        let ms = Duration::from_millis;
        for (rough, expected) in [(0, 100), (110, 100), (400, 100), (500, 62), (501, 20), (900, 6), (999, 5)]
        {
            assert_eq!(scales.pause(rough, ms(100), ms(0)).as_millis(), expected, "{rough}");
        }
    }
}
