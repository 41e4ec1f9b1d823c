//! A draft in the person's own editor.

use std::io::{Read, Write};
use std::process::Command;

/// The longest text that is read back, in bytes: a message's bound.
const TEXT_MAX: u64 = 256 << 10;

/// Lets the person edit a text with `$VISUAL`, `$EDITOR` or `vi`.
///
/// # Errors
/// A sentence: it could not be started, or failed; the text is as it was.
pub(crate) fn edit(text: &str) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    let editor = named.unwrap_or_else(|| "vi".into());
    let complain = |what: String| format!("the editor {}: {what}", editor.display());
    // For this user only, and gone when this returns.
    let file = tempfile::Builder::new().prefix("midturn-").suffix(".md").tempfile();
    let mut file = file.map_err(|error| complain(error.to_string()))?;
    file.write_all(text.as_bytes()).map_err(|error| complain(error.to_string()))?;
    // An editor is often named with its options.
    let status =
        Command::new("/bin/sh").args(["-c", "exec $0 \"$1\""]).arg(&editor).arg(file.path()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(complain(format!("ended with {status}; the draft is as it was"))),
        Err(error) => return Err(complain(error.to_string())),
    }
    // Many editors write another file in its place.
    let edited = std::fs::File::open(file.path()).map_err(|error| complain(error.to_string()))?;
    let mut text = String::new();
    edited.take(TEXT_MAX + 1).read_to_string(&mut text).map_err(|error| complain(error.to_string()))?;
    Ok(text)
}
