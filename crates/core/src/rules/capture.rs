//! Output of any length in bounded memory: its head, its tail, and how much lay between; and
//! text from bytes that come in pieces.

use std::collections::VecDeque;

/// What stands where output was cut, before and after the number of bytes.
pub(super) const CUT: (&str, &str) = ("\n[… ", " bytes left out …]\n");

/// Keeps a head and a tail.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    left_out: u64,
}

impl Capture {
    /// Keeps at most `max` bytes, half of them from the beginning and half from the end.
    pub fn new(max: usize) -> Self {
        let head_max = max / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_max, tail_max: max - head_max, left_out: 0 }
    }

    /// Takes a piece.
    pub fn write(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(self.tail_max)..];
        let dropped = (self.tail.len() + kept.len()).saturating_sub(self.tail_max);
        self.tail.drain(..dropped);
        self.tail.extend(kept);
        self.left_out += (dropped + rest.len() - kept.len()) as u64;
    }

    /// The text: all of it, or head and tail with the size of what is left out between them.
    pub fn text(&self) -> String {
        let (a, b) = self.tail.as_slices();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, a, b].concat()).into_owned();
        }
        let tail = [a, b].concat();
        let (head, tail) = (whole_end(&self.head), whole_begin(&tail));
        let cut = self.head.len() - head.len() + (self.tail_max - tail.len());
        let left_out = (self.left_out + cut as u64).to_string();
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        [&*head, CUT.0, &left_out, CUT.1, &*tail].concat()
    }
}

/// Without a character that is cut at the end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() - incomplete(bytes)]
}

/// Without the rest of a character at the beginning.
fn whole_begin(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|&&b| b & 0xC0 == 0x80).count();
    &bytes[rest..]
}

/// How many bytes at the end begin a character that isn't whole.
fn incomplete(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last().map(|chunk| chunk.invalid()) {
        Some(tail)
            if !tail.is_empty() && std::str::from_utf8(tail).is_err_and(|e| e.error_len().is_none()) =>
        {
            tail.len()
        }
        _ => 0,
    }
}

/// Makes text of bytes that come in pieces: a character split between two pieces is whole.
#[derive(Debug, Default)]
pub struct Decoder {
    begun: Vec<u8>,
}

impl Decoder {
    /// The text of a piece. What begins a character at its end comes with the next piece.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let kept = self.begun.len() - incomplete(&self.begun);
        let rest = self.begun.split_off(kept);
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun = rest;
        text
    }

    /// What is left when no more pieces come.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.begun).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(max: usize, pieces: &[&str]) -> String {
        let mut capture = Capture::new(max);
        for piece in pieces {
            capture.write(piece.as_bytes());
        }
        capture.text()
    }

    #[test]
    fn what_fits_is_kept_whole_and_else_the_size_of_the_middle_is_said() {
        let rows: [(usize, &[&str], &str); 7] = [
            (8, &["abcd", "efgh"], "abcdefgh"),
            (8, &["abcdefghi"], "abcd\n[… 1 bytes left out …]\nfghi"),
            (8, &["abc", "def", "ghi", "jkl"], "abcd\n[… 4 bytes left out …]\nijkl"),
            (4, &["0123456789", "ab"], "01\n[… 8 bytes left out …]\nab"),
            (4, &["é", "éé"], "é\n[… 2 bytes left out …]\né"),
            (6, &["aé", "é", "éb"], "aé\n[… 2 bytes left out …]\néb"),
            (6, &["abé", "x", "éab"], "ab\n[… 5 bytes left out …]\nab"),
        ];
        for (max, pieces, text) in rows {
            assert_eq!(captured(max, pieces), text, "{pieces:?}");
        }
    }

    #[test]
    fn any_pieces_give_the_same_text() {
        let bytes = "aé€😀\u{0}z".as_bytes();
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut text: String = bytes.chunks(size).map(|piece| decoder.decode(piece)).collect();
            text += &decoder.finish();
            assert_eq!(text, "aé€😀\u{0}z");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such_and_never_kept_back_for_ever() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"a\xFFb\xE2\x82"), "a\u{FFFD}b");
        assert_eq!(decoder.decode(b"c\xF0"), "\u{FFFD}c");
        assert_eq!(decoder.finish(), "\u{FFFD}");
    }
}
