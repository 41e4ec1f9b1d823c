//! Output that is bounded: head and tail are kept, and the size of the middle is said.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ports::OutputSink;
use super::session::Session;
use crate::rules::event::{LiveKind, Place};
use crate::rules::id::CallId;

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
}

impl Capped {
    pub(crate) fn new(session: Arc<Session>, place: Place, tool: CallId) -> Self {
        Self { session, place, tool, kept: Mutex::default() }
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
        let room = floor(text, KEPT.saturating_sub(kept.head.len()).min(text.len()));
        let room = if kept.tail.is_empty() { room } else { 0 };
        kept.head.push_str(&text[..room]);
        kept.tail.extend(&text.as_bytes()[room..]);
        let over = kept.tail.len().saturating_sub(KEPT);
        kept.tail.drain(..over);
        kept.left_out += over;
        drop(kept);
        let kind = LiveKind::ToolOutput { tool: self.tool.clone(), text: capped(text, SHOWN) };
        self.session.journal.live(self.place.clone(), kind);
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
