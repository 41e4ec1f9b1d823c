//! `read`: a piece of a text file, with line numbers.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use midturn_core::engine::ports::{Output, Tool};
use rustix::fs::Stat;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::on_files::{Does, FileTool};
use crate::context::{OUTPUT_BYTES, ToolContext};
use crate::root::PathError;

/// The largest file that is read or edited, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// How many lines are given when nothing is said.
const LINES: usize = 2_000;

/// Where a long line is cut, in characters.
const LINE_CHARS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The file: relative to your working folder, or absolute within it. (`file_path` is understood too.)
    #[serde(alias = "file_path")]
    path: String,
    /// The first line wanted, from 1.
    offset: Option<usize>,
    /// How many lines.
    limit: Option<usize>,
}

/// `read` in the root of this agent.
pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = format!(
        "Reads a text file of your working folder. Each line comes with its number and a tab before it. Without \
         `limit` at most {LINES} lines; a longer file is read piece by piece with `offset`."
    );
    FileTool::make(("read", &text), context, Does::Read, read)
}

fn read(context: &ToolContext, arguments: &Arguments, _: &CancellationToken) -> Result<Output, String> {
    let (file, stat) = context.root.file(&arguments.path)?;
    let text = text_of((file, stat), &arguments.path)?;
    if let Some((seen, name)) = context.seen(&arguments.path) {
        seen.has_read(&name, (&stat).into(), text.as_bytes());
    }
    Ok(Output::ok(numbered(&text, arguments)))
}

/// The whole text of a file, if it is text and not too large.
pub(super) fn text_of((file, stat): (File, Stat), path: &str) -> Result<String, String> {
    let too_large = |size: u64| {
        let (size, max) = (mebibytes(size), mebibytes(FILE_BYTES));
        format!(
            "`{path}` is {size} MiB, and at most {max} MiB can be read: look into it with grep, or with head, tail or sed in bash"
        )
    };
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > FILE_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // It may have grown since, or be one of those that say 0 and have more.
    let read = file.take(FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| PathError::System(path.to_owned(), e))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    if bytes.contains(&0) {
        return Err(format!("`{path}` is a binary file ({} bytes), not text", bytes.len()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("`{path}` is not UTF-8: byte {at} is not text; convert it with iconv in bash if it is another encoding")
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Numbered lines, without their ends, as far as one result holds them.
fn numbered(text: &str, arguments: &Arguments) -> String {
    let total = text.lines().count();
    let first = arguments.offset.unwrap_or(1).max(1);
    let wanted = arguments.limit.unwrap_or(LINES);
    let mut output = String::new();
    let mut last = first - 1;
    for (number, line) in text.lines().enumerate().skip(first - 1).take(wanted) {
        // Room for the number, and for what is said of a long line.
        if !output.is_empty() && output.len() + line.len().min(4 * LINE_CHARS) + 64 > OUTPUT_BYTES {
            break;
        }
        last = number + 1;
        // Writing to a string can't fail.
        let _ = writeln!(output, "{last:>6}\t{}", shortened(line, LINE_CHARS));
    }
    match (total, last < first) {
        (0, _) => "[the file is empty]".to_owned(),
        (_, true) if first > total => {
            format!("[the file ends at line {total}: there is no line {first}]")
        }
        (_, _) if last < total => {
            output + &format!("[lines {first} to {last} of {total}; go on with offset {}]", last + 1)
        }
        _ => output,
    }
}

/// A line, cut where it gets long.
pub(super) fn shortened(line: &str, max: usize) -> std::borrow::Cow<'_, str> {
    match line.char_indices().nth(max) {
        None => line.into(),
        Some((at, _)) => format!("{} [… {} bytes more in this line]", &line[..at], line.len() - at).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_what_is_not_shown_is_said() {
        let (many, long) = ("1\n".repeat(LINES + 1), "é".repeat(LINE_CHARS));
        let shown: String = (1..=LINES).map(|n| format!("{n:>6}\t1\n")).collect();
        let shown = format!("{shown}[lines 1 to {LINES} of {0}; go on with offset {0}]", LINES + 1);
        let cut = format!("     1\t{long} [… 2 bytes more in this line]\n");
        let rows = [
            ("a\nb\n", None, None, "     1\ta\n     2\tb\n"),
            ("a\r\nb", None, None, "     1\ta\n     2\tb\n"),
            (&many, None, None, &shown),
            ("1\n2\n3\n4\n", Some(4), None, "     4\t4\n"),
            ("1\n2\n3\n", Some(2), Some(1), "     2\t2\n[lines 2 to 2 of 3; go on with offset 3]"),
            ("1\n", Some(9), None, "[the file ends at line 1: there is no line 9]"),
            ("", None, None, "[the file is empty]"),
            (&format!("{long}é\n"), None, None, &cut),
        ];
        for (text, offset, limit, expected) in rows {
            let arguments = Arguments { path: "f".into(), offset, limit };
            assert_eq!(numbered(text, &arguments), expected, "{text:?}");
        }
    }

    #[test]
    fn a_result_holds_no_more_than_it_may() {
        let arguments = Arguments { path: "f".into(), offset: None, limit: Some(9_000) };
        let output = numbered(&"some line\n".repeat(9_000), &arguments);
        assert!(output.len() < OUTPUT_BYTES + 100 && output.contains("go on with offset"), "{output}");
    }
}
