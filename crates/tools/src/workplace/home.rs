//! An agent's home: a folder of its own under the name of the person's, empty but for what toolchains need and what
//! git has to know of the person. It is made when the agent's place is, and goes with the session.

use std::ffi::OsString;
use std::fs::{Permissions, read_dir, set_permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::handed_on;
use super::layout::RepositoryLayout;
use crate::confined::private_folder;
use crate::protect::make_folders;
use crate::sandbox::{Cache, Confinement, Own, Toolchains};

/// What git looks for in a home.
const SETTINGS: &str = ".gitconfig";

/// Variables that lead to folders below the home, or in place of them.
const LEAD_THERE: [&str; 7] =
    ["HOME", "CARGO_HOME", "GOMODCACHE", "GOPATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Lets in what toolchains need, and puts an agent's own folders in the place of the person's; `folder` is where it
/// works, and `ours` begins the names of its own.
pub(super) fn furnish(confinement: &mut Confinement, list: &Toolchains, ours: &Path, folder: &Path) {
    let named = |what: &str, n: usize| {
        let mut name = ours.as_os_str().to_owned();
        name.push(format!(".{what}-{n}"));
        PathBuf::from(name)
    };
    // Who works in the person's home, or may read it as a whole, has it as it is.
    let is_open = |at: &Path| {
        let at = at.canonicalize().unwrap_or_else(|_| at.to_owned());
        let open = [folder].into_iter().chain(confinement.readable.iter().map(PathBuf::as_path));
        let mut open = open.chain(confinement.writable.iter().map(PathBuf::as_path));
        open.any(|open| at.starts_with(open.canonicalize().unwrap_or_else(|_| open.to_owned())))
    };
    let emptied = list.emptied.iter().filter(|at| at.is_dir() && !is_open(at)).enumerate();
    let own: Vec<_> = emptied.map(|(n, at)| Own { at: at.clone(), from: named("home", n) }).collect();
    confinement.own = own;
    confinement.readable.extend(list.readable.iter().filter(|path| path.exists()).cloned());
    let caches = list.caches.iter().enumerate().filter(|(_, at)| at.is_dir());
    confinement.caches = caches.map(|(n, at)| Cache { at: at.clone(), above: named("cache", n) }).collect();
    confinement.hidden.extend(list.keys.iter().filter_map(|key| key.canonicalize().ok()));
}

/// Makes the folders of its own, with git's settings for the person's commits.
///
/// # Errors
/// One can't be made.
pub(super) fn make(
    confinement: &Confinement,
    layout: Option<&RepositoryLayout>,
    mounts: bool,
) -> io::Result<()> {
    for own in &confinement.own {
        private_folder(&own.from)?;
        if !mounts {
            lead_there(own, confinement)?;
        }
    }
    let (Some(home), Some(layout)) = (confinement.own.first(), layout) else { return Ok(()) };
    let settings: Vec<_> = layout.settings_of_person().cloned().collect();
    match std::fs::File::create_new(home.from.join(SETTINGS)) {
        Ok(mut file) => file.write_all(handed_on::written(&settings).as_bytes()),
        // The agent's own, by now.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Without mounts, links lead to what may be read; what is there is the agent's.
fn lead_there(own: &Own, confinement: &Confinement) -> io::Result<()> {
    let listed = confinement.readable.iter().chain(confinement.caches.iter().map(|cache| &cache.at));
    for path in listed {
        let Ok(below) = path.strip_prefix(&own.at) else { continue };
        let Some(parent) = below.parent() else { continue };
        let made = make_folders(&own.from, parent).and_then(|()| symlink(path, own.from.join(below)));
        match made {
            Err(error)
                if !matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) =>
            {
                return Err(error);
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Without mounts, the variables that lead to folders of the person's lead to the agent's own.
pub(super) fn lead(environment: &mut [(OsString, OsString)], own: &[Own]) {
    for (name, value) in environment {
        if !LEAD_THERE.iter().any(|known| name == known) {
            continue;
        }
        let within = |own: &&Own| Path::new(value.as_os_str()).starts_with(&own.at);
        // The longest is the nearest.
        let nearest = own.iter().filter(within).max_by_key(|own| own.at.as_os_str().len());
        let Some(own) = nearest else { continue };
        let rest = Path::new(value.as_os_str()).strip_prefix(&own.at).unwrap_or(Path::new("")).to_owned();
        *value = if rest.as_os_str().is_empty() { own.from.clone() } else { own.from.join(rest) }.into();
    }
}

/// Lets us into all folders below one, to remove them: Go's modules are folders in which nobody may write. Nothing of
/// the agent's runs any more.
pub(super) fn open_up(folder: &Path) {
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        // What can't be opened can't be removed either, and is left.
        let _left = set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_which_nobody_may_write_are_opened_and_links_are_not_gone_through() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        symlink(other.path(), folder.path().join("a/link")).unwrap();
        for path in [&folder.path().join("a/b"), &folder.path().join("a"), other.path()] {
            set_permissions(path, Permissions::from_mode(0o555)).unwrap();
        }
        open_up(folder.path());
        assert_eq!((mode(&folder.path().join("a/b")), mode(other.path())), (0o700, 0o555));
    }

    #[test]
    fn without_mounts_what_leads_to_the_home_leads_to_the_agents_own() {
        let own = |at: &str, from: &str| Own { at: at.into(), from: from.into() };
        let own = [own("/h", "/s/a.home-0"), own("/srv/config", "/s/a.home-1")];
        let rows = [
            ("HOME", "/h", "/s/a.home-0"),
            ("XDG_CACHE_HOME", "/h/.cache", "/s/a.home-0/.cache"),
            ("XDG_CONFIG_HOME", "/srv/config", "/s/a.home-1"),
            ("CARGO_HOME", "/srv/cargo", "/srv/cargo"),
            ("RUSTUP_HOME", "/h/.rustup", "/h/.rustup"),
            ("PATH", "/h", "/h"),
        ];
        for (name, before, after) in rows {
            let mut environment = [(name.into(), before.into())];
            lead(&mut environment, &own);
            assert_eq!(environment[0].1, after, "{name}");
        }
    }
}
