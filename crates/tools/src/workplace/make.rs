//! A repository of an agent's own: its settings, refs, hooks and whatever git writes are the agent's
//! alone; the project's objects are borrowed, and only read. It is made by hand, for `git clone` would
//! link to the project's files, or give its branches other names. No agent has been in it while it is made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::borrowed::{Found, Ref};
use super::git::{Git, GitError};
use super::handed_on::written;
use super::record::SCRATCH;
use super::worktree::{OURS, Worktree};
use crate::context::off_the_runtime;
use crate::protect::aside::remove;
use crate::protect::head_of;

/// What is in a folder of git's besides, of the project's own work tree, and how much of it is copied, in
/// bytes.
const COPIED: [&str; 2] = ["info/exclude", "info/attributes"];
const OF_OWN: [&str; 1] = ["info/sparse-checkout"];
const COPIED_MAX: u64 = 16 << 20;

/// How many hooks are copied, and how large one is, in bytes.
const HOOKS_MAX: usize = 64;
const HOOK_MAX: u64 = 1 << 20;

impl Worktree {
    /// Makes the folder, the repository in it, and its files: all of it or, where that can't be (a full disk,
    /// say), nothing.
    pub(super) async fn make(&self, tip: &str, found: &Found) -> Result<(), GitError> {
        let made = self.try_to_make(tip, found).await;
        // What git complains of goes to the same disk: where that is full, the reason is lost.
        let made = made.map_err(|error| match free(&self.top) {
            Some(free) => {
                GitError::Refused(format!("{error} (free on the disk of {}: {free} MiB)", self.top.display()))
            }
            None => error,
        });
        if made.is_err() {
            // The error that there was says more than one that comes of it.
            let _ = remove(&self.top);
        }
        made
    }

    async fn try_to_make(&self, tip: &str, found: &Found) -> Result<(), GitError> {
        fs::create_dir(&self.top)?;
        let new = self.new_repository(tip, found, &format!("ref: {}", self.reference())).await?;
        fs::rename(new.folder(), &self.own)?;
        let git = self.git().await?.setting("checkout.workers", "0");
        git.bytes(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).await.map(drop)
    }

    /// A repository with what was found in the project, that is in its place only when it is whole.
    pub(super) async fn new_repository(
        &self,
        tip: &str,
        found: &Found,
        head: &str,
    ) -> Result<NewRepository, GitError> {
        let ours = &self.repository;
        let beside = ours.records.folder.clone();
        let folder = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(beside)?.keep();
        let new = NewRepository { folder };
        if ours.layout.refs == "reftable" {
            new.init_by_git(self).await?;
        }
        let reference = self.reference();
        let refs_and_own = refs_with(&found.refs, &reference, tip);
        let packed = (ours.layout.refs != "reftable").then(|| packed_refs(&refs_and_own));
        let (worktree, folder) = (self.clone(), new.folder.clone());
        let of_files = packed.map(|packed| [("HEAD", format!("{head}\n")), ("packed-refs", packed)]);
        off_the_runtime(move || write_files(&worktree, &folder, of_files)).await.flatten()?;
        if ours.layout.refs == "reftable" {
            new.take_refs(self, &refs_and_own, head).await?;
        }
        new.take_tags(self, found).await?;
        Ok(new)
    }
}

/// A repository that is being made; what is half made goes.
pub(super) struct NewRepository {
    folder: PathBuf,
}

impl NewRepository {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Git in it, which no agent has touched.
    fn git<'a>(&self, worktree: &'a Worktree) -> Git<'a> {
        let keeper = worktree.repository.keeper.clone();
        Git::inside(&worktree.repository, &worktree.top, &self.folder, std::iter::empty(), keeper)
    }

    /// Refs that aren't files only git can write.
    async fn init_by_git(&self, worktree: &Worktree) -> Result<(), GitError> {
        let layout = &worktree.repository.layout;
        let forms = [format!("--ref-format={}", layout.refs), format!("--object-format={}", layout.objects)];
        let words = ["init", "--quiet", "--template=", &forms[0], &forms[1]];
        self.git(worktree).bytes(&words).await.map(drop)
    }

    async fn take_refs(&self, worktree: &Worktree, refs: &Refs<'_>, head: &str) -> Result<(), GitError> {
        let moves: String = refs.iter().map(|(name, object)| format!("create {name} {object}\n")).collect();
        let moves = worktree.repository.file("moves", moves.as_bytes())?;
        let git = self.git(worktree);
        git.clone().fed(moves.path().to_owned()).bytes(&["update-ref", "--stdin"]).await?;
        match head.strip_prefix("ref: ") {
            Some(branch) => git.bytes(&["symbolic-ref", "HEAD", branch]).await.map(drop),
            None => git.bytes(&["update-ref", "--no-deref", "HEAD", head]).await.map(drop),
        }
    }

    /// Tags with a text are objects of their own, and nothing in the project holds them once they are
    /// deleted there.
    async fn take_tags(&self, worktree: &Worktree, found: &Found) -> Result<(), GitError> {
        let Some(tags) = worktree.repository.tags(found).await? else { return Ok(()) };
        let (from, to) = (tags.to_owned(), self.folder.join("objects/pack"));
        let copy = move || {
            for file in fs::read_dir(from)? {
                let file = file?;
                // Never by a link: the agent may write in what is its own.
                fs::copy(file.path(), to.join(file.file_name()))?;
            }
            Ok(())
        };
        Ok(off_the_runtime(copy).await.flatten()?)
    }
}

