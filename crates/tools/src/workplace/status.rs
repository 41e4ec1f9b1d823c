//! Where HEAD is and what has changed in a work tree, by one question to git.

use super::git::{Git, GitError, parts};

/// What git says of a work tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// `None`: there is no commit yet.
    pub(super) head: Option<String>,
    /// Without `refs/heads/`. `None`: HEAD is on none.
    pub(super) branch: Option<String>,
    /// How many files have changed.
    pub(super) changed: usize,
}

impl Status {
    /// `untracked`: how new files are listed, `normal` or `all`.
    pub(super) async fn of(git: &Git<'_>, untracked: &str, paths: &[&str]) -> Result<Self, GitError> {
        let untracked = format!("--untracked-files={untracked}");
        // How far it is from a branch of somebody else's, which would take long, nobody wants to know.
        let of_branch = ["--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames"];
        let words =
            [&["status", &untracked, "--ignore-submodules=dirty"], &of_branch[..], &["--"], paths].concat();
        Ok(Self::read(&git.bytes(&words).await?))
    }

    fn read(answer: &[u8]) -> Self {
        let mut status = Self::default();
        for part in parts(answer) {
            let line = String::from_utf8_lossy(part);
            match line.strip_prefix("# ") {
                None => status.changed += 1,
                Some(head) => match head.split_once(' ') {
                    Some(("branch.oid", commit)) => status.head = named(commit),
                    Some(("branch.head", branch)) => status.branch = named(branch),
                    _ => {}
                },
            }
        }
        status
    }
}

/// In brackets git says that there is none: no branch of a person's is called so.
fn named(text: &str) -> Option<String> {
    let is_none = text == "(initial)" || text == "(detached)";
    (!is_none).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_head_is_and_how_much_has_changed_is_read_from_one_answer() {
        for (answer, head, branch, changed) in [
            ("# branch.oid abc\0# branch.head main\0", Some("abc"), Some("main"), 0),
            ("# branch.oid (initial)\0# branch.head main\0? a b\0", None, Some("main"), 1),
            (
                "# branch.oid abc\0# branch.head (detached)\0# branch.ab +0 -0\x001 .M N... x\0u UU y\0",
                Some("abc"),
                None,
                2,
            ),
        ] {
            let [head, branch] = [head, branch].map(|name| name.map(str::to_owned));
            assert_eq!(Status::read(answer.as_bytes()), Status { head, branch, changed }, "{answer:?}");
        }
    }
}
