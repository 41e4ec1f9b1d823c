//! A cgroup for each command, which holds all that it starts to its limits.
//!
//! Groups are made below our own one, never beside or above a group that has limits itself:
//! whoever limits us limits our commands. A command's process walks in by itself before it
//! becomes the command; its supervisor stays outside, so that what kills the command's
//! processes for their memory spares it.
//!
//! To make and remove groups is dear, and most commands leave theirs as new: it waits for the next one.

mod group;

use std::fs::{self, File};
use std::io;
use std::mem::take;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use self::group::{Folders, set};
use super::{InMemory, TreeLimits};
use crate::process::table::Process;

const NAME: &str = "midturn-";

/// Groups that wait for their next command, at most.
const FREE_MAX: usize = 16;

/// Groups that could not be removed yet, at most; the next daemon finds the rest by name.
const REST_MAX: usize = 1_024;

/// Which limit a tree ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// Something was killed for using more memory than this, in bytes.
    Memory(u64),
    /// Something could not be started: there were this many processes and threads.
    Processes(u32),
    /// This folder in memory is full: it holds so many bytes.
    Folder(InMemory, u64),
}

/// Where groups can be made, and those that are there.
#[derive(Clone, Debug)]
pub(crate) struct Groups(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: Places,
    /// Our name: number and start, as the system's table has them.
    us: String,
    limits: TreeLimits,
    /// As new, and nobody's. They are removed with the last of those who could use them.
    free: Mutex<Vec<Folders>>,
    rest: Mutex<Vec<PathBuf>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    /// Where processes are limited, and memory too where there is one hierarchy.
    pids: PathBuf,
    /// In the old hierarchies, of which there is one for each kind of limit.
    memory: Option<PathBuf>,
}

impl Places {
    /// A process that moves itself, as a thread, waits for nobody; through `cgroup.procs` it would wait until all
    /// processors had taken notice, which is milliseconds.
    fn door(&self) -> &'static str {
        if self.memory.is_none() { "cgroup.procs" } else { "tasks" }
    }
}

/// One command's group. Dropped, it is removed, which may take milliseconds.
#[derive(Debug)]
pub(crate) struct Group {
    shared: Arc<Shared>,
    folders: Folders,
}

impl Groups {
    /// For groups with these limits. Finds out by making one. Removes what dead coordinators left.
    pub(crate) fn find(limits: TreeLimits) -> Option<Self> {
        let us = Process::ourselves().ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let found = [v1(&mounts, &own), v2(&mounts, &own)].into_iter().flatten();
        for places in found {
            let us = format!("{}-{}", us.pid, us.started);
            let (free, rest) = (Mutex::default(), Mutex::default());
            let groups = Self(Arc::new(Shared { places, us, limits, free, rest }));
            groups.0.sweep();
            if groups.make().is_ok() {
                return Some(groups);
            }
        }
        None
    }

    pub(crate) fn is_v2(&self) -> bool {
        self.0.places.memory.is_none()
    }

    /// A group that nobody is in: one that waits, or a new one.
    pub(crate) fn take(&self) -> io::Result<Group> {
        let waiting = self.0.free.lock().pop();
        waiting.map_or_else(|| self.make(), |folders| Ok(Group { shared: self.0.clone(), folders }))
    }

    fn make(&self) -> io::Result<Group> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Shared { places, us, limits, rest, .. } = &*self.0;
        rest.lock().retain(|folder| !is_removed(folder));
        let name = format!("{NAME}{us}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut group = Group { shared: self.0.clone(), folders: Folders::default() };
        group.folders.make(places, &name, limits)?;
        Ok(group)
    }
}

impl Shared {
    /// Removes the groups of coordinators that are gone. One with a process in it can't be
    /// removed, whoever's it is.
    fn sweep(&self) {
        let is_gone = |(pid, started)| Process::read(pid).is_none_or(|process| process.started != started);
        let bases = std::iter::once(&self.places.pids).chain(&self.places.memory);
        for entry in bases.filter_map(|base| fs::read_dir(base).ok()).flatten().flatten() {
            if entry.file_name().to_str().and_then(owner).is_some_and(is_gone) {
                let _in_use = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for folder in self.free.get_mut().drain(..).flat_map(|folders| folders.all) {
            // One that can't be removed has somebody in it who isn't ours; the next coordinator tries again.
            let _in_use = is_removed(&folder);
        }
    }
}

impl Group {
    /// Through these a process walks in, by writing `0`.
    pub(crate) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.folders.doors()
    }

    /// Which limit was run into, memory first: that one kills.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.folders.exceeded(&self.shared.limits)
    }

    /// Nothing of its command is alive. `Some`: it is not as new, and has to be dropped.
    pub(crate) fn over(mut self) -> Option<Self> {
        if self.folders.is_as_new(&self.shared.limits) {
            let mut free = self.shared.free.lock();
            if free.len() < FREE_MAX {
                free.push(take(&mut self.folders));
                return None;
            }
        }
        Some(self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in self.folders.all.drain(..) {
            if !is_removed(&folder) {
                let mut rest = self.shared.rest.lock();
                if rest.len() < REST_MAX {
                    rest.push(folder);
                }
            }
        }
    }
}

/// Puts this process into the group that the door leads to.
pub(crate) fn enter(door: &OwnedFd) -> io::Result<()> {
    rustix::io::write(door, b"0").map(drop).map_err(io::Error::from)
}

fn is_removed(folder: &Path) -> bool {
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whose group it is, by its name: `midturn-PID-STARTED-NUMBER`.
fn owner(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(NAME)?.split('-');
    let owner = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next()?.parse::<u64>().ok()?;
    Some(owner)
}

/// Our own group in each of the two old hierarchies that we need.
fn v1(mounts: &str, own: &str) -> Option<Places> {
    let place = |controller: &str| {
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next()?.split(',').any(|c| c == controller).then(|| parts.next())?
        })?;
        let mounted =
            |kind: &str, options: &str| kind == "cgroup" && options.split(',').any(|o| o == controller);
        folder(mounts, mounted, path)
    };
    Some(Places { pids: place("pids")?, memory: Some(place("memory")?) })
}

