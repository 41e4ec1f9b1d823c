//! What an agent is saying and what its calls print, until it is recorded as a whole: who joins
//! in the middle gets it in one piece, and who had most of that gets the rest (docs/protocol.md,
//! "Events").

use serde::{Deserialize, Serialize};

use crate::rules::event::{LiveEvent, LiveKind};
use crate::rules::id::CallId;

/// So much of one reply's text, and of one reply's thinking, is kept; the newest, in bytes.
const TEXT_MAX: usize = 1024 * 1024;

/// So much of one call's output is kept, and of a setup's; the newest, in bytes.
const OUTPUT_MAX: usize = 64 * 1024;

/// How many texts and calls of one agent are followed at a time.
const PIECES_MAX: usize = 1_024;

/// What one agent has said so far, each text and each call in one piece.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Said(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Piece {
    /// The last delta, with all that there is of its text.
    whole: LiveEvent,
    /// The oldest of it is forgotten.
    is_cut: bool,
    /// The next delta is all that was said so far.
    rejoined: bool,
}

impl Said {
    /// Each text and each call that is under way.
    pub fn pieces(&self) -> impl Iterator<Item = &LiveEvent> {
        self.0.iter().map(|piece| &piece.whole)
    }

    pub(super) fn rejoined(&mut self) {
        self.0.iter_mut().for_each(|piece| piece.rejoined = true);
    }

    /// From which byte on the text is new.
    pub(super) fn live(&mut self, event: &LiveEvent) -> Option<usize> {
        let known = self.0.iter_mut().find(|piece| is_one(&piece.whole.kind, &event.kind));
        match known {
            Some(piece) => piece.goes_on(event),
            None => {
                let is_new = event.kind.text().is_none_or(|text| !text.is_empty());
                if is_new && self.0.len() < PIECES_MAX {
                    let mut piece = Piece { whole: event.clone(), is_cut: false, rejoined: false };
                    piece.keep_the_newest();
                    self.0.push(piece);
                }
                is_new.then_some(0)
            }
        }
    }

    /// The reply that was under way is recorded, or will never be. Whose model is asked has its folder ready.
    pub(super) fn reply_ends(&mut self) {
        self.0.retain(|piece| matches!(piece.whole.kind, LiveKind::ToolOutput { .. }));
    }

    pub(super) fn call_ends(&mut self, call: &CallId) {
        let is_its = |kind: &LiveKind| matches!(kind, LiveKind::ToolOutput { tool, .. } if tool == call);
        self.0.retain(|piece| !is_its(&piece.whole.kind));
    }
}

/// Whether both are parts of one text, or of one call's arguments.
fn is_one(known: &LiveKind, new: &LiveKind) -> bool {
    std::mem::discriminant(known) == std::mem::discriminant(new) && call(known) == call(new)
}

fn call(kind: &LiveKind) -> Option<&CallId> {
    match kind {
        LiveKind::CallDelta { tool, .. } | LiveKind::ToolOutput { tool, .. } => Some(tool),
        LiveKind::TextDelta { .. } | LiveKind::ThinkingDelta { .. } | LiveKind::SetupOutput { .. } => None,
    }
}

impl Piece {
    fn goes_on(&mut self, event: &LiveEvent) -> Option<usize> {
        let rejoined = std::mem::take(&mut self.rejoined);
        if event.n <= self.whole.n {
            return None;
        }
        let LiveEvent { v: _, seq, n, t, at, kind } = event;
        (self.whole.seq, self.whole.n, self.whole.t, self.whole.at) = (*seq, *n, *t, at.clone());
        let (Some(known), Some(text)) = (self.whole.kind.text_mut(), kind.text()) else {
            // It says how far a call has come.
            self.whole.kind = kind.clone();
            return Some(0);
        };
        let mut from = 0;
        if rejoined && !self.is_cut && text.starts_with(&*known) {
            from = known.len();
        } else if rejoined {
            known.clear();
        }
        known.push_str(&text[from..]);
        self.keep_the_newest();
        (from < text.len()).then_some(from)
    }

    /// Forgets the oldest of what is too much.
    fn keep_the_newest(&mut self) {
        let most = match self.whole.kind {
            LiveKind::ToolOutput { .. } | LiveKind::SetupOutput { .. } => OUTPUT_MAX,
            LiveKind::TextDelta { .. } | LiveKind::ThinkingDelta { .. } | LiveKind::CallDelta { .. } => {
                TEXT_MAX
            }
        };
        if let Some(text) = self.whole.kind.text_mut().filter(|text| text.len() > most) {
            text.drain(..text.ceil_char_boundary(text.len() - most));
            self.is_cut = true;
        }
    }
}
