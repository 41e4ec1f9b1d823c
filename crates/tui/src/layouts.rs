//! What was laid out already of the conversation that is shown, so that a frame lays out only what is new.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use midturn_core::rules::id::AgentName;
use ratatui::text::Line;

/// How many entries stay laid out: more than fit on any screen, and a few pages around them.
const KEPT: usize = 512;

/// Lines that are shared with what is drawn.
pub(crate) type Lines = Rc<Vec<Line<'static>>>;

/// What was laid out already.
#[derive(Debug, Default)]
pub struct Layouts(RefCell<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: Option<(AgentName, u16)>,
    /// By number; with the event that changed the entry last, and whether it is open.
    lines: HashMap<u64, (u64, bool, Lines)>,
}

impl Layouts {
    /// The numbers mean other entries now.
    pub(crate) fn forget(&self) {
        self.0.borrow_mut().lines.clear();
    }

    /// An entry's lines: as they were laid out, if neither the entry nor the width has changed since.
    pub(crate) fn get(
        &self,
        of: (&AgentName, u16),
        number: u64,
        now: (u64, bool),
        lay: impl FnOnce() -> Lines,
    ) -> Lines {
        let mut kept = self.0.borrow_mut();
        let is_it = kept.of.as_ref().is_some_and(|(name, width)| (name, *width) == of);
        if !is_it || kept.lines.len() > KEPT {
            *kept = Kept { of: Some((of.0.clone(), of.1)), lines: HashMap::new() };
        }
        if let Some((changed, open, lines)) = kept.lines.get(&number)
            && (*changed, *open) == now
        {
            return lines.clone();
        }
        let lines = lay();
        kept.lines.insert(number, (now.0, now.1, lines.clone()));
        lines
    }
}
