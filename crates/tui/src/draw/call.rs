//! A call of a tool, for the person who decides on it: all of it, and what hides in it named.

use midturn_view::clean::visible_in;
use midturn_view::words;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::diff::change;
use super::text::{hard, signed};
use crate::look::{Look, Tone};

/// The paths that the tools understand.
const PATH: &[&str] = &["path", "file_path"];

/// A call on one line: the tool, and what it is about.
pub fn gist(name: &str, input: &Value) -> String {
    let line = format!("{} {}", words::short(name), words::gist(input));
    line.trim_end().to_owned()
}

/// All that the call `name` is given, nothing left out: a command line by line, an edit as what it changes, a file
/// that is written whole, then the other arguments, one a line. The tool's name is the caller's to show.
pub fn whole(name: &str, input: &Value, width: u16, look: Look) -> Vec<Line<'static>> {
    let mut sheet = Sheet { width, look, lines: Vec::new() };
    let Some(fields) = input.as_object() else {
        sheet.argument("", input);
        return sheet.lines;
    };
    let mut fields: Fields = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    sheet.subject(name, &mut fields);
    for (name, value) in fields {
        sheet.argument(name, value);
    }
    sheet.lines
}

/// Arguments that are not shown yet.
type Fields<'a> = Vec<(&'a str, &'a Value)>;

/// Takes these arguments, each under the first of its names, if all are there and texts.
fn take<'a, const N: usize>(fields: &mut Fields<'a>, names: [&[&str]; N]) -> Option<[&'a str; N]> {
    let (mut rest, mut found) = (fields.clone(), [""; N]);
    for (names, text) in names.into_iter().zip(&mut found) {
        let at = rest.iter().position(|(name, value)| names.contains(name) && value.is_string())?;
        *text = rest.remove(at).1.as_str()?;
    }
    *fields = rest;
    Some(found)
}

/// Lines in the making.
struct Sheet {
    width: u16,
    look: Look,
    lines: Vec<Line<'static>>,
}

impl Sheet {
    /// What a tool that is known is about.
    fn subject(&mut self, name: &str, fields: &mut Fields) {
        match name {
            "bash" => {
                if let Some([command]) = take(fields, [&["command"]]) {
                    self.text(command, ["$ ", "> "]);
                }
            }
            "edit" => {
                let names = [PATH, &["old", "old_string"], &["new", "new_string"]];
                if let Some([path, old, new]) = take(fields, names) {
                    self.path(path);
                    self.lines.extend(change(&self.visible(old), &self.visible(new), self.width, self.look));
                }
            }
            "write" => {
                if let Some([path, content]) = take(fields, [PATH, &["content"]]) {
                    self.path(path);
                    self.text(content, ["+ ", "+ "]);
                }
            }
            _ => {}
        }
    }

    fn path(&mut self, path: &str) {
        let style = self.look.style(Tone::Strong);
        let path = Span::styled(self.one_line(path), style);
        self.lines.extend(signed([], path, self.width, self.look));
    }

