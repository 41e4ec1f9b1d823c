//! The form of `midturn hooks`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

pub(super) const HOOKS_HELP: &str = "\
With its hooks in your settings, Claude Code asks Midturn between two calls whether there is mail: `midturn send`
corrects a session and its subagents in the middle of their work. Nothing has to run for that.

Examples:
  midturn hooks install
  midturn hooks status
  midturn hooks uninstall";

const INSTALL_HELP: &str = "\
Your settings are ~/.claude/settings.json, or the one in CLAUDE_CONFIG_DIR. They are edited as text: what others put
there keeps every byte. Each Bash command gets a prefix, so that an urgent message can end all that it started; one
that is there already stays. Typed again, it changes nothing, or puts this version in the place of an older one.

With --project it is .claude/settings.json of the project, which others may get by git: their Claude Code then runs
the program at this path on their machine. The prefix is left out there, for where its file is missing every Bash
command fails; --with-prefix puts it in.

Examples:
  midturn hooks install
  midturn hooks install --no-prefix
  midturn hooks install --project";

const UNINSTALL_HELP: &str = "\
If nobody has edited the settings since the install, they are what they were, byte for byte; else only Midturn's
entries are taken out. Mail that nobody has read stays.

Examples:
  midturn hooks uninstall
  midturn hooks uninstall --project";

const STATUS_HELP: &str = "\
Exit status: 0 corrections will work, 1 they won't, and what to do is said.

Examples:
  midturn hooks status
  midturn hooks status --json | jq -r '.lines[] | select(.state != \"ok\").found'";

const PLUGIN_HELP: &str = "\
The plugin has the same hooks, and a skill that says how corrections read. A plugin can't set the prefix. It and
`midturn hooks install` together do no harm.

Examples:
  midturn hooks plugin ~/midturn-plugin && claude --plugin-dir ~/midturn-plugin";

/// `midturn hooks`.
#[derive(Debug, Args)]
pub(crate) struct HooksArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: HooksCommand,
}

/// What to do with the hooks.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Put the hooks into your settings of Claude Code
    #[command(after_help = INSTALL_HELP)]
    Install(HooksInstallArgs),
    /// Take the hooks out again
    #[command(after_help = UNINSTALL_HELP)]
    Uninstall(WhichSettingsArgs),
    /// Say whether corrections will work, and what is in the way
    #[command(after_help = STATUS_HELP)]
    Status(HooksStatusArgs),
    /// Write the hooks as a plugin into a new folder
    #[command(after_help = PLUGIN_HELP)]
    Plugin {
        /// The folder
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

/// Which settings.
#[derive(Debug, Args)]
pub(crate) struct WhichSettingsArgs {
    /// The project's settings, which its other people may get too, instead of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// The project that this folder is in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "project")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `midturn hooks install`.
#[derive(Debug, Args)]
pub(crate) struct HooksInstallArgs {
    /// Which settings
    #[command(flatten)]
    pub(crate) which: WhichSettingsArgs,
    /// Leave Bash commands without a prefix
    #[arg(long)]
    pub(crate) no_prefix: bool,
    /// Set the prefix in the project's settings too
    #[arg(long, requires = "project", conflicts_with = "no_prefix")]
    pub(crate) with_prefix: bool,
}

/// `midturn hooks status`.
#[derive(Debug, Args)]
pub(crate) struct HooksStatusArgs {
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The project that this folder is in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
}
