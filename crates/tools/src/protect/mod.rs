//! What is trusted later and so can't be planted: files that Midturn, git or an editor obeys
//! when a person comes back (issue 4, item 2).
//!
//! Authority are settings and definitions of agents; they give rights or run programs without
//! anybody asking. Instructions (`AGENTS.md`, `CLAUDE.md`) are text for a model, and what a
//! build runs (`Makefile`, `package.json`, `build.rs`) is the project itself: agents may write
//! both, and whoever reads or builds them has to look. [`beneath`] works in a folder that is held, [`walk`] finds what has such a name,
//! [`aside`] takes away what was not there before, [`original`] brings back what was moved, [`replaced`] says what a mount
//! was lost over, [`guard`] does all of it after each command; [`repositories`] finds what agents leave for git, at a run's end.

pub(crate) mod aside;
pub(crate) mod beneath;
mod git_settings;
pub(crate) mod guard;
mod memory;
pub(crate) mod original;
mod replaced;
pub(crate) mod repositories;
mod walk;

use std::io;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Temporary files begin so. They are ours: left over after a crash, they are in no commit.
pub(crate) const TEMPORARY: &str = ".midturn-tmp-";

/// Names that give authority, at whatever depth, with what they are.
const NAMES: [(&str, &str); 7] = [
    (".git", "git's own folder"),
    ("midturn.toml", "Midturn's configuration"),
    (".midturn", "Midturn's configuration"),
    (".claude", "settings and definitions of agents"),
    (".mcp.json", "programs that are started as tools"),
    (".vscode", "an editor's settings, which can run programs"),
    (".idea", "an editor's settings, which can run programs"),
];

/// What a path below a root gives authority over. `None`: it is an ordinary path. Looks at
/// nothing: the path has to be the real one.
pub(crate) fn authority(path: &Path) -> Option<&'static str> {
    path.components().find_map(|component| match component {
        Component::Normal(name) => what(name.as_encoded_bytes()),
        _ => None,
    })
}

/// What this name gives authority over, on file systems too that don't tell cases apart.
fn what(name: &[u8]) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(_, what)| *what)
}

/// Makes the folders of `path` below `top` that are missing, through no link.
pub(crate) fn make_folders(top: &Path, path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::openat(CWD, top, flags, Mode::empty())?;
    for part in path {
        match rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        here = rustix::fs::openat(&here, part, flags, Mode::empty())?;
    }
    Ok(())
}

/// The beginning of a file, up to `max` bytes, if it is one and no link.
pub(crate) fn head_of(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    beneath::head_in(CWD, path, max)
}

/// Opens a file below a folder to read, through no link, `top` itself included.
pub(crate) fn file_below(top: &Path, path: &Path) -> io::Result<std::fs::File> {
    let top = rustix::fs::openat(CWD, top, beneath::HANDLE, Mode::empty())?;
    let (folder, name) = beneath::parent_of(top, path)?.ok_or(Errno::NOENT)?;
    beneath::file_in(folder, Path::new(name))
}

/// Removes a file below a folder, through no link.
pub(crate) fn remove_below(top: &Path, path: &Path) -> io::Result<()> {
    let top = rustix::fs::openat(CWD, top, beneath::HANDLE, Mode::empty())?;
    let (folder, name) = beneath::parent_of(top, path)?.ok_or(Errno::NOENT)?;
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

/// Opens a file to read, if it is one and no link; it waits for nobody.
pub(crate) fn file(path: &Path) -> io::Result<std::fs::File> {
    beneath::file_in(CWD, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_is_in_names_at_any_depth_and_text_is_not() {
        let rows = [
            (".git", true),
            (".git/hooks/pre-commit", true),
            ("a/b/.git", true),
            ("midturn.toml", true),
            ("sub/Midturn.TOML", true),
            (".midturn/x", true),
            (".claude/agents/a.md", true),
            ("sub/.claude/settings.json", true),
            (".mcp.json", true),
            (".vscode/tasks.json", true),
            (".idea", true),
            ("AGENTS.md", false),
            ("CLAUDE.md", false),
            (".gitignore", false),
            (".gitattributes", false),
            (".github/workflows/x.yml", false),
            ("Makefile", false),
            ("midturn.toml.example", false),
            ("src/claude/agents.rs", false),
            ("", false),
        ];
        for (path, protected) in rows {
            assert_eq!(authority(Path::new(path)).is_some(), protected, "{path}");
        }
    }
}
