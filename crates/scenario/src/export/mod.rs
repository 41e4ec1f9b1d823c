//! A finished live session as a scenario (scenarios.md, section 3): recorded replies, measured
//! durations to the microsecond, messages after the receiver's last event before them. Replaying
//! it gives the same tool outcomes and injection points, and the file says which: it checks
//! itself.
//!
//! What a session's events tell is taken as it is; nothing here decides what a message does,
//! or what an order comes to: the plan is played, and where the engine does something else than
//! it did, the order that was recorded is written down (`order`). Every end is at the time at
//! which it was measured, so the replay has the session's own times; an order is a wait of one
//! event for another at its instant.
//!
//! What can't be exported is refused, with the reason: a session in which an agent still works.
//! Nobody knows yet what will come of it.
//!
//! What is not in the export: refused messages (they changed nothing), the words of a reply
//! that was cut and never came (`…` stands for them), and calls of the coordinator's tools as
//! anything but themselves: they act again. An agent that somebody added later is there from
//! the start, and its prompt is a message.

mod calls;
mod claims;
mod difference;
mod frame;
mod mail;
mod order;
mod out;
mod plan;
mod read;
mod settings;
mod write;

use midturn_core::engine::ports::archive::SessionJournal;
use midturn_core::engine::ports::store::AgentRecord;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, RunId};
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::View;

use crate::error::Error;
use crate::{check_text, file};
use plan::Plan;
use read::Reader;
use write::{Played, Writer};

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
}

/// The text of the scenario that a session was. `events` are all of its events, in order.
///
/// # Errors
/// [`ExportError`]: when somebody still works, and when the record lacks something.
pub fn scenario(journal: &SessionJournal, events: &[Event]) -> Result<String, ExportError> {
    everybody_rests(journal, events)?;
    if let Some(gap) = events.windows(2).find(|pair| pair[1].seq != pair[0].seq + 1) {
        return Err(ExportError::damaged(format!("there is no event {}", gap[0].seq + 1)));
    }
    let (plan, told) = Reader::read(journal, events)?;
    let ordered = order::ordered(plan, &told).map_err(|error| unplayable(&error))?;
    let over = told.last().map_or(Micros(0), |last| last.t);
    let (plan, played) = (ordered.plan, Played::of(&ordered.played, over));
    let version = env!("CARGO_PKG_VERSION");
    let about = format!("Exported from the session {} with midturn {version}.", journal.record.id);
    let text = fitting(&plan, &played, &about, &told)?;
    match checked(&text)? {
        0 => Ok(text),
        lost => {
            let about = format!(
                "{about} {lost} of the expectations do not hold in a replay: what was apart by less than the time \
                 between two steps is one instant there."
            );
            fitting(&plan, &played, &about, &told)
        }
    }
}

fn unplayable(error: &Error) -> ExportError {
    ExportError::damaged(format!("it can't be replayed: {error}"))
}

/// The file's text, with results as long as fit into a file.
fn fitting(plan: &Plan, played: &Played, about: &str, told: &[Event]) -> Result<String, ExportError> {
    let mut size = 0;
    for longest in SHORTER {
        let text = Writer { played, longest }.text(plan, about, claims::claims(told))?;
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
    failures.map(|failures| failures.len()).map_err(|error| unplayable(&error))
}

/// Nobody has a run that has not ended, nor a prompt that has not begun.
fn everybody_rests(journal: &SessionJournal, events: &[Event]) -> Result<(), ExportError> {
    let mut view = View::default();
    for event in events {
        view.event(event);
    }
    for agent in &journal.agents {
        let AgentRecord { name, prompt, model, .. } = &agent.record;
        let (run, is_working) = view.agent(name).map_or((0, false), |agent| (agent.run, agent.is_working()));
        let is_prompted = run == 0 && prompt.is_some() && model.is_some() && !agent.stands.closed.is_asked();
        if is_working || is_prompted {
            return Err(ExportError::Unfinished { agent: name.clone(), run: run.max(1) });
        }
    }
    Ok(())
}
