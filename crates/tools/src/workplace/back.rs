//! What an agent committed, on its way back into the project (semantics.md, section 9: its branch). A
//! pack of it is made in the agent's sandbox, where git may be told anything; out here it is only bytes,
//! which are checked in a place where nothing refers to them before the project has them. Nothing else of
//! an agent's repository is ever read by a git outside its sandbox.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::git::{Git, GitError, parts};
use super::snapshot::Scratch;
use super::worktree::Worktree;
use crate::context::off_the_runtime;
use crate::protect::make_folders;

/// How large a pack of an agent's may be, in bytes: as large as a file that its commands may write.
const PACK_MAX: u64 = 1 << 30;

/// How what we write begins into a branch's log; by it we know our own moves from other people's.
pub(super) const BY_US: &str = "midturn: ";

/// What git takes orders from: never through a link.
const ORDERS: [&str; 4] = [".gitattributes", ".gitmodules", ".gitignore", ".mailmap"];

/// What the modes of entries in a tree may be: files, programs, links, other repositories.
const MODES: [&[u8]; 4] = [b"100644", b"100755", b"120000", b"160000"];

/// In which order the files of a pack come to be: by the last one git finds it.
const OF_PACK: [&str; 3] = ["pack", "rev", "idx"];

/// All that an agent can have borrowed, or brought before. Not `--all`: that dies of what is damaged
/// anywhere in the project.
fn known(start: &str) -> [&str; 5] {
    ["--not", start, "--glob=refs/midturn/*", "--glob=refs/heads/midturn/*", "--"]
}

/// Which objects an agent hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    /// Those that its repository holds itself.
    Own,
    /// All since its start.
    SinceStart,
}

/// What came back: whole and as git wants it, and in the project not yet.
pub(super) struct Brought {
    scratch: Scratch,
    tip: String,
}

impl Brought {
    /// Git in the project that sees it besides.
    pub(super) fn git<'a>(&self, git: &Git<'a>) -> Git<'a> {
        self.scratch.git(git)
    }
}

/// Has the agent's git hand over what `tip` needs and the project doesn't have, and checks it.
///
/// # Errors
/// [`GitError::Refused`]: it isn't whole, isn't what it says it is, or is too much.
pub(super) async fn bring(
    worktree: &Worktree,
    inside: &Git<'_>,
    tip: &str,
    objects: HandedOver,
) -> Result<Brought, GitError> {
    let refused = |why: &GitError| GitError::Refused(format!("commit {tip:.12} is not taken over: {why}"));
    let scratch = Scratch::of_project(&worktree.repository).await?;
    let pack = scratch.file("incoming");
    hand_over(worktree, inside, tip, objects, &pack).await.map_err(|why| refused(&why))?;
    let git = scratch.git(&worktree.repository.git());
    let max = format!("--max-input-size={PACK_MAX}");
    let words = ["index-pack", "--stdin", "--fix-thin", "--strict", &max];
    git.clone().fed(pack).bytes(&words).await.map_err(|why| refused(&why))?;
    // All that it needs is there, and is not only said to be.
    let known = known(&worktree.start);
    let words =
        [&["rev-list", "--objects", "--quiet", "--exclude-promisor-objects", tip], &known[..]].concat();
    git.bytes(&words).await.map_err(|why| refused(&why))?;
    Ok(Brought { scratch, tip: tip.to_owned() })
}

async fn hand_over(
    worktree: &Worktree,
    inside: &Git<'_>,
    tip: &str,
    objects: HandedOver,
    pack: &Path,
) -> Result<(), GitError> {
    let wanted = format!("{tip}\n^{}\n", worktree.start);
    let wanted = worktree.inside.as_ref().map(|inside| inside.file("wanted", &wanted)).transpose()?;
    let mut words = vec!["pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset"];
    words.extend((objects == HandedOver::Own).then_some("--local"));
    let git = wanted.iter().fold(inside.clone(), |git, wanted| git.fed(wanted.path().to_owned()));
    git.to_file(&words, File::create_new(pack)?, PACK_MAX).await
}

/// What came of bringing a branch back.
#[derive(Debug, Default)]
pub(super) struct Back {
    /// Where the branch is in the project now, if it is there.
    pub(super) tip: Option<String>,
    /// What there is to say of it.
    pub(super) note: Option<String>,
}

/// Moves the agent's branch in the project on to where the agent has it. `seen`: where that is, if the agent's
/// git has just said so.
///
/// # Errors
/// The branch stays where it was.
pub(super) async fn bring_branch(
    worktree: &Worktree,
    what: &str,
    seen: Option<&str>,
) -> Result<Back, GitError> {
    let (ours, reference) = (worktree.repository.git(), worktree.reference());
    let known = ours.commit_at(&reference).await?;
    if known.is_some() && known.as_deref() == seen {
        return Ok(Back { tip: known, note: None });
    }
    let inside = worktree.git().await?;
    let Some(tip) = inside.commit_at(&reference).await? else {
        return Ok(Back { tip: known, note: None });
    };
    if known.as_ref() == Some(&tip) {
        return Ok(Back { tip: known, note: None });
    }
    // It goes into command lines from here on.
    if !tip.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(GitError::Refused("its branch names no commit".to_owned()));
    }
    may_be_moved(worktree).await?;
    let brought = bring(worktree, &inside, &tip, HandedOver::Own).await?;
    brought.look(&ours, &worktree.start).await?;
    if let Some(known) = &known {
        brought.is_no_loss(worktree, &ours, known).await?;
    }
    brought.keep(&worktree.repository.layout.common).await?;
    let note = worktree.bring_large_files().await?;
    let (message, none) = (format!("{BY_US}{what}"), String::new());
    let words =
        ["update-ref", "--create-reflog", "-m", &message, &reference, &tip, known.as_ref().unwrap_or(&none)];
    worktree.repository.moved(&[&reference], &ours, &words).await?;
    Ok(Back { tip: Some(tip), note })
}