impl Drop for NewRepository {
    fn drop(&mut self) {
        // It has been moved to where it belongs, or is rubbish that the next start removes.
        let _ = remove(&self.folder);
    }
}

/// Refs by their names.
type Refs<'a> = BTreeSet<(&'a str, &'a str)>;

/// How many MiB are free where a folder is.
fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize) >> 20)
}

/// All refs, the agent's own branch among them.
fn refs_with<'a>(refs: &'a [Ref], own: &'a str, tip: &'a str) -> Refs<'a> {
    let others = refs.iter().filter(|known| known.name != own);
    others.map(|known| (&*known.name, &*known.object)).chain([(own, tip)]).collect()
}

/// The same in git's own form.
fn packed_refs(refs: &Refs<'_>) -> String {
    let mut text = "# pack-refs with: sorted \n".to_owned();
    for (name, object) in refs {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{object} {name}");
    }
    text
}

fn write_files(worktree: &Worktree, folder: &Path, of_files: Option<[(&str, String); 2]>) -> io::Result<()> {
    let layout = &worktree.repository.layout;
    let of_refs = of_files.iter().flat_map(|_| ["refs/heads", "refs/tags"]);
    for inner in ["objects/info", "objects/pack", "hooks", "info"].into_iter().chain(of_refs) {
        fs::create_dir_all(folder.join(inner))?;
    }
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content);
    let objects = layout.common.join("objects");
    if objects.as_os_str().as_bytes().contains(&b'\n') {
        return Err(io::Error::other("the path of its objects holds a line break, which git can't take"));
    }
    write("objects/info/alternates", &[objects.as_os_str().as_bytes(), b"\n"].concat())?;
    write("config", settings(worktree).as_bytes())?;
    write(OURS, format!("{} {}\n", worktree.repository.records.session, worktree.branch).as_bytes())?;
    for (name, content) in of_files.into_iter().flatten() {
        write(name, content.as_bytes())?;
    }
    let shallow = (&layout.common, "shallow");
    let files = COPIED.map(|name| (&layout.common, name)).into_iter().chain([shallow]);
    for (from, name) in files.chain(OF_OWN.map(|name| (&layout.own, name))) {
        // What isn't there isn't there in the agent's either.
        if let Ok(content) = head_of(&from.join(name), COPIED_MAX) {
            write(name, &content)?;
        }
    }
    copy_hooks(&layout.common.join("hooks"), &folder.join("hooks"))
}

/// The project's hooks are the agent's, in its sandbox.
fn copy_hooks(from: &Path, to: &Path) -> io::Result<()> {
    let hooks = fs::read_dir(from).into_iter().flatten().flatten().map(|entry| entry.path());
    for hook in hooks.filter(|path| path.extension().is_none()).take(HOOKS_MAX) {
        let is_run =
            hook.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0);
        let (true, Some(name), Ok(content)) = (is_run, hook.file_name(), head_of(&hook, HOOK_MAX)) else {
            continue;
        };
        fs::write(to.join(name), content)?;
        fs::set_permissions(to.join(name), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn settings(worktree: &Worktree) -> String {
    let layout = &worktree.repository.layout;
    let mut ours = vec![("core.bare", "false"), ("core.logallrefupdates", "true")];
    let mut extended = layout.of_agents.iter().any(|(key, _)| key.starts_with("extensions."));
    if layout.objects != "sha1" {
        ours.push(("extensions.objectformat", &layout.objects));
        extended = true;
    }
    if layout.refs != "files" {
        ours.push(("extensions.refstorage", &layout.refs));
        extended = true;
    }
    ours.insert(0, ("core.repositoryformatversion", if extended { "1" } else { "0" }));
    // What goes on behind a command's back ends with the command.
    let last = [("gc.autodetach", "false"), ("maintenance.autodetach", "false")];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let all = ours.into_iter().map(owned).chain(layout.of_agents.iter().cloned()).chain(last.map(owned));
    written(&all.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_branch_stands_among_the_refs_of_the_project() {
        let known = |name: &str, object: &str| Ref { name: name.into(), object: object.into(), tagged: None };
        let refs = [
            known("refs/tags/v1", "b1"),
            known("refs/heads/main", "a1"),
            known("refs/heads/midturn/s/w", "c1"),
        ];
        let packed = packed_refs(&refs_with(&refs, "refs/heads/midturn/s/w", "e1"));
        let lines: Vec<_> = packed.lines().skip(1).collect();
        assert_eq!(lines, ["a1 refs/heads/main", "e1 refs/heads/midturn/s/w", "b1 refs/tags/v1"]);
    }
}
