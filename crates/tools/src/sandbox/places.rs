//! Where the places of a [`Confinement`] are, as it is now, and what of the system every command sees. It only
//! looks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Confinement;
use super::look::Look;
use super::mount_plan::{Kind, above};
use super::powerless::Powerless;

/// What all commands see of the system, where it is there: its programs, and how they are set up.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/etc",
    "/opt",
    "/nix",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    // The rest of `/run` is sockets of services, which do what is asked of them: bus, containers, agents.
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/systemd/resolve",
];

/// What there is without a view besides: a view has its own.
const PROC: &str = "/proc";

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) kinds: BTreeMap<PathBuf, Kind>,
    /// Where what is at a place comes from, where that is elsewhere.
    pub(super) from: BTreeMap<PathBuf, PathBuf>,
    /// The agent's folders for what it changes in a cache.
    pub(super) above: BTreeMap<PathBuf, PathBuf>,
    /// Links, and where they lead.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    /// Protected places that could be made.
    pub(super) missing: BTreeSet<PathBuf>,
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

impl Places {
    pub(super) fn find(
        confinement: &Confinement,
        temporary: &Path,
        sockets: &[PathBuf],
        look: &Look,
    ) -> io::Result<Self> {
        let mut writable: Vec<(&Path, PathBuf)> = vec![(&confinement.temporary, temporary.to_owned())];
        for given in &confinement.writable {
            match look.canonical(given) {
                Ok(path) => writable.push((given, path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return named(Err(error), given),
            }
        }
        let mut all = Self::default();
        all.kinds.extend(writable.iter().map(|(_, path)| (path.clone(), Kind::Writable)));
        let within = |path: &Path| writable.iter().any(|(_, writable)| path.starts_with(writable));
        all.system(look);
        all.let_in(confinement, &within, look)?;
        let us = Powerless::new()?;
        let protected = confinement.read_only.iter().map(|path| (path, Kind::ReadOnly));
        let hidden = confinement.hidden.iter().map(|path| (path, Kind::Hidden));
        let private = confinement.private.iter().map(|path| (path, Kind::Private));
        for (path, kind) in private.chain(protected).chain(hidden) {
            match locate(path, &writable, look)? {
                // It can't be written anyway.
                Presence::There(path)
                    if kind == Kind::ReadOnly && all.kinds.get(&path) == Some(&Kind::Readable) => {}
                // Nor can it be covered by somebody who can't go there.
                Presence::There(path) if !us.can_reach(&path, look) => {}
                Presence::There(path) => all.add(path, kind),
                Presence::Missing(path) => _ = all.missing.insert(path),
                Presence::Nowhere => {}
            }
        }
        for socket in sockets.iter().filter(|path| !within(path)) {
            if let Ok(socket) = look.canonical(socket)
                && us.can_reach(&socket, look)
            {
                all.add(socket, Kind::Hidden);
            }
        }
        Ok(all)
    }

    /// A link stays one: `/bin` is one to `/usr/bin` on most systems.
    fn system(&mut self, look: &Look) {
        for path in SYSTEM.map(Path::new) {
            let Ok(there) = look.found(path) else { continue };
            if let Some(to) = there.link() {
                self.links.insert(path.to_owned(), to.to_owned());
            } else if there.is_folder() {
                self.add(path.to_owned(), Kind::Readable);
            }
        }
    }

    fn let_in(
        &mut self,
        confinement: &Confinement,
        within: &dyn Fn(&Path) -> bool,
        look: &Look,
    ) -> io::Result<()> {
        for given in &confinement.readable {
            if let Some((at, from)) = found(given, look)?.filter(|(at, _)| !within(at)) {
                self.seen(at, from, Kind::Readable);
            }
        }
        for cache in &confinement.caches {
            if let Some((at, from)) =
                found(&cache.at, look)?.filter(|(at, from)| !within(at) && look.is_folder(from))
            {
                self.above.insert(at.clone(), cache.above.clone());
                self.seen(at, from, Kind::Cache);
            }
        }
        for own in &confinement.own {
            let at = look.canonical(&own.at).unwrap_or_else(|_| own.at.clone());
            // What is writable there is the person's, and all that is below.
            if within(&at) {
                continue;
            }
            if at != own.at {
                self.links.insert(own.at.clone(), at.clone());
            }
            self.seen(at, named(look.canonical(&own.from), &own.from)?, Kind::Own);
        }
        Ok(())
    }

    fn seen(&mut self, at: PathBuf, from: PathBuf, kind: Kind) {
        if self.kinds.get(&at).is_none_or(|there| *there < kind) && at != from {
            self.from.insert(at.clone(), from);
        }
        self.add(at, kind);
    }

    fn add(&mut self, path: PathBuf, kind: Kind) {
        let of_path = self.kinds.entry(path).or_insert(kind);
        *of_path = kind.max(*of_path);
    }

    /// Where what is at a place comes from.
    pub(super) fn from(&self, path: &Path) -> PathBuf {
        self.from.get(path).map_or_else(|| path.to_owned(), Clone::clone)
    }

    /// The folder of the agent's own in which a place is, if the nearest one above is that, and the rest of the path.
    pub(super) fn in_own<'a>(&self, path: &'a Path) -> Option<(PathBuf, &'a Path)> {
        let at = path.ancestors().skip(1).find(|above| self.kinds.contains_key(*above))?;
        let is_own = self.kinds.get(at) == Some(&Kind::Own);
        is_own.then(|| Some((self.from(at), path.strip_prefix(at).ok()?))).flatten()
    }

    /// What an agent has put in the place of something that would be let in into a folder of its own stays.
    ///
    /// # Errors
    /// It is in the place of a folder that the agent works in.
    pub(super) fn leave_out_what_is_replaced(&mut self, look: &Look) -> io::Result<()> {
        let mut replaced = Vec::new();
        for (path, kind) in &self.kinds {
            let Some((base, below)) = self.in_own(path).filter(|_| *kind != Kind::Hidden) else { continue };
            if is_free(&base, below, look) {
                continue;
            }
            if !matches!(kind, Kind::Readable | Kind::Cache) {
                return Err(error(
                    path,
                    "the agent has put something else in the place of a folder above it",
                ));
            }
            replaced.push(path.clone());
        }
        self.kinds.retain(|path, _| !replaced.contains(path));
        Ok(())
    }

    /// What is private in a view can only be read; what is under another's name is where it is.
    pub(super) fn without_a_view(&self) -> BTreeMap<PathBuf, Kind> {
        let missing = self.missing.iter().map(|path| (path, &Kind::Hidden));
        let all = self.kinds.iter().chain(missing).map(|(path, kind)| match kind {
            Kind::Own => (self.from(path), Kind::Writable),
            Kind::Readable | Kind::Cache => (self.from(path), Kind::ReadOnly),
            Kind::Private => (path.clone(), Kind::ReadOnly),
            // Only what could be written is protected: nothing is shown by it.
            Kind::ReadOnly if matches!(above(&self.kinds, path), None | Some(Kind::Own)) => {
                (path.clone(), Kind::Hidden)
            }
            kind => (path.clone(), *kind),
        });
        let mut kinds = BTreeMap::from([(PathBuf::from(PROC), Kind::ReadOnly)]);
        for (path, kind) in all {
            let of_path = kinds.entry(path).or_insert(kind);
            *of_path = kind.max(*of_path);
        }
        kinds
    }
}

/// The folders that have to be in a folder of the agent's own for what is mounted at a place in it.
pub(super) fn below_own(places: &Places, path: &Path, is_folder: bool) -> Option<(PathBuf, PathBuf)> {
    let (base, below) = places.in_own(path)?;
    let below = if is_folder { below } else { below.parent()? };
    Some((base, below.to_owned()))
}

/// Whether there is nothing at that path below a folder, or folders all the way (and a file at its end).
fn is_free(base: &Path, below: &Path, look: &Look) -> bool {
    let mut at = base.to_owned();
    let mut rest = below.components().peekable();
    while let Some(part) = rest.next() {
        at.push(part);
        match look.found(&at) {
            Ok(found) if found.is_folder() || found.is_file() && rest.peek().is_none() => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        }
    }
    true
}

/// What is to be seen under a name: the name, with no link above it, and what it leads to.
fn found(given: &Path, look: &Look) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let (Some(parent), Some(name)) = (given.parent(), given.file_name()) else { return Ok(None) };
    match (look.canonical(given), look.canonical(parent)) {
        (Ok(from), Ok(parent)) => Ok(Some((parent.join(name), from))),
        (Err(error), _) | (_, Err(error)) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied => {
                Ok(None)
            }
            _ => named(Err(error), given),
        },
    }
}

/// Looks for a place. Below a writable one no link may lead to it: who can replace the link
/// has a protected place without protection.
fn locate(path: &Path, writable: &[(&Path, PathBuf)], look: &Look) -> io::Result<Presence> {
    let above = writable
        .iter()
        .flat_map(|(given, canonical)| [(*given, canonical), (canonical.as_path(), canonical)]);
    let nearest =
        above.filter(|(name, _)| path.starts_with(name)).max_by_key(|(name, _)| name.as_os_str().len());
    let Some((name, base)) = nearest else { return named(locate_outside(path, writable, look), path) };
    let mut at = base.clone();
    for part in path.strip_prefix(name).unwrap_or(Path::new("")).components() {
        let Component::Normal(part) = part else { return Err(error(path, "it is not a plain path")) };
        at.push(part);
        match look.found(&at) {
            Ok(found) if found.link().is_some() => {
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

fn locate_outside(path: &Path, writable: &[(&Path, PathBuf)], look: &Look) -> io::Result<Presence> {
    let mut last: Option<&Path> = None;
    for part in path.ancestors() {
        match look.canonical(part) {
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

fn error(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} can't be kept from commands: {why}", path.display()))
}

pub(super) fn named<T>(result: io::Result<T>, path: &Path) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
