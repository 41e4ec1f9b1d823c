//! What has to be there before one command can be started in a sandbox.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cgroup::Group;
use super::mount_plan::MountPlan;
use super::orders::{Bounds, Orders, View};
use super::rights::Rights;
use super::stand_in::StandIns;
use super::upper::Uppers;
use super::{Confinement, Engine, Sandbox, bubblewrap};
use crate::process::Supervision;
use crate::process::table::{Process, processes};
use crate::programs::{self, Program};
use crate::protect::make_folders;

/// What it takes to start one command.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// A program that is to run the supervisor.
    pub(crate) wrapper: Option<Command>,
    pub(crate) orders: Orders,
    /// Kept until nothing of the command is alive.
    pub(crate) stand_ins: StandIns,
    /// The same.
    pub(crate) uppers: Uppers,
}

impl Sandbox {
    /// Looks at the places of a confinement as they are now.
    ///
    /// # Errors
    /// What keeps the sandbox from being built. Nothing may be run then.
    pub(crate) fn prepare(&self, confinement: Option<&Confinement>, folder: &Path) -> io::Result<Prepared> {
        let mut orders = self.orders();
        if self.engine == Engine::Nobody {
            return Ok(Prepared { orders, ..Prepared::default() });
        }
        let confinement = confinement.ok_or_else(|| {
            io::Error::other("nobody said what the command may touch, which is a bug in midturn")
        })?;
        // Without namespaces commands can make no Unix socket, or, where Landlock governs those, connect
        // to none outside what they can write: nothing has to be hidden then, least of all in folders of
        // other users.
        let sockets = if self.engine.has_no_namespaces() { Vec::new() } else { sockets() };
        let mut plan = MountPlan::new(confinement, &sockets, self.wanted.limits.in_memory())?;
        // Bubblewrap has taken them away already.
        orders.no_privileges = self.engine != Engine::Bubblewrap;
        let mut wrapper = None;
        let uppers = Uppers::take(&mut plan.steps, !matches!(self.engine, Engine::Landlock(_)))?;
        match &self.engine {
            Engine::Landlock(Supervision::Subreaper) => {
                orders.rights = Some(Rights::without_a_view(&plan.kinds)?);
                // There are no mounts for which something would have to stand in.
                plan.stand_ins.clear();
                plan.folders.clear();
                plan.steps.clear();
            }
            Engine::Landlock(_) => {
                // The devices that we make in a view can be written too.
                plan.writable.push("/dev".into());
                orders.rights = Some(Rights { read: vec!["/".into()], write: plan.writable });
                let network_off = !self.is_open();
                orders.view = Some(View { steps: plan.steps, folder: folder.to_owned(), network_off });
            }
            Engine::Bubblewrap => {
                orders.rights = self.abilities.scopes.then(Rights::default);
                // Asked each time: another session may work by now in the folder that it is in.
                let program = programs::find(Program::Bubblewrap).map_err(io::Error::other)?;
                let mut bubblewrap = Command::new(program);
                bubblewrap.args(bubblewrap::arguments(&plan.steps, folder, self.is_open()));
                wrapper = Some(bubblewrap);
            }
            Engine::Nobody => {}
        }
        for (base, below) in &plan.folders {
            make_folders(base, below)?;
        }
        Ok(Prepared { wrapper, orders, stand_ins: StandIns::put(&plan.stand_ins)?, uppers })
    }

    /// A cgroup for a command, where there are any.
    pub(crate) fn group(&self) -> io::Result<Option<Group>> {
        self.groups.as_ref().map(|groups| groups.make(&self.wanted.limits)).transpose()
    }

    fn orders(&self) -> Orders {
        let limits = &self.wanted.limits;
        let alone = self.groups.is_none();
        let bounds = Bounds {
            file_size: Some(limits.file_size),
            open_files: Some(limits.open_files.into()),
            memory: alone.then_some(limits.memory),
            in_memory: self.engine.has_a_view().then(|| limits.in_memory()),
            processes: if alone { self.processes() } else { None },
        };
        Orders { bounds, filter: self.filter.clone(), ..Orders::default() }
    }

    /// The system counts a user's processes in a user namespace; where there is none of the
    /// command's own, all others of that user count too.
    fn processes(&self) -> Option<u64> {
        let limit = u64::from(self.wanted.limits.processes);
        match self.engine {
            Engine::Landlock(Supervision::Subreaper) => Some(limit.saturating_add(threads_of_ours())),
            Engine::Bubblewrap | Engine::Landlock(_) => Some(limit),
            Engine::Nobody => None,
        }
    }
}

/// Files by which programs of this machine are spoken to.
fn sockets() -> Vec<PathBuf> {
    // Bytes: one path that is no text would hide all others from us.
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let path = |line: &[u8]| {
        let at = line.windows(2).position(|two| two == b" /")?;
        Some(PathBuf::from(OsStr::from_bytes(&line[at + 1..])))
    };
    let paths: BTreeSet<_> = table.split(|&byte| byte == b'\n').filter_map(path).collect();
    paths.into_iter().collect()
}

fn threads_of_ours() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let us = rustix::process::geteuid().as_raw();
    let is_ours = |process: &&Process| {
        std::fs::metadata(format!("/proc/{}", process.pid)).is_ok_and(|about| about.uid() == us)
    };
    let all = processes().unwrap_or_default();
    all.iter().filter(is_ours).map(|process| process.threads).sum()
}
