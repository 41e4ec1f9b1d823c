//! What has to be there before one command can be started in a sandbox.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::cgroup::{Group, Groups};
use super::look::Look;
use super::mount_plan::{Anew, MountPlan, Step};
use super::orders::{Bounds, Orders, View};
use super::rights::Rights;
use super::stand_in::StandIns;
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
    /// What of a held view the command has anew.
    pub(crate) anew: Anew,
    pub(crate) ground: Arc<Ground>,
    /// Kept until nothing of the command is alive.
    pub(crate) stand_ins: StandIns,
}

/// What was decided for a command, and may hold for the next one of that agent.
#[derive(Debug)]
pub(crate) struct Kept {
    /// What it was decided by.
    confinement: Confinement,
    sockets: Vec<PathBuf>,
    look: Look,
    view: Arc<View>,
    anew: Anew,
    ground: Arc<Ground>,
    rights: Arc<Rights>,
    stand_ins: Vec<PathBuf>,
}

impl Kept {
    /// Whether the same would be decided now.
    fn holds(&self, confinement: &Confinement, sockets: &[PathBuf]) -> bool {
        self.confinement == *confinement && self.sockets == sockets && self.look.is_still_true()
    }
}

/// What a view stands on. A view that stands on the same can be used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ground {
    /// The folder for temporary files of the agent that it is for: no two share one.
    pub(crate) whose: PathBuf,
    /// Folders to be made in folders of the agent's own, for what is mounted there.
    pub(crate) folders: BTreeSet<(PathBuf, PathBuf)>,
    /// What was at the place from which each step takes something: somebody may put another thing there.
    found: Vec<Option<(u64, u64)>>,
}

impl Ground {
    fn of(confinement: &Confinement, plan: &MountPlan, look: &Look) -> Self {
        let at = |from| look.canonical(from).and_then(|path| look.found(&path));
        let found = plan.steps.iter().map(|step| match step {
            Step::Bind { from, .. } | Step::Overlay { lower: from, .. } => {
                at(from).ok().map(|found| (found.device, found.inode))
            }
            _ => None,
        });
        Self { whose: confinement.temporary.clone(), folders: plan.folders.clone(), found: found.collect() }
    }
}

impl Sandbox {
    /// Looks at the places of a confinement as they are now. `kept` is of the same agent.
    ///
    /// # Errors
    /// What keeps the sandbox from being built. Nothing may be run then.
    pub(crate) fn prepare(
        &self,
        confinement: Option<&Confinement>,
        folder: &Path,
        kept: &mut Option<Kept>,
    ) -> io::Result<Prepared> {
        let mut prepared = Prepared { orders: self.orders(), ..Prepared::default() };
        if self.engine == Engine::Nobody {
            return Ok(prepared);
        }
        let confinement = confinement.ok_or_else(|| {
            io::Error::other("nobody said what the command may touch, which is a bug in midturn")
        })?;
        // Bubblewrap has taken them away already.
        prepared.orders.no_privileges = self.engine != Engine::Bubblewrap;
        match &self.engine {
            // Commands can make no Unix socket, or, where Landlock governs those, connect to none outside what they
            // can write: nothing has to be hidden then, least of all in folders of other users. Nor are
            // there mounts for which something would have to stand in.
            Engine::Landlock(Supervision::Subreaper) => {
                let plan = self.plan(confinement, &[], &Look::default())?;
                prepared.orders.rights = Some(Arc::new(Rights::without_a_view(&plan.kinds)?));
            }
            Engine::Landlock(_) => self.view(confinement, kept, &mut prepared)?,
            Engine::Bubblewrap => {
                let plan = self.plan(confinement, &sockets(), &Look::default())?;
                prepared.orders.rights = self.abilities.scopes.then(Arc::default);
                // Asked each time: another session may work by now in the folder that it is in.
                let program = programs::find(Program::Bubblewrap).map_err(io::Error::other)?;
                let mut bubblewrap = Command::new(program);
                bubblewrap.args(bubblewrap::arguments(&plan.steps, folder, self.is_open()));
                prepared.wrapper = Some(bubblewrap);
                make_all(&plan.folders)?;
                prepared.stand_ins = StandIns::put(&plan.stand_ins, confinement.lingers)?;
            }
            Engine::Nobody => {}
        }
        Ok(prepared)
    }

    fn plan(&self, confinement: &Confinement, sockets: &[PathBuf], look: &Look) -> io::Result<MountPlan> {
        MountPlan::new(confinement, sockets, self.wanted.limits.in_memory(), look)
    }

    /// A view that an anchor makes and holds.
    fn view(
        &self,
        confinement: &Confinement,
        kept: &mut Option<Kept>,
        prepared: &mut Prepared,
    ) -> io::Result<()> {
        let sockets = sockets();
        let kept = match kept.take().filter(|kept| kept.holds(confinement, &sockets)) {
            Some(holds) => kept.insert(holds),
            None => kept.insert(self.decide(confinement, sockets)?),
        };
        prepared.stand_ins = StandIns::put(&kept.stand_ins, confinement.lingers)?;
        prepared.anew = kept.anew.clone();
        prepared.ground = kept.ground.clone();
        prepared.orders.rights = Some(kept.rights.clone());
        prepared.orders.view = Some(kept.view.clone());
        Ok(())
    }

    fn decide(&self, confinement: &Confinement, sockets: Vec<PathBuf>) -> io::Result<Kept> {
        let look = Look::default();
        let mut plan = self.plan(confinement, &sockets, &look)?;
        let anew = plan.anew();
        let ground = Arc::new(Ground::of(confinement, &plan, &look));
        // The devices that we make in a view can be written too.
        plan.writable.push("/dev".into());
        let rights = Rights { read: vec!["/".into()], write: plan.writable };
        let view = View { steps: plan.steps, network_off: !self.is_open() };
        let (view, rights) = (Arc::new(view), Arc::new(rights));
        let (confinement, stand_ins) = (confinement.clone(), plan.stand_ins);
        Ok(Kept { confinement, sockets, look, view, anew, ground, rights, stand_ins })
    }

    /// A cgroup for a command, where there are any.
    pub(crate) fn group(&self) -> io::Result<Option<Group>> {
        self.groups.as_ref().map(Groups::take).transpose()
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

/// Makes each folder below its base.
pub(crate) fn make_all(folders: &BTreeSet<(PathBuf, PathBuf)>) -> io::Result<()> {
    folders.iter().try_for_each(|(base, below)| make_folders(base, below))
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
