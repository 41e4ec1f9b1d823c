//! What was laid out already of what is shown, so that a frame lays out only what is new.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::time::Micros;
use ratatui::text::Line;

/// How many entries stay laid out: more than fit on any screen, and a few pages around them.
const KEPT: usize = 512;

/// Lines that are shared with what is drawn.
pub(crate) type Lines = Rc<Vec<Line<'static>>>;

/// What was laid out already.
#[derive(Debug, Default)]
pub struct Layouts {
    entries: RefCell<Kept>,
    said: Last<Said>,
    asked: Last<Asked>,
    timeline: Last<Timed>,
    beside: Last<(u64, Micros, u16)>,
}

/// What is being said: whose, how wide, whether a model replies, and how far each piece is.
pub(crate) type Said = (AgentName, u16, bool, Vec<(u64, u64, usize)>);

/// A request: whose, about which call, which one of them, and how wide.
pub(crate) type Asked = (AgentName, CallId, Micros, u16);

/// A timeline: after which event, at which second, how wide, which message is chosen, and what was played last with it moved.
pub(crate) type Timed = (u64, Micros, u16, Option<MessageId>, Option<u64>);

/// The last layout of what is large and looked at several times for a frame.
#[derive(Debug)]
struct Last<K>(RefCell<Option<(K, Lines)>>);

impl<K> Default for Last<K> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: PartialEq> Last<K> {
    fn get(&self, of: K, lay: impl FnOnce() -> Vec<Line<'static>>) -> Lines {
        let mut last = self.0.borrow_mut();
        if let Some((known, lines)) = &*last
            && *known == of
        {
            return lines.clone();
        }
        let lines = Rc::new(lay());
        *last = Some((of, lines.clone()));
        lines
    }
}

#[derive(Debug, Default)]
struct Kept {
    of: Option<(AgentName, u16)>,
    /// By number; with the event that changed the entry last, and whether it is open.
    lines: HashMap<u64, (u64, bool, Lines)>,
}

impl Layouts {
    /// The numbers mean other entries now.
    pub(crate) fn forget(&self) {
        self.entries.borrow_mut().lines.clear();
    }

    /// The lines of a timeline, all of it.
    pub(crate) fn timeline(&self, of: Timed, lay: impl FnOnce() -> Vec<Line<'static>>) -> Lines {
        self.timeline.get(of, lay)
    }

    /// The lines of the last minute: after which event, at which second, and how wide.
    pub(crate) fn beside(&self, of: (u64, Micros, u16), lay: impl FnOnce() -> Vec<Line<'static>>) -> Lines {
        self.beside.get(of, lay)
    }

    /// The lines of what is being said.
    pub(crate) fn said(&self, of: Said, lay: impl FnOnce() -> Vec<Line<'static>>) -> Lines {
        self.said.get(of, lay)
    }

    /// The lines of a request.
    pub(crate) fn asked(&self, of: Asked, lay: impl FnOnce() -> Vec<Line<'static>>) -> Lines {
        self.asked.get(of, lay)
    }

    /// An entry's lines: as they were laid out, if neither the entry nor the width has changed since.
    pub(crate) fn get(
        &self,
        of: (&AgentName, u16),
        number: u64,
        now: (u64, bool),
        lay: impl FnOnce() -> Lines,
    ) -> Lines {
        let mut kept = self.entries.borrow_mut();
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
