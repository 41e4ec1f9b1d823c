//! Plays what somebody asks for (`POST /v1/replays`): a scenario, or a session that rests, exported to one.

use midturn_core::engine::ports::Archive;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::SessionId;
use midturn_scenario::export::ExportError;
use midturn_scenario::{Shift, WhatIf, what_if};
use midturn_server::{HostError, Script};
use midturn_wire::replay::{Events, Played, Spared};
use serde_json::value::to_raw_value;

use crate::export;

/// What a session is called in words about its replay.
const RECORDED: &str = "the session";

/// Plays it as it is, and moved.
///
/// # Errors
/// [`HostError::Invalid`]: it is no scenario, or can't be moved so. [`HostError::Conflict`]: the session can't be played.
pub(super) async fn play(
    archive: &dyn Archive,
    script: Script,
    shift: Vec<String>,
) -> Result<Played, HostError> {
    let (name, text) = match script {
        Script::Scenario(text) => ("the scenario", text),
        Script::Session(id) => (RECORDED, scenario_of(archive, &id).await?),
    };
    let shifts: Result<Vec<Shift>, _> = shift.iter().map(|text| text.parse()).collect();
    let shifts = shifts.map_err(|error| HostError::Invalid(format!("`shift`: {error}")))?;
    let played = off_here(move || what_if(name, &text, &shifts)).await?;
    told(played.map_err(|error| HostError::Invalid(error.to_string()))?)
}

/// Plays on a thread of its own: it waits for nothing, would hold up whoever is beside it, and brings its own clock.
async fn off_here<T: Send + 'static>(plays: impl FnOnce() -> T + Send + 'static) -> Result<T, HostError> {
    let played = tokio::task::spawn_blocking(plays).await;
    played.map_err(|error| HostError::Failed(format!("internal error: {error}")))
}

async fn scenario_of(archive: &dyn Archive, id: &SessionId) -> Result<String, HostError> {
    let not_replayable = |text: String| HostError::Conflict { code: "not_replayable", text };
    let (journal, events) =
        export::recorded(archive, id, None).await.map_err(|error| not_replayable(error.to_string()))?;
    // Exporting plays it, too, to find the order of what came in one instant.
    let exported = off_here(move || midturn_scenario::export::scenario(&journal, &events)).await?;
    exported.map_err(|error| match error {
        ExportError::Unfinished { .. } => {
            not_replayable(format!("{error}: what still goes on can't be played again"))
        }
        _ => not_replayable(error.to_string()),
    })
}

fn told(played: WhatIf) -> Result<Played, HostError> {
    let WhatIf { name, before, after, changes, spared } = played;
    let spared = Spared { calls: spared.calls, files: spared.files, tokens: spared.tokens };
    Ok(Played { name: Some(name), before: raw(&before)?, after: raw(&after)?, changes, spared })
}

fn raw(events: &[Event]) -> Result<Events, HostError> {
    let events: Result<_, _> = events.iter().map(to_raw_value).collect();
    let events = events.map_err(|error| HostError::Failed(format!("an event is no JSON: {error}")))?;
    Ok(Events { events })
}
