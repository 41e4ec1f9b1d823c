//! Holds a record against the expectations of its scenario. A failure says what was expected,
//! what happened and shows the timeline around it; it never supposes what was meant.

mod files;
mod invariants;
pub(crate) mod messages;
mod pattern;
mod prompts;
mod runs;
mod scripted;
pub(crate) mod timeline;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use midturn_core::rules::id::AgentName;

use crate::record::Record;
use crate::scenario::{Claim, Expectation, Scenario};

/// Where agents work, for expectations about files: the folder of an agent's worktree; `None`: it
/// has none, as simulated tools touch no files.
pub type Worktrees = dyn Fn(&AgentName) -> Option<PathBuf>;

/// An expectation, or an invariant, that does not hold. `Display` is the whole report on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The file.
    pub path: Arc<str>,
    /// The line of the expectation; 0 for an invariant, which no file has to name.
    pub line: usize,
    /// What was expected.
    pub expected: String,
    /// What happened.
    pub happened: String,
    /// The events around it, a line each.
    pub timeline: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => writeln!(f, "  {}", self.path)?,
            line => writeln!(f, "  {}:{line}", self.path)?,
        }
        writeln!(f, "    expected: {}", self.expected)?;
        write!(f, "    happened: {}", self.happened)?;
        for line in &self.timeline {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// What one check found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    pub(crate) expected: String,
    pub(crate) happened: String,
    /// The event it is about, by its place in the record.
    pub(crate) about: Option<usize>,
}

impl Miss {
    pub(crate) fn new(
        expected: impl Into<String>,
        happened: impl Into<String>,
        about: Option<usize>,
    ) -> Self {
        Self { expected: expected.into(), happened: happened.into(), about }
    }

    pub(crate) fn at(self, path: &Arc<str>, line: usize, record: &Record) -> Failure {
        Failure {
            path: path.clone(),
            line,
            expected: self.expected,
            happened: self.happened,
            timeline: timeline::around(&record.events, self.about),
        }
    }
}

/// All expectations that don't hold, in the file's order, then what its script lacked, and the broken invariants.
pub fn failures(scenario: &Scenario, record: &Record, worktrees: &Worktrees) -> Vec<Failure> {
    let of_one = |expectation: &Expectation| {
        let misses = check(expectation, record, worktrees).into_iter();
        let line = expectation.place.line;
        misses.map(move |miss| miss.at(&scenario.source.path, line, record))
    };
    let lacks = scripted::check(scenario, record).into_iter();
    let lacks = lacks.map(|miss| miss.at(&scenario.source.path, 0, record));
    scenario.expect.iter().flat_map(of_one).chain(lacks).chain(breaches(scenario, record)).collect()
}

/// The invariants that don't hold, whatever the file expects.
pub fn breaches(scenario: &Scenario, record: &Record) -> Vec<Failure> {
    let breaches = invariants::check(record);
    breaches.into_iter().map(|miss| miss.at(&scenario.source.path, 0, record)).collect()
}

fn check(expectation: &Expectation, record: &Record, worktrees: &Worktrees) -> Vec<Miss> {
    match &expectation.claim {
        Claim::Run(claim) => runs::check(claim, record),
        Claim::Message(claim) => messages::check(claim, record),
        Claim::Prompt(claim) => prompts::check(claim, record),
        Claim::Event(pattern) => pattern::happens(pattern, record).into_iter().collect(),
        Claim::Never(pattern) => pattern::never_happens(pattern, record).into_iter().collect(),
        Claim::File(claim) => files::check(claim, worktrees),
    }
}

#[cfg(test)]
mod tests;
