//! What an agent is told of the place it works in: the end of its system prompt. Pure text; it is made once
//! and stays the same, so that a provider's cache holds it.

use midturn_core::rules::characters::is_blank;

use crate::network::Hosts;
use crate::sandbox::{InForce, NetworkState, Tier};

/// How many hosts are named.
const HOSTS_NAMED: usize = 40;

/// Where the agent stands in git.
#[derive(Debug)]
pub(super) enum Standing {
    /// In a worktree of its own.
    Apart { branch: String, start: String, changed: Option<usize> },
    /// In the project folder; no branch: HEAD is detached.
    Project { branch: Option<String>, changed: Option<usize> },
    /// There, and git takes long to look.
    Unknown,
    /// There is no repository, or none that can be used.
    None,
}

/// What there is to tell.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) date: String,
    pub(super) system: String,
    pub(super) folder: String,
    pub(super) git: Standing,
    /// Why all agents work in this one folder.
    pub(super) shared: Option<String>,
    pub(super) sandbox: Option<&'a InForce>,
    /// Where commands can write besides.
    pub(super) writable: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// All of it, with a blank line before.
pub(super) fn place(facts: &Facts<'_>) -> String {
    let Facts { date, system, folder, git, shared, sandbox, writable, notes } = facts;
    let lines = [
        format!("The date is {date}, and the system is {system}."),
        format!("You work in {folder}. Paths are relative to it. {}", standing(git)),
        company(git, shared.as_deref()),
        held(*sandbox, writable),
    ];
    let notes: String = notes.iter().map(|note| format!("\n\nNote: {note}")).collect();
    let text = lines.into_iter().filter(|line| !is_blank(line)).collect::<Vec<_>>().join("\n");
    format!("\n\n# Where you work\n\n{text}{notes}")
}

fn standing(git: &Standing) -> String {
    match git {
        Standing::Apart { branch, start, changed } => format!(
            "It is a git worktree with a repository of your own, on the branch `{branch}` from commit {start:.12}{}. \
             Others don't see your changes until they are merged, and what you leave changed is committed to the \
             branch when your run ends.",
            state(*changed)
        ),
        Standing::Project { branch: Some(branch), changed } => {
            format!("It is the project folder itself, on the branch `{branch}`{}.", state(*changed))
        }
        Standing::Project { branch: None, changed } => {
            format!("It is the project folder itself, on no branch (detached HEAD){}.", state(*changed))
        }
        Standing::Unknown => "It is the project folder itself.".to_owned(),
        Standing::None => {
            "It is the project folder itself, and no git repository can be used in it.".to_owned()
        }
    }
}

fn state(changed: Option<usize>) -> String {
    match changed {
        Some(0) => ", clean as you begin".to_owned(),
        Some(1) => ", with 1 changed file as you begin".to_owned(),
        Some(count) => format!(", with {count} changed files as you begin"),
        None => String::new(),
    }
}

/// Who else works there.
fn company(git: &Standing, shared: Option<&str>) -> String {
    const REFUSED: &str =
        "An edit of a file that somebody else changed since you read it is refused: then read it again.";
    match (git, shared) {
        (Standing::Apart { .. }, _) => String::new(),
        (_, Some(why)) => format!(
            "All agents of this session work in this one folder ({why}): keep to files that no other agent has in \
             hand. {REFUSED}"
        ),
        (_, None) => format!(
            "The person may work here, too, as may agents that have no folder of their own. {REFUSED}"
        ),
    }
}

fn held(sandbox: Option<&InForce>, writable: &[String]) -> String {
    let Some(sandbox) = sandbox.filter(|sandbox| sandbox.tier != Tier::None) else {
        return "No sandbox holds your commands: they can do all that the person can.".to_owned();
    };
    let tier = if sandbox.tier == Tier::Landlock { "Landlock" } else { "bubblewrap" };
    let also: String = writable.iter().map(|path| format!(", in {path}")).collect();
    let network = match &sandbox.network {
        NetworkState::Off | NetworkState::FilteredBySeccomp => "have no network".to_owned(),
        NetworkState::Hosts(hosts) => reached(hosts),
        NetworkState::Open => "can use the network".to_owned(),
    };
    format!(
        "Your commands run in a sandbox ({tier}): they can write in your folder, in `$TMPDIR`, in `$HOME`, which is your \
         own{also}, and nowhere else, see of the machine the system's programs and what toolchains need, and {network}."
    )
}

fn reached(hosts: &Hosts) -> String {
    let written = hosts.written();
    let named: Vec<String> = written.iter().take(HOSTS_NAMED).map(|host| format!("`{host}`")).collect();
    let more = match written.len().saturating_sub(HOSTS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "of the network reach only these hosts: {}{more}, and only by the proxy that their environment names \
         (`HTTPS_PROXY`): for a program that obeys none, as ssh, no name can be looked up",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_where_it_is_with_whom_and_what_holds_it() {
        let told = |git, shared: Option<&str>| {
            place(&Facts {
                date: "Tue 24 Nov 2026".to_owned(),
                system: "Linux 6.1 (x86_64)".to_owned(),
                folder: "/w".to_owned(),
                git,
                shared: shared.map(str::to_owned),
                sandbox: None,
                writable: Vec::new(),
                notes: vec!["a note".to_owned()],
            })
        };
        let apart = Standing::Apart {
            branch: "midturn/s/w".to_owned(),
            start: "0123456789abcdef".to_owned(),
            changed: Some(0),
        };
        let text = told(apart, Some("x"));
        for part in ["Tue 24 Nov 2026", "`midturn/s/w` from commit 0123456789ab, clean", "Note: a note"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("refused"), "nobody else is there: {text}");
        for (changed, shared, says) in [
            (Some(1), None, "with 1 changed file as you begin"),
            (Some(2), None, "The person may work here"),
            (None, Some("no git"), "All agents of this session work in this one folder (no git)"),
        ] {
            let text = told(Standing::Project { branch: Some("main".to_owned()), changed }, shared);
            assert!(text.contains(says) && text.contains("is refused"), "{text}");
        }
    }

    #[test]
    fn an_agent_is_told_the_hosts_that_its_commands_reach_and_how() {
        let entries: Vec<String> = (0..HOSTS_NAMED + 2).map(|n| format!("h{n}.example")).collect();
        let few = reached(&Hosts::parse(["registries", "a.example:22"]).unwrap());
        assert!(
            few.contains("only these hosts: `registries`, `a.example:22`, and only by the proxy"),
            "{few}"
        );
        let many = reached(&Hosts::parse(entries.iter().map(String::as_str)).unwrap());
        assert!(many.contains("`h39.example` and 2 more, and only"), "{many}");
    }
}
