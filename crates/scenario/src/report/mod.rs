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

/// The replays so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    cases: Vec<Case>,
}

/// What came of one file.
#[derive(Debug)]
pub(crate) struct Case {
    /// The path as given.
    pub(crate) path: String,
    /// The claim.
    pub(crate) name: String,
    /// Whether it holds.
    pub(crate) exit: Exit,
    /// Whether its expectations were checked: of one that was moved they are not.
    pub(crate) is_checked: bool,
    /// What is said about it, whole.
    pub(crate) text: String,
}

impl Report {
    /// Adds what came of a file and returns what is printed of it.
    pub(crate) fn add(&mut self, case: Case) -> String {
        let printed = case.printed();
        self.cases.push(case);
        printed
    }

    /// `N passed, N failed`. A file that can't be read has failed, and one that was moved passes nothing.
    pub(crate) fn closing(&self) -> String {
        let count = |is: fn(&Case) -> bool| self.cases.iter().filter(|case| is(case)).count();
        let passed = count(|case| case.exit == Exit::Holds && case.is_checked);
        let failed = count(|case| case.exit != Exit::Holds);
        match self.cases.len() - passed - failed {
            0 => format!("{passed} passed, {failed} failed\n"),
            moved => format!("{moved} moved, {failed} failed; expectations were not checked\n"),
        }
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

/// Failures and what is worth saying besides; a timeline that was just shown is not shown again.
pub(crate) fn told(failures: Vec<Failure>, remarks: &[String]) -> String {
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
    lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
    lines.join("\n")
}

impl Case {
    /// A file that can't be read or played.
    pub(crate) fn unreadable(path: &Path, error: &Error) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, name: String::new(), exit: Exit::Unreadable, is_checked: true, text: error.to_string() }
    }

    fn printed(&self) -> String {
        let word = match self.exit {
            Exit::Holds if self.is_checked => "ok   ",
            Exit::Holds => "moved",
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
