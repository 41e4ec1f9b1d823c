//! The options that say how freely agents work. They are short for keys of the configuration,
//! and are kept with the session as those are.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::LayerArgs;

/// How freely agents work.
#[derive(Debug, Clone, Default, Args)]
pub struct SafetyArgs {
    /// What agents do without asking: auto (all that no rule denies), accept-edits (edits, no commands), ask
    /// (reading only), plan (reading only, and nothing else is done)
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["auto", "accept-edits", "ask", "plan"]),
          hide_possible_values = true)]
    pub mode: Option<String>,
    /// Run commands without a sandbox: they can then do all that you can
    #[arg(long)]
    pub no_sandbox: bool,
}

impl SafetyArgs {
    /// Each as `KEY=VALUE`.
    pub fn set(&self) -> Vec<String> {
        let mode = self.mode.iter().map(|mode| format!("approvals.mode={mode}"));
        mode.chain(self.no_sandbox.then(|| "sandbox.tier=none".to_owned())).collect()
    }

    /// Laid over other options.
    #[must_use]
    pub fn over(&self, layer: &LayerArgs) -> LayerArgs {
        LayerArgs { set: [layer.set.clone(), self.set()].concat(), ..layer.clone() }
    }
}
