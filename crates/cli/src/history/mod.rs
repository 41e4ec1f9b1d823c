//! What was kept: `midturn sessions`, `midturn log` and `midturn show` read the store directly, and only read,
//! whether or not a process holds it.

mod conversation;
mod list;
mod show;
mod undo;

use std::collections::BTreeSet;
use std::sync::Arc;

use midturn_client::{Path, Trouble};
use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::{SessionSummary, Used};
use midturn_core::rules::id::SessionId;
use midturn_store::{OpenError, OpenMode};
use midturn_wire::session::Sessions;
use midturn_wire::spent::Spent;
use serde::Serialize;

pub(crate) use undo::undo;

use crate::args::{LayerArgs, LogArgs, PlaceArgs, SessionsArgs};
use crate::client;
use crate::commands;
use crate::env::Env;
use crate::export;
use crate::failure::{End, Failure};
use crate::meanwhile::Meanwhile;
use crate::pictures;
use crate::project::{Project, StoreAt};
use crate::run::facts::Facts;

pub(crate) use conversation::show as conversation;

/// `midturn sessions`.
///
/// # Errors
/// [`Failure::Failed`]: the store can't be read.
pub(crate) fn sessions(args: &SessionsArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    let (sessions, used, (live, note)) = commands::block_on(async {
        let (sessions, used) = match read_only(&project).await? {
            Some(archive) => (
                archive.sessions().await.map_err(Failure::failed)?,
                archive.used().await.map_err(Failure::failed)?,
            ),
            None => Default::default(),
        };
        let live = live(&project, &sessions).await;
        Ok::<_, Failure>((sessions, used, live))
    })??;
    if let Some(note) = note {
        eprintln!("midturn: {note}");
    }
    let used = spent(&used, &args.place, env);
    if args.json {
        return commands::print(&format!("{}\n", list::json(&sessions, &live, &used)));
    }
    if sessions.is_empty() {
        return commands::print(&format!("{}\n", nothing_is_kept(&project)));
    }
    commands::print(&list::text(&sessions, &live, &used, &list::Now::of_machine()))
}

/// What was used, by session, in money as far as prices are known here. A configuration that can't be read says
/// nothing of them, and is complained of where it is needed.
fn spent(used: &[Used], place: &PlaceArgs, env: &Env) -> list::Used {
    let layer = LayerArgs { cwd: place.cwd.clone(), ..LayerArgs::default() };
    let config = commands::work_folder(&layer).and_then(|folder| commands::load(&layer, &folder, env));
    let facts = config.and_then(|config| Facts::of(&config)).unwrap_or_default();
    let of = |used: &Used| {
        let fact = facts.of_model(used.model.as_deref().unwrap_or_default());
        (used.usage.into(), fact.facts.prices().map(|prices| prices.cost(&used.usage)), fact.dated)
    };
    let ids: BTreeSet<&str> = used.iter().map(|used| used.session.as_str()).collect();
    let one = |id: &str| Spent::of(used.iter().filter(|used| used.session.as_str() == id).map(of));
    ids.into_iter().map(|id| (id.to_owned(), one(id))).collect()
}

/// `midturn log SESSION`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session. [`Failure::Failed`]: the store can't be read.
pub(crate) fn log(args: &LogArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    commands::block_on(async {
        let (archive, id) = kept(&project, &args.session).await?;
        if let Some(path) = &args.svg {
            let meanwhile = Meanwhile::begin("reading events", env);
            let events = export::all_events(&*archive, &id, Some(&meanwhile)).await?;
            drop(meanwhile);
            pictures::written(path, &pictures::picture(&events, &format!("session {id}")))?;
            return Ok(End::Finished);
        }
        let wanted =
            show::Wanted { session: &id, agent: args.agent.as_ref(), json: args.json, full: args.full };
        let meanwhile = Meanwhile::begin("reading events", env);
        show::show(&*archive, &wanted, &meanwhile).await
    })?
}

/// The session that somebody means, as [`find`] does, and where it is kept.
///
/// # Errors
/// As [`read_only`] and [`find`]; [`Failure::Usage`]: nothing was ever kept.
pub(crate) async fn kept(project: &Project, asked: &str) -> Result<(Arc<dyn Archive>, SessionId), Failure> {
    let archive = read_only(project).await?;
    let archive = archive.ok_or_else(|| Failure::usage(nothing_is_kept(project)))?;
    let id = find(&*archive, asked).await?;
    Ok((archive, id))
}

/// Said where nothing was ever kept.
fn nothing_is_kept(project: &Project) -> String {
    format!("no session is kept in {} yet: `midturn run` begins one", project.store())
}

