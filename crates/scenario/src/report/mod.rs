//! What people and machines read of a replay: a line per scenario, the closing line, the
//! events as JSON, a JUnit report.

mod junit;

use std::io::{self, Write};
use std::path::Path;

use midturn_core::rules::event::Event;

use crate::error::{Error, short};
use crate::expect::Failure;

/// How a replay of files ended, with the exit status that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything holds.
    Holds = 0,
    /// Some expectation or invariant doesn't.
    Fails = 1,
    /// A file can't be read or played.
    Unreadable = 2,
}

impl Exit {
    /// The exit status of the command.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// What came of one file.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Everything holds.
    Passed(String),
    /// The claim, what doesn't hold, and what is worth saying besides.
    Failed(String, Vec<Failure>, Vec<String>),
    /// It was moved, and this is what changed.
    Shifted(String, Vec<String>),
    /// It can't be read or played.
    Unreadable(Error),
}

/// The replays so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    cases: Vec<Case>,
}

/// One scenario in the report.
#[derive(Debug)]
struct Case {
    path: String,
    name: String,
    exit: Exit,
    /// What is said about it, whole.
    text: String,
}

impl Report {
    /// Adds a verdict and returns what is printed of it.
    pub(crate) fn add(&mut self, path: &Path, verdict: Verdict) -> String {
        let path = path.to_string_lossy().into_owned();
        let (exit, name, text) = match verdict {
            Verdict::Passed(name) => (Exit::Holds, name, String::new()),
            Verdict::Failed(name, failures, remarks) => {
                let mut lines = told(failures);
                lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
                (Exit::Fails, name, lines.join("\n"))
            }
            Verdict::Shifted(name, changes) if changes.is_empty() => {
                (Exit::Holds, name, "  nothing changes".to_owned())
            }
            Verdict::Shifted(name, changes) => {
                let lines: Vec<String> = changes.iter().map(|change| format!("  {change}")).collect();
                (Exit::Holds, name, lines.join("\n"))
            }
            Verdict::Unreadable(error) => (Exit::Unreadable, String::new(), error.to_string()),
        };
        let case = Case { path, name, exit, text };
        let printed = case.printed();
        self.cases.push(case);
        printed
    }

    /// `N passed, N failed`. A file that can't be read has failed.
    pub(crate) fn closing(&self) -> String {
        let passed = self.cases.iter().filter(|case| case.exit == Exit::Holds).count();
        format!("{passed} passed, {} failed\n", self.cases.len() - passed)
    }

    /// The worst of all.
    pub(crate) fn exit(&self) -> Exit {
        self.cases.iter().map(|case| case.exit).max().unwrap_or(Exit::Holds)
    }

    /// The report as JUnit reads it.
    pub(crate) fn junit(&self) -> String {
        junit::written(&self.cases)
    }
}

/// Failures as texts; a timeline that was just shown is not shown again.
fn told(failures: Vec<Failure>) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for mut failure in failures {
        if failure.timeline == shown {
            failure.timeline = Vec::new();
        } else {
            shown = failure.timeline.clone();
        }
        lines.push(failure.to_string());
    }
    lines
}

impl Case {
    fn printed(&self) -> String {
        let word = match self.exit {
            Exit::Holds => "ok   ",
            Exit::Fails => "FAIL ",
            Exit::Unreadable => "ERROR",
        };
        let named = !self.name.is_empty() && self.name != self.path;
        let name = if named { format!(": {}", short(&self.name)) } else { String::new() };
        let mut printed = format!("{word} {}{name}\n", self.path);
        if !self.text.is_empty() {
            printed.push_str(&self.text);
            printed.push('\n');
        }
        printed
    }
}

/// Writes events, one JSON object a line.
pub(crate) fn write_events(out: &mut dyn Write, events: &[Event]) -> io::Result<()> {
    for event in events {
        serde_json::to_writer(&mut *out, event)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
