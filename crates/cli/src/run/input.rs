//! Standard input, line by line, each line bounded. A thread of its own reads: a read can't
//! be cancelled, and an open standard input must not keep the run.

use std::io::{BufRead, BufReader, Read};

use tokio::sync::mpsc;

use super::steering::{LINE_MAX, LineError};

/// How many lines may wait to be looked at.
const QUEUE: usize = 64;

/// A line as it was typed, or why it is none.
pub(crate) type Typed = Result<String, LineError>;

/// Starts to read standard input. The channel closes at its end.
pub(crate) fn lines() -> mpsc::Receiver<Typed> {
    let (typed, lines) = mpsc::channel(QUEUE);
    // Nobody can join a thread that waits for a person to type: it ends with the process.
    std::thread::spawn(move || read(std::io::stdin().lock(), |line| typed.blocking_send(line).is_ok()));
    lines
}

/// Hands over each line until the end, an error, or until nobody wants more.
fn read(input: impl Read, mut hand_over: impl FnMut(Typed) -> bool) {
    let mut input = BufReader::new(input);
    while let Some(line) = next(&mut input) {
        if !hand_over(line) {
            return;
        }
    }
}

/// The next line. What is too long is read to its end and not kept.
fn next(input: &mut impl BufRead) -> Option<Typed> {
    let mut line = Vec::new();
    // An input that fails is an input that has ended: there is nobody at its other end.
    let count = input.by_ref().take(LINE_MAX as u64 + 1).read_until(b'\n', &mut line).ok()?;
    if count == 0 {
        return None;
    }
    if line.last() != Some(&b'\n') && line.len() > LINE_MAX {
        // An error comes again with the next line.
        let _ = input.skip_until(b'\n');
        return Some(Err(LineError::TooLong));
    }
    Some(String::from_utf8(line).map_err(|_| LineError::NotText))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<Typed> {
        let mut lines = Vec::new();
        read(input, |line| {
            lines.push(line);
            true
        });
        lines
    }

    #[test]
    fn lines_come_whole_and_the_last_needs_no_end() {
        assert_eq!(all(b"a\n\nb"), [Ok("a\n".into()), Ok("\n".into()), Ok("b".into())]);
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\xff\na\n"), [Err(LineError::NotText), Ok("a\n".into())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_the_next_one_is_read() {
        let mut input = vec![b'x'; 3 * LINE_MAX];
        input.extend(b"\nnext\n");
        assert_eq!(all(&input), [Err(LineError::TooLong), Ok("next\n".into())]);
        assert_eq!(all(&vec![b'x'; LINE_MAX + 1]), [Err(LineError::TooLong)]);
        assert_eq!(all(&vec![b'x'; LINE_MAX])[0].as_ref().unwrap().len(), LINE_MAX);
    }
}
