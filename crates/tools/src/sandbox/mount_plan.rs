//! What a command's own view of the file system is made of: decided here, made by bubblewrap or
//! by our supervisor.
//!
//! The root is empty. The system's programs and settings come into it, read-only, and the places of the
//! [`Confinement`], those above first, so that of two places the lower one holds. Two traps shape it. A folder
//! that is *above* a protected place could be moved away and put back without the protection, so each such folder
//! is mounted on itself: what is mounted can't be moved. And a protected place that doesn't
//! exist could be made, so a folder stands in for it while commands run (see `stand_in`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Confinement;
use super::look::Look;
use super::places::{Places, below_own, named};

const ROOT: &str = "/";

const RUN: &str = "/run";

const TMP: &str = "/tmp";

/// Memory that processes share by name.
const SHARED: &str = "/dev/shm";

/// What bubblewrap and we make anew anyway.
const NEW: [&str; 2] = ["/dev", "/proc"];

/// One step in making a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// What is at `from` in the system's view is at `at`.
    Bind { from: PathBuf, at: PathBuf, writable: bool },
    /// What is at `lower` in the system's view is at `at`; what is changed there is in `above`.
    Overlay { lower: PathBuf, above: PathBuf, at: PathBuf },
    /// An empty folder in memory that holds so many bytes, writable until it is sealed.
    Fresh { at: PathBuf, room: u64 },
    /// A folder, of what is there already.
    Folder { at: PathBuf },
    /// A link.
    Link { to: PathBuf, at: PathBuf },
    /// An empty file.
    Nothing { at: PathBuf },
    /// That folder can't be written any more.
    Seal { at: PathBuf },
}

impl Step {
    /// Where it mounts something.
    pub(crate) fn mounts(&self) -> Option<&Path> {
        match self {
            Self::Bind { at, .. }
            | Self::Overlay { at, .. }
            | Self::Fresh { at, .. }
            | Self::Nothing { at } => Some(at),
            Self::Folder { .. } | Self::Link { .. } | Self::Seal { .. } => None,
        }
    }
}

/// A view, and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountPlan {
    pub(crate) steps: Vec<Step>,
    /// Protected places that don't exist, below writable ones: folders to stand in for them.
    pub(crate) stand_ins: Vec<PathBuf>,
    /// Folders to be made in folders of the agent's own, for what is mounted there.
    pub(crate) folders: BTreeSet<(PathBuf, PathBuf)>,
    /// What can be written, for Landlock inside the view.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders of which only what is named below them is to be seen.
    private: Vec<PathBuf>,
    /// What Landlock goes by without a view.
    pub(crate) kinds: BTreeMap<PathBuf, Kind>,
    /// How much a folder in memory holds.
    room: u64,
}

/// What each command has anew in a view that is held, so that nothing is left in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anew {
    /// What stands in for something that a person could make meanwhile, which can't be in the view already: on each
    /// of them is the same empty folder.
    pub(crate) covered: Vec<PathBuf>,
    /// Shared memory; and what is private, with what is to be seen in it.
    pub(crate) steps: Vec<Step>,
}

/// The kinds of places, the weaker ones first: of two for one path the stronger holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Readable,
    Cache,
    Own,
    Writable,
    Private,
    ReadOnly,
    Hidden,
}

impl MountPlan {
    /// Looks at the places and decides. `sockets` are files that lead to others' programs; a folder in memory
    /// has `room` bytes.
    ///
    /// # Errors
    /// A place that can't be protected, or can't be looked at.
    pub(super) fn new(
        confinement: &Confinement,
        sockets: &[PathBuf],
        room: u64,
        look: &Look,
    ) -> io::Result<Self> {
        let temporary = named(look.canonical(&confinement.temporary), &confinement.temporary)?;
        let mut places = Places::find(confinement, &temporary, sockets, look)?;
        let mut plan = Self { kinds: places.without_a_view(), room, ..Self::default() };
        places.kinds.retain(|path, _| !NEW.iter().any(|new| path.starts_with(new)));
        places.leave_out_what_is_replaced(look)?;
        plan.stand_ins = places.missing.iter().cloned().collect();
        let private = places.kinds.iter().filter(|(_, kind)| **kind == Kind::Private);
        plan.private = private.map(|(path, _)| path.clone()).collect();
        places.kinds.extend(places.missing.iter().map(|path| (path.clone(), Kind::Hidden)));
        hold_what_is_above(&mut places);
        plan.base(&places, &temporary);
        plan.places(&places, look);
        plan.seal(&places.kinds);
        Ok(plan)
    }

