//! One process for each file: whoever writes to a store holds a lock on the file beside it.
//!
//! The system gives the lock back when the process ends, however it ends. The file stays; it
//! says who had it last.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::OpenError;

/// Takes the lock of the store at `path`, or says who has it. It is held as long as the file is open.
pub(crate) fn take(path: &Path, lock: &Path) -> Result<File, OpenError> {
    let not_writable = |error: std::io::Error| OpenError::NotWritable {
        path: path.to_owned(),
        why: format!("{}: {error}", lock.display()),
    };
    let mut open = OpenOptions::new();
    let open = open.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = open.open(lock).map_err(not_writable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::Held { path: path.to_owned(), pid: holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(not_writable(error)),
    }
    sign(&mut file).map_err(not_writable)?;
    Ok(file)
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Who holds the lock, as far as the file says it already.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
