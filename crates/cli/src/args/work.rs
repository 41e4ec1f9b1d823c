//! The form of the commands that agents work under: `run`, `serve`, `resume`, and `doctor`, which
//! looks whether they could.

use std::net::SocketAddr;

use clap::Args;
use clap::builder::PossibleValuesParser;
use midturn_core::rules::limits::Money;
use midturn_core::rules::time::Span;

use super::{LayerArgs, StoreArgs};

pub(super) const RUN_HELP: &str = "\
On a terminal the run is on the screen: ? shows the keys. It stays after the answer, for your next word (with --plain, too); leaving
it stops what still works. What is piped to it is the task; beside a TASK it is data for it, and never a command.

Lines that you type with --plain, and piped ones with --steer-stdin, steer the run while it lasts:
  NAME: text   a message to that agent       NAME! text   an urgent one: what it runs ends now
  text         a message to the lead         NAME> text   one that skips the tools that have not begun
  /ps          who is there and what they do /stop NAME   stop an agent
  /supersede NAME TEXT   stop it, and begin anew with the text
  /close NAME  close it and all below it     /quit        stop all of them and end
  /yes [NAME]  what it asks may be done      /no [NAME] [REASON]   it may not
  /always [NAME]   it, and its like, from now on in this session
Without a name, the oldest request is answered.

Ctrl-C stops all agents and reports; a second one exits at once.
Exit status: 0 finished, 1 failed, 2 usage, 4 a limit, 130 interrupted.

Examples:
  midturn run --model anthropic/claude-sonnet-4-5 \"Fix the failing test in crates/core\"
  git diff | midturn run --once \"Review this change\"
  midturn run @task.md                                   (or: midturn run - < task.md)
  midturn run --json --once --max-cost 2 \"Update the changelog\" < /dev/null     (in a job)
  midturn run --mode ask \"Clean up the build\"                     (edits and commands are asked about)
  midturn run --model scripted:scenarios/demo.yaml \"Show me\"     (no key needed)";

pub(super) const SERVE_HELP: &str = "\
It answers on a Unix socket that the other commands find by themselves, and goes on with every
session that was under way. Ctrl-C stops all agents and leaves their sessions resumable.

Examples:
  midturn serve
  midturn serve --listen 127.0.0.1:7777                 (programs that can't open a Unix socket)
  midturn serve --until-idle 30m
  midturn serve --store postgres://team@db.example.org/midturn";

pub(super) const RESUME_HELP: &str = "\
Every agent goes on in the run it was in. A call that had begun and has no result is told to the model
as `unknown` and is not run again; what had not begun is skipped; unread mail is read first.
Who was stopped goes on, whose run failed tries again, and TEXT is your next word to the lead, also when all are done.
Lines that you type, or pipe with --steer-stdin, steer the session as with `midturn run`. Flags override those that it began with;
a limit (--set max_turns=60) is raised for whoever rests at it.
Exit status: as of `midturn run`, for what was resumed; where there is nothing to go on with, for how the lead's last run ended.

Examples:
  midturn resume                 (the session that began last)
  midturn resume last \"Now write the tests\"
  midturn resume 0mhzk3q1-77ab   (`midturn sessions` lists them; the beginning of the id is enough)";

pub(super) const DOCTOR_HELP: &str = "\
Exit status: 0 agents can work here, 1 something is missing (with --attack: something isn't as docs/security.md says for the sandbox
that is used), 2 usage.

Examples:
  midturn doctor
  midturn doctor --mode ask --no-sandbox      (would it work with these?)
  midturn doctor --rules 'git push origin main'   (which rule decides, and why?)
  midturn doctor --attack                     (what can a command do on this machine?)
  midturn doctor --json";

/// `midturn run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is to be done; `-`, or none: standard input says so; @FILE: that file does
    pub(crate) task: Option<String>,
    /// How it is attended to
    #[command(flatten)]
    pub(crate) attend: AttendArgs,
    /// What its agents work under
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// `midturn serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Listen on loopback too, for programs that can't open a Unix socket
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// End when no agent has worked and nobody has asked anything for so long
    #[arg(long, value_name = "SPAN")]
    pub(crate) until_idle: Option<Span>,
    /// What its agents work under
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// `midturn resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session: its id, the beginning of it, or `last`
    #[arg(value_name = "SESSION", default_value = "last", hide_default_value = true)]
    pub(crate) session: String,
    /// What its lead is told; without it all go on who rest with work unfinished
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// How it is attended to
    #[command(flatten)]
    pub(crate) attend: AttendArgs,
    /// What its agents work under from now on
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// How a person, or a program, attends to a session that begins or goes on here.
#[derive(Debug, Args)]
pub(crate) struct AttendArgs {
    /// Write the events to standard output, one JSON object a line, instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
    /// End after the answer, as in a pipe
    #[arg(long)]
    pub(crate) once: bool,
    /// Take lines of standard input as typed ones, though it is no terminal
    #[arg(long)]
    pub(crate) steer_stdin: bool,
    /// What is drawn
    #[command(flatten)]
    pub(crate) screen: ScreenArgs,
}

/// What is drawn on a terminal.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScreenArgs {
    /// Lines instead of the screen: for screen readers, and terminals that can do little
    #[arg(long)]
    pub(crate) plain: bool,
    /// Draw nothing beyond ASCII
    #[arg(long)]
    pub(crate) ascii: bool,
}

/// `midturn doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Say which rules decide about this command, and look at nothing else
    #[arg(long, value_name = "COMMAND")]
    pub(crate) rules: Option<String>,
    /// Try what commands can do here: some forty harmless attempts in a throw-away project, as a table
    #[arg(long, conflicts_with = "rules")]
    pub(crate) attack: bool,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// What agents would work under
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// What agents work under: options of every command that starts some.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// What agents do without asking: auto (all that no rule denies), accept-edits (edits, no commands), ask
    /// (reading only), plan (reading only, and nothing else is done)
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["auto", "accept-edits", "ask", "plan"]),
          hide_possible_values = true)]
    pub(crate) mode: Option<String>,
    /// Run commands without a sandbox: they can then do all that you can
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// What the model calls of a session may cost in all, in US dollars; 0 is no limit
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<Money>,
    /// Where sessions are kept
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// What is laid over the configuration
    #[command(flatten)]
    pub(crate) layer: LayerArgs,
}

impl WorkArgs {
    /// All that is laid over the configuration: the layer, and over that how freely agents work and what they may cost.
    pub(crate) fn whole_layer(&self) -> LayerArgs {
        let LayerArgs { model, set, cwd } = self.layer.clone();
        let cost = self.max_cost.iter().map(|cost| format!("session.max_cost={cost}")).collect();
        LayerArgs { model, set: [set, self.safety(), cost].concat(), cwd }
    }

    /// How freely agents work: short for keys of the configuration, each as `KEY=VALUE`, and kept
    /// with the session as those are.
    pub(crate) fn safety(&self) -> Vec<String> {
        let mode = self.mode.iter().map(|mode| format!("approvals.mode={mode}"));
        mode.chain(self.no_sandbox.then(|| "sandbox.tier=none".to_owned())).collect()
    }
}
