//! Small files that people write: read whole, within a bound and as UTF-8, and places in them for
//! whoever has something to say about one.

use std::io::{Error, ErrorKind, Read};
use std::path::Path;

use crate::failure::Failure;

/// A place in a file, counted from 1; columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The line.
    pub(crate) line: usize,
    /// The column.
    pub(crate) column: usize,
}

/// What is wrong with a file, and where.
pub(crate) type Misplaced = (Spot, String);

impl Spot {
    /// Where a file begins.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// Says of a file what is wrong with it.
pub(crate) fn complaint(path: &Path) -> impl Fn(Misplaced) -> Failure + Copy {
    move |(at, what)| Failure::usage(format!("{}:{}:{}: {what}", path.display(), at.line, at.column))
}

/// The text of a file; `None` when there is none.
///
/// # Errors
/// [`Failure::Usage`] with the file: it can't be read, has more than so many bytes, or is not UTF-8.
pub(crate) fn read(path: &Path, most: usize) -> Result<Option<String>, Failure> {
    let complain = |what: String| Failure::usage(format!("{}{what}", path.display()));
    let unreadable = |error: Error| complain(format!(": can't be read: {error}"));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    match file.take(most as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => {}
        // While an agent's command runs one stands where it is to make no file.
        Err(error) if error.kind() == ErrorKind::IsADirectory && is_empty(path) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    if bytes.len() > most {
        return Err(complain(format!(": has more than {} KiB", most >> 10)));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        complain(format!(":{line}: is not UTF-8"))
    })
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut inside| inside.next().is_none())
}

/// Whether there is no such file or folder.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
