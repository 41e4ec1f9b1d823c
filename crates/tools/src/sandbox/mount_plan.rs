//! What a command's own view of the file system is made of: decided here, made by bubblewrap or
//! by our supervisor.
//!
//! All is bound read-only; then come the places of the [`Confinement`], those above first, so
//! that of two places the lower one holds. Two traps shape it. A folder that is *above* a
//! protected place could be moved away and put back without the protection, so each such folder
//! is mounted on itself: what is mounted can't be moved. And a protected place that doesn't
//! exist could be made, so a folder stands in for it while commands run (see `stand_in`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Confinement;
use super::powerless::Powerless;
use super::stand_in::stands_at;

/// Where sockets of services are, which do what is asked of them: bus, containers, agents.
const RUN: &str = "/run";

/// What is left of it.
const KEPT: [&str; 4] =
    ["/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/systemd/resolve"];

const TMP: &str = "/tmp";

/// What bubblewrap and we make anew anyway.
const NEW: [&str; 2] = ["/dev", "/proc"];

/// One step in making a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// What is at `from` in the system's view is at `at`.
    Bind { from: PathBuf, at: PathBuf, writable: bool },
    /// An empty folder, writable until it is sealed.
    Fresh { at: PathBuf },
    /// An empty file.
    Nothing { at: PathBuf },
    /// That folder can't be written any more.
    Seal { at: PathBuf },
}

/// A view, and what stands behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountPlan {
    pub(crate) steps: Vec<Step>,
    /// Protected places that don't exist, below writable ones: folders to stand in for them.
    pub(crate) stand_ins: Vec<PathBuf>,
    /// What can be written, for Landlock inside the view.
    pub(crate) writable: Vec<PathBuf>,
    /// What Landlock goes by without a view.
    pub(crate) kinds: BTreeMap<PathBuf, Kind>,
}

/// The kinds of places, the weaker ones first: of two for one path the stronger holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Writable,
    Private,
    ReadOnly,
    Hidden,
}

/// What was found of a place.
enum Presence {
    /// It is there, under this name.
    There(PathBuf),
    /// This is the first part of it that is missing, below a writable place.
    Missing(PathBuf),
    /// It isn't there and can't be made.
    Nowhere,
}

struct Places {
    places: BTreeMap<PathBuf, Kind>,
    missing: BTreeSet<PathBuf>,
}

impl MountPlan {
    /// Looks at the places and decides. `sockets` are files that lead to others' programs.
    ///
    /// # Errors
    /// A place that can't be protected, or can't be looked at.
    pub(crate) fn new(confinement: &Confinement, sockets: &[PathBuf]) -> io::Result<Self> {
        let temporary = named(confinement.temporary.canonicalize(), &confinement.temporary)?;
        let places = Places::find(confinement, &temporary, sockets)?;
        let mut plan = Self { kinds: places.without_a_view(), ..Self::default() };
        let mut kinds = places.places;
        kinds.retain(|path, _| !NEW.iter().any(|new| path.starts_with(new)));
        plan.stand_ins = places.missing.iter().cloned().collect();
        kinds.extend(places.missing.into_iter().map(|path| (path, Kind::Hidden)));
        hold_what_is_above(&mut kinds);
        plan.base(&kinds, &temporary);
        plan.places(&kinds);
        plan.seal(&kinds);
        Ok(plan)
    }

    /// `/run` is emptied; `/tmp` is the agent's own folder, or, when places are below it, an
    /// empty one: no names of theirs have to be made in the agent's folder then.
    fn base(&mut self, kinds: &BTreeMap<PathBuf, Kind>, temporary: &Path) {
        if Path::new(RUN).is_dir() {
            self.steps.push(Step::Fresh { at: RUN.into() });
            for kept in KEPT.iter().map(PathBuf::from).filter(|kept| kept.exists()) {
                self.bind(&kept, false);
            }
        }
        if kinds.iter().any(|(path, kind)| path.starts_with(TMP) && *kind == Kind::Writable) {
            self.steps.push(Step::Fresh { at: TMP.into() });
        } else {
            self.steps.push(Step::Bind { from: temporary.to_owned(), at: TMP.into(), writable: true });
        }
        self.writable.push(TMP.into());
    }

