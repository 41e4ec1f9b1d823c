//! `midturn push`: an agent's branch goes where the person's own git brings it, with their login and their hooks. It is
//! the person who types it; no agent does, and none of ours pushes by itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use midturn_core::rules::id::AgentName;
use midturn_tools::programs::{self, Program};
use midturn_tools::workplace::Ready;
use serde_json::{Value, json};

use super::Stored;
use crate::env::Env;
use crate::failure::Failure;
use crate::project::Project;

/// Pushes a branch. What programs read, and what people do.
///
/// # Errors
/// [`Failure::Usage`]: there is no remote. [`Failure::Failed`]: not all of the work is on the branch, or git fails.
pub(crate) async fn push(
    project: &Project,
    session: &str,
    (agent, remote): (&AgentName, Option<&str>),
    env: &Env,
) -> Result<(Value, String), Failure> {
    let stored = Stored::of(project, session, env).await?;
    stored.branch_of(agent)?;
    let branch = match stored.workplace.ready(agent).await.map_err(Failure::failed)? {
        Ready::Branch(branch) => branch,
        Ready::Refused(why) => return Err(Failure::failed(format!("nothing was pushed: {why}"))),
    };
    let git = PersonsGit::at(project.root())?;
    let base = git.asks(&["symbolic-ref", "--quiet", "--short", "HEAD"]);
    let remote = match remote {
        Some(remote) => remote.to_owned(),
        None => git.usual_remote(base.as_deref())?,
    };
    git.push(&remote, &branch)?;
    let url = git.asks(&["remote", "get-url", "--push", "--", &remote]).unwrap_or_else(|| remote.clone());
    let next = next(&branch, base.as_deref(), &url);
    let text = format!("{branch} is on {remote} now\n{next}\n");
    Ok((json!({"branch": branch, "remote": remote, "next": next}), text))
}

/// Git as the person has it.
struct PersonsGit<'a> {
    program: PathBuf,
    folder: &'a Path,
}

impl<'a> PersonsGit<'a> {
    fn at(folder: &'a Path) -> Result<Self, Failure> {
        Ok(Self { program: programs::find(Program::Git).map_err(Failure::failed)?, folder })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.folder);
        command
    }

    /// The line that it answers, if any.
    fn asks(&self, words: &[&str]) -> Option<String> {
        let said = self.command(words).stdin(Stdio::null()).output().ok()?;
        let line = String::from_utf8(said.stdout).ok()?.trim().to_owned();
        (said.status.success() && !line.is_empty()).then_some(line)
    }

    /// Where git itself pushes what is checked out here.
    fn usual_remote(&self, base: Option<&str>) -> Result<String, Failure> {
        let of_branch = |name: &str| Some(format!("branch.{}.{name}", base?));
        let keys = [of_branch("pushRemote"), Some("remote.pushDefault".to_owned()), of_branch("remote")];
        let said = keys.into_iter().flatten().filter_map(|key| self.asks(&["config", "--get", &key]));
        // A dot is this repository itself.
        if let Some(remote) = said.into_iter().find(|remote| remote != ".") {
            return Ok(remote);
        }
        let all = self.asks(&["remote"]).unwrap_or_default();
        let all: Vec<&str> = all.lines().collect();
        let one =
            all.iter().find(|name| **name == "origin").or(if all.len() == 1 { all.first() } else { None });
        one.map(|name| (*name).to_owned()).ok_or_else(|| {
            Failure::usage(match all.as_slice() {
                [] => "this repository has no remote: `git remote add origin URL` gives it one".to_owned(),
                all => format!("which remote is meant? Name one behind the agent: {}", all.join(", ")),
            })
        })
    }

    /// What it says, and what hooks say, goes to standard error.
    fn push(&self, remote: &str, branch: &str) -> Result<(), Failure> {
        let refs = format!("refs/heads/{branch}:refs/heads/{branch}");
        let status = self.command(&["push", "--", remote, &refs]).stdout(std::io::stderr()).status();
        let failed = |why: String| Failure::failed(format!("{branch} was not pushed to {remote}: {why}"));
        match status.map_err(|error| failed(error.to_string()))? {
            status if status.success() => Ok(()),
            status => Err(failed(format!("git push ended with {status}"))),
        }
    }
}

/// What to do for a pull request.
fn next(branch: &str, base: Option<&str>, url: &str) -> String {
    if !is_github(url) {
        return format!("open a pull request, or a merge request, for the branch {branch} there");
    }
    // A name that a shell would read otherwise is left to `gh`, which asks.
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let base = base.filter(is_plain).map(|base| format!(" --base {base}")).unwrap_or_default();
    format!("for a pull request: gh pr create --head {branch}{base} --fill")
}

/// `https://github.com/…`, `ssh://git@github.com/…`, `git@github.com:…`.
fn is_github(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    // The port of an SSH address, and a password with a colon, stand behind the name.
    let host = rest.split('/').next().and_then(|login| login.rsplit_once('@')).map_or(host, |(_, host)| host);
    host.split(':').next().is_some_and(|host| host.eq_ignore_ascii_case("github.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_for_a_pull_request_depends_on_where_the_branch_went() {
        for (url, is) in [
            ("https://github.com/a/b.git", true),
            ("https://me:pass@github.com/a/b", true),
            ("git@github.com:a/b.git", true),
            ("ssh://git@github.com:22/a/b", true),
            ("https://gitlab.com/github.com/b", false),
            ("https://github.com.example.org/b", false),
            ("../github.com", false),
        ] {
            assert_eq!(is_github(url), is, "{url}");
        }
        let url = "https://github.com/a/b";
        let command = "for a pull request: gh pr create --head midturn/s/w --base main --fill";
        assert_eq!(next("midturn/s/w", Some("main"), url), command);
        assert_eq!(
            next("midturn/s/w", Some("a;b"), url),
            "for a pull request: gh pr create --head midturn/s/w --fill"
        );
        assert!(next("midturn/s/w", Some("main"), "/srv/a.git").contains("the branch midturn/s/w"));
    }
}
