//! A project with a git repository, its agents' workplace, and what git says of it.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use midturn_core::engine::ports::{Merge, Workplace as _};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use serde_json::json;

use super::{call, name, supervisor};

/// A project and a state folder.
pub(crate) struct Project {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) state: tempfile::TempDir,
}

impl Project {
    /// With one commit of a file.
    pub(crate) fn new() -> Self {
        let project = Self::empty();
        project.git(&["init", "-q", "-b", "main"]);
        project.write("a.txt", "one\n");
        project.commit();
        project
    }

    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["-c", "user.name=p", "-c", "user.email=p@example.invalid", "commit", "-q", "-m", "c"]);
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        git(self.folder.path(), words)
    }

    pub(crate) fn workplace(&self) -> GitWorkplace {
        self.workplace_in(self.folder.path())
    }

    pub(crate) fn workplace_in(&self, folder: &Path) -> GitWorkplace {
        self.workplace_of("s1", folder)
    }

    /// Of a session that was there before.
    pub(crate) fn resumed(&self) -> GitWorkplace {
        self.workplace().resumed(true)
    }

    pub(crate) fn workplace_of(&self, session: &str, folder: &Path) -> GitWorkplace {
        let place = |agent: &AgentName| {
            AgentPlace::new(if agent.as_str() == "lead" { Isolation::None } else { Isolation::Worktree })
        };
        GitWorkplace::new(folder, self.state.path(), &SessionId::new(session), place).supervisor(supervisor())
    }

    /// With the state in another folder, and no agent in the project folder itself.
    pub(crate) fn workplace_at(&self, state: &Path) -> GitWorkplace {
        let place = |_: &AgentName| AgentPlace::new(Isolation::Worktree);
        GitWorkplace::new(self.folder.path(), state, &SessionId::new("s1"), place).supervisor(supervisor())
    }
}

pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git").args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) async fn run(workplace: &GitWorkplace, agent: &str, command: &str) -> PathBuf {
    let toolbox = workplace.open(&name(agent)).await.unwrap();
    let output = call(&toolbox, "bash", json!({"command": command})).await;
    assert!(!output.is_error, "{command}: {}", output.text);
    workplace.folder(&name(agent)).unwrap()
}

/// Who commits in a test.
pub(crate) const ME: &str = "-c user.name=w -c user.email=w@w";

/// Agent `w` works and its run ends.
pub(crate) async fn work(workplace: &GitWorkplace, command: &str) {
    run(workplace, "w", command).await;
    workplace.run_ended(&name("w"), 1).await.unwrap();
}

pub(crate) async fn merge(workplace: &GitWorkplace) -> Merge {
    workplace.merge(&name("w")).await.unwrap()
}

/// What a person does in a folder; `git $ME` is one with an identity.
pub(crate) fn shell(folder: &Path, command: &str) {
    let command = command.replace("$ME", ME);
    let status =
        std::process::Command::new("bash").args(["-ec", &command]).current_dir(folder).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Files with what is in them.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Every file below a folder, with what is in it: git's own too.
pub(crate) fn content(folder: &Path) -> Files {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    files
}

/// The files that are not the same in both.
pub(crate) fn differences(before: &Files, after: &Files) -> Vec<PathBuf> {
    let changed = before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes));
    let new = after.iter().filter(|(path, _)| !before.contains_key(*path));
    changed.chain(new).map(|(path, _)| path.clone()).collect()
}