    fn places(&mut self, kinds: &BTreeMap<PathBuf, Kind>) {
        for (path, kind) in kinds {
            let above = above(kinds, path);
            let masked = is_emptied(path) && above.is_none() || above == Some(Kind::Hidden);
            let at = path.clone();
            if matches!(kind, Kind::Writable | Kind::Private) {
                self.writable.push(at.clone());
            }
            match kind {
                Kind::Writable => self.bind(path, true),
                Kind::Private => self.steps.push(Step::Fresh { at }),
                // All is bound read-only to begin with.
                Kind::ReadOnly if above.is_none() && !masked => {}
                Kind::ReadOnly => self.bind(path, false),
                Kind::Hidden if masked => {}
                Kind::Hidden if self.is_folder(path) => self.steps.push(Step::Fresh { at }),
                Kind::Hidden => self.steps.push(Step::Nothing { at }),
            }
        }
    }

    /// As in the system's view.
    fn bind(&mut self, path: &Path, writable: bool) {
        self.steps.push(Step::Bind { from: path.to_owned(), at: path.to_owned(), writable });
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir() || self.stand_ins.iter().any(|stand_in| stand_in == path)
    }

    /// Last, since what is mounted in an empty folder needs a place made there.
    fn seal(&mut self, kinds: &BTreeMap<PathBuf, Kind>) {
        let is_private = |at: &Path| kinds.get(at).is_none_or(|kind| *kind == Kind::Private);
        let seal = |step: &Step| match step {
            Step::Fresh { at } if at == Path::new(RUN) || !is_private(at) => {
                Some(Step::Seal { at: at.clone() })
            }
            _ => None,
        };
        let seals: Vec<_> = self.steps.iter().filter_map(seal).collect();
        self.steps.extend(seals);
    }
}

