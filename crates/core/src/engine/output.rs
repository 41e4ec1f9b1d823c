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

/// Tells live what is printed, while it comes.
pub(crate) struct Telling {
    session: Arc<Session>,
    place: Place,
    /// Whose output it is; none is that of a setup.
    tool: Option<CallId>,
    /// What the output passes before anybody is told of it.
    clean: Mutex<Redactor>,
}

impl Telling {
    /// What makes an agent's folder ready prints.
    pub(crate) fn of_setup(session: Arc<Session>, place: Place) -> Self {
        Self::of(session, place, None)
    }

    fn of(session: Arc<Session>, place: Place, tool: Option<CallId>) -> Self {
        let clean = Mutex::new(Redactor::new(session.secrets.clone()));
        Self { session, place, tool, clean }
    }

    /// No more comes: tells what was held back because it might have begun a secret.
    pub(crate) fn ends(&self) {
        let held = self.clean.lock().finish();
        self.told(&held);
    }

    fn told(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = capped(text, SHOWN);
        let kind = match &self.tool {
            Some(tool) => LiveKind::ToolOutput { tool: tool.clone(), text },
            None => LiveKind::SetupOutput { text },
        };
        self.session.journal.live(self.place.clone(), kind);
    }
}

impl OutputSink for Telling {
    fn write(&self, text: &str) {
        self.tell(text);
    }

    fn tell(&self, text: &str) {
        let clean = self.clean.lock().push(text);
        self.told(&clean);
    }
}

/// Collects a call's output while it comes, and tells it live.
pub(crate) struct Capped {
    telling: Telling,
    /// As it was written: whoever reads it redacts it, with what a cut has left of a secret.
    kept: Mutex<Capture>,
}

impl Capped {
    pub(crate) fn new(session: Arc<Session>, place: Place, tool: CallId) -> Self {
        Self { telling: Telling::of(session, place, Some(tool)), kept: Mutex::new(Capture::new(KEPT)) }
    }

    /// No more comes.
    pub(crate) fn ends(&self) {
        self.telling.ends();
    }

    /// What was kept so far. It may have secrets in it.
    pub(crate) fn text(&self) -> String {
        self.kept.lock().text()
    }
}

impl OutputSink for Capped {
    fn write(&self, text: &str) {
        self.kept.lock().write(text.as_bytes());
        self.tell(text);
    }

    fn tell(&self, text: &str) {
        self.telling.tell(text);
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
