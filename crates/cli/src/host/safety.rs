//! What holds the agents of a session back: the mode, and the sandbox that their commands run
//! in. It is found out before anything begins; without a sandbox nothing runs unasked.

use std::fmt;
use std::path::Path;

use midturn_core::rules::approval::Mode;
use midturn_tools::programs;
use midturn_tools::sandbox::{Sandbox, Tier, Wanted};

use crate::config::{Config, Sandboxing};
use crate::failure::Failure;

/// Who supervises and confines commands: the file that runs, even if it was replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// What is said where there is no sandbox.
const NONE: &str = "no sandbox: commands can do all that you can";

/// What holds the agents of a session back.
#[derive(Clone, Debug)]
pub(crate) struct Safety {
    mode: Mode,
    sandbox: Sandbox,
    /// Why there is no sandbox, where nobody said that there shall be none.
    missing: Option<String>,
    /// What there is to say of who works beside whom.
    sharing: Option<String>,
    /// What there is to say of what a person lets agents read.
    let_in: Vec<String>,
}

impl Safety {
    /// Tries the sandbox that is configured. Where there is none, agents that ask before
    /// they run a command can work all the same; those that don't can not, unless a person said so.
    /// One that was `tried` is not tried again.
    ///
    /// # Errors
    /// [`Failure::Usage`]: what is missing, how to get it, and how to do without.
    pub(crate) async fn of(config: &Config, tried: Option<&Sandbox>) -> Result<Self, Failure> {
        let mode = config.general.approvals.mode;
        let wanted = wanted(&config.general.sandbox);
        let held = |sandbox, missing, let_in| Self { mode, sandbox, missing, sharing: None, let_in };
        if wanted.tier == Some(Tier::None) {
            return Ok(held(Sandbox::off(&wanted), None, Vec::new()));
        }
        let works = tried.filter(|tried| *tried.wanted() == wanted && tried.in_force().tier != Tier::None);
        let probed = match works {
            Some(sandbox) => Ok(sandbox.clone()),
            None => probe(&wanted).await,
        };
        match probed {
            Ok(sandbox) => Ok(held(sandbox, None, config.general.sandbox.let_in().notes)),
            Err(why) if mode != Mode::Auto && wanted.tier.is_none() => {
                Ok(held(Sandbox::off(&wanted), Some(why), Vec::new()))
            }
            Err(why) => {
                Err(Failure::usage(format!("{why}. Or let agents ask before each command: --mode ask")))
            }
        }
    }

    /// With what a person is told where agents share a folder.
    pub(crate) fn sharing(self, sharing: Option<String>) -> Self {
        Self { sharing, ..self }
    }

    /// What a person is told where agents share a folder.
    pub(crate) fn shared(&self) -> Option<&str> {
        self.sharing.as_deref()
    }

    /// What a person is told of what they let agents read.
    pub(crate) fn let_in(&self) -> &[String] {
        &self.let_in
    }

    /// The sandbox.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Whether commands are held by anything.
    pub(crate) fn is_confined(&self) -> bool {
        self.sandbox.in_force().tier != Tier::None
    }

    /// What a person has to know before agents begin.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unasked = match self.mode {
            Mode::Auto => "agents change files and run commands without asking",
            Mode::AcceptEdits => "agents change files without asking, and ask before they run commands",
            Mode::Ask => "agents ask before they change files or run commands",
            Mode::Plan => "agents read, and change nothing",
        };
        let mut notes = vec![format!("mode {}: {unasked}", self.mode.as_str())];
        match (&self.missing, self.is_confined()) {
            (Some(why), _) => notes.push(format!("{NONE} ({why})")),
            (None, false) => notes.push(NONE.to_owned()),
            (None, true) => notes.push(format!("sandbox: {}", self.sandbox.in_force())),
        }
        notes.extend(programs::skipped());
        notes.extend(self.let_in.iter().cloned());
        notes.extend(self.sharing.clone());
        notes
    }
}

impl fmt::Display for Safety {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode {}; ", self.mode.as_str())?;
        if self.is_confined() { write!(f, "sandbox: {}", self.sandbox.in_force()) } else { f.write_str(NONE) }
    }
}

/// What the configuration asks for.
pub(crate) fn wanted(sandbox: &Sandboxing) -> Wanted {
    Wanted { tier: sandbox.tier, network: sandbox.network.clone(), limits: sandbox.limits }
}

/// Tries a sandbox; the error says what is missing.
///
/// # Errors
/// What is missing, and how to get it.
pub(crate) async fn probe(wanted: &Wanted) -> Result<Sandbox, String> {
    Sandbox::probe(wanted, Path::new(OURSELVES)).await.map_err(|none| none.to_string())
}