impl Places {
    fn find(confinement: &Confinement, temporary: &Path, sockets: &[PathBuf]) -> io::Result<Self> {
        let mut writable: Vec<(&Path, PathBuf)> = vec![(&confinement.temporary, temporary.to_owned())];
        for given in &confinement.writable {
            match given.canonicalize() {
                Ok(path) => writable.push((given, path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return named(Err(error), given),
            }
        }
        let mut all = Self {
            places: writable.iter().map(|(_, path)| (path.clone(), Kind::Writable)).collect(),
            missing: BTreeSet::new(),
        };
        let us = Powerless::new()?;
        let protected = confinement.read_only.iter().map(|path| (path, Kind::ReadOnly));
        let hidden = confinement.hidden.iter().map(|path| (path, Kind::Hidden));
        let private = confinement.private.iter().map(|path| (path, Kind::Private));
        for (path, kind) in private.chain(protected).chain(hidden) {
            match locate(path, &writable)? {
                // Nor can it be covered by somebody who can't go there.
                Presence::There(path) if !us.can_reach(&path) => {}
                Presence::There(path) => all.add(path, kind),
                Presence::Missing(path) => _ = all.missing.insert(path),
                Presence::Nowhere => {}
            }
        }
        let outside = |path: &&PathBuf| !writable.iter().any(|(_, writable)| path.starts_with(writable));
        for socket in sockets.iter().filter(outside).filter(|path| path.exists()) {
            if let Ok(socket) = socket.canonicalize()
                && us.can_reach(&socket)
            {
                all.add(socket, Kind::Hidden);
            }
        }
        Ok(all)
    }

    fn add(&mut self, path: PathBuf, kind: Kind) {
        let of_path = self.places.entry(path).or_insert(kind);
        *of_path = kind.max(*of_path);
    }

    /// What is private in a view can only be read.
    fn without_a_view(&self) -> BTreeMap<PathBuf, Kind> {
        let kind = |kind: &Kind| if *kind == Kind::Private { Kind::ReadOnly } else { *kind };
        let missing = self.missing.iter().map(|path| (path, &Kind::Hidden));
        self.places.iter().chain(missing).map(|(path, of_path)| (path.clone(), kind(of_path))).collect()
    }
}

/// Looks for a place. Below a writable one no link may lead to it: who can replace the link
/// has a protected place without protection.
fn locate(path: &Path, writable: &[(&Path, PathBuf)]) -> io::Result<Presence> {
    let above = writable
        .iter()
        .flat_map(|(given, canonical)| [(*given, canonical), (canonical.as_path(), canonical)]);
    let nearest =
        above.filter(|(name, _)| path.starts_with(name)).max_by_key(|(name, _)| name.as_os_str().len());
    let Some((name, base)) = nearest else { return named(locate_outside(path, writable), path) };
    let mut at = base.clone();
    for part in path.strip_prefix(name).unwrap_or(Path::new("")).components() {
        let Component::Normal(part) = part else { return Err(error(path, "it is not a plain path")) };
        at.push(part);
        // Asked twice: another command's may be put or removed in between.
        let stands = stands_at(&at);
        match at.symlink_metadata() {
            _ if stands || stands_at(&at) => return Ok(Presence::Missing(at)),
            Ok(found) if found.is_symlink() => {
                let why = format!(
                    "{} is a link inside a folder that can be written; put what it leads to in its place",
                    at.display()
                );
                return Err(error(path, &why));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Presence::Missing(at)),
            Err(e) => return named(Err(e), path),
        }
    }
    Ok(Presence::There(at))
}

fn locate_outside(path: &Path, writable: &[(&Path, PathBuf)]) -> io::Result<Presence> {
    let mut last: Option<&Path> = None;
    for part in path.ancestors() {
        match part.canonicalize() {
            Ok(canonical) => {
                let Some(missing) = last else { return Ok(Presence::There(canonical)) };
                let can_be_made = writable.iter().any(|(_, w)| canonical.starts_with(w));
                let missing = missing.file_name().map(|name| canonical.join(name));
                return Ok(missing.filter(|_| can_be_made).map_or(Presence::Nowhere, Presence::Missing));
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            // What we can't reach, what we start can't either.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(Presence::Nowhere),
            Err(e) => return Err(e),
        }
        last = Some(part);
    }
    Ok(Presence::Nowhere)
}

/// Mounts each folder between a writable place and a protected one below it on itself.
fn hold_what_is_above(kinds: &mut BTreeMap<PathBuf, Kind>) {
    let mut held = BTreeSet::new();
    for (path, _) in kinds.iter().filter(|(_, kind)| **kind > Kind::Writable) {
        if above(kinds, path) == Some(Kind::Writable) {
            let between = path.ancestors().skip(1).take_while(|above| !kinds.contains_key(*above));
            held.extend(between.map(Path::to_owned));
        }
    }
    kinds.extend(held.into_iter().map(|path| (path, Kind::Writable)));
}

/// The kind of the nearest place above.
fn above(kinds: &BTreeMap<PathBuf, Kind>, path: &Path) -> Option<Kind> {
    path.ancestors().skip(1).find_map(|above| kinds.get(above).copied())
}

/// Whether it is below what is emptied for all.
fn is_emptied(path: &Path) -> bool {
    path.starts_with(RUN) || path.starts_with(TMP)
}

fn error(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} can't be kept from commands: {why}", path.display()))
}

fn named<T>(result: io::Result<T>, path: &Path) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
            read_only: vec![at("w/.git/hooks"), at("w/.claude/settings.json"), at("other")],
            hidden: vec![at("state"), at("nowhere/at/all"), at("other/nothing")],
            private: Vec::new(),
            temporary: at("temporary"),
        };
        let plan = MountPlan::new(&confinement, &[]).unwrap();
        let tmp = Step::Bind { from: at("temporary"), at: "/tmp".into(), writable: true };
        let places = plan.steps.iter().position(|step| *step == tmp).unwrap();
        assert_eq!(
            plan.steps[places..],
            [
                tmp,
                Step::Fresh { at: at("state") },
                bind(&at("state/mine"), true),
                bind(&at("temporary"), true),
                bind(&at("w"), true),
                Step::Fresh { at: at("w/.claude") },
                bind(&at("w/.git"), true),
                bind(&at("w/.git/hooks"), false),
                Step::Seal { at: "/run".into() },
                Step::Seal { at: at("state") },
                Step::Seal { at: at("w/.claude") },
            ]
        );
        assert_eq!(plan.stand_ins, [at("w/.claude")]);
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
            hidden: Vec::new(),
            private: Vec::new(),
            temporary: at("shared"),
        };
        let refused = MountPlan::new(&confinement, &[]).unwrap_err().to_string();
        assert!(refused.contains("is a link inside a folder that can be written"), "{refused}");
    }
}
