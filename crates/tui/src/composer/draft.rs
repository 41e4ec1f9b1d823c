//! One agent's draft, and what waits behind it.

use std::collections::VecDeque;

use crossterm::event::KeyEvent;

use super::area::Area;

/// What is written to an agent and not sent.
#[derive(Debug, Default)]
pub(super) struct Draft {
    area: Area,
    /// What comes when this one is sent or cleared, each by itself.
    waiting: VecDeque<String>,
    looks: Option<Looking>,
}

/// A look into the history, whose entry stands in the composer meanwhile.
#[derive(Debug)]
struct Looking {
    at: usize,
    /// The draft, as it was.
    kept: Area,
}

impl Draft {
    pub(super) fn area(&self) -> &Area {
        &self.area
    }

    pub(super) fn text(&self) -> String {
        self.area.text()
    }

    pub(super) fn bytes(&self) -> usize {
        self.area.bytes()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(super) fn before_cursor(&self) -> String {
        self.area.before_cursor()
    }

    pub(super) fn stacked(&self) -> usize {
        self.waiting.len()
    }

    /// Whether something would be lost with it: undo can bring back what was taken out.
    pub(super) fn holds_something(&self) -> bool {
        self.area.was_touched() || !self.waiting.is_empty() || self.looks.is_some()
    }

    /// Whether it holds a text that was not sent.
    pub(super) fn is_unsent(&self) -> bool {
        !self.own().is_empty() || !self.waiting.is_empty()
    }

    /// What was not sent: the draft, and what waits behind it.
    pub(super) fn texts(&self) -> Vec<String> {
        let first = self.own().text();
        let first = (!first.is_empty()).then_some(first);
        first.into_iter().chain(self.waiting.iter().cloned()).collect()
    }

    /// Where the draft's cursor is: its line and character.
    pub(super) fn cursor(&self) -> (usize, usize) {
        self.own().cursor()
    }

    /// The draft, also while an entry of the history is shown.
    fn own(&self) -> &Area {
        self.looks.as_ref().map_or(&self.area, |looks| &looks.kept)
    }

    pub(super) fn move_to(&mut self, cursor: (usize, usize)) {
        self.area.move_to(cursor);
    }

    pub(super) fn edit(&mut self, key: KeyEvent, room: usize) -> bool {
        let before = self.looks.is_some().then(|| self.area.text());
        let done = self.area.edit(key, room);
        if before.is_some_and(|before| before != self.area.text()) {
            self.stay();
        }
        done
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.area.insert(text);
        self.stay();
    }

    pub(super) fn replace(&mut self, text: &str) {
        self.area.replace(text);
        self.stay();
    }

    /// An entry of the history that somebody changes is a draft; what was the draft comes after it.
    fn stay(&mut self) {
        if let Some(Looking { kept, .. }) = self.looks.take() {
            self.comes_next(kept.text());
        }
    }

    fn comes_next(&mut self, text: String) {
        if !text.is_empty() {
            self.waiting.push_front(text);
        }
    }

    /// The text was cleared. Undo brings it back where nothing comes in its place.
    pub(super) fn clear(&mut self) {
        match self.waiting.is_empty() {
            true => self.area.clear(),
            false => self.sent(),
        }
    }

    /// The text is gone, and the next one comes.
    pub(super) fn sent(&mut self) {
        if !self.look_away() {
            self.area = Area::default();
        }
        self.next();
    }

    /// Brings what waits, if nothing is written.
    fn next(&mut self) {
        if self.looks.is_some() || !self.area.is_empty() {
            return;
        }
        match self.waiting.pop_front() {
            // What was taken out of it can be brought back yet.
            Some(text) if self.area.was_touched() => self.area.insert(&text),
            Some(text) => self.area = Area::of(&text),
            None => {}
        }
    }

    pub(super) fn put(&mut self, text: String) {
        self.comes_next(text);
        self.next();
    }

    pub(super) fn give_back(&mut self, texts: impl Iterator<Item = String>) {
        self.waiting.extend(texts.filter(|text| !text.is_empty()));
        self.next();
    }

    /// Which entry of the history is shown.
    pub(super) fn looks_at(&self) -> Option<usize> {
        self.looks.as_ref().map(|looks| looks.at)
    }

    pub(super) fn look_at(&mut self, at: usize, text: &str) {
        let last = std::mem::replace(&mut self.area, Area::of(text));
        let kept = self.looks.take().map_or(last, |looks| looks.kept);
        self.looks = Some(Looking { at, kept });
    }

    /// Shows the draft again. `false`: it is shown.
    pub(super) fn look_away(&mut self) -> bool {
        let looks = self.looks.take();
        let looked = looks.is_some();
        if let Some(looks) = looks {
            self.area = looks.kept;
        }
        looked
    }
}
