//! The folders of a session that are ours, below the state folder: for temporary files, for
//! what was put aside, for our own scratch. And what of a confinement follows from them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::confine::{OF_OTHERS, OF_OWN, SETTINGS, hidden, of_ourselves, of_project, of_worktree};
use super::home::{self, furnish};
use super::keeper::Keeper;
use super::layout::RepositoryLayout;
use super::place::Reach;
use super::worktree::{Inside, Worktree};
use crate::confined::{Confined, is_there, private_folder};
use crate::process::Supervisor;
use crate::protect::guard::{Guard, Sought, Together};
use crate::protect::make_folders;
use crate::protect::original::Original;
use crate::protect::repositories::LeftForGit;
use crate::sandbox::{Confinement, Toolchains};
use crate::under_way::UnderWay;

/// Our own scratch folder, among those of agents, whose names have no dot.
const OURS: &str = ".ours";

/// What has authority and is often missing: with mounts it can't even be made.
const STAND_INS: [&str; 6] = [".claude", ".midturn", ".vscode", ".idea", "midturn.toml", ".mcp.json"];

/// Variables that say where other programs listen, or keep what only a person should have.
const PLACES: [&str; 3] = ["XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "KUBECONFIG"];

/// The folders of one session.
#[derive(Debug)]
pub(super) struct SessionFolders {
    /// The state folder, as it really is.
    pub(super) state: PathBuf,
    /// Where worktrees are made, each beside its record.
    pub(super) worktrees: PathBuf,
    temporary: PathBuf,
    aside: PathBuf,
    /// The session, as its folders are called.
    name: String,
    /// Whether the sandbox gives commands a view of the file system of their own.
    mounts: bool,
    reach: Reach,
    /// Git's own folders that a command in the project folder could move.
    originals: OnceLock<Vec<Arc<Original>>>,
    /// Of all agents in the project folder.
    together: Together,
}

impl SessionFolders {
    /// Makes the state folder if need be, for this user only.
    pub(super) fn new(
        state: &Path,
        worktrees: PathBuf,
        session: &str,
        mounts: bool,
        reach: Reach,
    ) -> io::Result<Self> {
        private_folder(state)?;
        let state = state.canonicalize()?;
        if let Some(base) = worktrees.parent().filter(|base| !base.starts_with(&state)) {
            private_folder(base)?;
        }
        let [temporary, aside] = ["tmp", "aside"].map(|name| state.join(name).join(session));
        let (originals, together) = (OnceLock::new(), Together::default());
        let name = session.to_owned();
        Ok(Self { state, worktrees, temporary, aside, name, mounts, reach, originals, together })
    }

    /// The same for whoever comes by while another process may have the session: with temporary files of its own.
    pub(super) fn apart(mut self) -> Self {
        // No session's folder has a dot in its name.
        self.temporary.as_mut_os_string().push(format!(".{}", std::process::id()));
        self
    }

    /// An agent's folder for temporary files; made before each of its commands.
    pub(super) fn temporary(&self, agent: &str) -> PathBuf {
        self.temporary.join(agent)
    }

    /// Our own scratch folder, made.
    pub(super) fn scratch(&self) -> io::Result<PathBuf> {
        let folder = self.temporary(OURS);
        private_folder(&folder)?;
        Ok(folder)
    }

    /// Removes what is temporary. What can't be removed, because it was made so, is left: the
    /// next one tries again.
    pub(super) fn clean(&self) {
        if std::fs::remove_dir_all(&self.temporary).is_err() {
            home::open_up(&self.temporary);
            let _ = std::fs::remove_dir_all(&self.temporary);
        }
    }

    /// What our own git commands are kept to.
    pub(super) fn keeper(&self, layout: &RepositoryLayout, supervisor: &Supervisor) -> io::Result<Keeper> {
        let mut confinement = of_ourselves(layout, &self.worktrees);
        confinement.read_only.retain(|path| self.mounts && is_there(path));
        confinement.hidden = hidden(person_home().as_deref(), &self.reach.hidden, &layout.top);
        confinement.temporary = self.scratch()?;
        Ok(Keeper { supervisor: supervisor.clone(), confinement: Arc::new(confinement) })
    }

    /// What an agent in a worktree of its own is confined to.
    pub(super) fn in_worktree(&self, agent: &str, worktree: &Worktree) -> io::Result<Confined> {
        let guard = Guard::new(self.aside.join(agent), self.mounts);
        let guard = guard.watch(&worktree.top, Sought::AuthoritiesBesideItsRepository)?;
        let layout = &worktree.repository.layout;
        let confinement = of_worktree(layout, &worktree.top);
        let confined = self.confined(agent, confinement, &worktree.top, guard);
        self.at_home(agent, confined, &worktree.top, Some(layout))
    }

    /// What our git commands for an agent's repository run in: that agent's sandbox, with other temporary
    /// files than its commands have.
    pub(super) fn inside(
        &self,
        layout: &RepositoryLayout,
        name: &str,
        top: &Path,
        supervisor: Option<&Supervisor>,
    ) -> io::Result<Inside> {
        // No agent's name has a dot.
        let temporary = self.temporary(&format!("{name}.git"));
        private_folder(&temporary)?;
        let mut confinement = of_worktree(layout, top);
        confinement.read_only.retain(|path| self.mounts && is_there(path));
        confinement.hidden = self.hidden(top);
        confinement.temporary.clone_from(&temporary);
        let keeper = supervisor
            .map(|supervisor| Keeper { supervisor: supervisor.clone(), confinement: confinement.into() });
        Ok(Inside { temporary, keeper })
    }

    /// For commands that can do all that we can, as a person chose: they have a folder for temporary
    /// files, and nobody looks after them.
    pub(super) fn unconfined(&self, agent: &str, folder: &Path) -> Confined {
        let guard = Guard::new(self.aside.join(agent), false);
        Confined { under_way: None, ..self.confined(agent, Confinement::default(), folder, guard) }
    }

    /// What an agent in the project folder is confined to.
    pub(super) fn in_project(
        &self,
        agent: &str,
        folder: &Path,
        layout: Option<&RepositoryLayout>,
    ) -> io::Result<Confined> {
        let confinement = of_project(folder, layout, self.reach.git);
        let mut guard = Guard::new(self.aside.join(agent), self.mounts).watch(folder, Sought::Authorities)?;
        guard.together = (!self.mounts).then(|| self.together.clone());
        if let Some(layout) = layout {
            for folder in ["hooks", "info", "worktrees", "refs/heads/midturn", "logs/refs/heads/midturn"] {
                make_folders(&layout.common, Path::new(folder))?;
            }
            if !self.mounts {
                let more = self.reach.writable.iter().cloned().chain([self.temporary(agent)]);
                let within: Vec<_> = confinement.writable.iter().cloned().chain(more).collect();
                guard = guard.originals(self.originals(folder, layout)?, &within);
                guard = guard.watch(&layout.common, Sought::Worktrees(&OF_OTHERS))?;
            }
            guard = guard.watch(&layout.common, Sought::Names(&SETTINGS))?;
            if layout.own != layout.common {
                guard = guard.watch(&layout.own, Sought::Names(&OF_OWN))?;
            }
        }
        let confined = self.confined(agent, confinement, folder, guard);
        let mut confined = self.at_home(agent, confined, folder, layout)?;
        if let Some(under_way) = &mut confined.under_way {
            let own = layout.map_or(Vec::new(), |layout| vec![layout.common.clone(), layout.own.clone()]);
            under_way.left_for_git = Some(LeftForGit::new(folder, &own, &self.aside.join(agent)));
        }
        Ok(confined)
    }

    /// Held from when the first agent in the project folder has not yet run a command, for all.
    fn originals(&self, project: &Path, layout: &RepositoryLayout) -> io::Result<&[Arc<Original>]> {
        if let Some(originals) = self.originals.get() {
            return Ok(originals);
        }
        let RepositoryLayout { common, own, .. } = layout;
        let worktrees = common.join("worktrees");
        let folders = [(project, common), (common, &worktrees), (common, own)];
        let opened = folders.into_iter().map(|(top, path)| Original::open(top, path));
        let opened = opened.filter_map(io::Result::transpose).map(|original| original.map(Arc::new));
        let opened = opened.collect::<io::Result<Vec<_>>>()?;
        Ok(self.originals.get_or_init(|| opened))
    }

    /// With what toolchains need, a home of the agent's own, and what a person lets in.
    fn at_home(
        &self,
        agent: &str,
        mut confined: Confined,
        folder: &Path,
        layout: Option<&RepositoryLayout>,
    ) -> io::Result<Confined> {
        let list = Toolchains::of(person_home().as_deref(), |name| std::env::var_os(name));
        let confinement = &mut confined.confinement;
        confinement.readable.extend(self.reach.readable.iter().cloned());
        furnish(confinement, &list, &self.temporary(agent), folder);
        home::make(confinement, layout, self.mounts)?;
        Ok(confined)
    }

    fn confined(&self, agent: &str, mut confinement: Confinement, folder: &Path, guard: Guard) -> Confined {
        // Where Landlock keeps a part of a folder, nothing can be made in the folder: the guard
        // gives back what was changed.
        confinement.read_only.retain(|_| self.mounts);
        let stand_ins = STAND_INS.iter().filter(|_| self.mounts).map(|name| folder.join(name)).collect();
        confinement.writable.extend(self.reach.writable.iter().cloned());
        confinement.hidden = self.hidden(folder);
        confinement.temporary = self.temporary(agent);
        let under_way = UnderWay::of(&self.state, &self.name, agent, folder, &self.aside.join(agent));
        Confined { confinement, stand_ins, guard, under_way: Some(under_way) }
    }

    fn hidden(&self, folder: &Path) -> Vec<PathBuf> {
        let places = PLACES.iter().filter_map(std::env::var_os).map(PathBuf::from);
        let places = places.filter(|path| path.is_absolute() && !folder.starts_with(path));
        let base = self.worktrees.parent().map(Path::to_owned);
        let ours: Vec<_> =
            places.chain(self.reach.hidden.iter().cloned()).chain([self.state.clone()]).chain(base).collect();
        hidden(person_home().as_deref(), &ours, folder)
    }
}

/// Where a session's worktrees are made: below the base that a person named, or the state folder, where those
/// of a session that has some already stay.
pub(super) fn worktrees(state: &Path, base: Option<&Path>, session: &str) -> PathBuf {
    let of_state = state.join("worktrees").join(session);
    match base {
        Some(base) if of_state.symlink_metadata().is_err() => base.join(session),
        Some(_) | None => of_state,
    }
}

fn person_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}
