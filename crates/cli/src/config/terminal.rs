//! `[terminal]`: how a person's terminal behaves, and their keys. What actions and keys there are is
//! `midturn-tui`'s; this reads and checks what is said of them.

use std::collections::BTreeMap;

use midturn_tui::keys::{KeyError, Keymap, TABLE};
use midturn_tui::settings::Notify;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::keys::Texts;
use super::{Entry, Origin};
use crate::failure::Failure;

/// How a person's terminal behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Terminal {
    /// Enter sends `follow_up`.
    pub(crate) queue_mode: bool,
    /// The wheel scrolls; else the mouse is the terminal's.
    pub(crate) mouse: bool,
    /// Nothing beyond ASCII is drawn.
    pub(crate) ascii: bool,
    /// How a person is told that somebody waits for them.
    pub(crate) notify: Notify,
    /// They are told so, too, where the terminal never says whether anybody looks.
    pub(crate) notify_unsure: bool,
    /// The keys of each action.
    pub(crate) keys: BTreeMap<String, Keys>,
}

impl Default for Terminal {
    fn default() -> Self {
        let of = |keys: &[midturn_tui::keys::Key]| Keys(keys.iter().map(ToString::to_string).collect());
        let keys = TABLE.iter().map(|row| (row.name.to_owned(), of(row.keys))).collect();
        let notify = Notify::default();
        Self { queue_mode: false, mouse: true, ascii: false, notify, notify_unsure: false, keys }
    }
}

/// Keys as they are written: a list, or one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a list of keys, such as [\"ctrl+s\", \"f2\"]";
        // An empty text is no key, as an empty list is.
        let one = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        deserializer.deserialize_any(Texts { expected, one }).map(Self)
    }
}

/// Where the keys of actions stand.
pub(super) const KEYS: &str = "terminal.keys.";

/// Whether the action can have these keys, whichever the others have.
pub(super) fn check(key: &str, value: &Value) -> Result<(), String> {
    let (Some(action), Ok(Keys(keys))) = (key.strip_prefix(KEYS), Keys::deserialize(value)) else {
        return Ok(());
    };
    match Keymap::new(&BTreeMap::from([(action.to_owned(), keys)])) {
        // Which keys the other actions have is known when all layers are laid.
        Ok(_) | Err(KeyError::Twice { .. } | KeyError::Needed { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

impl Terminal {
    /// Which key does what, all layers laid.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the place: one key is for two actions, or one that is needed has none.
    pub(super) fn keymap(&self, entries: &BTreeMap<String, Entry>) -> Result<Keymap, Failure> {
        let keys = self.keys.iter().map(|(action, Keys(keys))| (action.clone(), keys.clone())).collect();
        Keymap::new(&keys).map_err(|error| {
            let keys = error.actions().into_iter().map(|action| format!("{KEYS}{action}"));
            // What is built in fits together: somebody gave one of them its key.
            let mut said = keys.filter_map(|key| Some((entries.get(&key)?.origin.clone(), key)));
            let said = said.rfind(|(origin, _)| *origin != Origin::Default);
            let place = said.map(|(origin, key)| format!("{origin}: `{key}`: ")).unwrap_or_default();
            Failure::usage(format!("{place}{error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_are_built_in_are_those_of_the_table() {
        assert_eq!(Terminal::default().keymap(&BTreeMap::new()).unwrap(), Keymap::default());
    }
}
