//! Which values are looked for, and in which forms.
//!
//! A form is here if tools and people produce it without meaning to hide anything: as it is,
//! in base64 (`Authorization: Basic`, Kubernetes), percent-encoded (URLs), escaped in JSON, in
//! hexadecimal (dumps). What is done to a value on purpose (reversed, cut up, compressed, base64
//! broken into lines) is not found: against purpose helps that commands don't have the value.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is shorter, in bytes, is found in innocent words.
pub const SHORTEST: usize = 8;

/// A value that is longer, in bytes, is looked for in pieces and not in other forms.
const LONG: usize = 4 << 10;

/// The pieces of a long value, in bytes.
const PIECE: usize = 1 << 10;

/// A line of a value of several lines (a PEM file's, say) is looked for by itself if it is as
/// long, in bytes: tools show files with numbers before the lines.
const LINE: usize = 16;

/// What stays as it is in a percent-encoded text.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a value is not looked for: it would be found everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Common {
    /// Under 8 bytes.
    #[error("it is shorter than 8 bytes")]
    Short,
    /// One word of up to 15 letters, up to 11 digits, or fewer than 4 different characters.
    #[error("it is a plain word or number")]
    Plain,
    /// It is a part of what stands in a secret's place.
    #[error("it is a part of what is put in a secret's place")]
    Mark,
}

/// Why a value would be found everywhere, if it would.
pub(super) fn common(value: &str) -> Option<Common> {
    if value.len() < SHORTEST {
        return Some(Common::Short);
    }
    let mut kinds: Vec<char> = value.chars().collect();
    kinds.sort_unstable();
    kinds.dedup();
    (is_word(value) || is_number(value) || kinds.len() < 4).then_some(Common::Plain)
}

/// A word as it stands in a dictionary or in a configuration: a generated one of 16 letters
/// is none.
fn is_word(value: &str) -> bool {
    let rest = value.get(1..).unwrap_or_default();
    let one_case =
        rest.chars().all(|c| c.is_ascii_lowercase()) || value.chars().all(|c| c.is_ascii_uppercase());
    value.len() < 16 && value.starts_with(|c: char| c.is_ascii_alphabetic()) && one_case
}

/// A number, a date, an address of four numbers.
fn is_number(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    digits < 12 && value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | ':' | '_' | '/'))
}

/// Everything that is looked for because of one value.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut forms = pieces(value);
    if value.len() <= LONG {
        forms.extend(encoded(value));
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// The value itself; one of several lines also line by line, and a long one in pieces.
fn pieces(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    if value.len() <= LONG {
        found.push(value.to_owned());
    }
    let lines: Vec<&str> = value.lines().map(str::trim).collect();
    if lines.len() > 1 {
        let own = |line: &&&str| line.len() >= LINE && !line.starts_with("-----") && common(line).is_none();
        found.extend(lines.iter().filter(own).flat_map(|line| chunks(line)));
    } else if value.len() > LONG {
        found.extend(chunks(value));
    }
    found
}

/// The text in pieces, none too short to be looked for.
fn chunks(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while rest.len() > 2 * PIECE {
        let at = (PIECE..).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        found.push(rest[..at].to_owned());
        rest = &rest[at..];
    }
    found.push(rest.to_owned());
    found
}

fn encoded(value: &str) -> Vec<String> {
    let mut found: Vec<String> = (0..3).flat_map(|before| base64(value, before)).collect();
    let percent = utf8_percent_encode(value, &UNRESERVED).to_string();
    found.push(utf8_percent_encode(value, &UNRESERVED).map(lower_if_encoded).collect());
    found.push(percent.replace("%20", "+"));
    found.push(percent);
    let json = serde_json::Value::from(value).to_string();
    found.push(json[1..json.len() - 1].to_owned());
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    found.push(hex.to_ascii_uppercase());
    found.push(hex);
    found
}

/// What base64 makes of the value, wherever it stands in what is encoded: so many bytes stand
/// before it, and those characters are left out that depend on its neighbours.
fn base64(value: &str, before: usize) -> [String; 2] {
    let bytes = [&[0, 0][..before], value.as_bytes()].concat();
    let (first, last) = ((8 * before).div_ceil(6), 8 * bytes.len() / 6);
    [
        STANDARD_NO_PAD.encode(&bytes)[first..last].to_owned(),
        URL_SAFE_NO_PAD.encode(&bytes)[first..last].to_owned(),
    ]
}

/// A byte that is encoded, `%2F` as `%2f`; what stays as it is, unchanged.
fn lower_if_encoded(part: &str) -> Cow<'_, str> {
    if part.starts_with('%') { part.to_ascii_lowercase().into() } else { part.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_everybody_has_are_not_looked_for() {
        for (value, expected) in [
            ("short", Some(Common::Short)),
            ("true", Some(Common::Short)),
            ("production", Some(Common::Plain)),
            ("Disabled", Some(Common::Plain)),
            ("PRODUCTION", Some(Common::Plain)),
            ("2026-11-22", Some(Common::Plain)),
            ("192.168.100.200", None),
            ("127.0.0.1:80", Some(Common::Plain)),
            ("********", Some(Common::Plain)),
            ("123456789012", None),
            ("abcdefghijklmnop", None),
            ("hunter2hunter2", None),
            ("correct-horse", None),
            ("pass word", None),
        ] {
            assert_eq!(common(value), expected, "{value}");
        }
    }

    #[test]
    fn base64_is_found_whatever_stands_around_the_value() {
        let value = "s3cr3t-k\u{fc}y?>";
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "x", "\n", "xyz"] {
                let text = format!("{before}{value}{after}");
                for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    assert!(forms(value).iter().any(|form| encoded.contains(form)), "{text}: {encoded}");
                }
            }
        }
    }

    #[test]
    fn the_forms_of_a_value_are_those_that_tools_make_of_it() {
        let forms = forms("a b/\"c\"\n?1");
        for expected in
            ["a b/\"c\"\n?1", "a%20b%2F%22c%22%0A%3F1", "a+b%2F%22c%22%0A%3F1", "a%20b%2f%22c%22%0a%3f1"]
        {
            assert!(forms.iter().any(|form| form == expected), "{expected}: {forms:?}");
        }
        assert!(forms.contains(&"a b/\\\"c\\\"\\n?1".to_owned()));
        assert!(forms.contains(&"6120622F2263220A3F31".to_owned()));
    }

    #[test]
    fn a_long_value_is_looked_for_in_pieces_and_one_of_lines_line_by_line() {
        let long = "0123456789abcde\u{e9}".repeat(1_000);
        let pieces = forms(&long);
        assert_eq!(pieces.concat(), long);
        assert!(pieces.iter().all(|piece| (SHORTEST..=2 * PIECE).contains(&piece.len())));
        let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----";
        let forms = forms(pem);
        assert!(forms.contains(&"MIIEvQIBADANBgkqhkiG".to_owned()));
        assert!(!forms.contains(&"short".to_owned()) && !forms.contains(&"-----BEGIN KEY-----".to_owned()));
    }
}
