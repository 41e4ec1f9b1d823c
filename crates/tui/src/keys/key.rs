//! One key, as a person writes it and as a terminal sends it: both become the same [`Key`].

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key with what is held down beside it. There is one form of each: a capital is a small letter with Shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    held: KeyModifiers,
}

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// It names none.
    #[error(
        "write a key with ctrl+, alt+ or shift+ before it, as in ctrl+s, alt+1, shift+enter, f1, pgup, esc, ctrl+\\"
    )]
    Form,
    /// Terminals have no code of its own for it.
    #[error("{0}")]
    NeverComes(&'static str),
}

/// The keys that have a name instead of a character. A second name of the same key is read, not written.
const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("return", KeyCode::Enter),
    ("escape", KeyCode::Esc),
    ("del", KeyCode::Delete),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

/// What is held down, in the order it is written in.
const HELD: [(&str, KeyModifiers); 3] =
    [("ctrl", KeyModifiers::CONTROL), ("alt", KeyModifiers::ALT), ("shift", KeyModifiers::SHIFT)];

/// What a terminal sends as another key, or as the beginning of one.
const NEVER: &[(Key, &str)] = &[
    (Key::ctrl('i'), "terminals send it as tab: write tab"),
    (Key::ctrl('m'), "terminals send it as enter: write enter"),
    (Key::ctrl('['), "terminals send it as esc: write esc"),
    (Key::alt('['), "terminals begin other keys with it: choose another"),
    (
        Key::new(KeyCode::Char('o'), KeyModifiers::ALT.union(KeyModifiers::SHIFT)),
        "terminals begin other keys with it: choose another",
    ),
];

impl Key {
    /// A key that is in its one form already.
    pub(super) const fn new(code: KeyCode, held: KeyModifiers) -> Self {
        Self { code, held }
    }

    /// A key alone.
    pub(super) const fn plain(code: KeyCode) -> Self {
        Self::new(code, KeyModifiers::NONE)
    }

    /// A character with Ctrl.
    pub(super) const fn ctrl(character: char) -> Self {
        Self::new(KeyCode::Char(character), KeyModifiers::CONTROL)
    }

    /// A character with Alt.
    pub(super) const fn alt(character: char) -> Self {
        Self::new(KeyCode::Char(character), KeyModifiers::ALT)
    }

    /// The key that was pressed, or is held down. None that is let go of (kitty tells that, too), and none with
    /// a modifier that no key here has.
    pub fn of(event: KeyEvent) -> Option<Self> {
        let ours = HELD.iter().fold(KeyModifiers::NONE, |all, (_, one)| all | *one);
        let is_ours = event.kind != KeyEventKind::Release && ours.contains(event.modifiers);
        is_ours.then(|| Self::in_one_form(event.code, event.modifiers))
    }

    /// Whether it writes a character when it is pressed, so that it is a person's to type.
    pub fn types(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.is_chord()
    }

    /// Whether Ctrl or Alt is held: nobody presses such a key while they write.
    pub fn is_chord(self) -> bool {
        self.held.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }

    /// For the screen: `Ctrl+S`, `Alt+Enter`, `PgUp`.
    pub fn shown(self) -> String {
        let text = self.to_string();
        let Some(character) = self.character() else {
            return text.split('+').map(capital).collect::<Vec<_>>().join("+");
        };
        let held = &text[..text.len() - character.len_utf8()];
        let held: String = held.split_inclusive('+').map(capital).collect();
        // A letter that is typed is shown as it is typed; in a chord it is the key's.
        let letter = if self.is_chord() { character.to_ascii_uppercase() } else { character };
        format!("{held}{letter}")
    }

    /// The character of a key that has no name.
    fn character(self) -> Option<char> {
        match self.code {
            KeyCode::Char(' ') => None,
            KeyCode::Char(character) => Some(character),
            _ => None,
        }
    }

