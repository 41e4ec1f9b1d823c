//! How much memory a tree has, where no cgroup counts it: looked up in the system's table again
//! and again. It measures and never ends anything; that is the watch's.
//!
//! What counts is what processes hold and no file holds for them: anonymous and shared memory,
//! swapped out or not, and their page tables. First roughly, each process by itself, which counts
//! twice what two of them share; only when that is too much, once more and exactly.

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

/// A look that took long is followed by a pause this many times as long, up to [`LONGEST_PAUSE`]:
/// looking takes a small part of one processor at most, whatever there is to be looked at.
const REST: u32 = 4;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The processes that are looked at, at most. As many as that can be only where the system doesn't
/// limit them either.
const PROCESSES_MAX: usize = 4_096;

/// What is this many times the limit when counted roughly is too much without being counted
/// exactly, which takes as long as there is memory.
const FAR: u64 = 8;

const ROUGHLY: &[&str] = &["RssAnon", "RssShmem", "VmSwap", "VmPTE"];

const EXACTLY: &[&str] = &["Pss_Anon", "Pss_Shmem", "SwapPss"];

/// One tree's memory, being watched.
pub(super) struct Scales {
    tree: Tree,
    /// In bytes.
    limit: u64,
    next: Instant,
    /// When it was looked last, and what there was, in bytes.
    last: (Instant, u64),
    in_doubt: bool,
}

impl Scales {
    pub(super) fn new(tree: Tree, limit: u64) -> Self {
        let now = Instant::now();
        Self { tree, limit, next: now + PACE, last: (now, 0), in_doubt: false }
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
        // Who can't be looked at now, for want of descriptors say, is at the next look.
        let members = self.tree.members().unwrap_or_default();
        let members = &members[..members.len().min(PROCESSES_MAX)];
        let all = |of: fn(&Process) -> u64| members.iter().map(of).fold(0, u64::saturating_add);
        let rough = all(roughly);
        let tips =
            rough > self.limit && self.in_doubt && (rough / FAR > self.limit || all(exactly) > self.limit);
        self.in_doubt = rough > self.limit && !self.in_doubt;
        self.next = Instant::now() + self.pause(rough, began - self.last.0, began.elapsed());
        self.last = (began, rough);
        tips
    }

    /// `since` is how long ago the last look was, `took` how long this one.
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

/// With all that it shares.
fn roughly(process: &Process) -> u64 {
    let folder = format!("/proc/{}", process.pid);
    let own = sum(Path::new(&folder).join("status").as_ref(), ROUGHLY);
    own.or_else(|| of_a_thread(&folder)).unwrap_or(0)
}

/// When the first thread is gone, what the others have is not told of the process.
fn of_a_thread(folder: &str) -> Option<u64> {
    let threads = std::fs::read_dir(Path::new(folder).join("task")).ok()?;
    threads.flatten().find_map(|thread| sum(&thread.path().join("status"), ROUGHLY))
}

/// With its part of what it shares. One that lets nobody look at it is taken for what it is
/// roughly.
fn exactly(process: &Process) -> u64 {
    let exact = sum(Path::new(&format!("/proc/{}/smaps_rollup", process.pid)), EXACTLY);
    exact.unwrap_or_else(|| roughly(process))
}

/// The sum of these fields, in bytes; `None` when there is none of them.
fn sum(file: &Path, fields: &[&str]) -> Option<u64> {
    // A process may have a name that is no text.
    added(&String::from_utf8_lossy(&std::fs::read(file).ok()?), fields)
}

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
        assert_eq!(added(status, ROUGHLY), Some(130 << 10));
        let rollup = "5581-7ffc ---p 00000000 00:00 0    [rollup]\nRss: 900 kB\nPss: 50 kB\nPss_Anon:  30 kB\n\
                      Pss_File: 5 kB\nPss_Shmem: 15 kB\nSwapPss: 1 kB\n";
        assert_eq!(added(rollup, EXACTLY), Some(46 << 10));
        assert_eq!(added("Name:\tzombie\nState:\tZ (zombie)\n", ROUGHLY), None);
    }

    #[test]
    fn a_process_is_weighed_and_what_it_holds_counts() {
        let us = Process::ourselves().unwrap();
        let held = std::hint::black_box(vec![1_u8; 32 << 20]);
        for (weighed, how) in [(roughly(&us), "roughly"), (exactly(&us), "exactly")] {
            assert!(weighed >= 32 << 20, "{how}: {weighed}");
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

    #[test]
    fn a_look_that_took_long_is_followed_by_a_long_pause() {
        let now = Instant::now();
        let scales =
            |in_doubt| Scales { tree: Tree::Namespace, limit: 1_000, next: now, last: (now, 500), in_doubt };
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
    fn what_grows_fast_is_looked_at_in_time() {
        let now = Instant::now();
        let scales =
            Scales { tree: Tree::Namespace, limit: 1_000, next: now, last: (now, 100), in_doubt: false };
        let ms = Duration::from_millis;
        for (rough, expected) in [(0, 100), (110, 100), (400, 100), (500, 62), (501, 20), (900, 6), (999, 5)]
        {
            assert_eq!(scales.pause(rough, ms(100), ms(0)).as_millis(), expected, "{rough}");
        }
    }
}
