//! A patch as `git diff` writes it, line by line: what each line is, in which file and at which number. It draws nothing,
//! and what is no patch stays text. The page reads patches the same way (crates/server/page/patch.js).

use serde::{Deserialize, Serialize};

use crate::clean::{one_line, visible};

/// So many lines of a patch are read; the rest is counted.
pub const ROWS_MAX: usize = 20_000;

/// How many characters of a line are kept.
const LINE_MAX: usize = 2_000;

/// How many characters of a file's name are kept.
const NAME_MAX: usize = 300;

/// Which of both files a line's number counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// As it was.
    Old,
    /// As it is.
    New,
}

/// What a line of a hunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stays.
    Kept,
    /// It is taken out.
    Removed,
    /// It is put in.
    Added,
}

/// A line of code in a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// What it is.
    pub kind: Kind,
    /// Its number, in the old file if it is taken out, else in the new one.
    pub number: u64,
    /// How wide the numbers of its hunk are.
    pub digits: usize,
    /// What it says, inert.
    pub text: String,
    /// The file, by its place in the patch; none stands before the first heading.
    file: Option<usize>,
}

/// A line of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A file begins.
    File {
        /// Its name and what was done to it.
        heading: String,
        /// How many lines are put in.
        added: usize,
        /// How many are taken out.
        removed: usize,
    },
    /// What is said of a file or a hunk, or is none of a patch.
    Text(String),
    /// A line of code.
    Code(Code),
}

/// A line of code that something can be said about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file's name.
    pub file: &'a str,
    /// In which of both files its number counts.
    pub side: Side,
    /// Its number.
    pub line: u64,
    /// What it says.
    pub code: &'a str,
}

/// A patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Its lines.
    pub rows: Vec<Row>,
    /// How many lines are left out behind them.
    pub left_out: usize,
    files: Vec<String>,
}

/// A patch in the making.
#[derive(Default)]
struct Reader {
    patch: Patch,
    hunk: Hunk,
}

/// The hunk that is read.
#[derive(Default)]
struct Hunk {
    /// The numbers of its next lines, in the old file and in the new one.
    at: [u64; 2],
    /// How many more it has of each.
    left: [u64; 2],
    /// How wide its numbers are.
    digits: usize,
}

impl Patch {
    /// Reads a patch.
    pub fn read(text: &str) -> Self {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<&str> = if text.is_empty() { Vec::new() } else { text.split('\n').collect() };
        let mut reader = Reader::default();
        reader.patch.left_out = lines.len().saturating_sub(ROWS_MAX);
        let mut rest = &lines[..lines.len().min(ROWS_MAX)];
        while let Some((line, after)) = rest.split_first() {
            match line.strip_prefix("diff --git ") {
                Some(names) => {
                    let its = after.iter().position(|line| line.starts_with("diff --git "));
                    let (file, others) = after.split_at(its.unwrap_or(after.len()));
                    reader.file(names, file);
                    rest = others;
                }
                None => {
                    reader.line(line);
                    rest = after;
                }
            }
        }
        reader.patch
    }

    /// The line of code in this row, if it is one and its file is known.
    pub fn place(&self, row: usize) -> Option<Place<'_>> {
        let Row::Code(code) = self.rows.get(row)? else { return None };
        let side = if code.kind == Kind::Removed { Side::Old } else { Side::New };
        Some(Place { file: self.files.get(code.file?)?, side, line: code.number, code: &code.text })
    }
}

impl Reader {
    /// What is said of a file before its hunks becomes its heading.
    fn file(&mut self, names: &str, file: &[&str]) {
        let hunks = file.iter().position(|line| line.starts_with("@@ ")).unwrap_or(file.len());
        let (said, hunks) = file.split_at(hunks);
        let (path, notes, odd) = heading(names, said);
        let path = shortened(&one_line(&path), NAME_MAX);
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", one_line(&notes.join(", "))) };
        let (added, removed) = counts(hunks);
        self.patch.rows.push(Row::File { heading: format!("{path}{notes}"), added, removed });
        self.patch.files.push(path);
        self.hunk = Hunk::default();
        odd.into_iter().for_each(|line| self.patch.rows.push(Row::Text(inert(line))));
        hunks.iter().for_each(|line| self.line(line));
    }

    /// A line behind the headings.
    fn line(&mut self, line: &str) {
        if let Some(hunk) = hunk(line) {
            self.hunk = hunk;
            return self.patch.rows.push(Row::Text(inert(line)));
        }
        let at = self.hunk.at;
        let row = match self.hunk.next(line) {
            Some((kind, text)) => Row::Code(Code {
                kind,
                number: at[usize::from(kind != Kind::Removed)],
                digits: self.hunk.digits,
                text: inert(text),
                file: self.patch.files.len().checked_sub(1),
            }),
            None => Row::Text(inert(line)),
        };
        self.patch.rows.push(row);
    }
}

/// A line with what acts or hides in it named, for a person decides on it; of a long one the beginning.
fn inert(line: &str) -> String {
    visible(&shortened(line.strip_suffix('\r').unwrap_or(line), LINE_MAX))
}

