//! Configuration: `midturn.toml` and what is laid over it, with the place each value came from.
//!
//! The layers, weakest first: defaults, the person's file in the XDG configuration folder,
//! the project's files (from the repository's root down to the working folder; the nearer
//! one wins, but none loosens what the person's own layers hold), the environment, flags. Keys
//! of providers are in none of them: the layers name variables of the environment, which are read
//! where they are used and never shown.

mod authority;
mod file;
mod folder;
mod keys;
mod layers;
mod meaning;
mod notify;
mod page;
mod providers;
mod safety;
mod schema;
mod show;
mod template;
mod terminal;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use midturn_core::rules::approval::{Policy, Rule};
use midturn_core::rules::settings::Settings;
use midturn_providers::Endpoint;
use midturn_tui::keys::Keymap;
use midturn_tui::look::Look;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub(crate) use authority::Whose;
pub(crate) use keys::{AgentDefaults, General};
pub(crate) use page::Page;
pub(crate) use safety::{Approvals, ModelFacts, Rules, Sandboxing, tools};
pub(crate) use schema::schema;
pub(crate) use show::{keys_set, shown, shown_as_json};
pub(crate) use template::template;

use crate::args::LayerArgs;
use crate::env::{Env, folders_down_to};
use crate::failure::Failure;
use crate::files;

/// The name of the file, in the project and in the person's configuration folder.
pub(crate) const FILE_NAME: &str = "midturn.toml";

/// The largest such file, in bytes.
const FILE_MAX: usize = 1 << 20;

/// Whether a `KEY=VALUE` that an earlier version took still names a key.
pub(crate) fn is_known(said: &str) -> bool {
    let key = layers::split(said).map_or(said, |(key, _)| key);
    file::one_key(key.trim()).is_ok_and(|key| keys::is_known(&layers::canonical(&key)))
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub(crate) enum Origin {
    /// It is built in.
    Default,
    /// A file; line and column count from 1, columns in characters.
    File {
        /// The file.
        #[serde(serialize_with = "displayed")]
        path: PathBuf,
        /// Its line.
        line: usize,
        /// The column of the value.
        column: usize,
    },
    /// An environment variable of this name.
    Environment {
        /// The name.
        variable: String,
    },
    /// A flag of the command line.
    Flag {
        /// The flag.
        flag: &'static str,
    },
}

fn displayed<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::Flag { flag } => write!(f, "flag {flag}"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    /// The value, of the type that its key wants.
    pub(crate) value: Value,
    /// Its layer; of a list that all layers add to, the last one.
    #[serde(rename = "from")]
    pub(crate) origin: Origin,
    /// Where each entry of a list came from; of another value as its origin.
    #[serde(skip)]
    pub(crate) items: Vec<Origin>,
}

impl Entry {
    /// A value that nobody has said anything of.
    fn unsaid(value: Value) -> Self {
        Self { value, origin: Origin::Default, items: Vec::new() }
    }

    /// A value that is said in one place.
    fn one(value: Value, origin: Origin) -> Self {
        let items = vec![origin.clone(); authority::items(&value).len()];
        Self { value, origin, items }
    }
}

/// A file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Looked {
    /// Where.
    #[serde(serialize_with = "displayed")]
    pub(crate) path: PathBuf,
    /// Whether it was there.
    pub(crate) found: bool,
}

/// The whole configuration, all layers laid.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Every key with its value, by its dotted name.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// The files looked for, weakest first.
    pub(crate) looked: Vec<Looked>,
    /// What is not an agent's setting.
    pub(crate) general: General,
    /// The settings of semantics.md.
    pub(crate) settings: Settings,
    /// Which key of the terminal does what.
    keymap: Keymap,
    /// What a project's files say and may not, each with its place.
    pub(crate) notes: Vec<String>,
    /// The person's own file, if the environment names a place for it.
    persons: Option<PathBuf>,
}

