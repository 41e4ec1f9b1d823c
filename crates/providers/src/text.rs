//! Text that comes in pieces, and may be cut anywhere.
//!
//! Some servers cut by UTF-16 units: half a character then arrives as the escape of a lone
//! surrogate, which no Rust string can hold. Pieces are therefore read as bytes, and the two
//! halves are joined here.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer};

/// A piece of a JSON string: UTF-8, but for lone surrogates, which are encoded as if they
/// were characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece<'a>(Cow<'a, [u8]>);

impl Piece<'_> {
    /// The piece alone, as text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = Text::default();
        text.push(self, |_| {});
        text.finish()
    }
}

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(PieceVisitor)
    }
}

struct PieceVisitor;

impl<'de> serde::de::Visitor<'de> for PieceVisitor {
    type Value = Piece<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Piece<'de>, E> {
        Ok(Piece(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Piece<'de>, E> {
        Ok(Piece(Cow::Owned(bytes.to_vec())))
    }
}

/// Text put together from pieces.
#[derive(Debug, Default)]
pub(crate) struct Text {
    whole: String,
    /// The first half of a character whose second half should begin the next piece.
    half: Option<u16>,
}

impl Text {
    /// Adds a piece and tells what can be shown of it.
    pub(crate) fn push(&mut self, piece: &Piece<'_>, tell: impl FnOnce(&str)) {
        let start = self.whole.len();
        match (self.half, std::str::from_utf8(&piece.0)) {
            (None, Ok(text)) => self.whole.push_str(text),
            _ => self.push_slowly(&piece.0),
        }
        if self.whole.len() > start {
            tell(&self.whole[start..]);
        }
    }

    /// How many bytes have come.
    pub(crate) fn len(&self) -> u64 {
        self.whole.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// The text; half a character at its end is a replacement character.
    pub(crate) fn finish(mut self) -> String {
        self.push_units(self.half);
        self.whole
    }

    /// Adds a piece that begins or ends within a character, or may do so.
    fn push_slowly(&mut self, mut bytes: &[u8]) {
        let mut units: Vec<u16> = self.half.take().into_iter().collect();
        while let Some(chunk) = bytes.utf8_chunks().next() {
            units.extend(chunk.valid().encode_utf16());
            bytes = &bytes[chunk.valid().len()..];
            let (unit, rest) = match bytes {
                [0xed, second, third, rest @ ..] => (surrogate(*second, *third), rest),
                // Nothing but a lone surrogate makes a JSON string invalid.
                [_, rest @ ..] => (0xfffd, rest),
                [] => break,
            };
            units.push(unit);
            bytes = rest;
        }
        self.half = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
        self.push_units(units);
    }

    fn push_units(&mut self, units: impl IntoIterator<Item = u16>) {
        let joined = char::decode_utf16(units);
        self.whole.extend(joined.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }
}

/// The lone surrogate that ends with these two of its three bytes.
fn surrogate(second: u8, third: u8) -> u16 {
    0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_between_two_pieces_is_whole_again() {
        let rows: &[(&[&str], &str)] = &[
            (&[r#""a""#, r#""b""#], "ab"),
            (&[r#""a\ud83d""#, r#""\ude00b""#], "a😀b"),
            (&[r#""\ud83d\ude00""#], "😀"),
            (&[r#""a\ud83d""#, r#""b""#], "a\u{fffd}b"),
            (&[r#""a\ud83d""#], "a\u{fffd}"),
            (&[r#""\ude00a""#], "\u{fffd}a"),
            (&[r#""\ud83d""#, r#""""#, r#""\ude00""#], "😀"),
            (&[r#""\n\"é""#], "\n\"é"),
        ];
        for (pieces, expected) in rows {
            let (mut text, mut told) = (Text::default(), String::new());
            for json in *pieces {
                let piece: Piece<'_> = serde_json::from_str(json).unwrap();
                text.push(&piece, |delta| told.push_str(delta));
            }
            let whole = text.finish();
            assert_eq!(whole, *expected);
            assert!(whole.starts_with(&told));
        }
    }

    #[test]
    fn a_piece_without_escapes_is_borrowed() {
        let piece: Piece<'_> = serde_json::from_str(r#""plain é""#).unwrap();
        assert!(matches!(piece.0, Cow::Borrowed(_)));
    }
}
