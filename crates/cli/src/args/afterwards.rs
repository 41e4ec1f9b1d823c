//! The form of the commands that have to do with what a run leaves: `merge`, `push`, `sessions rm` and `prune`.

use clap::Args;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Span;

use super::PlaceArgs;
use super::client::ClientArgs;
use super::history::name;

pub(super) const MERGE_HELP: &str = "\
With conflicts, or with changes of yours in the way, the project stays as it is: the files are named and
the exit status is 1. --resolve hands a conflict to the agent, which merges your HEAD in its own repository
and resolves it; its session goes on for that, here if no Midturn runs. Then merge again.

Examples:
  midturn diff worker && midturn merge worker
  midturn merge worker --squash --message \"Use load() in the parser\"
  midturn merge worker --resolve";

pub(super) const PUSH_HELP: &str = "\
This is your own `git push`, with your login and your hooks. Without REMOTE it goes where git pushes the branch
that you have checked out. What to type for a pull request is said at the end.

Examples:
  midturn push worker
  midturn push worker upstream";

pub(super) const RM_HELP: &str = "\
What will be removed is said first, with its size: what is recorded of the session, its agents' folders, and their
branches as far as they are merged. You are asked on a terminal; a script says --yes. A branch that is not merged
stays, and a session with work that is on no branch stays whole, unless you say --force. A session that is
live is never removed: close its lead first.

Examples:
  midturn sessions rm last
  midturn sessions rm 0mhz 0mj2 --yes
  midturn sessions rm 0mhz --dry-run";

pub(super) const PRUNE_HELP: &str = "\
Of sessions in which nothing is left to do it removes the branches that are merged, with their folders; and sessions that
nothing has happened in for 30 days and that have no unmerged branch. With --older-than both hold from that age on.
What will be removed is said first, with its size. You are asked on a terminal; a script says --yes.

Examples:
  midturn prune --dry-run
  midturn prune --older-than 7d
  midturn prune --older-than 12h --yes";

/// `midturn merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The agent
    #[arg(value_parser = name)]
    pub(crate) agent: AgentName,
    /// Make one commit of all that it did
    #[arg(long, requires = "message")]
    pub(crate) squash: bool,
    /// The message of that commit
    #[arg(short, long, value_name = "TEXT", requires = "squash", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Have the agent resolve what conflicts
    #[arg(long)]
    pub(crate) resolve: bool,
    /// Which session
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// `midturn push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The agent
    #[arg(value_parser = name)]
    pub(crate) agent: AgentName,
    /// Where to
    pub(crate) remote: Option<String>,
    /// Which session
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// How something is removed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct RemovalArgs {
    /// Also what is not merged, what is on no branch, and sessions with work to go on with
    #[arg(long)]
    pub(crate) force: bool,
    /// Don't ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only say what would be removed
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}

/// `midturn sessions rm`.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The sessions: their ids, the beginnings of them, or `last`
    #[arg(required = true, value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// How
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `midturn prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Only where nothing has happened for so long: 12h, 7d
    #[arg(long, value_name = "SPAN", value_parser = age)]
    pub(crate) older_than: Option<Span>,
    /// How
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// A span that may be one of days.
fn age(text: &str) -> Result<Span, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => Ok(Span::secs(u64::from(days) * 86_400)),
        None => text.parse().map_err(|_| format!("`{text}` is no age: write 12h, 7d or 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_may_be_in_days() {
        assert_eq!(age("7d"), Ok(Span::secs(7 * 86_400)));
        assert_eq!(age("12h"), Ok(Span::secs(12 * 3_600)));
        assert_eq!(age("0"), Ok(Span::ZERO));
        assert!(age("soon").is_err() && age("-1d").is_err());
    }
}
