//! Submodules of an agent's worktree: taken from those that the project has, without a network. What the
//! project hasn't got either stays empty, and that is said.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::git::{Git, GitError, parts};
use super::worktree::Worktree;
use crate::arguments::listed;
use crate::sandbox::Confinement;

/// Where git keeps the repositories of submodules, in a folder of its own.
const MODULES: &str = "modules";

/// How many are looked for, and how deep they are in each other.
const MODULES_MAX: usize = 1_000;
const DEPTH_MAX: usize = 8;

/// How git takes one from a place on this machine, of which the objects are borrowed.
const BORROWED: [(&str, &str); 3] = [
    ("protocol.file.allow", "always"),
    ("submodule.alternateLocation", "superproject"),
    ("submodule.alternateErrorStrategy", "info"),
];

/// The objects of all submodules that a project has: agents borrow them.
pub(super) fn objects(common: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    look_for(&common.join(MODULES), DEPTH_MAX, &mut found);
    found
}

/// A name may have slashes, so a folder that is no repository can hold some.
fn look_for(folder: &Path, deeper: usize, found: &mut Vec<PathBuf>) {
    for inner in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if deeper == 0 || found.len() == MODULES_MAX {
            return;
        }
        let objects = inner.join("objects");
        if inner.join("HEAD").is_file() && objects.is_dir() {
            found.push(objects);
            look_for(&inner.join(MODULES), deeper - 1, found);
        } else if inner.is_dir() {
            look_for(&inner, deeper - 1, found);
        }
    }
}

impl Worktree {
    /// Fills the submodules that the project has. What there is to say of the others.
    pub(super) async fn fill_submodules(&self) -> Result<Option<String>, GitError> {
        let common = self.repository.layout.common.clone();
        if self.top.join(".gitmodules").symlink_metadata().is_err() {
            return Ok(None);
        }
        let git = self.seeing_modules().await?;
        let words = ["config", "--file", ".gitmodules", "--null", "--get-regexp", "^submodule[.].*[.]path$"];
        let Some(named) = git.maybe(&words).await? else { return Ok(None) };
        let mut empty = Vec::new();
        for (name, path) in parts(named.as_bytes()).filter_map(named_at) {
            match self.fill(&git, &name, &path, &common.join(MODULES).join(&name)).await {
                Ok(()) => {}
                Err(GitError::Refused(why) | GitError::Failed { complaint: why, .. }) => {
                    empty.push(format!("{path} ({why})"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(listed(&empty).map(|paths| format!("submodules are empty in the worktree: {paths}")))
    }

    async fn fill(&self, git: &Git<'_>, name: &str, path: &str, from: &Path) -> Result<(), GitError> {
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !from.join("HEAD").is_file() {
            return Err(GitError::Refused("the project has nothing of it either".to_owned()));
        }
        let of = |key: &str| format!("submodule.{name}.{key}");
        let url = format!("file://{}", from.display());
        let update = git.clone().setting(&of("url"), &url).setting(&of("active"), "true");
        update.bytes(&["submodule", "--quiet", "update", "--", path]).await?;
        // From now on it has the address that everybody else has.
        git.bytes(&["submodule", "--quiet", "init", "--", path]).await?;
        git.bytes(&["submodule", "--quiet", "sync", "--", path]).await.map(drop)
    }

    /// Our git for the agent, which sees the project's folder of git's as a repository: git asks it where the
    /// submodules are. No command of the agent's has run yet.
    async fn seeing_modules(&self) -> Result<Git<'_>, GitError> {
        let git = BORROWED.iter().fold(self.git().await?, |git, (key, value)| git.setting(key, value));
        let layout = self.repository.layout.clone();
        Ok(git.seeing(|confinement| {
            let (private, mut readable) = (Vec::new(), confinement.readable.clone());
            readable.extend([layout.top.clone(), layout.common.clone()]);
            Arc::new(Confinement { private, readable, ..Confinement::clone(confinement) })
        }))
    }
}

/// The name and the path of one, as `config` lists it.
fn named_at(entry: &[u8]) -> Option<(String, String)> {
    let (key, path) = std::str::from_utf8(entry).ok()?.split_once('\n')?;
    let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
    Some((name.to_owned(), path.to_owned()))
}
