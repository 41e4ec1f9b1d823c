//! What was sent or cleared.

use std::collections::VecDeque;

/// The most entries, and bytes in all of them.
const ENTRIES_MAX: usize = 500;
const BYTES_MAX: usize = 1 << 20;

/// What was sent or cleared, the oldest first; neighbours differ.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: VecDeque<String>,
    bytes: usize,
}

impl History {
    pub(super) fn new(entries: Vec<String>) -> Self {
        let mut history = Self::default();
        entries.into_iter().for_each(|text| history.add(super::inert(&text)));
        history
    }

    /// Adds what was sent or cleared; the oldest go where there are too many.
    pub(super) fn add(&mut self, text: String) {
        if text.trim().is_empty() || self.entries.back() == Some(&text) {
            return;
        }
        self.bytes += text.len();
        self.entries.push_back(text);
        while self.entries.len() > ENTRIES_MAX || self.bytes > BYTES_MAX {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }

    pub(super) fn position(&self, text: &str) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry == text)
    }

    pub(super) fn search(&self, letters: &str) -> Vec<&str> {
        let letters = letters.to_lowercase();
        let found = self.entries.iter().rev().filter(|entry| entry.to_lowercase().contains(&letters));
        found.map(String::as_str).collect()
    }

    pub(super) fn entries(&self) -> Vec<String> {
        self.entries.iter().cloned().collect()
    }
}
