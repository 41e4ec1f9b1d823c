//! Output that is bounded: head and tail are kept, and the size of the middle is said.

use std::sync::Arc;

use parking_lot::Mutex;

use super::ports::OutputSink;
use super::session::Session;
use crate::rules::capture::Capture;
use crate::rules::event::{LiveKind, Place};
use crate::rules::id::CallId;
use crate::rules::secrets::Redactor;

/// How many bytes are kept of a call's output: half of them of its head, half of its tail.
const KEPT: usize = 64 << 10;

/// How many bytes of a result the model is given at most.
pub(crate) const RESULT: usize = 1 << 20;

/// How many bytes of a result an event shows at most.
pub(crate) const SHOWN: usize = 16 << 10;

/// Cuts the middle out of a text that is longer than `most` bytes, and says how much.
pub(crate) fn capped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut kept = Capture::new(most);
    kept.write(text.as_bytes());
    kept.text()
}

/// Collects a call's output while it comes, and tells it live.
pub(crate) struct Capped {
    session: Arc<Session>,
    place: Place,
    tool: CallId,
    kept: Mutex<Kept>,
}

struct Kept {
    /// As it was written: whoever reads it redacts it, with what a cut has left of a secret.
    output: Capture,
    /// What the output passes before anybody is told of it.
    clean: Redactor,
}

impl Capped {
    pub(crate) fn new(session: Arc<Session>, place: Place, tool: CallId) -> Self {
        let kept = Kept { output: Capture::new(KEPT), clean: Redactor::new(session.secrets.clone()) };
        Self { session, place, tool, kept: Mutex::new(kept) }
    }

    /// No more comes: tells what was held back because it might have begun a secret.
    pub(crate) fn ends(&self) {
        let held = self.kept.lock().clean.finish();
        self.told(&held);
    }

    fn told(&self, text: &str) {
        if !text.is_empty() {
            let kind = LiveKind::ToolOutput { tool: self.tool.clone(), text: capped(text, SHOWN) };
            self.session.journal.live(self.place.clone(), kind);
        }
    }

    /// What was kept so far. It may have secrets in it.
    pub(crate) fn text(&self) -> String {
        self.kept.lock().output.text()
    }
}

impl OutputSink for Capped {
    fn write(&self, text: &str) {
        self.kept.lock().output.write(text.as_bytes());
        self.tell(text);
    }

    fn tell(&self, text: &str) {
        let clean = self.kept.lock().clean.push(text);
        self.told(&clean);
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
