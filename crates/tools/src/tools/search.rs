//! What `grep` and `glob` share: which files they look at, and a list that knows its bounds.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use crate::context::{OUTPUT_BYTES, ToolContext};
use crate::root::Root;

/// How a line of a search shows a name, for whoever uses the tool.
pub(super) const NAMES: &str = "A path in double quotes is a JSON string: something in it can't be seen.";

/// How many matches or files one search gives when it isn't told.
const RESULTS: usize = 500;

/// The files beneath a folder, or the file itself, by name and relative to the root: what `.gitignore` and the like
/// exclude is left out, so is `.git`, and links are not followed. Nor is there what rules deny to read.
pub(super) fn files(
    context: &ToolContext,
    path: &str,
) -> Result<impl Iterator<Item = PathBuf> + use<>, String> {
    let ToolContext { root, unread, .. } = context;
    let start = match root.file(path) {
        Ok(_) => root.path().join(root.relative(path)?),
        Err(_) => root.folder(path)?,
    };
    let top = root.path().to_owned();
    let walk = WalkBuilder::new(start)
        .hidden(false)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    // What can't be looked at isn't there for a search.
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let files = files.filter_map(move |entry| Some(entry.path().strip_prefix(&top).ok()?.to_owned()));
    let unread = unread.clone();
    Ok(files.filter(move |path| !unread.hides(&path.to_string_lossy())))
}

/// What a file is called, for the other tools: a folder that is really called `~` is said to be one.
pub(super) fn name_of(path: &Path) -> String {
    let here = if path.starts_with("~") { "./" } else { "" };
    format!("{here}{}", path.to_string_lossy())
}

/// The folder that is searched by default.
pub(super) fn here() -> String {
    ".".to_owned()
}

/// A glob pattern.
pub(super) struct Pattern {
    glob: GlobMatcher,
    by_name: bool,
    /// The folder that is searched, relative to the root.
    from: PathBuf,
}

impl Pattern {
    pub(super) fn new(root: &Root, argument: &str, text: &str, path: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
        let glob = glob.map_err(|e| format!("`{argument}` is not a glob pattern: {e}"))?;
        let folder = root.folder(path).unwrap_or_default();
        let from = folder.strip_prefix(root.path()).unwrap_or(Path::new("")).to_owned();
        Ok(Self { glob: glob.compile_matcher(), by_name: !text.contains('/'), from })
    }

    /// Whether it means this file, relative to the root: its name, where the pattern has no slash,
    /// else its path from the folder that is searched.
    pub(super) fn means(&self, path: &Path) -> bool {
        match (self.by_name, path.strip_prefix(&self.from)) {
            (true, _) => path.file_name().is_some_and(|name| self.glob.is_match(name)),
            (false, Ok(path)) => self.glob.is_match(path),
            (false, Err(_)) => false,
        }
    }
}

/// Lines of a result, as many as it may hold.
pub(super) struct Lines {
    text: String,
    count: usize,
    count_max: usize,
    full: bool,
}

impl Lines {
    /// With so many at most.
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { text: String::new(), count: 0, count_max: limit.unwrap_or(RESULTS), full: false }
    }

    /// Adds a line, or notes that there would have been more. False: it is full.
    pub(super) fn push(&mut self, line: &str) -> bool {
        if self.count == self.count_max || self.text.len() + line.len() > OUTPUT_BYTES {
            self.full = true;
            return false;
        }
        self.count += 1;
        self.text.push_str(line);
        self.text.push('\n');
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// The lines; `none` when there is none.
    pub(super) fn finish(self, none: &str) -> String {
        match (self.count, self.full) {
            (0, false) => none.to_owned(),
            (count, true) => format!("{}[{count} shown, there are more: narrow the search]", self.text),
            (_, false) => self.text,
        }
    }
}
