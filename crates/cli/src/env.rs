//! The process's environment as plain data, read once at the start, so that nothing below
//! depends on global state and every test can hand in its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use midturn_core::rules::time::Micros;

use crate::failure::Failure;

/// The environment variables, and the folders that follow from them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Env(BTreeMap<String, OsString>);

impl Env {
    /// The environment of this process. A variable whose name is not UTF-8 is not one of ours.
    pub(crate) fn of_process() -> Self {
        Self(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect(),
        )
    }

    /// An environment of these variables only.
    #[cfg(test)]
    pub(crate) fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }

    /// A variable's text without the blanks around it; one that is blank counts as absent.
    ///
    /// # Errors
    /// The value is not UTF-8. It is not repeated: it may be a key.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.0.get(name) {
            None => Ok(None),
            Some(value) => match value.to_str().map(str::trim) {
                Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
                None => Err(Failure::usage(format!("the environment variable {name} is not UTF-8"))),
            },
        }
    }

    /// All variables; what is not UTF-8 in a value is replaced.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.to_string_lossy()))
    }

    /// Whether a variable is set and not blank.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.to_string_lossy().trim().is_empty())
    }

    /// The names with this prefix.
    pub(crate) fn names_beginning<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| name.starts_with(prefix))
    }

    /// The person's own folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.path("HOME")
    }

    /// The XDG configuration folder of this program.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.xdg("XDG_CONFIG_HOME", ".config")
    }

    /// The XDG state folder of this program: worktrees lie under it.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        self.xdg("XDG_STATE_HOME", ".local/state")
    }

    /// The folder of Claude Code's settings.
    pub(crate) fn claude_folder(&self) -> Option<PathBuf> {
        self.path("CLAUDE_CONFIG_DIR").or_else(|| Some(self.home()?.join(".claude")))
    }

    /// The XDG specification ignores relative paths.
    fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = self.path(variable).or_else(|| self.home().map(|home| home.join(below_home)))?;
        Some(base.join("midturn"))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

/// The time since 1970, by the machine's clock.
pub(crate) fn now() -> Micros {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

/// The root of the git repository that a folder is in.
pub(crate) fn repository(folder: &Path) -> Option<&Path> {
    // A linked worktree has a file of that name, not a folder.
    folder.ancestors().find(|candidate| candidate.join(".git").exists())
}

/// The folders from the repository's root down to `folder`, both included; `folder` alone
/// when it is in no repository.
pub(crate) fn folders_down_to(folder: &Path) -> Vec<PathBuf> {
    let root = repository(folder).unwrap_or(folder);
    let below = folder.ancestors().take_while(|candidate| candidate.starts_with(root));
    let mut folders: Vec<PathBuf> = below.map(Path::to_owned).collect();
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_folders_fall_back_to_home_and_ignore_relative_paths() {
        for (variables, expected) in [
            (vec![("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")], Some("/x/midturn")),
            (vec![("XDG_CONFIG_HOME", "x"), ("HOME", "/h")], Some("/h/.config/midturn")),
            (vec![("HOME", "/h")], Some("/h/.config/midturn")),
            (vec![], None),
        ] {
            assert_eq!(Env::of(variables).config_folder(), expected.map(PathBuf::from));
        }
    }

    #[test]
    fn folders_run_from_the_repositorys_root_down() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(folders_down_to(&deep), std::slice::from_ref(&deep));
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert_eq!(folders_down_to(&deep), [root.path().to_owned(), root.path().join("a"), deep.clone()]);
    }
}