    /// What terminals send in more than one way. Read in crossterm 0.29 (`event/sys/unix/parse.rs`): in raw mode
    /// `\n` is Ctrl+J; 0x1C to 0x1F, which are Ctrl with `\`, `]`, `^` and `_` (or `/`), come as Ctrl+4 to
    /// Ctrl+7; a capital has SHIFT, and in kitty's protocol it is a small letter with SHIFT; Shift+Tab is BackTab.
    fn in_one_form(code: KeyCode, mut held: KeyModifiers) -> Self {
        let code = match code {
            KeyCode::BackTab => {
                held |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(letter) if letter.is_alphabetic() => {
                held.set(KeyModifiers::SHIFT, letter.is_uppercase() || held.contains(KeyModifiers::SHIFT));
                KeyCode::Char(small(letter))
            }
            KeyCode::Char(sign) if held.contains(KeyModifiers::CONTROL) => KeyCode::Char(with_ctrl(sign)),
            // A sign that is typed says by itself whether Shift was held.
            KeyCode::Char(sign) if held == KeyModifiers::SHIFT => {
                held = KeyModifiers::NONE;
                KeyCode::Char(sign)
            }
            other => other,
        };
        Self { code, held }
    }
}

/// The small letter, where that is one.
fn small(letter: char) -> char {
    let mut small = letter.to_lowercase();
    match (small.next(), small.next()) {
        (Some(small), None) => small,
        _ => letter,
    }
}

/// The sign whose code the terminal sends.
fn with_ctrl(sign: char) -> char {
    match sign {
        '4' => '\\',
        '5' => ']',
        '6' => '^',
        '7' | '/' => '_',
        other => other,
    }
}

fn capital(word: &str) -> String {
    match word {
        "pgup" => "PgUp".to_owned(),
        "pgdn" => "PgDn".to_owned(),
        word => word[..1].to_ascii_uppercase() + &word[1..],
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, held) in HELD {
            if self.held.contains(held) {
                write!(f, "{name}+")?;
            }
        }
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(character)) => write!(f, "{character}"),
            (None, KeyCode::F(number)) => write!(f, "f{number}"),
            // Nothing is made of the others: no text names them.
            (None, other) => write!(f, "{other}"),
        }
    }
}

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let (mut rest, mut held) = (text.trim(), KeyModifiers::NONE);
        while let Some((modifier, after)) = modifier(rest) {
            held |= modifier;
            rest = after;
        }
        let key = Self::in_one_form(code(rest).ok_or(NoKey::Form)?, held);
        match NEVER.iter().find(|(never, _)| *never == key) {
            Some((_, why)) => Err(NoKey::NeverComes(why)),
            None => Ok(key),
        }
    }
}

/// What is held, and what stands behind its `+`.
fn modifier(text: &str) -> Option<(KeyModifiers, &str)> {
    let (name, rest) = text.split_once('+')?;
    let held = HELD.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1;
    Some((held, rest))
}