/// Refuses where somebody works on the branch: the ground would move under them.
async fn may_be_moved(worktree: &Worktree) -> Result<(), GitError> {
    let branch = &worktree.branch;
    match worktree.repository.checked_out(branch).await? {
        None => Ok(()),
        Some(place) => Err(GitError::Refused(format!(
            "{branch} is checked out in {place}, and is not moved before another branch is there"
        ))),
    }
}

impl Brought {
    /// Refuses where a commit of somebody else's on the branch would be lost.
    async fn is_no_loss(&self, worktree: &Worktree, ours: &Git<'_>, known: &str) -> Result<(), GitError> {
        let git = self.git(ours);
        if git.is(&["merge-base", "--is-ancestor", known, &self.tip]).await? {
            return Ok(());
        }
        let branch = &worktree.branch;
        let words = ["log", "--walk-reflogs", "--max-count=1", "--format=%gs", &worktree.reference(), "--"];
        if ours.text(&words).await?.starts_with(BY_US) {
            return Ok(());
        }
        Err(GitError::Refused(format!(
            "somebody else moved {branch} to {known:.12}, which isn't in commit {:.12}: give that another name \
             (git branch -m {branch} NAME), then this one can come",
            self.tip
        )))
    }

    /// Refuses what nobody makes by `git add`: in every commit that is new, not only in the last.
    async fn look(&self, ours: &Git<'_>, start: &str) -> Result<(), GitError> {
        let git = self.git(ours);
        let commits = git.bytes(&[&["rev-list", &self.tip], &known(start)[..]].concat()).await?;
        let file = self.scratch.file("commits");
        std::fs::write(&file, commits)?;
        let words =
            ["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "-z", "--no-renames", "--no-abbrev"];
        let changes = git.fed(file).bytes(&words).await?;
        let mut commit = String::new();
        let mut changes = parts(&changes);
        while let Some(part) = changes.next() {
            let Some(change) = part.strip_prefix(b":") else {
                commit = String::from_utf8_lossy(part).into_owned();
                continue;
            };
            let path = changes.next().unwrap_or_default();
            if let Some(why) = objection(change.split(|&b| b == b' ').nth(1).unwrap_or_default(), path) {
                let path = String::from_utf8_lossy(path);
                return Err(GitError::Refused(format!(
                    "commit {commit:.12} is not taken over: `{path}` {why}"
                )));
            }
        }
        Ok(())
    }

    /// The project has it from now on, though nothing refers to it yet.
    async fn keep(&self, common: &Path) -> Result<(), GitError> {
        let (from, common) = (self.scratch.objects().join("pack"), common.to_owned());
        Ok(off_the_runtime(move || move_packs(&from, &common)).await.flatten()?)
    }
}

/// What is wrong with an entry of a tree.
fn objection(mode: &[u8], path: &[u8]) -> Option<&'static str> {
    // It is gone.
    if mode == b"000000" {
        return None;
    }
    if !MODES.contains(&mode) {
        return Some("has a mode that git gives to nothing");
    }
    let name = Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default().to_ascii_lowercase();
    let is_order = ORDERS.iter().any(|order| name == *order);
    (mode == b"120000" && is_order).then_some("is a link, and git takes orders from it")
}

fn move_packs(from: &Path, common: &Path) -> io::Result<()> {
    make_folders(common, Path::new("objects/pack"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let objects = rustix::fs::open(common.join("objects"), flags, Mode::empty())?;
    let to = rustix::fs::openat(objects, "pack", flags, Mode::empty())?;
    let files: BTreeSet<PathBuf> =
        std::fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    for kind in OF_PACK {
        for file in files.iter().filter(|file| file.extension() == Some(kind.as_ref())) {
            let name = file.file_name().unwrap_or_default();
            match rustix::fs::renameat(CWD, file, &to, name) {
                // The state folder may be on another disk.
                Err(Errno::XDEV) => copy(file, &to, name)?,
                moved => moved?,
            }
        }
    }
    Ok(rustix::fs::fsync(&to)?)
}

fn copy(file: &Path, to: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut new = OsStr::new("tmp_").to_owned();
    new.push(name);
    // Left by one that was killed here.
    let _ = rustix::fs::unlinkat(&to, &new, rustix::fs::AtFlags::empty());
    let mut target = File::from(rustix::fs::openat(&to, &new, flags, Mode::from_raw_mode(0o444))?);
    io::copy(&mut File::open(file)?, &mut target)?;
    target.sync_all()?;
    Ok(rustix::fs::renameat(&to, &new, &to, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C2, C4: what an agent can write into a tree by hand.
    #[test]
    fn odd_modes_and_orders_behind_links_are_objected_to() {
        for (mode, path, is) in [
            ("100644", "a", false),
            ("100755", "a/b", false),
            ("120000", "link", false),
            ("160000", "inner", false),
            ("000000", ".gitattributes", false),
            ("100664", "a", true),
            ("104755", "a", true),
            ("120000", ".gitattributes", true),
            ("120000", "a/.GitModules", true),
            ("100644", ".gitattributes", false),
        ] {
            assert_eq!(objection(mode.as_bytes(), path.as_bytes()).is_some(), is, "{mode} {path}");
        }
    }
}
