//! `grep`: the lines that a regular expression matches, by ripgrep's own crates.

use std::io::{self, Read};
use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use midturn_core::engine::ports::{Output, Tool};
use midturn_core::rules::characters::quoted;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::on_files::{Does, FileTool};
use super::read::shortened;
use super::search::{Lines, NAMES, Pattern, files, here, name_of};
use crate::arguments::{listed, with_note};
use crate::context::ToolContext;

/// The longest line that is searched, in bytes; a file with a longer one is passed over.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Where a line that is shown is cut, in characters.
const LINE_SHOWN: usize = 400;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The regular expression, as ripgrep takes it.
    pattern: String,
    /// The folder or file to search, the whole working folder by default.
    #[serde(default = "here")]
    path: String,
    /// Only files of this glob pattern, as `*.rs` or `src/**/*.rs`.
    glob: Option<String>,
    /// Whether case is of no account.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines before and after each match to show.
    #[serde(default)]
    context: usize,
    /// Whether only the names of the files are wanted.
    #[serde(default)]
    files_only: bool,
    /// How many lines (or files) at most.
    limit: Option<usize>,
}

/// `grep` in the root of this agent.
pub(crate) fn tool(context: Arc<ToolContext>) -> Arc<dyn Tool> {
    let text = "Searches the files of your working folder for a regular expression. Each match is shown as \
                `path:line:text`, lines around it as `path-line-text`; what .gitignore excludes and binary files \
                are left out.";
    FileTool::make(("grep", &format!("{text} {NAMES}")), context, Does::Search, grep)
}

fn grep(context: &ToolContext, arguments: &Arguments, cancel: &CancellationToken) -> Result<Output, String> {
    let matcher = matcher(arguments)?;
    let only = arguments.glob.as_deref();
    let only = only.map(|glob| Pattern::new(&context.root, "glob", glob, &arguments.path)).transpose()?;
    let mut found = Matches {
        path: String::new(),
        lines: Lines::new(arguments.limit),
        files_only: arguments.files_only,
        passed_over: Vec::new(),
    };
    let mut searcher = searcher(arguments.context);
    for path in files(context, &arguments.path)? {
        if cancel.is_cancelled() || found.lines.is_full() {
            break;
        }
        if only.as_ref().is_some_and(|only| !only.means(&path)) {
            continue;
        }
        let name = name_of(&path);
        // Beneath the root by handle, whatever the walk's path has become meanwhile.
        let Ok((file, _)) = context.root.file(&name) else { continue };
        found.path = name;
        let searched = searcher.search_reader(&matcher, Cancellable { file, cancel }, &mut found);
        if searched.is_err() && !cancel.is_cancelled() {
            found.passed_over.push(std::mem::take(&mut found.path));
        }
    }
    Ok(Output::ok(found.finish(&arguments.pattern)))
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case)
        .line_terminator(Some(b'\n'))
        .build(&arguments.pattern)
        .map_err(|e| format!("`pattern` is not a regular expression that can match within a line: {e}"))
}

fn searcher(around: usize) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(around)
        .after_context(around)
        .heap_limit(Some(LINE_BYTES_MAX))
        .build()
}

/// What was found so far.
struct Matches {
    /// The file that is being searched.
    path: String,
    lines: Lines,
    files_only: bool,
    passed_over: Vec<String>,
}

impl Matches {
    fn show(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = shortened(text.trim_end_matches(['\n', '\r']), LINE_SHOWN);
        let path = quoted(&self.path);
        self.lines.push(&format!("{path}{mark}{}{mark}{text}", number.unwrap_or(0)))
    }

    fn finish(self, pattern: &str) -> String {
        let text = self.lines.finish(&format!("[nothing matches {pattern}]"));
        match listed(&self.passed_over) {
            None => text,
            Some(files) => {
                let why = "not searched, because a line is too long or the file can't be read";
                with_note(text, &format!("{why}: {files}"))
            }
        }
    }
}

impl Sink for Matches {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.files_only {
            let path = std::mem::take(&mut self.path);
            self.lines.push(&quoted(&path));
            return Ok(false);
        }
        Ok(self.show(':', found.line_number(), found.bytes()))
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.files_only || self.show('-', around.line_number(), around.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.files_only || self.lines.push("--"))
    }
}

/// A file whose reading ends when the call is to end.
struct Cancellable<'a> {
    file: std::fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
