//! Reads scenario files: bytes in, a checked [`Scenario`] or an
//! error with its place out. Nothing here plays anything or touches a clock.

mod after;
mod check;
mod raw;
mod vocabulary;
mod yaml;

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Place, Source};
use crate::scenario::Scenario;

/// The largest file, in bytes (scenarios.md, section 1).
pub const MAX_BYTES: usize = 4 << 20;

/// Reads and checks a scenario file.
pub fn load(path: &Path) -> Result<Scenario, Error> {
    let shown: Arc<str> = path.to_string_lossy().into();
    let unreadable = |error: std::io::Error| {
        Error::of(&shown, format!("can't be read ({error}); expected a scenario file"))
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    parse(shown, &bytes)
}

/// Checks the bytes of a scenario file; `path` is what errors call it.
pub fn parse(path: Arc<str>, bytes: &[u8]) -> Result<Scenario, Error> {
    let source = decoded(path, bytes)?;
    let raw = yaml::read(&source)?;
    check::checked(source, raw)
}

/// The JSON Schema of a scenario file, for editors (`midturn schema scenario`).
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::RawFile).to_value()
}

fn decoded(path: Arc<str>, bytes: &[u8]) -> Result<Source, Error> {
    if bytes.len() > MAX_BYTES {
        let (source, place) = up_to(path, bytes, MAX_BYTES);
        return Err(source.fault(place, "more than 4 MiB", "at most 4 MiB (4194304 bytes) a file"));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Source { path, text: text.into() }),
        Err(error) => {
            let (source, place) = up_to(path, bytes, error.valid_up_to());
            let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            Err(source.fault(place, format!("the byte 0x{byte:02x}, which is no UTF-8"), "UTF-8"))
        }
    }
}

/// The text up to a byte and a little more, as a source that can be shown, and the byte's place in it.
fn up_to(path: Arc<str>, bytes: &[u8], offset: usize) -> (Source, Place) {
    let before = String::from_utf8_lossy(&bytes[..offset]);
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(offset + 256)]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (Source { path, text: text.into() }, Place { line, column, len: 1 })
}

#[cfg(test)]
mod tests;
