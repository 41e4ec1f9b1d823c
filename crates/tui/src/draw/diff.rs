//! What changes in files, as lines: each with its sign, so that it reads without colours, too.

use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::text::{hard, signed};
use crate::look::{Look, Tone};

/// How many lines of two texts are compared. Of longer ones the whole is taken out and put in: the time for it grows
/// with the square of what differs.
const COMPARED: usize = 2_000;

/// The narrowest screen with numbers before the lines.
const NUMBERED: u16 = 24;

/// A unified diff as `git diff` writes it. What is none of it stays text.
pub fn diff(patch: &str, width: u16, look: Look) -> Vec<Line<'static>> {
    let lines: Vec<&str> = patch.lines().collect();
    let mut page = Page { look, width, lines: Vec::new(), hunk: Hunk::default() };
    let mut rest = &lines[..];
    while let Some((line, after)) = rest.split_first() {
        match line.strip_prefix("diff --git ") {
            Some(names) => {
                let its =
                    after.iter().position(|line| line.starts_with("diff --git ")).unwrap_or(after.len());
                let (file, others) = after.split_at(its);
                page.file(names, file);
                rest = others;
            }
            None => {
                page.line(line);
                rest = after;
            }
        }
    }
    page.lines
}

/// What becomes of a text, line by line, all of it.
pub fn change(before: &str, after: &str, width: u16, look: Look) -> Vec<Line<'static>> {
    let mut page = Page { look, width, lines: Vec::new(), hunk: Hunk::default() };
    let (old, new) = (ends(before), ends(after));
    let kept = |tag| if tag == DiffTag::Equal { Kind::Kept } else { Kind::Added };
    for (tag, of_old, of_new) in compared(&old, &new) {
        if tag != DiffTag::Equal {
            old[of_old].iter().for_each(|line| page.put(Kind::Removed, "", line));
        }
        new[of_new].iter().for_each(|line| page.put(kept(tag), "", line));
    }
    let are_texts = !before.is_empty() && !after.is_empty();
    if are_texts && before.ends_with('\n') != after.ends_with('\n') {
        let which = if after.ends_with('\n') { "taken out" } else { "put in" };
        page.quiet(&format!("\\ No newline at the end of what is {which}"));
    }
    page.lines
}

/// The lines of a text; whether the last one ends is told apart from them.
fn ends(text: &str) -> Vec<&str> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" if text.is_empty() => Vec::new(),
        lines => lines.split('\n').collect(),
    }
}

type Step = (DiffTag, std::ops::Range<usize>, std::ops::Range<usize>);

fn compared(old: &[&str], new: &[&str]) -> Vec<Step> {
    if old.len() + new.len() > COMPARED {
        return vec![(DiffTag::Replace, 0..old.len(), 0..new.len())];
    }
    let steps = capture_diff_slices(Algorithm::Myers, old, new);
    steps.into_iter().map(|step| step.as_tag_tuple()).collect()
}

/// What a line of a hunk is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kept,
    Removed,
    Added,
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

/// Lines in the making.
struct Page {
    look: Look,
    width: u16,
    lines: Vec<Line<'static>>,
    hunk: Hunk,
}

impl Page {
    /// What is said of a file before its hunks becomes its heading.
    fn file(&mut self, names: &str, file: &[&str]) {
        let hunks = file.iter().position(|line| line.starts_with("@@ ")).unwrap_or(file.len());
        let (said, hunks) = file.split_at(hunks);
        let (heading, odd) = heading(names, said);
        self.heading(&heading, hunks);
        odd.into_iter().for_each(|line| self.quiet(line));
        hunks.iter().for_each(|line| self.line(line));
    }

    fn heading(&mut self, heading: &str, hunks: &[&str]) {
        let strong = self.look.style(Tone::Strong);
        let (added, removed) = counts(hunks);
        let rule = self.look.sign("──", "--");
        let mut spans = vec![Span::styled(format!("{rule} {heading} {rule}"), strong)];
        for (sign, count, tone) in [('+', added, Tone::Added), ('-', removed, Tone::Removed)] {
            if count > 0 {
                spans.push(Span::styled(format!(" {sign}{count}"), self.look.style(tone)));
            }
        }
        self.lines.extend(hard(spans, self.width, "   "));
        self.hunk = Hunk::default();
    }

    /// A line behind the headings.
    fn line(&mut self, line: &str) {
        if let Some(hunk) = hunk(line) {
            self.hunk = hunk;
            return self.quiet(line);
        }
        let numbers = self.hunk.at;
        match self.hunk.next(line) {
            Some((kind, text)) => {
                let number = numbers[usize::from(kind != Kind::Removed)];
                let number = if self.width < NUMBERED { String::new() } else { self.number(number) };
                self.put(kind, &number, text);
            }
            None => self.quiet(line),
        }
    }

    fn number(&self, number: u64) -> String {
        format!("{number:>0$} ", self.hunk.digits)
    }

