//! What an agent has changed, and which line of it one looks at. Above its lines stands what was said to lines that have
//! changed since.

use std::collections::BTreeMap;

use midturn_view::patch::Patch;
use midturn_view::review::{Comment, Lines};

/// A diff that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The diff.
    pub patch: Patch,
    /// Where its lines are: comments on it are looked for in each frame.
    pub lines: Lines,
    /// It is longer than what was told of it.
    pub is_cut: bool,
    /// The line that one is at: below 0 what stands above the diff, the last one of that at -1.
    pub cursor: isize,
    /// The first line on the screen.
    pub top: isize,
}

/// What is said to a line, and what became of it; without that it is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// What is said.
    pub comment: Comment,
    /// What became of its message.
    pub says: Option<String>,
    /// What the agent said then.
    pub reply: Option<String>,
}

/// What is said to a diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remarks {
    /// By the row at which it stands.
    pub at: BTreeMap<usize, Vec<Remark>>,
    /// To lines that are not there any more.
    pub gone: Vec<Remark>,
}

impl Remarks {
    /// What is said to what stands at this place.
    pub fn of(&self, place: isize) -> &[Remark] {
        match usize::try_from(place) {
            Ok(row) => self.at.get(&row).map_or(&[], Vec::as_slice),
            Err(_) => self.gone_at(place).map_or(&[], std::slice::from_ref),
        }
    }

    /// What stands at a place above the diff.
    pub fn gone_at(&self, place: isize) -> Option<&Remark> {
        let from_below = place.checked_neg().and_then(|place| usize::try_from(place).ok())?;
        self.gone.get(self.gone.len().checked_sub(from_below)?)
    }
}

impl Changes {
    /// A diff that is looked at from its first line on.
    pub fn new(patch: Patch, is_cut: bool) -> Self {
        Self { lines: Lines::of(&patch), patch, is_cut, cursor: 0, top: 0 }
    }

    /// A place that there is, if this one is none.
    pub fn within(&self, place: isize, remarks: &Remarks) -> isize {
        let last = isize::try_from(self.patch.rows.len()).unwrap_or(isize::MAX) - 1;
        let first = -isize::try_from(remarks.gone.len()).unwrap_or(isize::MAX);
        place.clamp(first, last.max(first))
    }
}
