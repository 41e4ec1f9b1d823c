//! Folders for what an agent changes in a person's caches: the upper half of each overlay, which the person's own
//! is below. One command has them at a time, since two overlays can't share one; another command of the
//! agent's that runs meanwhile reads the person's cache alone.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, remove_dir};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::mount_plan::Step;

/// Those that commands have. Their number is bounded by that of running commands.
static IN_USE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Those of one command.
#[derive(Debug, Default)]
pub(crate) struct Uppers(Vec<PathBuf>);

impl Uppers {
    /// Makes and takes those that the steps name. Where one is taken, or `none` can be used, the step becomes one
    /// by which the cache can be read.
    ///
    /// # Errors
    /// One can't be made.
    pub(crate) fn take(steps: &mut [Step], none: bool) -> io::Result<Self> {
        let mut all = Self::default();
        for step in steps {
            let Step::Overlay { lower, above, at } = &step else { continue };
            if !none && IN_USE.lock().insert(above.clone()) {
                all.0.push(above.clone());
                make(above)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", above.display())))?;
            } else {
                *step = Step::Bind { from: lower.clone(), at: at.clone(), writable: false };
            }
        }
        Ok(all)
    }
}

impl Drop for Uppers {
    fn drop(&mut self) {
        for above in self.0.drain(..) {
            // The system's own, which nobody may look into: who removes the folders later couldn't.
            let _not_there = remove_dir(work(&above).join("work"));
            IN_USE.lock().remove(&above);
        }
    }
}

/// What was changed.
pub(crate) fn changed(above: &Path) -> PathBuf {
    above.join("changed")
}

/// What the system needs to change it in one step.
pub(crate) fn work(above: &Path) -> PathBuf {
    above.join("work")
}

fn make(above: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(changed(above))?;
    builder.create(work(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_command_changes_in_another_can_only_read_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let overlay = Step::Overlay { lower: "/l".into(), above: folder.path().join("a"), at: "/c".into() };
        let read_only = Step::Bind { from: "/l".into(), at: "/c".into(), writable: false };
        let take = |none| {
            let mut steps = [overlay.clone()];
            let taken = Uppers::take(&mut steps, none).unwrap();
            (steps, taken)
        };
        let (first, taken) = take(false);
        let (second, _nothing) = take(false);
        assert_eq!((first, second), ([overlay.clone()], [read_only.clone()]));
        drop(taken);
        assert_eq!((take(false).0, take(true).0), ([overlay.clone()], [read_only]));
    }
}
