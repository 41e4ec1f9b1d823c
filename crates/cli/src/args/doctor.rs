//! The form of `midturn doctor`.

use clap::Args;

use super::{LayerArgs, SafetyArgs, StoreArgs};

pub(super) const DOCTOR_HELP: &str = "\
Exit status: 0 agents can work here, 1 something is missing, 2 usage.

Examples:
  midturn doctor
  midturn doctor --mode ask --no-sandbox      (would it do with these?)
  midturn doctor --json";

/// `midturn doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
    /// How freely agents would work
    #[command(flatten)]
    pub safety: SafetyArgs,
    /// Where sessions are kept
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is laid over the configuration
    #[command(flatten)]
    pub layer: LayerArgs,
}