impl Config {
    /// Reads all layers for work in `folder`.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the place and what was expected: a file that can't be read or
    /// parsed, an unknown key, a value of the wrong type, a key of a provider in a file.
    pub(crate) fn load(folder: &Path, env: &Env, flags: &LayerArgs) -> Result<Self, Failure> {
        let mut layers = layers::Layers::defaults();
        let mut looked = Vec::new();
        for (path, whose) in file_paths(folder, env) {
            let source = files::read(&path, FILE_MAX)?;
            looked.push(Looked { path: path.clone(), found: source.is_some() });
            if let Some(source) = source {
                layers.lay_file(&path, &source, whose)?;
            }
        }
        layers.lay_environment(env)?;
        layers.lay_flags(flags)?;
        layers.settle()?;
        let (general, settings) = layers.assemble()?;
        let layers::Layers { entries, notes, .. } = layers;
        let keymap = general.terminal.keymap(&entries)?;
        let persons = env.config_folder().map(|folder| folder.join(FILE_NAME));
        Ok(Self { entries, looked, general, settings, keymap, notes, persons })
    }

    /// Whether a file is the person's own.
    fn is_persons(&self, path: &Path) -> bool {
        self.persons.as_deref() == Some(path)
    }

    /// How the terminal behaves; `ascii` is what its flag says.
    pub(crate) fn terminal(&self, env: &Env, ascii: bool) -> midturn_tui::settings::Settings {
        let &terminal::Terminal { queue_mode, mouse, ascii: configured, notify, notify_unsure, .. } =
            &self.general.terminal;
        let look = Look { colours: !env.is_set("NO_COLOR"), unicode: !ascii && !configured };
        let keys = self.keymap.clone();
        let notify_command = self.general.notify.command.clone();
        midturn_tui::settings::Settings {
            queue_mode,
            mouse,
            notify,
            notify_unsure,
            notify_command,
            look,
            keys,
        }
    }

    /// What may run unasked; each rule knows the place it is written at.
    pub(crate) fn policy(&self) -> Policy {
        let Approvals { mode, allow, deny, patience } = &self.general.approvals;
        Policy {
            mode: *mode,
            allow: self.rules("approvals.allow", allow),
            deny: self.rules("approvals.deny", deny),
            patience: *patience,
        }
    }

    fn rules(&self, key: &str, rules: &Rules) -> Vec<Rule> {
        let origins = self.entries.get(key).map_or(&[][..], |entry| &entry.items);
        let placed = rules.0.iter().enumerate().map(|(at, rule)| {
            let origin = origins.get(at).unwrap_or_else(|| self.origin(key));
            rule.clone().from(origin.to_string())
        });
        placed.collect()
    }

    /// The environment variables that providers are logged in with.
    pub(crate) fn key_variables(&self) -> BTreeSet<String> {
        let named = self.general.providers.values().flat_map(Endpoint::variables);
        named.map(|(_, name)| name.to_owned()).collect()
    }

    /// Where a key's value came from.
    pub(crate) fn origin(&self, key: &str) -> &Origin {
        self.entries.get(key).map_or(&Origin::Default, |entry| &entry.origin)
    }
}

/// The files to look for, weakest first.
fn file_paths(folder: &Path, env: &Env) -> Vec<(PathBuf, Whose)> {
    let users = env.config_folder().map(|folder| (folder.join(FILE_NAME), Whose::Person));
    let projects = folders_down_to(folder).into_iter().map(|folder| (folder.join(FILE_NAME), Whose::Project));
    let mut paths: Vec<(PathBuf, Whose)> = Vec::new();
    for (path, whose) in users.into_iter().chain(projects) {
        // Work in the configuration folder itself must not read its file twice.
        if !paths.iter().any(|(known, _)| *known == path) {
            paths.push((path, whose));
        }
    }
    paths
}

#[cfg(test)]
mod tests;
