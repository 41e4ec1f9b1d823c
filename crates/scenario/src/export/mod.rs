//! A finished live session as a scenario (scenarios.md, section 3): recorded replies, measured
//! durations in microseconds, messages after the receiver's last event before them. Replaying
//! it gives the same tool outcomes and injection points, and the file says which: it checks
//! itself.
//!
//! What a session's events tell is taken as it is; nothing here decides what a message does.
//! The one thing that is made is time. In a session, steps follow each other after a commit
//! and a task's waking; in a replay they follow at once. So the time between two steps is
//! counted to the model call or the tool that ends with it, and where an order depends on
//! less than that (a message that came just after the look at the mailbox, say), durations
//! are lengthened and arrivals moved until it is what it was, by a microsecond where that is
//! enough (`moments`).
//!
//! What can't be exported is refused, with the reason:
//!
//! - a session in which an agent still works: nobody knows yet what will come of it
//! - a session whose process ended while an agent worked: what was lost then (a call that is
//!   `unknown`, a reply that nobody heard) has no counterpart in a replay, where nothing
//!   crashes
//!
//! What is not in the export: refused messages (they changed nothing), the words of a reply
//! that was cut and never came (`…` stands for them), and calls of the coordinator's tools as
//! anything but themselves: they act again. An agent that somebody added later is there from
//! the begin, and its prompt is a message.

mod actor;
mod claims;
mod halt;
mod mail;
mod moments;
mod out;
mod own;
mod plan;
mod read;
mod runs;
mod settings;
mod turn;
mod write;

use midturn_core::engine::ports::archive::SessionJournal;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::time::Micros;

use crate::{check_text, file};
use actor::Actor;
use out::{OutAgent, OutFile, OutItem};
use plan::Deed;
use read::Reader;
use write::Writer;

/// To how many bytes results are shortened when the file would be too long to be read.
const SHORTER: [usize; 6] = [usize::MAX, 64 << 10, 16 << 10, 4 << 10, 1 << 10, 256];

/// Why a session can't be exported. Each says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Somebody works.
    #[error(
        "the session is not finished: {agent} is in run {run}; export it when every agent rests (`midturn stop` ends a run)"
    )]
    Unfinished {
        /// Who.
        agent: AgentName,
        /// In which run.
        run: RunId,
    },
    /// A process ended while somebody worked.
    #[error(
        "the session can't be replayed: its process ended while {agent} worked, {at} s after the begin, and what was lost then has no counterpart in a scenario; `midturn log` shows what happened"
    )]
    Crashed {
        /// Who.
        agent: AgentName,
        /// When the next process said so.
        at: Micros,
    },
    /// Something happened that an export can't say yet.
    #[error(
        "the session can't be exported: {0}, which an export doesn't say yet; `midturn log` shows what happened"
    )]
    NotThereYet(&'static str),
    /// The record contradicts itself, or lacks something.
    #[error("the session's record can't be made a scenario: {0}; `midturn log` shows what there is")]
    Damaged(String),
    /// More than a scenario file may hold.
    #[error(
        "the session makes a scenario of {0} bytes even with its results shortened; a file has at most 4194304"
    )]
    TooLarge(usize),
}

impl ExportError {
    fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }

    fn crashed(agent: &AgentName, at: Micros) -> Self {
        Self::Crashed { agent: agent.clone(), at }
    }
}

/// The text of the scenario that a session was. `events` are all of its events, in order.
///
/// # Errors
/// [`ExportError`]: when somebody still works, when a process ended in the middle of it, and
/// when the record lacks something.
pub fn scenario(journal: &SessionJournal, events: &[Event]) -> Result<String, ExportError> {
    everybody_rests(journal, events)?;
    if let Some(gap) = events.windows(2).find(|pair| pair[1].seq != pair[0].seq + 1) {
        return Err(ExportError::damaged(format!("there is no event {}", gap[0].seq + 1)));
    }
    let mut reader = Reader::read(journal, events)?;
    let claims = claims::claims(&reader);
    let exact = reader.moments.is_exact();
    let empty = moments::Moments::new(Micros(0), exact);
    let times = std::mem::replace(&mut reader.moments, empty).solved();
    reader.deeds.sort_by_key(|deed| deed.seq);
    let (common, own) = settings::layers(journal.agents.iter().map(|agent| &*agent.record.settings))?;
    let mut out = OutFile {
        midturn: 1,
        name: name(journal),
        description: description(journal),
        settings: common,
        agents: Vec::new(),
        messages: Vec::new(),
        expect: claims,
    };
    let numbered = |deed: &Deed| deed.id.as_ref().is_some_and(|id| id.starts_with("auto-"));
    let names_ids = reader.deeds.iter().any(numbered);
    let write = |out: &mut OutFile| {
        fitting(out, &reader, &own, &Writer { times: &times, exact, names_ids, longest: 0 })
    };
    let text = write(&mut out)?;
    let lost = checked(&text)?;
    if lost == 0 {
        return Ok(text);
    }
    let circles = times.broken;
    out.description.push_str(&format!(
        " {lost} of the expectations do not hold in a replay: what was apart by less than the time between two steps \
         ({circles} orders of events here) is one instant there."
    ));
    write(&mut out)
}

