//! What changes in files, as lines: each with its sign, so that it reads without colours, too.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use midturn_view::patch::{Kind, Row};

use super::text::{self, hard, signed};
use crate::changes::{Changes, Remark, Remarks};
use crate::keys::Action;
use crate::look::{Look, Tone};
use crate::state::State;

/// How many lines of two texts are compared. Of longer ones the whole is taken out and put in: the time for it grows
/// with the square of what differs.
const COMPARED: usize = 2_000;

/// The narrowest screen with numbers before the lines.
const NUMBERED: u16 = 24;

/// A page of a diff, from the line on that is at the top, each with what is said to it.
pub(super) fn page(state: &State, changes: &Changes, area: Rect) -> Vec<Line<'static>> {
    let remarks = state.remarks(changes);
    let look = state.settings.look;
    if changes.patch.rows.is_empty() && remarks.gone.is_empty() {
        return vec![Line::raw("nothing was changed")];
    }
    let cursor = changes.within(changes.cursor, &remarks);
    // The screen may be smaller since one came to this line.
    let first = top(state, changes, &remarks, cursor, area);
    let last = changes.within(isize::MAX, &remarks);
    let height = usize::from(area.height);
    let mut lines = Vec::new();
    for place in first..=last {
        if lines.len() >= height {
            break;
        }
        lines.extend(at(state, changes, &remarks, place, area.width));
    }
    if lines.len() < height && (changes.is_cut || changes.patch.left_out > 0) {
        let says = "[the patch is too long to be shown whole: `midturn diff` writes all of it]";
        lines.extend(text::plain(says, area.width.max(1), look.style(Tone::Quiet)));
    }
    lines
}

/// The first line of a page on which the line is that one is at: what was the first one stays it if it can.
pub(crate) fn top(state: &State, changes: &Changes, remarks: &Remarks, cursor: isize, area: Rect) -> isize {
    let mut top = cursor;
    let mut left = usize::from(area.height);
    loop {
        left = left.saturating_sub(at(state, changes, remarks, top, area.width).len());
        let before = changes.within(top.saturating_sub(1), remarks);
        let fits = before != top && at(state, changes, remarks, before, area.width).len() <= left;
        if top <= changes.top || !fits {
            break;
        }
        top = before;
    }
    top
}

/// What stands at a place, and what is said to it.
fn at(state: &State, changes: &Changes, remarks: &Remarks, place: isize, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let gutter = if width >= NUMBERED { 2 } else { 0 };
    let is_here = changes.within(changes.cursor, remarks) == place;
    let room = width - gutter;
    let mut lines = match usize::try_from(place).ok().and_then(|row| changes.patch.rows.get(row)) {
        Some(row) => self::row(row, room, look),
        None => {
            remarks.gone_at(place).map(|remark| gone(remark, changes.is_cut, room, look)).unwrap_or_default()
        }
    };
    for remark in remarks.of(place) {
        lines.extend(said(state, remark, room));
    }
    let mark = if is_here { "> " } else { "  " };
    let marked = lines.into_iter().enumerate().map(|(n, line)| match gutter {
        0 => line,
        _ => {
            let mark = Span::styled(if n == 0 { mark } else { "  " }, look.style(Tone::Strong));
            let spans =
                line.spans.into_iter().map(|span| Span::styled(span.content, line.style.patch(span.style)));
            Line::from_iter(std::iter::once(mark).chain(spans))
        }
    });
    marked.collect()
}

/// A line of a diff.
fn row(row: &Row, width: u16, look: Look) -> Vec<Line<'static>> {
    let mut page = Page { look, width, lines: Vec::new() };
    match row {
        Row::File { heading, added, removed } => page.heading(heading, *added, *removed),
        Row::Text(text) => page.quiet(text),
        Row::Code(code) => {
            let number = format!("{:>1$} ", code.number, code.digits);
            page.put(code.kind, if width < NUMBERED { "" } else { &number }, &code.text);
        }
    }
    page.lines
}

/// A line to which something was said, and which is not there any more.
fn gone(remark: &Remark, is_cut: bool, width: u16, look: Look) -> Vec<Line<'static>> {
    let why = if is_cut {
        "has changed since, or is not shown"
    } else {
        "has changed since, or is no part of this"
    };
    let head = format!("{} {why}", remark.comment.whereabouts());
    let mut lines = text::plain(&head, width.max(1), look.style(Tone::Strong));
    let sign = [Span::raw("  ")];
    let code = Span::styled(remark.comment.code.clone(), look.style(Tone::Quiet));
    lines.extend(signed(sign, code, width, look));
    lines
}

/// What is said to a line, and what became of it.
fn said(state: &State, remark: &Remark, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let fate = match &remark.says {
        Some(says) => look.words(says).to_string(),
        None => format!("not sent ({})", state.key(Action::SendComments)),
    };
    let reply = remark.reply.iter().map(|reply| (Tone::Quiet, format!("it said: {reply}")));
    let text = std::iter::once((Tone::Mail, remark.comment.text.clone()));
    let all = text.chain([(Tone::Quiet, fate)]).chain(reply);
    let bar = look.sign("│ ", "| ");
    let beside = |(tone, text): (Tone, String)| {
        let lines = text::plain(&text, width.saturating_sub(6).max(1), look.style(tone));
        lines.into_iter().map(move |line| {
            let style = line.style;
            let spans =
                line.spans.into_iter().map(move |span| Span::styled(span.content, style.patch(span.style)));
            Line::from_iter(std::iter::once(Span::styled(bar, look.style(Tone::Mail))).chain(spans))
        })
    };
    all.flat_map(beside).map(|line| super::indented(line, 4, width)).collect()
}

/// What becomes of a text, line by line, all of it.
pub fn change(before: &str, after: &str, width: u16, look: Look) -> Vec<Line<'static>> {
    let mut page = Page { look, width, lines: Vec::new() };
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

/// Lines in the making.
struct Page {
    look: Look,
    width: u16,
    lines: Vec<Line<'static>>,
}

impl Page {
    fn heading(&mut self, heading: &str, added: usize, removed: usize) {
        let strong = self.look.style(Tone::Strong);
        let rule = self.look.sign("──", "--");
        let mut spans = vec![Span::styled(format!("{rule} {heading} {rule}"), strong)];
        for (sign, count, tone) in [('+', added, Tone::Added), ('-', removed, Tone::Removed)] {
            if count > 0 {
                spans.push(Span::styled(format!(" {sign}{count}"), self.look.style(tone)));
            }
        }
        self.lines.extend(hard(spans, self.width, "   "));
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

#[cfg(test)]
pub(super) mod tests {
    use midturn_view::patch::Patch;

    use super::super::tests::{ASCII, BOTH, shown};
    use super::*;

    pub(in super::super) fn diff(patch: &str, width: u16, look: Look) -> Vec<Line<'static>> {
        Patch::read(patch).rows.iter().flat_map(|each| row(each, width, look)).collect()
    }

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
