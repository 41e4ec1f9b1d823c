//! Who lives: processes by their parents, whatever they call themselves. What loses its parent
//! becomes a child of the harness, which adopts orphans.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};

/// Has orphans of what we start become children of this process.
pub(crate) fn adopt_orphans() {
    set_child_subreaper(Some(getpid())).unwrap();
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    dead: bool,
    pub(crate) what: String,
    started: u64,
}

fn process(pid: i32) -> Option<Process> {
    // Its name may be no text.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: String = String::from_utf8_lossy(&words).replace('\0', " ").chars().take(160).collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        dead: matches!(*fields.first()?, "Z" | "X"),
        what: if words.is_empty() { head.to_owned() } else { words },
        started: fields.get(19)?.parse().ok()?,
    })
}

/// All living processes below this one.
pub(crate) fn below_us() -> Vec<Process> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = numbers.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?));
    let all: BTreeMap<i32, Process> = all.map(|process| (process.pid, process)).collect();
    let us = getpid().as_raw_nonzero().get();
    let is_below = |process: &Process| {
        let above = std::iter::successors(Some(process), |process| all.get(&process.parent));
        above.take(64).any(|process| process.parent == us)
    };
    all.values().filter(|process| !process.dead && is_below(process)).cloned().collect()
}

/// Those of them that are not there to fork others: the daemon's seed and its anchors stay for the next command, and are
/// in no PID namespace but ours, where no program of the corpus comes while there are any.
pub(crate) fn at_work(daemon: u32) -> Vec<Process> {
    let mut all = below_us();
    let forks = |process: &Process| {
        process.what.trim_end() == "/proc/self/exe __supervise" && is_in_ours(process.pid)
    };
    let of = |parents: &[i32]| {
        let forked = all.iter().filter(|process| parents.contains(&process.parent) && forks(process));
        forked.map(|process| process.pid).collect::<Vec<_>>()
    };
    let seeds = of(&[daemon.cast_signed()]);
    let anchors = of(&seeds);
    all.retain(|process| !seeds.contains(&process.pid) && !anchors.contains(&process.pid));
    all
}

/// Whether it has but one number: one in another PID namespace has one there, too.
fn is_in_ours(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() == 1)
}

/// The processes that a look finds besides those known; waits for their ends.
pub(crate) fn survivors(
    look: impl Fn() -> Vec<Process>,
    known: &[Process],
    patience: Duration,
) -> Vec<Process> {
    let deadline = Instant::now() + patience;
    loop {
        let same =
            |process: &Process| known.iter().any(|k| k.pid == process.pid && k.started == process.started);
        let left: Vec<Process> = look().into_iter().filter(|process| !same(process)).collect();
        if left.is_empty() || !left.iter().all(|process| ends_by(process.pid, deadline)) {
            return left;
        }
    }
}

fn ends_by(pid: i32, deadline: Instant) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    // One that is gone has no descriptor.
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
    let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut ended, left.as_ref()).is_ok_and(|count| count > 0)
}

/// A field of `/proc/PID/status` in KiB, as bytes.
fn status(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// How much memory a process has, in bytes; from now on its peak is measured anew.
pub(crate) fn memory(pid: u32) -> u64 {
    // Only its owner may; without it the peak is that of the whole life, which is stricter.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    status(pid, "VmRSS").unwrap_or_default()
}

/// The most memory that a process has had, in bytes.
pub(crate) fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM").unwrap_or_default()
}

/// What another process may have changed about this one.
pub(crate) fn bearing(pid: u32) -> Vec<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    // Priority, niceness and scheduling policy.
    let scheduling = [15, 16, 38].map(|at| fields.get(at).copied().unwrap_or_default()).join(" ");
    let status = read("status");
    let lines =
        status.lines().filter(|line| line.starts_with("Cpus_allowed_list") || line.starts_with("TracerPid"));
    [vec![read("limits"), read("oom_score_adj"), scheduling], lines.map(str::to_owned).collect()].concat()
}
