//! Where a person types: a draft for each agent that nothing overwrites.
//!
//! No event, error or refusal, and no other terminal, changes a draft; what comes to an agent that has one waits
//! behind it. What was sent or cleared is in the history. All of it is pure but [`drafts`], which is the disk.

use std::collections::BTreeMap;

use crossterm::event::KeyEvent;
use midturn_core::rules::id::AgentName;
use midturn_view::clean::clean;
use ratatui::Frame;
use ratatui::layout::Rect;

use crate::look::Look;

mod area;
pub mod completion;
mod draft;
pub mod drafts;
mod history;
mod notes;
#[cfg(test)]
mod tests;

use completion::Completion;
use draft::Draft;
use drafts::{Saved, SavedDraft};
use history::History;
use midturn_view::review::Comment;
use notes::Note;

/// The most bytes in a draft: as many as a message may have (semantics.md, section 4).
pub const DRAFT_MAX: usize = 256 << 10;

/// Why a text was not put into the draft, which is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message has at most {limit} bytes, and with this it would have {bytes}: save it as a file and name the file",
    limit = DRAFT_MAX
)]
pub struct TooLong {
    /// How long the draft would be.
    pub bytes: usize,
}

/// The drafts of a terminal, one of which is shown.
#[derive(Debug)]
pub struct Composer {
    chosen: AgentName,
    shown: Draft,
    /// The drafts of the others, those that hold something.
    others: BTreeMap<AgentName, Draft>,
    /// What was said to lines of diffs and not sent.
    comments: BTreeMap<AgentName, Vec<Comment>>,
    /// The comment that is being written: its text is what is typed meanwhile.
    note: Option<Note>,
    history: History,
    unsaved: bool,
}

impl Composer {
    /// A composer that shows this agent's draft, with what was saved.
    pub fn new(chosen: AgentName, saved: Saved) -> Self {
        let (shown, history) = (Draft::default(), History::new(saved.history));
        let comments = saved.comments.into_iter().collect();
        let mut composer =
            Self { chosen, shown, others: BTreeMap::new(), comments, note: None, history, unsaved: false };
        for SavedDraft { agent, texts, cursor } in saved.drafts {
            let draft = composer.draft_of(&agent);
            draft.give_back(texts.iter().map(|text| inert(text)));
            draft.move_to(cursor);
        }
        composer
    }

    /// Shows this agent's draft, with its cursor where it was.
    pub fn choose(&mut self, agent: &AgentName) {
        if *agent == self.chosen {
            return;
        }
        self.leave_note();
        let next = self.others.remove(agent).unwrap_or_default();
        let last = std::mem::replace(&mut self.shown, next);
        let left = std::mem::replace(&mut self.chosen, agent.clone());
        if last.holds_something() {
            self.others.insert(left, last);
        }
    }

    /// Whose draft is shown.
    pub fn chosen(&self) -> &AgentName {
        &self.chosen
    }

    /// The agents that something is written to and not sent.
    pub fn drafted(&self) -> impl Iterator<Item = &AgentName> {
        self.unsent().map(|(agent, _)| agent)
    }

    fn unsent(&self) -> impl Iterator<Item = (&AgentName, &Draft)> {
        let shown = std::iter::once((&self.chosen, &self.shown));
        shown.chain(&self.others).filter(|(_, draft)| draft.is_unsent())
    }

    /// Does what a key of the editor does. `false`: it did nothing, as an arrow does at the text's end.
    pub fn edit(&mut self, key: KeyEvent) -> bool {
        let room = DRAFT_MAX.saturating_sub(self.front().bytes());
        let done = self.front_mut().edit(key, room);
        self.unsaved |= done;
        done
    }

    /// Begins a new line.
    ///
    /// # Errors
    /// The draft is full.
    pub fn newline(&mut self) -> Result<(), TooLong> {
        self.insert("\n")
    }

    /// Puts what was pasted where the cursor is, without what would act on a terminal.
    ///
    /// # Errors
    /// It doesn't fit; nothing of it is put.
    pub fn paste(&mut self, text: &str) -> Result<(), TooLong> {
        self.insert(&inert(text))
    }

    fn insert(&mut self, text: &str) -> Result<(), TooLong> {
        if text.is_empty() {
            return Ok(());
        }
        fits(self.front().bytes() + text.len())?;
        self.front_mut().insert(text);
        self.unsaved = true;
        Ok(())
    }

    /// What came back from the person's own editor takes the draft's place; undo takes it out again.
    ///
    /// # Errors
    /// It is too long: the draft is as it was, and the text is only in the editor's file.
    pub fn editor(&mut self, text: &str) -> Result<(), TooLong> {
        let text = inert(text);
        // Editors end a file with a line feed, which nobody typed.
        let text = text.strip_suffix('\n').unwrap_or(&text);
        fits(text.len())?;
        self.front_mut().replace(text);
        self.unsaved = true;
        Ok(())
    }

    /// What is written, as it would be sent.
    pub fn text(&self) -> String {
        self.front().text()
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.front().is_empty()
    }

    /// What is typed goes here: the comment that is being written, else the draft.
    fn front(&self) -> &Draft {
        self.note.as_ref().map_or(&self.shown, |note| &note.draft)
    }

    fn front_mut(&mut self) -> &mut Draft {
        self.note.as_mut().map_or(&mut self.shown, |note| &mut note.draft)
    }

