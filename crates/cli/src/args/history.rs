//! The form of the commands that read what was kept: `sessions`, `log` and `export`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use midturn_core::rules::id::AgentName;

use super::PlaceArgs;
use super::afterwards::RmArgs;

pub(super) const SESSIONS_HELP: &str = "\
Examples:
  midturn sessions
  midturn sessions --json --cwd ../other-project
  midturn sessions rm last";

pub(super) const LOG_HELP: &str = "\
Examples:
  midturn log last
  midturn log last --agent worker --full
  midturn log last --svg timeline.svg
  midturn log 0mhz --json | jq 'select(.type == \"message_injected\")'";

pub(super) const SHOW_HELP: &str = "\
It is the conversation as the model has it: prompts and messages, thinking, calls with their arguments and results.
What was cut, and what a summary has taken the place of, is marked. It is read from the store, also while the agent works.

Examples:
  midturn show lead | less
  midturn show worker --session 0mhz
  midturn show worker --json | jq -r 'select(.message_type == \"tool_result\") | .content'";

pub(super) const EXPORT_HELP: &str = "\
Replaying the file gives the same tool outcomes and the same places where messages were read.

Examples:
  midturn export last -o bug.yaml && midturn replay bug.yaml
  midturn export 0mhzk3q1-77ab > bug.yaml";

pub(super) const UNDO_HELP: &str = "\
A file that is as a turn left it becomes what it was before that turn. What somebody changed since stays, and
is named. Commits stay, and so do files that git ignores. The agents are told with the result of their next call.

Exit status: 0 done, or listed; 1 there is nothing to undo, or an agent is in the middle of a turn.

Examples:
  midturn undo --dry-run
  midturn undo
  midturn undo 3            (the last three turns that changed files)
  midturn undo --list";

/// `midturn undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// How many turns, the last one first; only turns that changed files in the project folder count
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turns: u32,
    /// Show which turns can be undone, the last one first
    #[arg(long)]
    pub(crate) list: bool,
    /// Show what would be done, and change nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,
    /// The session: its id, the beginning of it, or `last`
    #[arg(long, value_name = "ID", default_value = "last")]
    pub(crate) session: String,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `midturn sessions`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    /// What is done with them; they are listed without it
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// What is done with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Remove sessions, with what their agents left
    #[command(after_help = super::afterwards::RM_HELP)]
    Rm(RmArgs),
}

/// `midturn log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The session: its id, the beginning of it, or `last`
    pub(crate) session: String,
    /// Only what concerns this agent
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) agent: Option<AgentName>,
    /// Show every event, and all of each text
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Write the events as they are kept, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw a timeline into this file instead, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["json", "full", "agent"])]
    pub(crate) svg: Option<PathBuf>,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `midturn show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The agent
    #[arg(value_parser = name)]
    pub(crate) agent: AgentName,
    /// The session: its id, the beginning of it, or `last`
    #[arg(long, value_name = "ID", default_value = "last")]
    pub(crate) session: String,
    /// Write the messages as the interface has them, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// `midturn export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session: its id, the beginning of it, or `last`
    pub(crate) session: String,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Which project
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// An agent's name.
pub(super) fn name(text: &str) -> Result<AgentName, String> {
    AgentName::new(text).map_err(|error| error.to_string())
}
