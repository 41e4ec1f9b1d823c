//! Configuration: `midturn.toml` and what is laid over it, with the place each value came from.
//!
//! The layers, weakest first: defaults, the person's file in the XDG configuration folder,
//! the project's files (from the repository's root down to the working folder; the nearer
//! one wins), the environment, flags. Keys of providers are in none of them: they are read
//! from the environment where they are used, and never shown.

mod file;
mod keys;
mod layers;
mod show;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use midturn_core::rules::settings::Settings;
use serde_json::Value;

pub use keys::{
    AgentDefaults, AnthropicProvider, General, Isolation, OpenAiProvider, Providers, Timeouts, ToolNames,
};
pub use show::{Keys, shown, shown_as_json};

use crate::env::{Env, folders_down_to};
use crate::failure::Failure;

/// The name of the file, in the project and in the person's configuration folder.
pub const FILE_NAME: &str = "midturn.toml";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is built in.
    Default,
    /// A file; line and column count from 1, columns in characters.
    File {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// The column of the value.
        column: usize,
    },
    /// An environment variable of this name.
    Environment(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The value, of the type that its key wants.
    pub value: Value,
    /// Its layer.
    pub origin: Origin,
}

/// A file that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Where.
    pub path: PathBuf,
    /// Whether it was there.
    pub found: bool,
}

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--model NAME`.
    pub model: Option<String>,
    /// Each `--set KEY=VALUE`.
    pub set: Vec<String>,
}

/// The whole configuration, all layers laid.
#[derive(Debug, Clone)]
pub struct Config {
    /// Every key with its value, by its dotted name.
    pub entries: BTreeMap<String, Entry>,
    /// The files looked for, weakest first.
    pub looked: Vec<Looked>,
    /// What is not an agent's setting.
    pub general: General,
    /// The settings of semantics.md.
    pub settings: Settings,
}

impl Config {
    /// Reads all layers for work in `folder`.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the place and what was expected: a file that can't be read or
    /// parsed, an unknown key, a value of the wrong type, a key of a provider in a file.
    pub fn load(folder: &Path, env: &Env, flags: &Flags) -> Result<Self, Failure> {
        let mut layers = layers::Layers::defaults();
        let mut looked = Vec::new();
        for path in file_paths(folder, env) {
            let source = file::read(&path)?;
            looked.push(Looked { path: path.clone(), found: source.is_some() });
            if let Some(source) = source {
                layers.lay_file(&path, &source)?;
            }
        }
        layers.lay_environment(env)?;
        layers.lay_flags(flags)?;
        let (general, settings) = layers.assemble()?;
        Ok(Self { entries: layers.into_entries(), looked, general, settings })
    }

    /// Where a key's value came from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.entries.get(key).map_or(&Origin::Default, |entry| &entry.origin)
    }
}

/// The files to look for, weakest first.
fn file_paths(folder: &Path, env: &Env) -> Vec<PathBuf> {
    let users = env.config_folder().map(|folder| folder.join(FILE_NAME));
    let projects = folders_down_to(folder).into_iter().map(|folder| folder.join(FILE_NAME));
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in users.into_iter().chain(projects) {
        // Work in the configuration folder itself must not read its file twice.
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[cfg(test)]
mod tests;
