//! Our hooks in a person's settings of Claude Code, and out of them again (docs/bridges.md, "Install, status, uninstall").
//!
//! Settings are edited as text. What an install finds there is kept, so that an uninstall can give it back byte for byte;
//! if somebody has edited them since, only ours goes. Nobody else's entry is ever changed. It runs no program and prints
//! nothing.

mod edit;
mod entries;
mod file;
mod json;
mod manifest;
mod plugin;
mod prefix;
mod status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use file::Refused;
pub use plugin::{PluginRefused, write_plugin};
pub use status::{Line, Look, State, Status, TESTED, look};

use edit::{Installed, Unfit, Wanted};
use file::Found;
use json::{NoObject, Text};
use manifest::{Kept, Manifest, sum};

/// One file of settings, and where we remember what we did to it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// The folder of our state.
    pub state: PathBuf,
}

/// What an install is to do.
#[derive(Debug, Clone)]
pub struct Install {
    /// This program, by the path that the hooks get.
    pub program: PathBuf,
    /// Whether Bash commands get our prefix.
    pub with_prefix: bool,
    /// The version of this program.
    pub version: String,
}

/// What came of an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Whether the settings were changed.
    pub is_changed: bool,
    /// The file with the bytes that there were.
    pub backup: Option<PathBuf>,
    /// What became of the prefix.
    pub prefix: PrefixDone,
    /// Whether there is something in the settings that Claude Code can't read.
    pub has_comments: bool,
}

/// What became of the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixDone {
    /// It is this one.
    Ours(PathBuf),
    /// Nobody wanted it.
    NotAsked,
    /// Somebody else's stands there.
    Other(String),
    /// Its path has something in it that a shell would take apart.
    Path(PathBuf),
}

/// What came of an uninstall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// There was nothing of ours.
    Nothing,
    /// The bytes are those from before the install.
    Restored,
    /// There is no file, as before the install.
    Removed,
    /// The settings were edited since: only ours is gone.
    TakenOut,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The file can't be written, or must not be.
    #[error(transparent)]
    File(#[from] Refused),
    /// What is in it isn't settings.
    #[error("{path}: {1}; nothing was changed. Mend it, then try again", path = .0.display())]
    Unreadable(PathBuf, String),
    /// Settings are text.
    #[error("the path of this program, {}, is not UTF-8 and can't stand in settings: put it elsewhere", .0.display())]
    Program(PathBuf),
}

/// What is left of settings without ours, and where that comes from.
struct Base {
    /// `None`: no file.
    text: Option<String>,
    /// Whether it is what was there before the install, to the byte.
    is_exact: bool,
}

impl Settings {
    /// Puts our hooks in, in the place of those that another version put there.
    ///
    /// # Errors
    /// [`Trouble`]: the settings are as they were.
    pub fn install(&self, wanted: &Install) -> Result<Done, Trouble> {
        let program = utf8(&wanted.program)?;
        let found = file::read(&self.path)?;
        let kept = self.kept();
        let former = kept.read();
        let base = self.base(found.as_ref(), &kept, former.as_ref())?;
        let exec = prefix::path(&self.state);
        let prefix = utf8(&exec).ok().filter(|path| wanted.with_prefix && entries::can_be_a_prefix(path));
        let text = base.text.as_deref().unwrap_or(edit::EMPTY);
        let installed = edit::put_in(text, Wanted { program, prefix }).map_err(|unfit| self.unfit(&unfit))?;
        let is_ours = prefix.is_some() && installed.other_prefix.is_none();
        if is_ours {
            prefix::put(&wanted.program, &exec)?;
        }
        let made_folder = self.path.parent().is_some_and(|folder| !folder.exists())
            || former.as_ref().is_some_and(|former| former.made_folder);
        let manifest = Manifest {
            settings: self.path.clone(),
            program: program.to_owned(),
            prefix: prefix.filter(|_| is_ours).map(str::to_owned),
            before: base.text.as_ref().map(|text| sum(text.as_bytes())),
            after: sum(installed.text.as_bytes()),
            made: installed.made.clone(),
            made_folder,
            midturn: wanted.version.clone(),
        };
        let is_changed =
            self.leave(found.as_ref(), &installed, &kept, (&manifest, former.as_ref()), &base)?;
        Ok(Done {
            is_changed,
            backup: base.text.is_some().then(|| kept.backup()),
            prefix: told(wanted, &exec, is_ours, installed.other_prefix),
            has_comments: Text::of(installed.text).is_ok_and(|text| !text.is_strict()),
        })
    }