    /// Takes the text out of the composer: undo or the history brings it back. A look into the history ends.
    pub fn clear(&mut self) {
        if !self.front_mut().look_away() {
            self.keep();
            self.front_mut().clear();
        }
    }

    /// What is written was sent.
    pub fn sent(&mut self) {
        self.keep();
        self.shown.sent();
    }

    /// The text goes to the history.
    fn keep(&mut self) {
        self.history.add(self.front().text());
        self.unsaved = true;
    }

    /// Puts a text into the composer if that is empty. Otherwise it comes next.
    pub fn put(&mut self, text: &str) {
        self.refused(&self.chosen.clone(), text);
    }

    /// What was [`sent`](Self::sent) to an agent was refused: it is a draft again, if something else is written by now
    /// the next one.
    pub fn refused(&mut self, agent: &AgentName, text: &str) {
        if self.comments_back(agent, text) {
            return;
        }
        self.draft_of(agent).put(inert(text));
        self.unsaved = true;
    }

    /// What was queued for an agent and came back: each a draft of its own, the first in the composer if that is
    /// empty, the others behind it.
    pub fn give_back(&mut self, agent: &AgentName, mut texts: Vec<String>) {
        texts.retain(|text| !self.comments_back(agent, text));
        self.draft_of(agent).give_back(texts.iter().map(|text| inert(text)));
        self.unsaved = true;
    }

    fn draft_of(&mut self, agent: &AgentName) -> &mut Draft {
        match *agent == self.chosen {
            true => &mut self.shown,
            false => self.others.entry(agent.clone()).or_default(),
        }
    }

    /// How many drafts wait behind the one that is shown.
    pub fn stacked(&self) -> usize {
        self.shown.stacked()
    }

    /// Shows what was sent or cleared before. The draft is kept. `false`: there is nothing older.
    pub fn history_older(&mut self) -> bool {
        if self.note.is_some() {
            return false;
        }
        let at = self.shown.looks_at().unwrap_or(self.history.len());
        self.look_at(at.checked_sub(1))
    }

    /// Shows what was sent or cleared after it, at last the draft. `false`: the draft is what is shown.
    pub fn history_newer(&mut self) -> bool {
        match self.shown.looks_at().map(|at| at + 1) {
            Some(at) if at < self.history.len() => self.look_at(Some(at)),
            Some(_) => self.shown.look_away(),
            None => false,
        }
    }

    fn look_at(&mut self, at: Option<usize>) -> bool {
        let Some((at, text)) = at.and_then(|at| Some((at, self.history.get(at)?))) else { return false };
        self.shown.look_at(at, text);
        true
    }

    /// What was sent or cleared and has these letters in it, capital or small, the newest first.
    pub fn search(&self, letters: &str) -> Vec<&str> {
        self.history.search(letters)
    }

    /// Shows what a search has found, as [`history_older`](Self::history_older) would.
    pub fn recall(&mut self, text: &str) -> bool {
        self.look_at(self.history.position(text))
    }

    /// What can be completed where the cursor is: an agent's name behind an `@`, an action at the beginning.
    pub fn completion(&self, agents: &[AgentName], actions: &[(&str, &str)]) -> Option<Completion> {
        completion::find(&self.shown.before_cursor(), agents, actions)
    }

    /// Puts what is chosen in the place of what was typed of it.
    pub fn accept(&mut self, completion: &Completion) -> Result<(), TooLong> {
        let before = self.shown.before_cursor();
        match (completion.rest(&before), completion.items.get(completion.chosen)) {
            (Some(rest), _) => self.insert(&rest),
            // An action that was found by what it does: it is all that stands before the cursor.
            (None, Some(item)) if item.matches(&before) => {
                let whole = self.shown.text();
                self.editor(&format!("{} {}", item.word, whole.strip_prefix(&before).unwrap_or_default()))
            }
            (None, _) => Ok(()),
        }
    }

    /// The rows that the text needs at this width, at least one and at most `max`.
    pub fn height(&self, width: u16, max: u16) -> u16 {
        self.front().area().height(width, max)
    }

    /// Draws the text, or what stands there while there is none, and sets the cursor into it.
    pub fn draw(&self, frame: &mut Frame, area: Rect, look: Look, placeholder: &str) {
        self.front().area().draw(frame, area, look, placeholder);
    }

    /// What is to be saved, if something has changed since this was last asked.
    pub fn unsaved(&mut self) -> Option<Saved> {
        std::mem::take(&mut self.unsaved).then(|| self.saved())
    }

    /// What was to be saved could not be: the next [`unsaved`](Self::unsaved) has it.
    pub fn not_saved(&mut self) {
        self.unsaved = true;
    }

    fn saved(&self) -> Saved {
        let drafts = self.unsent().map(|(agent, draft)| SavedDraft {
            agent: agent.clone(),
            texts: draft.texts(),
            cursor: draft.cursor(),
        });
        let mut drafts: Vec<SavedDraft> = drafts.collect();
        drafts.sort_by(|one, other| one.agent.cmp(&other.agent));
        Saved { drafts, history: self.history.entries(), comments: self.all_comments() }
    }
}

/// A text as it is kept: with plain line feeds, without what would act on a terminal.
fn inert(text: &str) -> String {
    // Terminals paste a line's end as a return, at which the cleaner starts the line over.
    clean(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

fn fits(bytes: usize) -> Result<(), TooLong> {
    if bytes <= DRAFT_MAX { Ok(()) } else { Err(TooLong { bytes }) }
}
