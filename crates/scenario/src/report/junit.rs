//! A JUnit report. Written here and not by quick-junit, which would add chrono, uuid, an XML
//! parser and an ANSI stripper to a newcomer's first build for four elements.

use super::{Case, Exit};

/// The report of these cases.
pub(super) fn written(cases: &[Case]) -> String {
    let count = |exit: Exit| cases.iter().filter(|case| case.exit == exit).count();
    let (failures, errors) = (count(Exit::Fails), count(Exit::Unreadable));
    let totals = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", cases.len());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!("<testsuites name=\"midturn replay\" {totals}>\n"));
    xml.push_str(&format!("  <testsuite name=\"midturn replay\" {totals}>\n"));
    for case in cases {
        xml.push_str(&one(case));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn one(case: &Case) -> String {
    let path = attribute(&case.path);
    let name = attribute(if case.name.is_empty() { &case.path } else { &case.name });
    let head = format!("    <testcase classname=\"{path}\" name=\"{name}\"");
    let element = match case.exit {
        Exit::Holds if case.is_checked => return format!("{head}/>\n"),
        Exit::Holds => return format!("{head}>\n      <skipped/>\n    </testcase>\n"),
        Exit::Fails => "failure",
        Exit::Unreadable => "error",
    };
    let message = attribute(case.text.lines().next().unwrap_or_default().trim());
    let text = escaped(&case.text);
    format!("{head}>\n      <{element} message=\"{message}\">{text}</{element}>\n    </testcase>\n")
}

fn attribute(text: &str) -> String {
    escaped(text).replace(['\n', '\r', '\t'], " ")
}

/// XML has no way to write most control characters, so they are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\r' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
