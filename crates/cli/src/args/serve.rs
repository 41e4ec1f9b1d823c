//! The form of the commands that carry sessions: `serve` and `resume`.

use std::net::SocketAddr;

use clap::Args;

use super::{LayerArgs, SafetyArgs, StoreArgs};

pub(super) const SERVE_HELP: &str = "\
It answers on a Unix socket that the other commands find by themselves, and goes on with every
session that was under way. Ctrl-C stops all agents and leaves their sessions resumable.

Examples:
  midturn serve
  midturn serve --listen 127.0.0.1:7777                 (the page, in a browser on this machine)
  midturn serve --store postgres://team@db.example.org/midturn";

pub(super) const RESUME_HELP: &str = "\
Every agent goes on in the run it was in. A call that had begun and has no result is told to the model
as `unknown` and is not run again; what had not begun is skipped; unread mail is read first.
Lines on standard input steer the session as with `midturn run`. Flags are laid over those that it began with.

Examples:
  midturn resume                 (the session that began last)
  midturn resume 0mhzk3q1-77ab   (`midturn sessions` lists them; the beginning of the id is enough)";

/// `midturn serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen on loopback too, for programs that can't open a Unix socket
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub listen: Option<SocketAddr>,
    /// How freely agents work
    #[command(flatten)]
    pub safety: SafetyArgs,
    /// Where sessions are kept
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is laid over the configuration
    #[command(flatten)]
    pub layer: LayerArgs,
}

/// `midturn resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session: its id, the beginning of it, or `last`
    #[arg(value_name = "SESSION", default_value = "last", hide_default_value = true)]
    pub session: String,
    /// Write the events to standard output, one JSON object a line, instead of the answer
    #[arg(long)]
    pub json: bool,
    /// How freely its agents work from now on
    #[command(flatten)]
    pub safety: SafetyArgs,
    /// Where sessions are kept
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is laid over the configuration
    #[command(flatten)]
    pub layer: LayerArgs,
}