fn code(text: &str) -> Option<KeyCode> {
    let mut characters = text.chars();
    if let (Some(one), None) = (characters.next(), characters.next()) {
        // People write Ctrl+S for the key that has an S on it.
        return (!one.is_control() && !one.is_whitespace()).then(|| KeyCode::Char(small(one)));
    }
    let name = text.to_ascii_lowercase();
    let named = NAMED.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
    let number = || name.strip_prefix('f')?.parse().ok().filter(|number| (1..=24).contains(number));
    named.or_else(|| number().map(KeyCode::F))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: KeyModifiers = KeyModifiers::NONE;
    const CTRL: KeyModifiers = KeyModifiers::CONTROL;
    const ALT: KeyModifiers = KeyModifiers::ALT;
    const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

    #[test]
    fn what_terminals_send_is_the_key_that_was_pressed() {
        for (code, held, expected) in [
            (KeyCode::Char('j'), CTRL, "ctrl+j"),   // \n in raw mode
            (KeyCode::Char('4'), CTRL, "ctrl+\\"),  // 0x1C
            (KeyCode::Char('\\'), CTRL, "ctrl+\\"), // kitty
            (KeyCode::Char('7'), CTRL, "ctrl+_"),
            (KeyCode::Char('/'), CTRL, "ctrl+_"),
            (KeyCode::Char('A'), ALT | SHIFT, "alt+shift+a"), // ESC A
            (KeyCode::Char('a'), ALT | SHIFT, "alt+shift+a"), // kitty
            (KeyCode::Char('A'), ALT, "alt+shift+a"),         // kitty, with the other code beside
            (KeyCode::Char('a'), ALT, "alt+a"),
            (KeyCode::Char('1'), ALT, "alt+1"),
            (KeyCode::Char('1'), ALT | SHIFT, "alt+shift+1"),
            (KeyCode::Char('?'), NONE, "?"),
            (KeyCode::Char('?'), SHIFT, "?"),
            (KeyCode::Char('+'), CTRL, "ctrl++"),
            (KeyCode::Char(' '), CTRL, "ctrl+space"), // NUL
            (KeyCode::Char('Ü'), SHIFT, "shift+ü"),
            (KeyCode::BackTab, SHIFT, "shift+tab"),     // CSI Z
            (KeyCode::Backspace, ALT, "alt+backspace"), // ESC 0x7F
            (KeyCode::Enter, ALT, "alt+enter"),
            (KeyCode::Enter, SHIFT, "shift+enter"),
            (KeyCode::PageUp, NONE, "pgup"),
            (KeyCode::F(1), NONE, "f1"),
        ] {
            let key = Key::of(KeyEvent::new(code, held)).unwrap();
            assert_eq!(key.to_string(), expected);
            assert_eq!(expected.parse(), Ok(key), "{expected}");
        }
    }

    #[test]
    fn a_key_that_is_let_go_of_or_held_with_others_is_none_of_ours() {
        let of = |kind, held| Key::of(KeyEvent::new_with_kind(KeyCode::Char('y'), held, kind));
        assert_eq!(of(KeyEventKind::Release, CTRL), None);
        assert_eq!(of(KeyEventKind::Press, CTRL | KeyModifiers::SUPER), None);
        assert_eq!(of(KeyEventKind::Repeat, CTRL), Some(Key::ctrl('y')));
    }

    #[test]
    fn a_key_is_read_in_each_way_people_write_it() {
        for (text, expected) in [
            ("Ctrl+S", "ctrl+s"),
            ("alt+A", "alt+a"),
            ("shift+ALT+x", "alt+shift+x"),
            (" PgUp ", "pgup"),
            ("pagedown", "pgdn"),
            ("Escape", "esc"),
            ("F12", "f12"),
            ("+", "+"),
            ("ctrl+4", "ctrl+\\"),
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_no_terminal_sends_is_refused_and_why_is_said() {
        for (text, expected) in [
            ("ctrl+i", "as tab"),
            ("Ctrl+M", "as enter"),
            ("ctrl+[", "as esc"),
            ("alt+[", "begin other keys"),
            ("alt+shift+O", "begin other keys"),
            ("", "write a key"),
            ("ctrl+", "write a key"),
            ("ctrl", "write a key"),
            ("super+a", "write a key"),
            ("f25", "write a key"),
            ("f", ""),
            ("ctrl+ab", "write a key"),
            ("\u{1b}", "write a key"),
        ] {
            let told = text.parse::<Key>().map_or_else(|error| error.to_string(), |_| String::new());
            assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{text:?}: {told}");
        }
    }

    #[test]
    fn the_screen_shows_a_key_as_keyboards_do() {
        for (key, shown) in [
            ("ctrl+s", "Ctrl+S"),
            ("alt+enter", "Alt+Enter"),
            ("pgdn", "PgDn"),
            ("ctrl+\\", "Ctrl+\\"),
            ("ctrl++", "Ctrl++"),
            ("f1", "F1"),
            ("?", "?"),
            ("ctrl+alt+space", "Ctrl+Alt+Space"),
        ] {
            assert_eq!(key.parse::<Key>().unwrap().shown(), shown);
        }
    }
}