    fn put(&mut self, kind: Kind, number: &str, text: &str) {
        let (sign, tone) = match kind {
            Kind::Kept => ("  ", Tone::Plain),
            Kind::Removed => ("- ", Tone::Removed),
            Kind::Added => ("+ ", Tone::Added),
        };
        let style = self.look.style(tone);
        let number = Span::styled(number.to_owned(), self.look.style(Tone::Quiet));
        let sign = [number, Span::styled(sign, style)];
        let text = Span::styled(text.to_owned(), style);
        self.lines.extend(signed(sign, text, self.width, self.look));
    }

    fn quiet(&mut self, line: &str) {
        let style = self.look.style(Tone::Quiet);
        self.lines.extend(hard(vec![Span::styled(line.to_owned(), style)], self.width, "  "));
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

/// What is said of a file in one line, and the lines that are none of it.
fn heading<'a>(names: &str, said: &[&'a str]) -> (String, Vec<&'a str>) {
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
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    (format!("{path}{notes}"), odd)
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
    use super::super::tests::{ASCII, BOTH, shown};
    use super::*;

    const PATCH: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -8,3 +8,4 @@ fn f() {
 kept
-old text
+new text
+more
--- not a heading
@@ -20 +21 @@
-x
+y
\\ No newline at end of file
";

    #[test]
    fn a_patch_has_headings_numbers_and_signs() {
        let expected = "\
── src/a.rs ── +3 -3
@@ -8,3 +8,4 @@ fn f() {
 8   kept
 9 - old text
 9 + new text
10 + more
10 - -- not a heading
@@ -20 +21 @@
20 - x
21 + y
\\ No newline at end of file";
        assert_eq!(shown(&diff(PATCH, 40, BOTH)), expected);
    }

    #[test]
    fn a_patch_reads_as_well_without_colours() {
        let lines = diff(PATCH, 40, ASCII);
        assert_eq!(
            shown(&lines[..4]),
            "-- src/a.rs -- +3 -3\n@@ -8,3 +8,4 @@ fn f() {\n 8   kept\n 9 - old text"
        );
        assert!(lines.iter().flat_map(|line| &line.spans).all(|span| span.style.fg.is_none()));
    }

    #[test]
    fn each_change_of_a_file_is_named() {
        for (text, expected) in [
            ("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n", "── y (was x) ──"),
            ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "── y (copy of x) ──"),
            (
                "diff --git a/x y b/x y\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/x y\t\n@@ -0,0 +1 @@\n+z",
                "── x y (new file) ── +1\n@@ -0,0 +1 @@\n1 + z",
            ),
            (
                "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-z",
                "── x (deleted file) ── -1\n@@ -1 +0,0 @@\n1 - z",
            ),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755", "── x (mode 100644 to 100755) ──"),
            (
                "diff --git a/p.png b/p.png\nindex 0..1\nBinary files a/p.png and b/p.png differ\n",
                "── p.png (binary) ──",
            ),
            ("diff --git a/x b/x\nodd\ndiff --git a/y b/y", "── x ──\nodd\n── y ──"),
        ] {
            assert_eq!(shown(&diff(text, 60, BOTH)), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_diff_stays_text() {
        for text in ["", "some\ntext", "+ a\n- b", "@@ -x +y @@\n+z", "@@ -1,99999999999999 +1 @@\n+z"] {
            assert_eq!(shown(&diff(text, 60, BOTH)), text);
        }
    }

    #[test]
    fn a_change_shows_all_of_both_texts() {
        for (before, after, expected) in [
            ("a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c"),
            ("", "a\n\nb", "+ a\n+ \n+ b"),
            ("a\n", "", "- a"),
            ("a\n", "a", "  a\n\\ No newline at the end of what is put in"),
            ("a", "a\n", "  a\n\\ No newline at the end of what is taken out"),
            ("a b", "a  b", "- a b\n+ a  b"),
            ("", "", ""),
        ] {
            assert_eq!(shown(&change(before, after, 60, BOTH)), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn texts_too_long_to_compare_are_taken_out_and_put_in() {
        let text = |first: &str| format!("{first}\n{}", "same\n".repeat(COMPARED));
        let lines = change(&text("a"), &text("b"), 60, ASCII);
        assert_eq!(lines.len(), 2 * (COMPARED + 1));
        assert_eq!((lines[0].to_string(), lines[COMPARED + 1].to_string()), ("- a".into(), "+ b".into()));
    }

    #[test]
    fn long_lines_go_on_behind_a_sign_for_that_and_narrow_screens_have_no_numbers() {
        assert_eq!(shown(&change("", "abcdef", 5, ASCII)), "+ abc\n: def");
        assert_eq!(shown(&diff("@@ -1 +1 @@\n+abcdef", 12, ASCII)), "@@ -1 +1 @@\n+ abcdef");
    }
}
