//! The command: files and folders in, lines and an exit status out (scenarios.md, section 3).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::rules::event::Event;

use crate::error::Error;
use crate::expect::{self, Failure};
use crate::play::{self, RealWorkplaces};
use crate::report::{Case, Exit, Report};
use crate::scenario::Scenario;
use crate::shift::{self, Shift};
use crate::{file, report};

/// How deep folders are searched.
const DEEPEST: usize = 32;

/// Who is told what happened in each scenario.
pub type Seen<'a> = dyn Fn(&Path, &str, &[Event]) -> io::Result<()> + 'a;

/// What `midturn replay` is asked for besides its paths.
#[derive(Default)]
pub struct Options<'a> {
    /// Makes real tools, for scenarios that ask for them.
    pub real: Option<&'a dyn RealWorkplaces>,
    /// Events to the output, one JSON object a line, and nothing else.
    pub json: bool,
    /// Where to write a JUnit report.
    pub junit: Option<PathBuf>,
    /// Messages and actions to move; nothing is checked then.
    pub shift: Vec<Shift>,
    /// Told of each scenario that was played: its path, its name, what happened.
    pub seen: Option<&'a Seen<'a>>,
    /// Told before each: how many were played, and how many there are.
    pub played: Option<&'a dyn Fn(usize, usize)>,
}

/// Replays files and folders: a line per scenario and the closing line to `out` (to `err`
/// when the events go to `out`).
///
/// # Errors
/// When `out`, `err` or the JUnit file can't be written, and what [`Options::seen`] complains of.
pub fn replay(
    paths: &[PathBuf],
    options: &Options<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let mut report = Report::default();
    let all = collected(paths);
    let count = all.len();
    for (at, found) in all.into_iter().enumerate() {
        if let Some(played) = options.played {
            played(at, count);
        }
        let (path, played) = match found {
            Ok(path) => (path.clone(), one(&path, options)),
            Err((path, error)) => (path, Err(error)),
        };
        let is_played = played.is_ok();
        let (case, events) = played.unwrap_or_else(|error| (Case::unreadable(&path, &error), Vec::new()));
        if options.json {
            report::write_events(out, &events)?;
        }
        if let (Some(seen), true) = (options.seen, is_played) {
            seen(&path, &case.name, &events)?;
        }
        let lines: &mut dyn Write = if options.json { &mut *err } else { &mut *out };
        lines.write_all(report.add(case).as_bytes())?;
    }
    let lines: &mut dyn Write = if options.json { err } else { &mut *out };
    lines.write_all(report.closing().as_bytes())?;
    if let Some(path) = &options.junit {
        std::fs::write(path, report.junit())?;
    }
    out.flush()?;
    Ok(report.exit())
}

fn one(path: &Path, options: &Options<'_>) -> Result<(Case, Vec<Event>), Error> {
    let scenario = file::load(path)?;
    if options.shift.is_empty() { checked(&scenario, options) } else { shifted(&scenario, options) }
}

fn checked(scenario: &Scenario, options: &Options<'_>) -> Result<(Case, Vec<Event>), Error> {
    let played = play::play(scenario, options.real)?;
    let failures = failures(scenario, &played);
    Ok(told(scenario, played, failures, None))
}

/// What doesn't hold of a scenario that was played.
fn failures(scenario: &Scenario, played: &play::Played) -> Vec<Failure> {
    expect::failures(scenario, &played.record, &*played.worktrees)
}

/// Plays it moved and unmoved. Expectations are not checked, the invariants are.
fn shifted(scenario: &Scenario, options: &Options<'_>) -> Result<(Case, Vec<Event>), Error> {
    let moved = shift::moved(scenario, &options.shift)?;
    let before = play::play(scenario, options.real)?;
    let after = play::play(&moved, options.real)?;
    let mut changes = shift::changes(&before.record, &after.record);
    if changes.is_empty() {
        changes.push("nothing changes".to_owned());
    }
    let changes: Vec<String> = changes.iter().map(|change| format!("  {change}")).collect();
    let failures = expect::breaches(scenario, &after.record);
    Ok(told(scenario, after, failures, Some(changes.join("\n"))))
}

/// What is told of a play: what doesn't hold, or what a move changed.
fn told(
    scenario: &Scenario,
    played: play::Played,
    failures: Vec<Failure>,
    moved: Option<String>,
) -> (Case, Vec<Event>) {
    let is_checked = moved.is_none();
    let (exit, text) = match failures.is_empty() {
        true => (Exit::Holds, moved.unwrap_or_default()),
        false => (Exit::Fails, report::told(failures, &played.record.remarks)),
    };
    let (path, name) = (scenario.source.path.to_string(), scenario.name.clone());
    let case = Case { path, name, exit, is_checked, text };
    (case, played.record.events)
}

/// Plays the text of a scenario and returns its events. Its expectations and the invariants
/// are not checked; [`check_text`] does that.
///
/// # Errors
/// When the text is no scenario, or can't be played.
pub fn replay_text(yaml: &str) -> Result<Vec<serde_json::Value>, Error> {
    let scenario = file::parse(Arc::from("-"), yaml.as_bytes())?;
    let played = play::play(&scenario, None)?;
    let events: Result<_, _> = played.record.events.iter().map(serde_json::to_value).collect();
    events.map_err(|error: serde_json::Error| Error::of("-", format!("an event is no JSON: {error}")))
}

/// Plays the text of a scenario and returns what doesn't hold: expectations and invariants.
///
/// # Errors
/// When the text is no scenario, or can't be played.
pub fn check_text(path: &str, yaml: &str) -> Result<Vec<Failure>, Error> {
    let scenario = file::parse(Arc::from(path), yaml.as_bytes())?;
    let played = play::play(&scenario, None)?;
    Ok(failures(&scenario, &played))
}

type Found = Result<PathBuf, (PathBuf, Error)>;

/// The scenario files that paths name: files as they are, folders with all `.yaml` and
/// `.yml` files below them, sorted.
fn collected(paths: &[PathBuf]) -> Vec<Found> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(Ok(path.clone()));
            continue;
        }
        let mut below = Vec::new();
        match walk(path, DEEPEST, &mut below) {
            Ok(()) if below.is_empty() => {
                found.push(Err((path.clone(), unreadable(path, "no scenario files (.yaml) in this folder"))));
            }
            Ok(()) => {
                below.sort();
                found.extend(below.into_iter().map(Ok));
            }
            Err(error) => found.push(Err((path.clone(), error))),
        }
    }
    found
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if depth == 0 {
        return Err(unreadable(folder, "folders too deep in each other; expected at most 32 levels"));
    }
    let wrong = |error: io::Error| unreadable(folder, &format!("can't be read ({error})"));
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let kind = entry.file_type().map_err(wrong)?;
        if kind.is_dir() && !hidden {
            walk(&path, depth - 1, files)?;
        } else if !kind.is_dir() && !hidden && is_scenario(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::of(path.display(), why)
}
