//! `midturn export SESSION`: a finished session as a scenario file. The store is only read,
//! whether or not a process holds it; what a scenario can say of a session is
//! `midturn-scenario`'s to know.

use std::path::Path;

use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::{Rows, SessionJournal};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::SessionId;

use crate::args::ExportArgs;
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::history;
use crate::meanwhile::Meanwhile;
use crate::project::Project;
use crate::secrets;

/// So many events are read at once.
const PAGE: u32 = 1_000;

/// How many differences of the replay are told.
const TOLD: usize = 5;

/// Writes the scenario to standard output, or to the file.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session, or it is not finished. [`Failure::Failed`]:
/// the store can't be read, the session can't be replayed, or the file can't be written.
pub(crate) fn export(args: &ExportArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    let meanwhile = Meanwhile::begin("reading events", env);
    let (journal, events) = commands::block_on(async {
        let (archive, id) = history::kept(&project, &args.session).await?;
        recorded(&*archive, &id, Some(&meanwhile)).await
    })??;
    meanwhile.now("replaying what was exported");
    let text = midturn_scenario::export::scenario(&journal, &events).map_err(|error| match error {
        midturn_scenario::export::ExportError::Unfinished { .. } => Failure::usage(error.to_string()),
        _ => Failure::failed(error.to_string()),
    })?;
    let text = secrets::clean(&text);
    let differences = differences(&text);
    drop(meanwhile);
    eprint!("{differences}");
    match &args.output {
        None => commands::print(&text),
        Some(path) => written(path, &text),
    }
}

/// A session, all of it.
///
/// # Errors
/// [`Failure::Failed`]: it can't be read.
pub(crate) async fn recorded(
    archive: &dyn Archive,
    id: &SessionId,
    meanwhile: Option<&Meanwhile>,
) -> Result<(SessionJournal, Vec<Event>), Failure> {
    // First the events: what a session that lives adds meanwhile is in the journal only, and
    // is not asked for.
    let events = all_events(archive, id, meanwhile).await?;
    let journal = archive.journal(id).await.map_err(Failure::failed)?;
    let journal = journal.ok_or_else(|| Failure::failed(format!("the session {id} is gone")))?;
    Ok((journal, events))
}

/// All events that are kept of a session, in order.
///
/// # Errors
/// [`Failure::Failed`]: they can't be read.
pub(crate) async fn all_events(
    archive: &dyn Archive,
    id: &SessionId,
    meanwhile: Option<&Meanwhile>,
) -> Result<Vec<Event>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = archive.events(id, None, Rows::After(after), PAGE).await.map_err(Failure::failed)?;
        if page.is_empty() {
            return Ok(events);
        }
        for stored in page {
            let event = serde_json::from_str(&stored.json).map_err(|error| {
                Failure::failed(format!(
                    "event {} of session {id} can't be read ({error}); was it written by a newer midturn?",
                    stored.seq
                ))
            })?;
            events.push(event);
        }
        if let Some(meanwhile) = meanwhile {
            meanwhile.has(events.len());
        }
    }
}

/// Where a replay comes to something else, for standard error. The file is written all the same: it says itself what was.
fn differences(text: &str) -> String {
    let failures = match midturn_scenario::check_text("the export", text) {
        Ok(failures) => failures,
        Err(error) => return format!("midturn: the export can't be replayed: {error}\n"),
    };
    if failures.is_empty() {
        return String::new();
    }
    let mut said = "midturn: the replay does not match everywhere; what was apart by less than the time between two steps is one \
                    instant there:\n"
        .to_owned();
    for failure in failures.iter().take(TOLD) {
        said += &format!("  expected {}, happened: {}\n", failure.expected, failure.happened);
    }
    if failures.len() > TOLD {
        said += &format!("  and {} more\n", failures.len() - TOLD);
    }
    said
}

fn written(path: &Path, text: &str) -> Result<End, Failure> {
    std::fs::write(path, text).map(|()| End::Finished).map_err(|error| {
        Failure::failed(format!("{} can't be written ({error}); choose another file with -o", path.display()))
    })
}