    /// `/tmp` is the agent's own folder, or, when places are below it, an
    /// empty one: no names of theirs have to be made in the agent's folder then.
    fn base(&mut self, places: &Places, temporary: &Path) {
        for (at, to) in places.links.iter().filter(|(at, _)| above(&places.kinds, at).is_none()) {
            self.steps.push(Step::Link { to: to.clone(), at: at.clone() });
        }
        self.steps.push(Step::Folder { at: RUN.into() });
        self.steps.push(Step::Fresh { at: SHARED.into(), room: self.room });
        if places.kinds.iter().any(|(path, kind)| path.starts_with(TMP) && *kind != Kind::Hidden) {
            self.steps.push(Step::Fresh { at: TMP.into(), room: self.room });
        } else {
            self.steps.push(Step::Bind { from: temporary.to_owned(), at: TMP.into(), writable: true });
        }
        self.writable.push(TMP.into());
    }

    fn places(&mut self, places: &Places, look: &Look) {
        let kinds = &places.kinds;
        for (path, kind) in kinds {
            if is_so_already(kinds, path, *kind) {
                continue;
            }
            let at = path.clone();
            if matches!(kind, Kind::Writable | Kind::Private | Kind::Own | Kind::Cache) {
                self.writable.push(at.clone());
            }
            let is_folder = *kind == Kind::Own || self.is_folder(places, path, look);
            self.folders.extend(below_own(places, path, is_folder));
            let room = self.room;
            self.steps.push(match kind {
                Kind::Writable | Kind::Own => bind(places, path, true),
                Kind::Readable | Kind::ReadOnly => bind(places, path, false),
                Kind::Cache => match places.above.get(path) {
                    Some(above) => Step::Overlay { lower: places.from(path), above: above.clone(), at },
                    None => bind(places, path, false),
                },
                Kind::Private => Step::Fresh { at, room },
                Kind::Hidden if is_folder => Step::Fresh { at, room },
                Kind::Hidden => Step::Nothing { at },
            });
        }
    }

    fn is_folder(&self, places: &Places, path: &Path, look: &Look) -> bool {
        look.is_folder(&places.from(path)) || self.stand_ins.iter().any(|stand_in| stand_in == path)
    }

    /// Takes out what each command has anew in a view that is held.
    pub(super) fn anew(&mut self) -> Anew {
        let stand_ins = &self.stand_ins;
        let covered = |step: &mut Step| match step {
            Step::Fresh { at, .. } | Step::Seal { at } => stand_ins.contains(at),
            _ => false,
        };
        self.steps.extract_if(.., covered).for_each(drop);
        let shared = |step: &mut Step| matches!(step, Step::Fresh { at, .. } if *at == Path::new(SHARED));
        let mut anew: Vec<_> = self.steps.extract_if(.., shared).collect();
        for place in &self.private {
            anew.push(Step::Fresh { at: place.clone(), room: self.room });
            let mut taken_along: Option<&Path> = None;
            for at in
                self.steps.iter().filter_map(Step::mounts).filter(|at| *at != place && at.starts_with(place))
            {
                if taken_along.is_none_or(|above| !at.starts_with(above)) {
                    anew.push(Step::Bind { from: at.into(), at: at.into(), writable: true });
                    taken_along = Some(at);
                }
            }
        }
        Anew { covered: self.stand_ins.clone(), steps: anew }
    }

    /// Last, since what is mounted in an empty folder needs a place made there.
    fn seal(&mut self, kinds: &BTreeMap<PathBuf, Kind>) {
        let is_private = |at: &Path| kinds.get(at).is_none_or(|kind| *kind == Kind::Private);
        let seal = |step: &Step| match step {
            Step::Fresh { at, .. } if !is_private(at) => Some(Step::Seal { at: at.clone() }),
            _ => None,
        };
        let seals: Vec<_> = self.steps.iter().filter_map(seal).collect();
        self.steps.extend(seals);
        self.steps.extend(["/dev", ROOT].map(|at| Step::Seal { at: at.into() }));
    }
}

