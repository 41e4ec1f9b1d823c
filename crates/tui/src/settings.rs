//! What a person chose of the terminal (`[terminal]` in their configuration, and flags).

use serde::{Deserialize, Serialize};

use crate::keys::Keymap;
use crate::look::Look;

/// How this terminal behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Enter sends `follow_up`, not the receiver's default.
    pub queue_mode: bool,
    /// The wheel scrolls; else the mouse is the terminal's.
    pub mouse: bool,
    /// How it tells that somebody is waited for, when nobody looks.
    pub notify: Notify,
    /// It tells so, too, where the terminal has never said whether anybody looks.
    pub notify_unsure: bool,
    /// The person's own way to be told, for whoever opens the terminal to run.
    pub notify_command: Option<String>,
    /// What can be shown.
    pub look: Look,
    /// Which key does what.
    pub keys: Keymap,
}

/// How a terminal tells that somebody is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// Not at all: its title stays as it is, too.
    Off,
    /// By its title alone, which says how many wait.
    Title,
    /// By its bell, and its title.
    #[default]
    Bell,
    /// By OSC 9, and its title.
    Osc9,
    /// By OSC 777, and its title.
    Osc777,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queue_mode: false,
            mouse: true,
            notify: Notify::default(),
            notify_unsure: false,
            notify_command: None,
            look: Look { colours: true, unicode: true },
            keys: Keymap::default(),
        }
    }
}
