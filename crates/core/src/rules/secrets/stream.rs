//! The same redaction for a text that comes in pieces: a secret that is split over two of
//! them does not get out. What may begin a secret is held back until it is known.

use std::borrow::Cow;

use super::Secrets;

/// Redacts a text that comes in pieces. Whatever the pieces, all that it gives back is together what
/// [`Secrets::redact`] gives for the whole text.
#[derive(Debug, Default)]
pub struct Redactor {
    secrets: Secrets,
    /// What may begin a secret: shorter than the longest form of one.
    pub(super) held: String,
}

impl Redactor {
    /// For one text.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: String::new() }
    }

    /// What is known of the text after its next piece; it may be nothing.
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        let Some(known) = self.secrets.0.clone() else { return Cow::Borrowed(piece) };
        if self.held.is_empty() && known.is_harmless(piece) {
            return Cow::Borrowed(piece);
        }
        self.held.push_str(piece);
        let mut told = String::new();
        let from = known.redact_until_doubt(&self.held, &mut told);
        self.held.drain(..from);
        Cow::Owned(told)
    }

    /// What was held back: no more comes, so it began no secret.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.secrets.redact(&held).into_owned()
    }
}