/// As in the system's view.
fn bind(places: &Places, path: &Path, writable: bool) -> Step {
    Step::Bind { from: places.from(path), at: path.to_owned(), writable }
}

/// Whether nothing has to be done for a place: what is above it shows it so, or doesn't show it at all.
fn is_so_already(kinds: &BTreeMap<PathBuf, Kind>, path: &Path, kind: Kind) -> bool {
    let above = above(kinds, path);
    match kind {
        Kind::Readable => matches!(above, Some(Kind::Readable | Kind::Writable | Kind::ReadOnly)),
        // Protected is only what could be written.
        Kind::ReadOnly => {
            matches!(above, None | Some(Kind::Readable | Kind::Own | Kind::ReadOnly | Kind::Cache))
        }
        // A folder in which other places are is there, with nothing else in it.
        Kind::Hidden if above == Some(Kind::Own) => !kinds
            .iter()
            .any(|(below, kind)| below != path && below.starts_with(path) && *kind != Kind::Hidden),
        Kind::Hidden => matches!(above, None | Some(Kind::Hidden)),
        Kind::Cache => above == Some(Kind::Writable),
        Kind::Own | Kind::Writable | Kind::Private => false,
    }
}

/// Mounts each folder between a writable place and a protected one below it on itself; and in a folder of the
/// agent's own, between it and all that is mounted there.
fn hold_what_is_above(places: &mut Places) {
    let kinds = &places.kinds;
    let mut held = BTreeMap::new();
    for (path, kind) in kinds {
        let of = match above(kinds, path) {
            Some(Kind::Writable) if *kind > Kind::Writable => Kind::Writable,
            Some(Kind::Own) if !is_so_already(kinds, path, *kind) => Kind::Own,
            _ => continue,
        };
        let between = path.ancestors().skip(1).take_while(|above| !kinds.contains_key(*above));
        held.extend(between.map(|path| (path.to_owned(), of)));
    }
    for (path, kind) in &held {
        if *kind == Kind::Own
            && let Some((base, below)) = places.in_own(path)
        {
            places.from.insert(path.clone(), base.join(below));
        }
    }
    places.kinds.extend(held);
}