/// So many characters of a text, and a sign where it goes on.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Hunk {
    /// What a line is, as long as the hunk lasts.
    fn next<'a>(&mut self, line: &'a str) -> Option<(Kind, &'a str)> {
        let (kind, sides): (_, &[usize]) = match line.as_bytes().first() {
            Some(b'+') => (Kind::Added, &[1]),
            Some(b'-') => (Kind::Removed, &[0]),
            // Some programs leave out the space of an empty line.
            Some(b' ') | None => (Kind::Kept, &[0, 1]),
            Some(_) => return None,
        };
        if sides.iter().any(|side| self.left[*side] == 0) {
            return None;
        }
        for side in sides {
            self.left[*side] -= 1;
            self.at[*side] += 1;
        }
        Some((kind, line.get(1..).unwrap_or_default()))
    }
}

/// How many lines are put in and taken out.
fn counts(hunks: &[&str]) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    let mut reading = Hunk::default();
    for line in hunks {
        match hunk(line) {
            Some(hunk) => reading = hunk,
            None => match reading.next(line) {
                Some((Kind::Added, _)) => added += 1,
                Some((Kind::Removed, _)) => removed += 1,
                _ => {}
            },
        }
    }
    (added, removed)
}

/// `@@ -1,2 +3,4 @@`: where a hunk begins and how long it is, in both files.
fn hunk(line: &str) -> Option<Hunk> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let ((old_at, old_left), (new_at, new_left)) = (range(old)?, range(new)?);
    let last = (old_at + old_left).max(new_at + new_left);
    let digits = last.saturating_sub(1).to_string().len();
    Some(Hunk { at: [old_at, new_at], left: [old_left, new_left], digits })
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (at, left) = text.split_once(',').unwrap_or((text, "1"));
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    Some((number(at)?, number(left)?))
}

/// A file's name, what was done to it, and the lines that say neither.
fn heading<'a>(names: &str, said: &[&'a str]) -> (String, Vec<String>, Vec<&'a str>) {
    let mut path = same_name(names);
    let (mut notes, mut odd) = (Vec::new(), Vec::new());
    let mut mode = "";
    for line in said {
        if let Some((_, to)) = either(line, &["rename to ", "copy to "]) {
            path = to.to_owned();
        } else if let Some((how, from)) = either(line, &["rename from ", "copy from "]) {
            notes.push(format!("{}{from}", if how == "copy from " { "copy of " } else { "was " }));
        } else if let Some((_, to)) = either(line, &["+++ b/", "--- a/"]) {
            path = to.trim_end_matches('\t').to_owned();
        } else if let Some((how, _)) = either(line, &["new file", "deleted file"]) {
            notes.push(how.to_owned());
        } else if let Some((_, old)) = either(line, &["old mode "]) {
            mode = old;
        } else if let Some((_, new)) = either(line, &["new mode "]) {
            notes.push(format!("mode {mode} to {new}"));
        } else if either(line, &["Binary files ", "GIT binary patch"]).is_some() {
            notes.push("binary".to_owned());
        } else if either(line, &["index ", "similarity index ", "+++ /dev/null", "--- /dev/null"]).is_none() {
            odd.push(*line);
        }
    }
    (path, notes, odd)
}

/// Which of these a line begins with, and the rest of it.
fn either<'a, 'b>(line: &'a str, beginnings: &[&'b str]) -> Option<(&'b str, &'a str)> {
    beginnings.iter().find_map(|beginning| Some((*beginning, line.strip_prefix(beginning)?)))
}

/// `a/x b/x` is `x`. Other names follow: `rename to`.
fn same_name(names: &str) -> String {
    let middle = names.len() / 2;
    let halves = names.get(..middle).zip(names.get(middle + 1..));
    let same =
        halves.and_then(|(a, b)| a.strip_prefix("a/").zip(b.strip_prefix("b/")).filter(|(a, b)| a == b));
    same.map_or(names, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<String> {
        let rows = Patch::read(text).rows.into_iter();
        rows.filter_map(|row| match row {
            Row::File { heading, .. } => Some(heading),
            Row::Text(_) | Row::Code(_) => None,
        })
        .collect()
    }

    #[test]
    fn each_change_of_a_file_is_named() {
        for (text, expected) in [
            ("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n", "y (was x)"),
            ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "y (copy of x)"),
            ("diff --git a/x y b/x y\nnew file mode 100644\n+++ b/x y\t\n", "x y (new file)"),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755", "x (mode 100644 to 100755)"),
            ("diff --git a/p b/p\nBinary files a/p and b/p differ\n", "p (binary)"),
            ("diff --git a/x\u{202e} b/x\u{202e}\n", "x‹U+202E›"),
        ] {
            assert_eq!(headings(text), [expected], "{text:?}");
        }
    }

    #[test]
    fn of_a_patch_beyond_all_measure_so_much_is_read_and_the_rest_is_counted() {
        let head = "diff --git a/x b/x\n@@ -0,0 +1,9999999 @@\n";
        let patch = Patch::read(&format!("{head}{}", "+x\n".repeat(10 << 20 >> 1)));
        assert_eq!((patch.rows.len(), patch.left_out), (ROWS_MAX, (10 << 20 >> 1) + 2 - ROWS_MAX));
        let wide = Patch::read(&format!("{head}+{}", "x".repeat(10 << 20)));
        assert_eq!(wide.place(2).unwrap().code.chars().count(), LINE_MAX + 1);
        let names = Patch::read(&format!("diff --git a/{0} b/{0}\n@@ -0,0 +1 @@\n+x", "n".repeat(10 << 20)));
        assert_eq!(names.place(2).unwrap().file.chars().count(), NAME_MAX + 1);
    }
}
