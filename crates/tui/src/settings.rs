//! What a person chose of the terminal (`[terminal]` in their configuration, and flags).

use crate::keys::Keymap;
use crate::look::Look;

/// How this terminal behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Enter sends `follow_up`, not the receiver's default.
    pub queue_mode: bool,
    /// The wheel scrolls; else the mouse is the terminal's.
    pub mouse: bool,
    /// What can be shown.
    pub look: Look,
    /// Which key does what.
    pub keys: Keymap,
}

impl Default for Settings {
    fn default() -> Self {
        let look = Look { colours: true, unicode: true };
        Self { queue_mode: false, mouse: true, look, keys: Keymap::default() }
    }
}