/// The kind of the nearest place above.
pub(super) fn above(kinds: &BTreeMap<PathBuf, Kind>, path: &Path) -> Option<Kind> {
    path.ancestors().skip(1).find_map(|above| kinds.get(above).copied())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::{Cache, Own};

    fn bind(path: &Path, writable: bool) -> Step {
        Step::Bind { from: path.into(), at: path.into(), writable }
    }

    #[test]
    fn what_is_protected_below_a_writable_folder_can_neither_be_moved_nor_made() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["w/.git/hooks", "w/src", "other", "state/mine", "temporary"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("state/token"), "").unwrap();
        let confinement = Confinement {
            writable: vec![at("w"), at("state/mine"), at("not there")],
            readable: vec![at("other"), at("w/src"), at("nowhere")],
            read_only: vec![at("w/.git/hooks"), at("w/.claude/settings.json"), at("other")],
            hidden: vec![at("state"), at("nowhere/at/all"), at("other/nothing")],
            temporary: at("temporary"),
            ..Confinement::default()
        };
        let plan = MountPlan::new(&confinement, &[], 9, &Look::default()).unwrap();
        assert_eq!(
            below(&plan, folder.path()),
            [
                bind(&at("other"), false),
                bind(&at("state/mine"), true),
                bind(&at("temporary"), true),
                bind(&at("w"), true),
                Step::Fresh { at: at("w/.claude"), room: 9 },
                bind(&at("w/.git"), true),
                bind(&at("w/.git/hooks"), false),
                Step::Seal { at: at("w/.claude") },
            ]
        );
        assert_eq!(plan.stand_ins, [at("w/.claude")]);
        let tmp = Step::Bind { from: at("temporary"), at: "/tmp".into(), writable: true };
        assert!(plan.steps.contains(&tmp) && plan.steps.contains(&bind(Path::new("/usr"), false)));
        assert_eq!(plan.steps.last(), Some(&Step::Seal { at: "/".into() }));
        let rest =
            plan.steps.iter().filter(|step| matches!(step, Step::Bind { at, .. } if at == Path::new("/")));
        assert_eq!(rest.count(), 0);
    }

    /// The steps at places below a folder.
    fn below(plan: &MountPlan, folder: &Path) -> Vec<Step> {
        let is_below = |step: &&Step| match step {
            Step::Bind { at, .. }
            | Step::Overlay { at, .. }
            | Step::Fresh { at, .. }
            | Step::Folder { at }
            | Step::Link { at, .. }
            | Step::Nothing { at }
            | Step::Seal { at } => at.starts_with(folder),
        };
        plan.steps.iter().filter(is_below).cloned().collect()
    }

    #[test]
    fn in_the_place_of_a_home_is_the_agents_own_with_what_is_let_in_held_in_its_place() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        let places = [
            "home/.cargo/bin",
            "home/.npm",
            "home/.ssh",
            "home/p/.git",
            "home/s/mine",
            "home/.nvm",
            "own",
            "tmp",
        ];
        for path in places {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("home/.npm/.npmrc"), "").unwrap();
        // The agent's own stays.
        std::os::unix::fs::symlink("/etc", at("own/.nvm")).unwrap();
        let confinement = Confinement {
            writable: vec![at("home/p"), at("home/s/mine")],
            readable: vec![at("home/.cargo/bin"), at("home/.nvm"), at("home/.none")],
            own: vec![Own { at: at("home"), from: at("own") }],
            caches: vec![Cache { at: at("home/.npm"), above: at("above") }],
            read_only: vec![at("home/p/.git")],
            hidden: vec![at("home/.ssh"), at("home/s"), at("home/.npm/.npmrc")],
            temporary: at("tmp"),
            ..Confinement::default()
        };
        let plan = MountPlan::new(&confinement, &[], 9, &Look::default()).unwrap();
        let own = |from: &str, to: &str| Step::Bind { from: at(from), at: at(to), writable: true };
        let above = at("above");
        assert_eq!(
            below(&plan, folder.path()),
            [
                own("own", "home"),
                own("own/.cargo", "home/.cargo"),
                bind(&at("home/.cargo/bin"), false),
                Step::Overlay { lower: at("home/.npm"), above, at: at("home/.npm") },
                Step::Nothing { at: at("home/.npm/.npmrc") },
                bind(&at("home/p"), true),
                bind(&at("home/p/.git"), false),
                Step::Fresh { at: at("home/s"), room: 9 },
                bind(&at("home/s/mine"), true),
                bind(&at("tmp"), true),
                Step::Seal { at: at("home/s") },
            ]
        );
        let folders = [(at("own"), ".cargo"), (at("own"), ".npm"), (at("own"), "p"), (at("own"), "s")];
        let folders: BTreeSet<_> = folders.into_iter().map(|(base, below)| (base, below.into())).collect();
        let bin = (at("own/.cargo"), PathBuf::from("bin"));
        assert_eq!(plan.folders, folders.into_iter().chain([bin]).collect());
        // Without mounts it is where it is, and the person's can't be read.
        let kind = |path: &str| plan.kinds.get(&at(path)).copied();
        assert_eq!((kind("own"), kind("home")), (Some(Kind::Writable), None));
        assert_eq!(
            (kind("home/.cargo/bin"), kind("home/.npm")),
            (Some(Kind::ReadOnly), Some(Kind::ReadOnly))
        );
    }

    #[test]
    fn a_link_to_a_protected_place_in_a_writable_folder_is_refused() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir(at("shared")).unwrap();
        std::os::unix::fs::symlink("shared", at(".claude")).unwrap();
        let confinement = Confinement {
            writable: vec![folder.path().into()],
            read_only: vec![at(".claude/settings.json")],
            temporary: at("shared"),
            ..Confinement::default()
        };
        let refused = MountPlan::new(&confinement, &[], 9, &Look::default()).unwrap_err().to_string();
        assert!(refused.contains("is a link inside a folder that can be written"), "{refused}");
    }
}