/// The file's text, with results as long as fit into a file.
fn fitting(
    out: &mut OutFile,
    reader: &Reader<'_>,
    own: &[serde_json::Value],
    writer: &Writer<'_>,
) -> Result<String, ExportError> {
    let mut size = 0;
    for longest in SHORTER {
        let writer = Writer { longest, ..*writer };
        out.agents = agents(&reader.actors, own, &writer);
        out.messages = items(&reader.deeds, &reader.actors, &writer);
        let text = out::text(out)?;
        size = text.len();
        if size <= file::MAX_BYTES {
            return Ok(text);
        }
    }
    Err(ExportError::TooLarge(size))
}

/// How many of its own expectations a replay of the text does not meet. The reader of
/// scenario files and the engine have the last word.
fn checked(text: &str) -> Result<usize, ExportError> {
    let failures = check_text("the export", text);
    let failures =
        failures.map_err(|error| ExportError::damaged(format!("it can't be replayed: {error}")))?;
    Ok(failures.len())
}

/// Nobody has a run that has not ended, nor a prompt that has not begun.
fn everybody_rests(journal: &SessionJournal, events: &[Event]) -> Result<(), ExportError> {
    for agent in &journal.agents {
        let name = &agent.record.name;
        let own = events.iter().rev().filter(|event| event.at.agent.as_ref() == Some(name));
        let last = own.clone().find_map(|event| match &event.kind {
            EventKind::RunStarted { .. } => Some((event.at.run.unwrap_or_default(), true)),
            EventKind::RunFinished { .. } => Some((event.at.run.unwrap_or_default(), false)),
            _ => None,
        });
        let prompted =
            agent.record.prompt.is_some() && agent.record.model.is_some() && !agent.closed.is_asked();
        let run = match last {
            Some((run, true)) => run,
            None if prompted => 1,
            Some((_, false)) | None => continue,
        };
        return Err(ExportError::Unfinished { agent: name.clone(), run });
    }
    Ok(())
}

fn name(journal: &SessionJournal) -> String {
    let title = journal.record.title.lines().next().unwrap_or_default().trim();
    let short: String = title.chars().take(120).collect();
    if short.is_empty() { format!("session {}", journal.record.id) } else { short }
}

fn description(journal: &SessionJournal) -> String {
    format!("Exported from the session {} with midturn {}.", journal.record.id, env!("CARGO_PKG_VERSION"))
}

/// The agents in the session's order, parents before their children.
fn agents(actors: &[Actor<'_>], own: &[serde_json::Value], writer: &Writer<'_>) -> Vec<OutAgent> {
    let is_there = |name: &AgentName| actors.iter().any(|actor| actor.journal.record.name == *name);
    let parents = actors.iter().filter_map(|actor| actor.journal.record.parent.as_ref());
    let mut written: Vec<OutAgent> = Vec::with_capacity(actors.len());
    for parent in parents.filter(|parent| !is_there(parent)) {
        if !written.iter().any(|agent| agent.name == parent.as_str()) {
            written.push(OutAgent::announced(parent));
        }
    }
    let mut left: Vec<(&Actor<'_>, &serde_json::Value)> = actors.iter().zip(own).collect();
    while !left.is_empty() {
        let is_next = |(actor, _): &(&Actor<'_>, &serde_json::Value)| {
            let parent = actor.journal.record.parent.as_ref();
            parent.is_none_or(|parent| written.iter().any(|agent| agent.name == parent.as_str()))
        };
        // Parents in a circle are the reader's to refuse.
        let next = left.iter().position(is_next).unwrap_or(0);
        let (actor, settings) = left.remove(next);
        written.push(writer.agent(actor, settings.clone()));
    }
    written
}

fn items(deeds: &[Deed], actors: &[Actor<'_>], writer: &Writer<'_>) -> Vec<OutItem> {
    deeds.iter().map(|deed| writer.item(deed, actors)).collect()
}