    /// Writes what differs: first what we have to remember, then the settings.
    fn leave(
        &self,
        found: Option<&Found>,
        installed: &Installed,
        kept: &Kept,
        (manifest, former): (&Manifest, Option<&Manifest>),
        base: &Base,
    ) -> Result<bool, Trouble> {
        let before = base.text.as_ref().map(String::as_bytes);
        if former != Some(manifest) || kept.before(manifest).is_none() {
            kept.write(manifest, before)?;
        }
        let is_changed = found.is_none_or(|found| found.bytes != installed.text.as_bytes());
        if is_changed {
            if let Some(folder) = self.path.parent() {
                file::make_folder(folder)?;
            }
            file::replace(&self.path, found, installed.text.as_bytes())?;
        }
        Ok(is_changed)
    }

    /// Takes our hooks out.
    ///
    /// # Errors
    /// [`Trouble`]: the settings are as they were.
    pub fn uninstall(&self) -> Result<Undone, Trouble> {
        let found = file::read(&self.path)?;
        let kept = self.kept();
        let former = kept.read();
        let base = self.base(found.as_ref(), &kept, former.as_ref())?;
        let is_changed =
            base.text.as_deref().map(str::as_bytes) != found.as_ref().map(|found| &found.bytes[..]);
        match &base.text {
            _ if !is_changed => {}
            Some(text) => file::replace(&self.path, found.as_ref(), text.as_bytes())?,
            None => file::remove(&self.path, found.as_ref())?,
        }
        if former.is_some_and(|former| former.made_folder)
            && let Some(folder) = self.path.parent()
        {
            // Whoever has put something there keeps it.
            let _ = std::fs::remove_dir(folder);
        }
        kept.forget()?;
        Ok(match (is_changed, &base) {
            (false, _) => Undone::Nothing,
            (true, Base { text: None, .. }) => Undone::Removed,
            (true, Base { is_exact: true, .. }) => Undone::Restored,
            (true, _) => Undone::TakenOut,
        })
    }

    /// The settings as they would be without us.
    fn base(&self, found: Option<&Found>, kept: &Kept, former: Option<&Manifest>) -> Result<Base, Trouble> {
        let Some(found) = found else { return Ok(Base { text: None, is_exact: true }) };
        let text = str::from_utf8(&found.bytes).map_err(|_| self.unreadable("it is not UTF-8"))?;
        let is_as_left = former.is_some_and(|former| former.after == sum(&found.bytes));
        let before = former.filter(|_| is_as_left).and_then(|former| kept.before(former));
        if let Some(before) = before {
            let text = before.map(String::from_utf8).transpose();
            return Ok(Base { text: text.map_err(|_| self.unreadable("it was not UTF-8"))?, is_exact: true });
        }
        let made = former.map(|former| &former.made);
        let left =
            edit::take_out(text, &Manifest::ours(former), made).map_err(|why| self.unfit(&why.into()))?;
        let was_none = former.is_some_and(|former| former.before.is_none());
        // Of a file that we made, an empty object would be left.
        Ok(Base { text: (!was_none || !edit::is_empty(&left)).then_some(left), is_exact: false })
    }

    fn kept(&self) -> Kept {
        Kept::of(&self.state, &self.path)
    }

    fn unfit(&self, unfit: &Unfit) -> Trouble {
        let more = match unfit {
            Unfit::NoObject(NoObject::Json(..)) => ", and Claude Code can't read it either",
            _ => "",
        };
        self.unreadable(&format!("{unfit}{more}"))
    }

    fn unreadable(&self, why: &str) -> Trouble {
        Trouble::Unreadable(self.path.clone(), why.to_owned())
    }
}

fn told(wanted: &Install, exec: &Path, is_ours: bool, other: Option<String>) -> PrefixDone {
    match other {
        Some(other) => PrefixDone::Other(other),
        None if is_ours => PrefixDone::Ours(exec.to_owned()),
        None if wanted.with_prefix => PrefixDone::Path(exec.to_owned()),
        None => PrefixDone::NotAsked,
    }
}

fn utf8(path: &Path) -> Result<&str, Trouble> {
    path.to_str().ok_or_else(|| Trouble::Program(path.to_owned()))
}
