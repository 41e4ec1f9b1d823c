//! Plays what somebody asks for (`POST /v1/replays`, and the screen on what is only read): a scenario, or a session that
//! rests, exported to one.

use midturn_core::engine::ports::Archive;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::SessionId;
use midturn_scenario::export::ExportError;
use midturn_scenario::{Shift, WhatIf, what_if};
use midturn_server::{HostError, Script};
use midturn_wire::replay::{Events, Played, Spared};
use serde_json::value::to_raw_value;

use crate::export;

/// Plays it as it is, and moved.
///
/// # Errors
/// [`HostError::Invalid`]: it is no scenario, or can't be moved so. [`HostError::Conflict`]: the session can't be played.
pub(super) async fn play(
    archive: &dyn Archive,
    script: Script,
    shift: Vec<String>,
) -> Result<Played, HostError> {
    match script {
        Script::Scenario(text) => scenario("the scenario".to_owned(), text, shift).await,
        Script::Session(id) => session(archive, &id, shift).await,
    }
}

/// Plays a session of this archive as it is, and moved.
///
/// # Errors
/// As [`play`].
pub(crate) async fn session(
    archive: &dyn Archive,
    id: &SessionId,
    shift: Vec<String>,
) -> Result<Played, HostError> {
    scenario("the session".to_owned(), scenario_of(archive, id).await?, shift).await
}

/// Plays a scenario's text as it is, and moved; `name` is what errors call it.
///
/// # Errors
/// As [`play`].
pub(crate) async fn scenario(name: String, text: String, shift: Vec<String>) -> Result<Played, HostError> {
    let shifts: Result<Vec<Shift>, _> = shift.iter().map(|text| text.parse()).collect();
    let shifts = shifts.map_err(|error| HostError::Invalid(format!("`shift`: {error}")))?;
    let played = off_here(move || what_if(&name, &text, &shifts)).await?;
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use midturn_scenario::Options;

    use super::*;

    /// What the screen plays of a file that it was opened on (`midturn replay --view`).
    #[test]
    fn what_is_played_of_a_scenario_is_what_replay_shift_plays() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../scenarios/boundaries/a-correction-between-two-edits.yaml");
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plays = |by: &str| runtime.block_on(scenario(name.clone(), text.clone(), vec![by.to_owned()]));
        for by in ["fix=+1.2s", "fix=-500ms"] {
            let played = plays(by).unwrap();
            let options = Options { json: true, shift: vec![by.parse().unwrap()], ..Options::default() };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            midturn_scenario::replay(std::slice::from_ref(&path), &options, &mut out, &mut err).unwrap();
            let out = String::from_utf8(out).unwrap();
            let (here, there): (Vec<&str>, Vec<&str>) =
                (played.after.events.iter().map(|event| event.get()).collect(), out.lines().collect());
            // The first one has the task, which is the file's name there.
            assert_eq!((here.len(), &here[1..]), (there.len(), &there[1..]), "{by}");
        }
        let error = plays("fix=-3s").unwrap_err();
        assert!(error.to_string().ends_with("--shift fix=-3s: that is before the replay begins"), "{error}");
    }
}
