//! Puts all files of a worktree into an index. `git add` runs `git status` in each repository
//! inside of which the index knows, and that obeys what is configured there, by an agent: so
//! those are staged apart, by what their HEAD says.

use super::git::{Git, GitError, parts};
use crate::protect::TEMPORARY;

/// How many repositories inside a worktree are staged.
const INNER_MAX: usize = 1_000;

/// Stages all files, those that are ignored apart. Git runs at the top of the work tree.
pub(super) async fn all(git: &Git<'_>, options: &[&str]) -> Result<(), GitError> {
    let inner = inner(git).await?;
    let ours = format!(":(exclude,top,glob)**/{TEMPORARY}*");
    let apart: Vec<_> = inner.iter().map(|path| format!(":(exclude,top,literal){path}")).collect();
    let mut words = [&["add", "--all"], options, &["--", ":/", &ours]].concat();
    words.extend(apart.iter().map(String::as_str));
    let added = git.bytes(&words).await;
    if !inner.is_empty() {
        let mut words = vec!["update-index", "--add", "--remove", "--"];
        words.extend(inner.iter().map(String::as_str));
        git.bytes(&words).await?;
    }
    added.map(drop)
}

/// The repositories inside, as the index knows them.
pub(super) async fn inner(git: &Git<'_>) -> Result<Vec<String>, GitError> {
    let listed = git.bytes(&["ls-files", "--stage", "-z"]).await?;
    let links = parts(&listed).filter_map(|entry| entry.strip_prefix(b"160000 "));
    // The object, the stage, a tab, the path.
    let paths = links.filter_map(|entry| entry.splitn(2, |&b| b == b'\t').nth(1));
    let mut inner = Vec::new();
    for path in paths {
        match std::str::from_utf8(path) {
            Ok(path) if inner.len() < INNER_MAX => inner.push(path.to_owned()),
            Ok(_) => return Err(refused("there are too many repositories in it")),
            Err(_) => return Err(refused("a repository in it has a name that is not UTF-8")),
        }
    }
    inner.dedup();
    Ok(inner)
}

fn refused(why: &str) -> GitError {
    GitError::Failed { command: "add".to_owned(), complaint: format!("{why}: move it out of the worktree") }
}
