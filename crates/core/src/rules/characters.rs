//! Characters that a reader doesn't see, and what follows from them for names, ids and texts.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A zero-width joiner makes one picture of several.
pub const JOINER: char = '\u{200d}';

/// Whether a character acts on a terminal, or hides.
pub fn hides(c: char) -> bool {
    c.is_control() || is_unseen(c) || c == JOINER
}

/// Whether a character is not seen, and changes what is: its order, its width, or what it is taken for.
pub fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether there is nothing to read in a text.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || hides(c) || is_filler(c))
}

/// Letters and signs that are drawn as nothing.
fn is_filler(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// A file's name for a line that a model reads. One in which something hides, or that begins with a quotation mark,
/// is a JSON string: that is how a model writes it back, and no line of it can look like a line of ours.
pub fn quoted(name: &str) -> Cow<'_, str> {
    if !name.starts_with('"') && !name.chars().any(hides) {
        return name.into();
    }
    let mut text = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if hides(c) => escape(c, &mut text),
            c => text.push(c),
        }
    }
    text.push('"');
    text.into()
}

fn escape(c: char, text: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string can't fail.
        let _ = write!(text, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C18.
    #[test]
    fn a_name_in_which_something_hides_is_a_json_string_of_one_line() {
        let rows = [
            ("src/a b.rs", "src/a b.rs"),
            ("a\"b\\c", "a\"b\\c"),
            ("é👩漢", "é👩漢"),
            ("a\nsrc/main.rs:1:fine", r#""a\nsrc/main.rs:1:fine""#),
            ("a\r\tb\"\\\u{1b}\u{85}", r#""a\u000d\tb\"\\\u001b\u0085""#),
            ("txt.\u{202e}sr", r#""txt.\u202esr""#),
            ("a\u{200b}\u{2028}\u{e0041}", r#""a\u200b\u2028\udb40\udc41""#),
            ("\"a\"", r#""\"a\"""#),
        ];
        for (name, shown) in rows {
            assert_eq!(quoted(name), shown);
            if shown != name {
                assert_eq!(serde_json::from_str::<String>(shown).unwrap(), name);
            }
        }
    }

    /// C18.
    #[test]
    fn what_nobody_can_see_is_blank() {
        for blank in [
            "",
            " \n\t",
            "\u{200b}",
            "\u{202e} \u{feff}\u{2060}",
            "\u{3164}\u{2800}",
            "\u{e0041}",
            "\0\u{1b}",
        ] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for text in ["a", "\u{200b}.", "漢", "👩", "0"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
