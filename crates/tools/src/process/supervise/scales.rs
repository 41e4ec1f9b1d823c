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

/// From a look that finds too much to the one that decides.
const DOUBT: Duration = Duration::from_millis(10);

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
    in_doubt: bool,
}

impl Scales {
    pub(super) fn new(tree: Tree, limit: u64) -> Self {
        Self { tree, limit, next: Instant::now() + PACE, in_doubt: false }
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
        self.next = began + self.pause(rough, began.elapsed());
        tips
    }

    fn pause(&self, rough: u64, took: Duration) -> Duration {
        if self.in_doubt {
            return took + DOUBT;
        }
        let pace = if rough > self.limit / 2 { CLOSE_PACE } else { PACE };
        took + pace.max((took * REST).min(LONGEST_PAUSE))
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
        let scales =
            |in_doubt| Scales { tree: Tree::Namespace, limit: 1_000, next: Instant::now(), in_doubt };
        let ms = Duration::from_millis;
        for (rough, took, in_doubt, expected) in [
            (10, ms(1), false, ms(101)),
            (501, ms(1), false, ms(21)),
            (501, ms(10), false, ms(50)),
            (10, ms(900), false, ms(1_900)),
            (1_001, ms(900), true, ms(910)),
        ] {
            assert_eq!(scales(in_doubt).pause(rough, took), expected, "{rough} {took:?}");
        }
    }
}