    /// A text with all its lines, each behind a sign: the first one's, and that of the others.
    fn text(&mut self, text: &str, [first, others]: [&'static str; 2]) {
        let quiet = self.look.style(Tone::Quiet);
        for (n, line) in self.visible(text).split('\n').enumerate() {
            let sign = Span::styled(if n == 0 { first } else { others }, quiet);
            self.lines.extend(signed([sign], Span::raw(line.to_owned()), self.width, self.look));
        }
    }

    /// An argument on a line of its own, or if it has lines, those below its name.
    fn argument(&mut self, name: &str, value: &Value) {
        let quiet = self.look.style(Tone::Quiet);
        let label = if name.is_empty() { String::new() } else { format!("{}: ", self.one_line(name)) };
        let label = Span::styled(label, quiet);
        let style = self.look.style(if name == "description" { Tone::Quiet } else { Tone::Plain });
        match value.as_str() {
            Some(text) if text.contains('\n') => {
                self.lines.extend(hard(vec![label], self.width, "  "));
                self.text(text, [self.look.sign("│ ", "| "); 2]);
            }
            text => {
                let text = text.map_or_else(|| value.to_string(), str::to_owned);
                let text = Span::styled(self.visible(&text), style);
                self.lines.extend(hard(vec![label, text], self.width, self.look.sign("┊ ", ": ")));
            }
        }
    }

    fn visible(&self, text: &str) -> String {
        visible_in(text, [self.look.sign("‹", "<"), self.look.sign("›", ">")])
    }

    fn one_line(&self, text: &str) -> String {
        self.visible(text).replace('\n', self.look.sign("⏎", "\\n"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{ASCII, BOTH, shown};
    use super::*;

    #[test]
    fn a_person_sees_all_that_a_call_is_given() {
        for (name, input, expected) in [
            (
                "bash",
                json!({"command": "cd a\nrm -rf b", "description": "Tidy", "timeout": 3}),
                "$ cd a\n> rm -rf b\ndescription: Tidy\ntimeout: 3",
            ),
            ("bash", json!({"command": ["rm", "x"]}), "command: [\"rm\",\"x\"]"),
            (
                "edit",
                json!({"path": "a/b.rs", "old": "x\ny", "new": "x\nz", "replace_all": true}),
                "a/b.rs\n  x\n- y\n+ z\nreplace_all: true",
            ),
            ("edit", json!({"file_path": "a", "old_string": "x", "new_string": ""}), "a\n- x"),
            ("edit", json!({"path": "a", "old": "x"}), "old: x\npath: a"),
            ("write", json!({"path": "a", "content": "x\n\ny\n"}), "a\n+ x\n+ \n+ y\n+ "),
            ("write", json!({"path": "a", "content": ""}), "a\n+ "),
            (
                "spawn_agent",
                json!({"name": "w", "prompt": "Do\nthis", "tags": {"a": "\u{202e}"}}),
                "name: w\nprompt: \n│ Do\n│ this\ntags: {\"a\":\"‹U+202E›\"}",
            ),
            ("other", json!("x"), "x"),
            ("other", json!({}), ""),
        ] {
            assert_eq!(shown(&whole(name, &input, 60, BOTH)), expected, "{name} {input}");
        }
    }

    #[test]
    fn what_hides_is_named_and_no_text_looks_like_a_line_of_its_own() {
        for (name, input, expected) in [
            ("bash", json!({"command": "a\r\u{1b}[8m\tb"}), "$ a‹U+000D›‹U+001B›[8m    b"),
            ("bash", json!({"command": "echo         $ ls"}), "$ echo         \n┊ $ ls"),
            ("write", json!({"path": "a\nb", "content": "x\u{200b}"}), "a⏎b\n+ x‹U+200B›"),
            ("edit", json!({"path": "a", "old": "x\r", "new": "x"}), "a\n- x‹U+000D›\n+ x"),
            ("other", json!({"a\nb": "a           b: c"}), "a⏎b: a         \n┊   b: c"),
        ] {
            let width = if expected.contains('‹') { 60 } else { 15 };
            assert_eq!(shown(&whole(name, &input, width, BOTH)), expected, "{name} {input}");
        }
        assert_eq!(shown(&whole("write", &json!({"path": "a\nb", "content": ""}), 60, ASCII)), "a\\nb\n+ ");
    }

    #[test]
    fn what_a_call_is_about_is_one_line() {
        for (input, expected) in [
            (json!({"command": "ls\nrm x"}), "bash ls…"),
            (json!({"command": "rm x\rls\u{202e}"}), "bash rm x‹U+000D›ls‹U+202E›"),
            (json!({"command": "ls", "description": "Look"}), "bash ls (Look)"),
            (json!({}), "bash"),
        ] {
            assert_eq!(gist("bash", &input), expected);
        }
    }
}