/// The nearest group from our own upwards that can have limited groups below it. None above
/// one with limits of its own.
fn v2(mounts: &str, own: &str) -> Option<Places> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let top = folder(mounts, |kind, _| kind == "cgroup2", "/")?;
    let own = folder(mounts, |kind, _| kind == "cgroup2", path)?;
    if let Some(base) = alone_in(&own) {
        return Some(Places { pids: base, memory: None });
    }
    let mut at = own.as_path();
    loop {
        if names_both(at, "cgroup.subtree_control") && is_writable(&at.join("cgroup.procs")) {
            return Some(Places { pids: at.to_owned(), memory: None });
        }
        if at == top || has_limits(at) {
            return None;
        }
        at = at.parent()?;
    }
}

/// A group that was given to us alone (a service with `Delegate=yes`): we move one down, since
/// a group with processes in it can't limit groups below.
fn alone_in(own: &Path) -> Option<PathBuf> {
    let inside = fs::read_to_string(own.join("cgroup.procs")).ok()?;
    let alone = inside.lines().eq([std::process::id().to_string().as_str()]);
    if !alone || !names_both(own, "cgroup.controllers") || !is_writable(&own.join("cgroup.subtree_control")) {
        return None;
    }
    let ours = own.join("midturn");
    if !ours.is_dir() {
        fs::create_dir(&ours).ok()?;
    }
    set(&ours, "cgroup.procs", "0").ok()?;
    set(own, "cgroup.subtree_control", "+memory +pids").ok()?;
    Some(own.to_owned())
}

/// Whether this file names both kinds of limit.
fn names_both(group: &Path, file: &str) -> bool {
    let names = fs::read_to_string(group.join(file)).unwrap_or_default();
    ["memory", "pids"].iter().all(|kind| names.split_ascii_whitespace().any(|name| name == *kind))
}

/// Whether it has a limit of its own: a file that is there, isn't empty and doesn't begin with `max`.
fn has_limits(group: &Path) -> bool {
    let files = ["memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max", "cpuset.cpus"];
    files.iter().any(|file| {
        let said = fs::read_to_string(group.join(file)).unwrap_or_default();
        said.split_ascii_whitespace().next().is_some_and(|limit| limit != "max")
    })
}

fn is_writable(file: &Path) -> bool {
    File::options().write(true).open(file).is_ok()
}

/// Where a group's folder is: `ID PARENT DEVICE ROOT AT OPTIONS … - KIND SOURCE OPTIONS`.
fn folder(mounts: &str, is_it: impl Fn(&str, &str) -> bool, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        if !is_it(kind, options) {
            return None;
        }
        let mut front = front.split(' ').skip(3);
        let (root, at) = (front.next()?, front.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(at).join(below)).filter(|folder| folder.is_dir())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_mount_and_by_our_path_in_it() {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir_all(at.path().join("pids/a/b")).unwrap();
        fs::create_dir_all(at.path().join("memory/b")).unwrap();
        let mounts = format!(
            "31 25 0:27 / {0}/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n\
             32 25 0:28 /a {0}/memory rw - cgroup cgroup rw,memory\n\
             33 25 0:29 / {0} rw - cgroup2 cgroup2 rw\n",
            at.path().display()
        );
        let own = "8:pids:/a/b\n4:memory:/a/b\n0::/\n";
        let expected = Places { pids: at.path().join("pids/a/b"), memory: Some(at.path().join("memory/b")) };
        assert_eq!(v1(&mounts, own), Some(expected));
        assert_eq!(v1(&mounts, "8:pids:/a/b\n0::/\n"), None);
    }

    #[test]
    fn no_group_is_left_that_has_limits() {
        let at = tempfile::tempdir().unwrap();
        let own = at.path().join("user/app/own");
        fs::create_dir_all(&own).unwrap();
        for group in ["user/app/own", "user/app", "user"] {
            fs::write(at.path().join(group).join("cgroup.procs"), "1\n2\n").unwrap();
            fs::write(at.path().join(group).join("memory.max"), "max\n").unwrap();
        }
        fs::write(at.path().join("user/cgroup.subtree_control"), "memory pids\n").unwrap();
        let mounts = format!("33 25 0:29 / {} rw - cgroup2 cgroup2 rw\n", at.path().display());
        let found = || v2(&mounts, "0::/user/app/own\n");
        assert_eq!(found(), Some(Places { pids: at.path().join("user"), memory: None }));
        fs::write(at.path().join("user/app/memory.max"), "1000\n").unwrap();
        assert_eq!(found(), None);
    }

    #[test]
    fn only_groups_of_ours_have_an_owner() {
        assert_eq!(owner("midturn-12-34-5"), Some((12, 34)));
        for name in ["midturn-12", "midturn-12-34", "midturn-a-1-2", "other-12-34-5", "midturn"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
