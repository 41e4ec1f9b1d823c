//! Output that is bounded: head and tail are kept, and the size of the middle is said.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ports::OutputSink;
use super::session::Session;
use crate::rules::event::{LiveKind, Place};
use crate::rules::id::CallId;
use crate::rules::secrets::Redactor;

/// How many bytes of the head, and of the tail, are kept of a call's output.
const KEPT: usize = 32 << 10;

/// How many bytes of a result the model is given at most.
pub(crate) const RESULT: usize = 1 << 20;

/// How many bytes of a result an event shows at most.
pub(crate) const SHOWN: usize = 16 << 10;

/// Cuts the middle out of a text that is longer than `most` bytes, and says how much.
pub(crate) fn capped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = floor(text, most / 2);
    let tail = ceil(text, text.len() - most / 2);
    let left_out = tail - head;
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..])
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len())
}

/// Collects a call's output while it comes, and tells it live.
pub(crate) struct Capped {
    session: Arc<Session>,
    place: Place,
    tool: CallId,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    head: String,
    tail: VecDeque<u8>,
    left_out: usize,
    /// What the output passes before anybody sees it.
    clean: Redactor,
}

impl Capped {
    pub(crate) fn new(session: Arc<Session>, place: Place, tool: CallId) -> Self {
        let clean = Redactor::new(session.secrets.clone());
        Self { session, place, tool, kept: Mutex::new(Kept { clean, ..Kept::default() }) }
    }

    /// No more comes: keeps and tells what was held back because it might have begun a secret.
    pub(crate) fn ends(&self) {
        let mut kept = self.kept.lock();
        let held = kept.clean.finish();
        kept.keep(&held);
        drop(kept);
        self.tell(&held);
    }

    fn tell(&self, text: &str) {
        if !text.is_empty() {
            let kind = LiveKind::ToolOutput { tool: self.tool.clone(), text: capped(text, SHOWN) };
            self.session.journal.live(self.place.clone(), kind);
        }
    }

    /// What was kept so far.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock();
        let (a, b) = kept.tail.as_slices();
        let tail = String::from_utf8_lossy(&[a, b].concat()).into_owned();
        match kept.left_out {
            0 => format!("{}{tail}", kept.head),
            n => format!("{}\n[… {n} bytes left out …]\n{tail}", kept.head),
        }
    }
}

impl OutputSink for Capped {
    fn write(&self, text: &str) {
        let mut kept = self.kept.lock();
        let text = kept.clean.push(text);
        kept.keep(&text);
        drop(kept);
        self.tell(&text);
    }
}

impl Kept {
    fn keep(&mut self, text: &str) {
        let room = floor(text, KEPT.saturating_sub(self.head.len()).min(text.len()));
        let room = if self.tail.is_empty() { room } else { 0 };
        self.head.push_str(&text[..room]);
        self.tail.extend(&text.as_bytes()[room..]);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.left_out += over;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_head_and_tail_and_says_what_is_missing() {
        assert_eq!(capped("abc", 3), "abc");
        assert_eq!(capped("abcdefgh", 4), "ab\n[… 4 bytes left out …]\ngh");
        assert_eq!(capped("äöüß", 4), "ä\n[… 4 bytes left out …]\nß");
    }
}
