//! `AGENTS.md` from the repository's root down to the working folder, and `CLAUDE.md` in
//! those folders that have none.

use std::path::{Path, PathBuf};

use crate::env::folders_down_to;
use crate::failure::Failure;

/// The files' names; of one folder the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// What the files say, in order: later ones win.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// Each file and its text.
    pub(crate) parts: Vec<(PathBuf, String)>,
}

impl Instructions {
    /// Reads the instructions that hold in `folder`.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a file that is there can't be read.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut parts = Vec::new();
        for place in folders_down_to(folder) {
            let there =
                NAMES.iter().map(|name| place.join(name)).find(|path| path.symlink_metadata().is_ok());
            if let Some(path) = there {
                let text = super::text_of(&path)?;
                if !text.trim().is_empty() {
                    parts.push((path, text.trim().to_owned()));
                }
            }
        }
        Ok(Self { parts })
    }

    /// The block for a system prompt; empty when there is nothing.
    pub(crate) fn prompt(&self) -> String {
        let mut text = String::new();
        for (path, part) in &self.parts {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let place = path.parent().unwrap_or(path).display();
            text.push_str(&format!("\n\n# Instructions from {name} in {place}\n\n{part}"));
        }
        if self.parts.len() > 1 {
            text.push_str("\n\nWhere these instructions differ, the later ones hold.");
        }
        text
    }
}
