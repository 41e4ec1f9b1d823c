//! `[folder]`: how the folders of agents are made ready, where they lie, and what their commits say.

use std::path::PathBuf;

use midturn_core::rules::approval::{Asked, Effect, Verdict};
use midturn_core::rules::time::Span;
use midturn_tools::workplace::{Isolation, Wishes};
use serde::{Deserialize, Serialize};

use super::keys::Names;
use super::safety::below_home;
use super::{Config, Origin};

/// How the folders of agents are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Folder {
    /// A command that makes a new one ready, run in the sandbox before an agent's first request.
    pub(crate) setup: Option<String>,
    /// How long it may take.
    pub(crate) setup_time: Span,
    /// What git ignores in the project folder and a new one has all the same.
    pub(crate) copy: Names,
    /// How many bytes that may be.
    pub(crate) copy_max: u64,
    /// Where they lie; absent is below the state folder.
    pub(crate) base: Option<String>,
    /// Whether a commit says which agent made it.
    pub(crate) trailer: bool,
}

impl Default for Folder {
    fn default() -> Self {
        Self {
            setup: None,
            setup_time: Span::secs(600),
            copy: Names::default(),
            copy_max: 2 << 30,
            base: None,
            trailer: true,
        }
    }
}

impl Folder {
    /// Where agents' folders lie, `~/` followed.
    pub(crate) fn base(&self) -> Option<PathBuf> {
        self.base.as_deref().map(below_home)
    }
}

impl Config {
    /// What is wished of the folders of agents.
    pub(crate) fn wishes(&self) -> Wishes {
        let Folder { setup_time, copy, copy_max, trailer, .. } = &self.general.folder;
        let is_shared = self.general.agents.isolation == Isolation::None;
        Wishes {
            setup: self.setup().ok().flatten(),
            setup_time: setup_time.duration(),
            copy: copy.0.clone(),
            copy_max: *copy_max,
            base: self.general.folder.base(),
            trailer: *trailer,
            shared: is_shared.then(|| "`agents.isolation` is `none`".to_owned()),
            ..Wishes::default()
        }
    }

    /// Whether a key's value came with the project.
    fn is_projects(&self, key: &str) -> bool {
        matches!(self.origin(key), Origin::File { path, .. } if !self.is_persons(path))
    }

    /// The setup that runs. One that came with the project is no more than a command of an agent's.
    ///
    /// # Errors
    /// The mode, or a rule, doesn't let it run unasked: what a person is told.
    pub(crate) fn setup(&self) -> Result<Option<String>, String> {
        let Some(setup) = self.general.folder.setup.clone() else { return Ok(None) };
        let origin = self.origin("folder.setup");
        let asked = Asked { name: "bash", subject: Some(&setup), effect: Effect::Runs };
        let verdict = match self.is_projects("folder.setup") {
            true => self.policy().judge(&asked, &[]),
            false => Verdict::Allowed,
        };
        match verdict {
            Verdict::Allowed => Ok(Some(setup)),
            Verdict::Denied(why) => {
                Err(format!("the setup `{setup}` of {origin} is not run in agents' folders: {why}"))
            }
            Verdict::Ask => Err(format!(
                "the setup `{setup}` of {origin} is not run in agents' folders: it would have to be asked about. To \
                 run it, say so in your own file: [folder] setup, or approvals.allow = [\"bash({setup})\"]"
            )),
        }
    }
}
