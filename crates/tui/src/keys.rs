//! Keys and actions: which there are ([`TABLE`]), which key does which ([`Keymap`]), and which word ([`command`]).
//! Nothing here does any of it.

mod command;
mod key;
mod limits;
mod table;

use std::collections::{BTreeMap, HashMap};

use crossterm::event::KeyEvent;

pub use command::{CommandError, Draft, command, matching, read};
pub use key::{Key, NoKey};
pub use limits::{LimitsError, limits};
pub use table::{Action, Row, TABLE, Words, row_named, row_of};

/// Which key does what. No key does two things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    by_key: HashMap<Key, Action>,
    by_action: HashMap<Action, Vec<Key>>,
}

/// Why keys can't be as somebody wants them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No action has that name.
    #[error("there is no action `{name}`{}", meant(nearest.as_ref()))]
    UnknownAction {
        /// The name.
        name: String,
        /// The nearest one there is.
        nearest: Option<&'static str>,
    },
    /// The text is no key.
    #[error("`{text}` for `{action}` is no key: {why}")]
    Unreadable {
        /// The text.
        text: String,
        /// The action it was to do.
        action: &'static str,
        /// Why.
        why: NoKey,
    },
    /// What is typed would be taken for it.
    #[error("`{key}` is typed into messages, so it can't be for `{action}`: put ctrl+ or alt+ before it")]
    Types {
        /// The key.
        key: Key,
        /// The action it was to do.
        action: &'static str,
    },
    /// It would allow or deny something by a key that is pressed while one writes.
    #[error(
        "`{key}` is pressed while one writes, so it can't answer what agents ask (`{action}`): put ctrl+ or alt+ before it"
    )]
    Answers {
        /// The key.
        key: Key,
        /// The action it was to do.
        action: &'static str,
    },
    /// Nobody could send, stop or leave by a key any more.
    #[error("{} needs a key: {}", one_of(.actions), .why)]
    Needed {
        /// The actions one of which needs it.
        actions: &'static [&'static str],
        /// What couldn't be done otherwise.
        why: &'static str,
    },
    /// Two actions have it.
    #[error("`{key}` is for `{}` and for `{}`: give one of them another key", actions[0], actions[1])]
    Twice {
        /// The key.
        key: Key,
        /// The actions, in the table's order.
        actions: [&'static str; 2],
    },
}

fn meant(nearest: Option<&&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; the nearest known name is `{name}`"))
}

fn one_of(actions: &[&str]) -> String {
    actions.iter().map(|action| format!("`{action}`")).collect::<Vec<_>>().join(" or ")
}

/// What has to be possible by a key: one of these actions keeps one. The words behind `/` are no way out, since
/// they are sent.
const NEEDED: &[(&[Action], KeyError)] = &[
    (&[Action::Send], needed(&["send"], "nothing could be sent, and no word behind `/` be done")),
    (
        &[Action::Stop],
        needed(&["stop"], "nothing could be stopped at once, and nothing that is open be closed"),
    ),
    (&[Action::Leave, Action::Quit], needed(&["leave", "quit"], "nobody could leave at once")),
];

const fn needed(actions: &'static [&'static str], why: &'static str) -> KeyError {
    KeyError::Needed { actions, why }
}

impl KeyError {
    /// The actions it is about, by their names.
    pub fn actions(&self) -> Vec<&str> {
        match self {
            Self::UnknownAction { name, .. } => vec![name],
            Self::Unreadable { action, .. } | Self::Types { action, .. } | Self::Answers { action, .. } => {
                vec![action]
            }
            Self::Needed { actions, .. } => actions.to_vec(),
            Self::Twice { actions, .. } => actions.to_vec(),
        }
    }
}

impl Default for Keymap {
    fn default() -> Self {
        let by_action: HashMap<_, _> = TABLE.iter().map(|row| (row.action, row.keys.to_vec())).collect();
        let keys = TABLE.iter().flat_map(|row| row.keys.iter().map(|key| (*key, row.action)));
        Self { by_key: keys.collect(), by_action }
    }
}

impl Keymap {
    /// The keys as the table has them, but for those actions that `overrides` names: they have these keys
    /// and no others.
    ///
    /// # Errors
    /// [`KeyError`]: an action or a key is none, a key can't be for its action, or is for two, or nothing could be
    /// sent, stopped or left by a key.
    pub fn new(overrides: &BTreeMap<String, Vec<String>>) -> Result<Self, KeyError> {
        let mut by_action = Self::default().by_action;
        for (name, keys) in overrides {
            let row = table::row_named(name).ok_or_else(|| KeyError::UnknownAction {
                name: name.clone(),
                nearest: table::nearest(name),
            })?;
            let keys: Result<Vec<Key>, KeyError> = keys.iter().map(|text| key_for(row, text)).collect();
            by_action.insert(row.action, keys?);
        }
        let by_key = by_key(&by_action)?;
        let has_key = |action: &Action| by_action.get(action).is_some_and(|keys| !keys.is_empty());
        if let Some((_, error)) = NEEDED.iter().find(|(actions, _)| !actions.iter().any(has_key)) {
            return Err(error.clone());
        }
        Ok(Self { by_key, by_action })
    }

    /// What the key does. A key that types (`?` and `/`, [`Key::types`]) does it only where nothing is typed yet.
    pub fn action(&self, event: KeyEvent) -> Option<Action> {
        self.by_key.get(&Key::of(event)?).copied()
    }

    /// The keys of an action, the first is the one to show.
    pub fn keys_of(&self, action: Action) -> &[Key] {
        self.by_action.get(&action).map_or(&[], Vec::as_slice)
    }
}