/// The project's store, to look at. `None`: nothing was ever kept.
///
/// # Errors
/// [`Failure::Failed`]: it can't be read; the sentence says what to do.
pub(crate) async fn read_only(project: &Project) -> Result<Option<Arc<dyn Archive>>, Failure> {
    let opened = match project.store() {
        StoreAt::File(path) => midturn_store::open_sqlite(path, OpenMode::ReadOnly).await,
        StoreAt::Postgres(url) => midturn_store::open_postgres(url).await,
    };
    match opened {
        Ok(archive) => Ok(Some(Arc::new(archive))),
        Err(OpenError::Missing(_)) => Ok(None),
        Err(error) => Err(Failure::failed(error)),
    }
}

/// The session that somebody means: its id, the beginning of it that no other has, or `last`.
///
/// # Errors
/// [`Failure::Usage`]: there is none, or there are several. [`Failure::Failed`]: the store
/// can't be read.
pub(crate) async fn find(archive: &dyn Archive, asked: &str) -> Result<SessionId, Failure> {
    let sessions = archive.sessions().await.map_err(Failure::failed)?;
    let ids: Vec<&str> = sessions.iter().map(|session| session.record.id.as_str()).collect();
    let at = choose(&ids, asked)?;
    Ok(sessions[at].record.id.clone())
}

/// Which of these ids, the newest first, somebody means.
///
/// # Errors
/// [`Failure::Usage`]: none, or several.
pub(crate) fn choose(ids: &[&str], asked: &str) -> Result<usize, Failure> {
    let short: String = asked.chars().take(80).collect();
    if asked == "last" {
        let none = || Failure::usage("no session is kept here yet: `midturn run` begins one");
        return if ids.is_empty() { Err(none()) } else { Ok(0) };
    }
    if let Some(at) = ids.iter().position(|id| *id == asked) {
        return Ok(at);
    }
    let mut begins = ids.iter().enumerate().filter(|(_, id)| !asked.is_empty() && id.starts_with(asked));
    match (begins.next(), begins.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some((_, one)), Some((_, other))) => Err(Failure::usage(format!(
            "several sessions begin with `{short}`, {one} and {other} among them: give more of the id"
        ))),
        (None, _) => Err(Failure::usage(format!(
            "there is no session `{short}`: `midturn sessions` lists them, and `last` is the one that began last"
        ))),
    }
}

/// The sessions that a process carries now, and what is to be said of it. Where nobody answers there is none.
pub(crate) async fn live(project: &Project, kept: &[SessionSummary]) -> (BTreeSet<String>, Option<String>) {
    let Ok(Some(client)) = client::find(project) else { return Default::default() };
    match client.get::<Sessions>(&Path::of(&["sessions"])).await {
        Ok(all) => {
            let live = all.sessions.into_iter().filter(|session| session.live);
            (live.map(|session| session.session).collect(), None)
        }
        // What was at work in it is at work when it goes on.
        Err(trouble @ Trouble::Suspended(_)) => {
            let at_work = kept.iter().filter(|session| session.running > 0);
            let at_work = at_work.map(|session| session.record.id.to_string()).collect();
            (at_work, Some(trouble.to_string()))
        }
        Err(_) => Default::default(),
    }
}

/// What a session is, as far as it is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SessionState {
    /// A process carries it, and agents work.
    Running,
    /// A process carries it, and nobody works.
    Idle,
    /// No process carries it, and agents were at work when it was cut off or shut down.
    Resumable,
    /// Nobody was at work when it ended.
    Ended,
}

impl SessionState {
    fn of(session: &SessionSummary, live: &BTreeSet<String>) -> Self {
        match live.contains(session.record.id.as_str()) {
            true if session.running == 0 => Self::Idle,
            true => Self::Running,
            false if session.running + session.shut_down == 0 => Self::Ended,
            false => Self::Resumable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_its_id_its_beginning_or_as_the_last() {
        let ids = ["0c-2", "0b-1", "0b-12"];
        for (asked, expected) in [("last", 0), ("0b-12", 2), ("0b-1", 1), ("0c", 0)] {
            assert_eq!(choose(&ids, asked), Ok(expected), "{asked}");
        }
        for (ids, asked, expected) in [
            (&ids[..], "0b", "several sessions begin with `0b`, 0b-1 and 0b-12 among them"),
            (&ids, "x", "there is no session `x`"),
            (&ids, "", "there is no session ``"),
            (&[], "last", "no session is kept here yet"),
        ] {
            let error = choose(ids, asked).unwrap_err();
            assert!(error.to_string().starts_with(expected) && error.end() == End::Usage, "{error}");
        }
    }
}
