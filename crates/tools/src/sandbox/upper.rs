//! Folders for what an agent changes in a person's caches: the upper half of each overlay, which the person's own
//! is below. One anchor has them at a time, since two overlays can't share one; where a view has to be made
//! anew while commands still run in the old one, the new one's read the person's cache alone.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, remove_dir};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::mount_plan::Step;

/// Those that anchors have, and whether the anchor is ending. Their number is bounded by that of anchors.
static IN_USE: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());

static FREED: Condvar = Condvar::new();

/// How long one that is ending is waited for.
const ENDS: Duration = Duration::from_secs(1);

/// Those of one anchor.
#[derive(Debug, Default)]
pub(crate) struct Uppers(Vec<PathBuf>);

impl Uppers {
    /// Makes and takes those that the steps name. Where one is taken the step becomes one by which the cache can be
    /// read.
    ///
    /// # Errors
    /// One can't be made.
    pub(crate) fn take(steps: &mut [Step]) -> io::Result<Self> {
        let mut all = Self::default();
        for step in steps {
            let Step::Overlay { lower, above, at } = &step else { continue };
            if is_had(above) {
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

impl Uppers {
    /// Their anchor is ending: whoever wants one waits for that.
    pub(crate) fn are_ending(&self) {
        let mut in_use = IN_USE.lock();
        in_use.extend(self.0.iter().map(|above| (above.clone(), true)));
    }
}

/// Takes one, unless an anchor has it that isn't ending, or doesn't end.
fn is_had(above: &Path) -> bool {
    let until = Instant::now() + ENDS;
    let mut in_use = IN_USE.lock();
    while in_use.get(above) == Some(&true) && !FREED.wait_until(&mut in_use, until).timed_out() {}
    let is_free = !in_use.contains_key(above);
    if is_free {
        in_use.insert(above.to_owned(), false);
    }
    is_free
}

/// Whether all that the steps name could be had now.
pub(crate) fn are_free(steps: &[Step]) -> bool {
    let in_use = IN_USE.lock();
    !steps.iter().any(|step| matches!(step, Step::Overlay { above, .. } if in_use.contains_key(above)))
}

impl Drop for Uppers {
    fn drop(&mut self) {
        for above in self.0.drain(..) {
            // The system's own, which nobody may look into: who removes the folders later couldn't.
            let _not_there = remove_dir(work(&above).join("work"));
            IN_USE.lock().remove(&above);
        }
        FREED.notify_all();
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
    fn what_one_anchor_changes_in_another_can_only_read_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let overlay = Step::Overlay { lower: "/l".into(), above: folder.path().join("a"), at: "/c".into() };
        let read_only = Step::Bind { from: "/l".into(), at: "/c".into(), writable: false };
        let take = || {
            let mut steps = [overlay.clone()];
            let taken = Uppers::take(&mut steps).unwrap();
            (steps, taken)
        };
        let (first, taken) = take();
        assert!(!are_free(&first));
        let (second, _nothing) = take();
        assert_eq!((first, second), ([overlay.clone()], [read_only]));
        drop(taken);
        assert!(are_free(std::slice::from_ref(&overlay)));
        assert_eq!(take().0, [overlay]);
    }
}
