//! The command line's form: commands, options and their help. It decides nothing.

mod afterwards;
mod client;
mod history;
mod hooks;
mod work;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

pub(crate) use afterwards::{MergeArgs, PruneArgs, PushArgs, RemovalArgs, RmArgs};
pub(crate) use client::{AgentArgs, AttachArgs, ClientArgs, ClientCommand, MeantArgs, OpenArgs, SendArgs};
pub(crate) use history::{ExportArgs, LogArgs, SessionsArgs, SessionsCommand, ShowArgs, UndoArgs};
pub(crate) use hooks::{HooksArgs, HooksCommand, HooksInstallArgs, HooksStatusArgs, WhichSettingsArgs};
pub(crate) use work::{AttendArgs, DoctorArgs, ResumeArgs, RunArgs, ScreenArgs, ServeArgs, WorkArgs};

/// Parallel coding agents that are corrected in the middle of their work.
#[derive(Debug, Parser)]
#[command(
    name = "midturn",
    version,
    about = "Parallel coding agents that are corrected in the middle of their work",
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  midturn run \"Rename open() to load() and make the tests pass\""
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a task to a lead agent, which may spawn subagents; steer them while they work
    #[command(after_help = work::RUN_HELP)]
    Run(RunArgs),
    /// Carry sessions for whoever asks: other terminals, editors, scripts, the page
    #[command(after_help = work::SERVE_HELP)]
    Serve(ServeArgs),
    /// Go on with a session where it was when its process ended
    #[command(after_help = work::RESUME_HELP)]
    Resume(ResumeArgs),
    /// List the sessions of this project, or remove some
    #[command(after_help = history::SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// Remove what is merged, the folders of it, and old sessions
    #[command(after_help = afterwards::PRUNE_HELP)]
    Prune(PruneArgs),
    /// Show what happened in a session
    #[command(after_help = history::LOG_HELP)]
    Log(LogArgs),
    /// Take back what the last turns changed in the project folder itself
    #[command(after_help = history::UNDO_HELP)]
    Undo(UndoArgs),
    /// Print an agent's conversation, whole
    #[command(after_help = history::SHOW_HELP)]
    Show(ShowArgs),
    /// Write a session as a scenario file that can be replayed
    #[command(after_help = history::EXPORT_HELP)]
    Export(ExportArgs),
    /// What asks a running process
    #[command(flatten)]
    Client(ClientCommand),
    /// Correct the agents of Claude Code: put the hooks for that into its settings, or take them out
    #[command(after_help = hooks::HOOKS_HELP)]
    Hooks(HooksArgs),
    /// Play scenario files on a virtual clock and check what comes of them
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Show every configured value and where it came from
    #[command(after_help = CONFIG_HELP)]
    Config(ConfigArgs),
    /// Write a `midturn.toml` with every key, what it means and its default, all commented out
    #[command(after_help = INIT_HELP)]
    Init(InitArgs),
    /// List the models that providers offer, and what is known of each
    #[command(after_help = MODELS_HELP)]
    Models(ModelsArgs),
    /// Check whether agents can work here, and how safely
    #[command(after_help = work::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Print a script that completes commands and options in your shell
    #[command(
        after_help = "Example:\n  midturn completions bash > ~/.local/share/bash-completion/completions/midturn"
    )]
    Completions {
        /// Your shell
        shell: clap_complete::Shell,
    },
    /// Print the JSON Schema of a format, for editors and other programs
    #[command(after_help = SCHEMA_HELP)]
    Schema {
        /// The format
        format: Format,
    },
}

const REPLAY_HELP: &str = "\
Exit status: 0 all hold, 1 some expectation fails, 2 a file can't be read.

Examples:
  midturn replay scenarios
  midturn replay --json scenarios/demo.yaml
  midturn replay --view scenarios/demo.yaml       (on the screen of `midturn attach`)
  midturn replay --svg pictures scenarios/demo.yaml         (a timeline of it)
  midturn replay --shift fix=-500ms scenarios/demo.yaml     (what if it had come half a second sooner?)";

const MODELS_HELP: &str = "\
Each provider whose key is set is asked; of the others what the built-in table knows is shown. Prices are US dollars
per million tokens: `~` marks those of the table, which has a date; what you set in [models.\"PROVIDER/NAME\"] goes first.

Examples:
  midturn models
  midturn models anthropic --json | jq -r '.models[].name'";

const SCHEMA_HELP: &str = "\
Examples:
  midturn schema scenario > scenario.schema.json
  midturn schema config > midturn.schema.json
  midturn schema events > events.schema.json";

/// `midturn models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only of this provider
    pub(crate) provider: Option<String>,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// What is laid over the configuration
    #[command(flatten)]
    pub(crate) layer: LayerArgs,
}

const CONFIG_HELP: &str = "\
Values come from these, the weakest first: defaults, midturn.toml in the configuration folder, midturn.toml
from the repository's root down to the working folder, MIDTURN_… variables, flags. What came with the
repository can tighten what agents may do and use, but not loosen it.

Examples:
  midturn config
  MIDTURN_RETRY_ATTEMPTS=2 midturn config --set max_turns=20";

const INIT_HELP: &str = "\
It writes to the working folder, and never over a file that is there. With --user it is your own file, in
the configuration folder, which holds in all projects and has the keys that a project's file can't set.

Examples:
  midturn init
  midturn init --user";

/// `midturn init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Write your own file, in the configuration folder
    #[arg(long)]
    pub(crate) user: bool,
    /// Write to this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "user")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `midturn config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// What is laid over the configuration
    #[command(flatten)]
    pub(crate) layer: LayerArgs,
}

/// Options of every command that reads the configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LayerArgs {
    /// The lead's model: PROVIDER/NAME (anthropic, openai, openai-chat, or one of your own), an alias, or scripted:FILE
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Set a key of the configuration; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Work in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
}

/// The option of every command that has to do with what is kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Keep sessions here instead of the project's own file: a path, or postgres://USER@HOST/NAME
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<String>,
}

/// Options of every command that needs a project and no configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Where sessions are kept
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The project that this folder is in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
}

/// `midturn replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Scenario files, and folders of them
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Write the events to standard output, one JSON object a line, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Move a message by this much and show what changes; nothing is checked
    #[arg(long, value_name = "ID=±DURATION", allow_hyphen_values = true)]
    pub(crate) shift: Vec<String>,
    /// Draw a timeline of each scenario into this folder, as SVG
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    /// Look at one scenario on the screen instead; nothing is checked
    #[arg(long, conflicts_with_all = ["json", "junit", "shift", "svg"])]
    pub(crate) view: bool,
}

/// A format with a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// Scenario files
    Scenario,
    /// `midturn.toml`
    Config,
    /// The events of `run --json`, `watch --json` and `replay --json`, one object a line
    Events,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_text_has_an_example() {
        let mut command = Cli::command();
        command.build();
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("midturn "), "{}", command.get_name());
        }
    }
}
