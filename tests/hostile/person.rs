//! A person who works in the project while an agent does: they save a file that no command may write, as editors
//! and git do, by renaming a new one over it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::case::Case;
use crate::world::World;

/// How often they look whether the program has begun.
const PACE: Duration = Duration::from_millis(5);

/// What the program writes into the new file, if it can (programs/replaced.py).
const HOSTILE: &str = "hostile";

/// What was saved.
pub(crate) struct Saved {
    path: PathBuf,
    before: String,
    text: String,
    user: Option<u32>,
}

impl Saved {
    /// Saves it when the program says that it waits.
    pub(crate) async fn by(world: &World, case: &Case, file: &str) -> Result<Self> {
        let (path, ready) =
            (world.path("main").join(file), world.path("main").join(format!("ready-{}", case.name)));
        let mut clock = tokio::time::interval(PACE);
        while !ready.exists() {
            clock.tick().await;
        }
        let before = fs::read_to_string(&path).context("it is there")?;
        let text = format!("{before}# saved by a person\n");
        let saved = Self { path, before, text, user: world.user };
        saved.put(&saved.text)?;
        Ok(saved)
    }

    fn put(&self, text: &str) -> Result<()> {
        let beside = self.path.with_extension("lock");
        fs::write(&beside, text)?;
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o644))?;
        if let Some(user) = self.user {
            chown(&beside, Some(user), Some(user))?;
        }
        Ok(fs::rename(beside, &self.path)?)
    }

    /// What is wrong with what became of it, where the result said this; and makes it as it was.
    pub(crate) fn judge(&self, said: &str) -> Option<String> {
        let now = fs::read_to_string(&self.path).unwrap_or_default();
        let shown = self.path.display();
        let is_told =
            said.contains("was replaced from outside") || said.contains("was made as it was before");
        let wrong = if now.contains(HOSTILE) && self.path.ends_with(".git/config") {
            Some(format!("{shown} names a program of the agent's"))
        } else if now != self.text && !is_told {
            Some(format!("{shown} is not what its person saved, and nobody is told: {now:?}"))
        } else {
            None
        };
        wrong.or_else(|| self.put(&self.before).err().map(|error| format!("{shown}: {error:#}")))
    }
}
