//! Removing what is left of a session that nobody carries, by whoever holds the store: a command that holds it itself,
//! or the process that a command asks.

use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_server::HostError;
use midturn_tools::leftovers;
use midturn_wire::session::{Remove, Removed};

use super::Stored;
use super::plan::{Fate, Found, Part, Sum, Wish, fate};
use crate::env;
use crate::failure::Failure;

/// What is there of a session.
///
/// # Errors
/// [`Failure::Failed`]: git or the store fails.
pub(super) async fn look(
    archive: &dyn Archive,
    session: SessionSummary,
    stored: &Stored,
) -> Result<Found, Failure> {
    let remains = stored.workplace.remains().await.map_err(Failure::failed)?;
    let size = archive.size(&session.record.id).await.map_err(Failure::failed)?;
    Ok(Found { session, size, remains })
}

/// Looks once more, and removes what somebody wants who has seen the session as it is.
///
/// # Errors
/// [`HostError::Conflict`]: somebody went on with it since, or work of it is on no branch. [`HostError::Failed`]: git or
/// the store fails.
pub(crate) async fn remove_as_seen(
    archive: &dyn Archive,
    stored: &Stored,
    seen: &Remove,
) -> Result<Removed, HostError> {
    let id = &stored.journal.record.id;
    let all = archive.sessions().await.map_err(Failure::failed)?;
    let is_seen = |now: &SessionSummary| (now.epoch, now.last_seq) == (seen.epoch.0, seen.last_seq.0);
    let now = all.into_iter().find(|now| now.record.id == *id).filter(is_seen);
    let now = now.ok_or_else(|| HostError::Conflict { code: "gone_on", text: gone_on(id) })?;
    let wish = match seen.prune {
        None => Wish::Remove,
        Some(prune) => Wish::Prune { now: env::now().0, older_than: prune.older_than.map(|least| least.0) },
    };
    let found = look(archive, now, stored).await?;
    let fate = fate(&found, wish, seen.force);
    if wish == Wish::Remove && !fate.session {
        return Err(HostError::Conflict { code: "unsaved_work", text: stays(id) });
    }
    if fate.is_any() {
        remove(archive, &found, &fate, stored).await?;
    }
    Ok(Sum::of([&(found, fate)]).into())
}

pub(super) fn gone_on(id: &impl std::fmt::Display) -> String {
    format!("somebody went on with session {id} meanwhile: look again")
}

pub(super) fn stays(id: &impl std::fmt::Display) -> String {
    format!(
        "session {id} stays: work of its agents is on no branch. `midturn merge` says what to do about it, and --force removes it"
    )
}

/// Piece by piece: who is interrupted types the same again.
///
/// # Errors
/// [`Failure::Failed`]: something can't be removed.
pub(super) async fn remove(
    archive: &dyn Archive,
    found: &Found,
    fate: &Fate,
    Stored { workplace, .. }: &Stored,
) -> Result<(), Failure> {
    let id = &found.session.record.id;
    // What a dead process left running would write on in there.
    leftovers::end(std::slice::from_ref(id)).await.map_err(Failure::failed)?;
    let mut is_left = false;
    for (left, Part { branch, folder }) in found.remains.iter().zip(&fate.remains) {
        is_left |= left.branch.is_some() && !branch || left.folder.is_some() && !folder;
        let branch = left.branch.as_deref().filter(|_| *branch);
        let folder = left.folder.as_ref().map(|(path, _)| path.as_path()).filter(|_| *folder);
        workplace.remove(branch, folder).await.map_err(Failure::failed)?;
    }
    // An agent that comes back to its branch borrows of the project's again.
    if fate.session || !is_left {
        workplace.remove_pin().await.map_err(Failure::failed)?;
    }
    if fate.session {
        workplace.remove_folders().await.map_err(Failure::failed)?;
        archive.remove(id).await.map_err(Failure::failed)?;
    }
    Ok(())
}