/// The key that a text names, if the action can have it.
fn key_for(row: &Row, text: &str) -> Result<Key, KeyError> {
    let action = row.name;
    let shortened = || text.chars().take(40).collect();
    let key: Key = text.parse().map_err(|why| KeyError::Unreadable { text: shortened(), action, why })?;
    match row.action {
        Action::Once | Action::Always | Action::No if !key.is_chord() => {
            Err(KeyError::Answers { key, action })
        }
        // These open what closes again, or move what is over, and only where nothing is typed yet.
        Action::Help
        | Action::Palette
        | Action::NextMessage
        | Action::PreviousMessage
        | Action::Play
        | Action::Step
        | Action::Back
        | Action::Faster
        | Action::Slower => Ok(key),
        _ if key.types() => Err(KeyError::Types { key, action }),
        _ => Ok(key),
    }
}

fn by_key(by_action: &HashMap<Action, Vec<Key>>) -> Result<HashMap<Key, Action>, KeyError> {
    let mut rows: HashMap<Key, &Row> = HashMap::new();
    for row in TABLE {
        for key in by_action.get(&row.action).into_iter().flatten() {
            // One that is named twice for the same action does no harm.
            if let Some(other) = rows.insert(*key, row).filter(|other| other.action != row.action) {
                return Err(KeyError::Twice { key: *key, actions: [other.name, row.name] });
            }
        }
    }
    Ok(rows.into_iter().map(|(key, row)| (key, row.action)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn overrides(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let texts = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        rows.iter().map(|(name, keys)| ((*name).to_owned(), texts(keys))).collect()
    }

    fn shown(map: &Keymap, action: Action) -> Vec<String> {
        map.keys_of(action).iter().map(Key::to_string).collect()
    }

    #[test]
    fn the_table_is_sound() {
        assert_eq!(Keymap::new(&BTreeMap::new()), Ok(Keymap::default()));
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        let actions: HashSet<_> = TABLE.iter().map(|row| row.action).collect();
        assert_eq!((names.len(), actions.len()), (TABLE.len(), TABLE.len()));
        for row in TABLE {
            let is_snake =
                row.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(is_snake && !row.help.is_empty(), "{row:?}");
            for key in row.keys {
                assert_eq!(key_for(row, &key.to_string()), Ok(*key), "{row:?}");
            }
        }
    }

    #[test]
    fn a_person_gives_an_action_other_keys_and_its_own_are_free_then() {
        let map = Keymap::new(&overrides(&[
            ("soon", &["f2", "f2"]),
            ("plan", &["ctrl+s"]),
            ("history", &[]),
            ("help", &["!"]),
            ("previous-agent", &["alt+left"]),
            ("leave", &[]),
            ("quit", &["ctrl+q"]),
        ]));
        let map = map.unwrap();
        assert_eq!(shown(&map, Action::Sooner), ["f2", "f2"]);
        assert_eq!(shown(&map, Action::History), Vec::<String>::new());
        let action = |code, held| map.action(KeyEvent::new(code, held));
        assert_eq!(action(KeyCode::Char('s'), KeyModifiers::CONTROL), Some(Action::Plan));
        assert_eq!(action(KeyCode::Enter, KeyModifiers::SHIFT), None);
        assert_eq!(action(KeyCode::F(2), KeyModifiers::NONE), Some(Action::Sooner));
        assert_eq!(action(KeyCode::Char('!'), KeyModifiers::NONE), Some(Action::Help));
        assert_eq!(action(KeyCode::BackTab, KeyModifiers::SHIFT), None);
        assert_eq!(action(KeyCode::Char('4'), KeyModifiers::CONTROL), Some(Action::Stop));
        assert_eq!(action(KeyCode::Char('x'), KeyModifiers::NONE), None);
    }

    #[test]
    fn keys_that_cannot_be_are_errors_that_name_the_key_and_the_action() {
        type Overrides<'a> = &'a [(&'a str, &'a [&'a str])];
        let rows: [(Overrides<'_>, &str, &[&str]); 12] = [
            (&[("sonn", &["f2"])], "no action `sonn`; the nearest known name is `soon`", &["sonn"]),
            (&[("plan", &["hyper+p"])], "`hyper+p` for `plan` is no key", &["plan"]),
            (&[("plan", &["ctrl+i"])], "terminals send it as tab", &["plan"]),
            (&[("plan", &["p"])], "`p` is typed into messages, so it can't be for `plan`", &["plan"]),
            (&[("yes", &["y"])], "can't answer what agents ask (`yes`)", &["yes"]),
            (&[("no", &["f9"])], "`f9` is pressed while one writes", &["no"]),
            (&[("always", &["shift+enter"])], "put ctrl+ or alt+ before it", &["always"]),
            (&[("plan", &["ctrl+s"])], "`ctrl+s` is for `soon` and for `plan`", &["soon", "plan"]),
            (&[("plan", &["f2"]), ("diff", &["F2"])], "`f2` is for `plan` and for `diff`", &["plan", "diff"]),
            (&[("send", &[])], "`send` needs a key: nothing could be sent", &["send"]),
            (&[("stop", &[])], "`stop` needs a key: nothing could be stopped", &["stop"]),
            (&[("leave", &[])], "`leave` or `quit` needs a key: nobody could leave", &["leave", "quit"]),
        ];
        for (said, expected, actions) in rows {
            let error = Keymap::new(&overrides(said)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}\n{expected}");
            assert_eq!(error.actions(), actions);
        }
    }
}
