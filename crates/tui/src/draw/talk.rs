//! An agent's conversation, laid out from where one looks. Entries that no longer change are laid out once
//! for each width.

use std::rc::Rc;

use midturn_core::rules::id::AgentName;
use midturn_view::fold::{CallState, Conversation, Entry, EntryKind};
use ratatui::text::Line;

use super::entry;
use crate::layouts::Lines;
use crate::older::Older;
use crate::state::{Scroll, State};

/// The conversation of the chosen agent, for one width: entries, and behind them what is being said.
struct Talk<'a> {
    state: &'a State,
    name: &'a AgentName,
    conversation: Option<&'a Conversation>,
    older: Option<&'a Older>,
    width: u16,
    /// The numbers of the first entry, of the first one that the fold holds, and of what is being said.
    first: u64,
    held: u64,
    behind: u64,
}

impl<'a> Talk<'a> {
    fn of(state: &'a State, width: u16) -> Option<Self> {
        let name = state.chosen.as_ref()?;
        let conversation = state.session.conversation(name);
        let held = conversation.map_or(0, Conversation::dropped);
        let behind = held + conversation.map_or(0, |all| all.entries().len() as u64);
        let older = state.older_of(name);
        // More than there were is never read back: a page that has more of them had entries of its own.
        let first = held.saturating_sub(older.map_or(0, |older| older.entries().len() as u64));
        Some(Self { state, name, conversation, older, width, first, held, behind })
    }

    fn entry(&self, number: u64) -> Option<&'a Entry> {
        if number >= self.held {
            return self.conversation?.entry(number);
        }
        let entries = self.older?.entries();
        entries
            .len()
            .checked_sub(usize::try_from(self.held - number).ok()?)
            .and_then(|place| entries.get(place))
    }

    /// The lines of an entry, or of what is being said behind the last one.
    fn lines(&self, number: u64) -> Lines {
        let Some(entry) = self.entry(number) else {
            return self.live();
        };
        if self.first > 0 && number == self.first {
            let comes = self.older.is_some_and(|older| older.is_asked);
            return Rc::new(vec![entry::older(self.state, self.name, self.first + 1, comes, self.width)]);
        }
        let open = self.state.looking.get(self.name).is_some_and(|looking| looking.open.contains(&number));
        let lay = || Rc::new(entry::lines(self.state, self.name, entry, open, self.width));
        match &entry.kind {
            // What runs, waits or asks changes without an event.
            EntryKind::Call(call) if !matches!(call.state, CallState::Ended { .. }) => lay(),
            _ => self.state.layouts.get((self.name, self.width), number, (entry.changed, open), lay),
        }
    }

    /// What is being said.
    fn live(&self) -> Lines {
        let Some(agent) = self.state.session.view().agent(self.name) else { return Lines::default() };
        let pieces =
            agent.said.pieces().map(|piece| (piece.seq, piece.n, piece.kind.text().map_or(0, str::len)));
        let of = (self.name.clone(), self.width, agent.request.is_some(), pieces.collect());
        self.state.layouts.said(of, || entry::live(self.state, self.name, self.width))
    }

    /// The place so many lines above the end: what stands at the top of a page there.
    fn top_of_end(&self, height: usize) -> (u64, usize) {
        let mut left = height;
        for number in (self.first..=self.behind).rev() {
            let count = self.lines(number).len();
            if count >= left {
                return (number, count - left);
            }
            left -= count;
        }
        (self.first, 0)
    }

    /// Where one looks: what stands at the top.
    fn top(&self, height: usize) -> (u64, usize) {
        match self.state.looking().scroll {
            Scroll::End => self.top_of_end(height),
            // What was forgotten can't be looked at any more.
            Scroll::At { entry, line, .. } => {
                ((entry, line).max((self.first, 0))).min(self.top_of_end(height))
            }
        }
    }
}

/// What one sees of the conversation, and how many entries came below since one looks elsewhere.
pub fn page(state: &State, width: u16, height: u16) -> (Vec<Line<'static>>, u64) {
    let Some(talk) = Talk::of(state, width) else { return (Vec::new(), 0) };
    let height = usize::from(height);
    let (entry, line) = talk.top(height);
    let mut lines = Vec::with_capacity(height);
    for number in entry..=talk.behind {
        let skipped = if number == entry { line } else { 0 };
        lines.extend(talk.lines(number).iter().skip(skipped).take(height - lines.len()).cloned());
        if lines.len() == height {
            break;
        }
    }
    let below = match state.looking().scroll {
        Scroll::At { seen, .. } => talk.behind.saturating_sub(seen + 1),
        Scroll::End => 0,
    };
    (lines, below)
}

/// Where one looks after so many lines more; down is more.
pub(crate) fn scrolled(state: &State, lines: isize) -> Scroll {
    let area = super::areas(state).pane;
    let height = usize::from(area.height);
    let Some(talk) = Talk::of(state, area.width) else { return Scroll::End };
    let seen = match state.looking().scroll {
        Scroll::At { seen, .. } => seen,
        Scroll::End => talk.behind.saturating_sub(1),
    };
    let (entry, line) = moved(&talk, talk.top(height), lines);
    if (entry, line) >= talk.top_of_end(height) { Scroll::End } else { Scroll::At { entry, line, seen } }
}

/// The place so many lines further on.
fn moved(talk: &Talk<'_>, (mut entry, line): (u64, usize), lines: isize) -> (u64, usize) {
    let mut at = line as isize + lines;
    while at < 0 && entry > talk.first {
        entry -= 1;
        at += talk.lines(entry).len() as isize;
    }
    while entry < talk.behind && at >= talk.lines(entry).len() as isize {
        at -= talk.lines(entry).len() as isize;
        entry += 1;
    }
    (entry, at.max(0).unsigned_abs())
}

/// The last call that one sees.
pub(crate) fn last_call(state: &State) -> Option<u64> {
    let area = super::areas(state).pane;
    let talk = Talk::of(state, area.width)?;
    let (top, _) = talk.top(usize::from(area.height));
    let mut left = usize::from(area.height);
    let mut last = None;
    for number in top..talk.behind {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(talk.lines(number).len());
        if talk.entry(number).is_some_and(|entry| matches!(entry.kind, EntryKind::Call(_))) {
            last = Some(number);
        }
    }
    last
}
