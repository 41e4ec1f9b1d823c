//! `midturn sessions rm` and `midturn prune`: looks what there is, says what will be removed, asks, and removes it. Whoever
//! does this holds the store meanwhile, so that nobody carries any of it.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_tools::leftovers;
use midturn_tools::workplace::GitWorkplace;
use serde_json::Value;

use super::Stored;
use super::plan::{Fate, Found, Part, Sum, Wish, fate, said};
use crate::args::{LayerArgs, PlaceArgs, PruneArgs, RemovalArgs, RmArgs};
use crate::client;
use crate::commands;
use crate::env::{self, Env};
use crate::failure::{End, Failure};
use crate::history;
use crate::host::holding::{self, Opened};
use crate::project::Project;

/// Said where somebody else writes to the store.
const HELD: &str = "a Midturn runs in this project and holds its store: end it first, then nobody carries what is \
     removed (--dry-run works beside it)";

/// `midturn sessions rm SESSION…`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session, or nobody can be asked. [`Failure::Failed`]: a Midturn runs, or
/// something can't be removed.
pub(crate) fn remove(args: &RmArgs, env: &Env) -> Result<End, Failure> {
    let RmArgs { sessions, removal, place } = args;
    let chosen = |all: Vec<SessionSummary>| {
        let ids: Vec<String> = all.iter().map(|session| session.record.id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let places = sessions.iter().map(|asked| history::choose(&ids, asked));
        let places = places.collect::<Result<BTreeSet<usize>, Failure>>()?;
        let chosen = all.into_iter().enumerate().filter(|(at, _)| places.contains(at));
        Ok(chosen.map(|(_, session)| session).collect())
    };
    Cleaning { place, removal: *removal, wish: Wish::Remove, env }.run(chosen)
}

/// `midturn prune`.
///
/// # Errors
/// As [`remove`].
pub(crate) fn prune(args: &PruneArgs, env: &Env) -> Result<End, Failure> {
    let PruneArgs { older_than, removal, place } = args;
    let wish = Wish::Prune { now: env::now().0, older_than: *older_than };
    Cleaning { place, removal: *removal, wish, env }.run(Ok)
}

/// What is asked for, and where.
struct Cleaning<'a> {
    place: &'a PlaceArgs,
    removal: RemovalArgs,
    wish: Wish,
    env: &'a Env,
}

/// A session, and its agents' places.
type Looked = (Found, Stored);

impl Cleaning<'_> {
    fn run(
        &self,
        choose: impl FnOnce(Vec<SessionSummary>) -> Result<Vec<SessionSummary>, Failure>,
    ) -> Result<End, Failure> {
        let project = Project::named(self.place, self.env)?;
        commands::block_on(async {
            let Some(archive) = history::read_only(&project).await? else {
                return commands::print("nothing is kept here yet\n");
            };
            let kept = archive.sessions().await.map_err(Failure::failed)?;
            let (live, _) = history::live(&project, &kept).await;
            let chosen = choose(kept)?;
            let carried = |session: &SessionSummary| live.contains(session.record.id.as_str());
            if let (Wish::Remove, Some(session)) = (self.wish, chosen.iter().find(|session| carried(session)))
            {
                let id = &session.record.id;
                let what =
                    format!("a running Midturn carries session {id}: it is not removed while that runs");
                return Err(Failure::failed(what));
            }
            if !self.removal.dry_run
                && let Some(client) = client::find(&project)?
                && client.get::<Value>(&midturn_client::Path::of(&["health"])).await.is_ok()
            {
                return Err(Failure::failed(HELD));
            }
            let chosen = chosen.into_iter().filter(|session| !carried(session)).collect();
            self.look_and_remove(&project, archive, chosen).await
        })?
    }

    async fn look_and_remove(
        &self,
        project: &Project,
        archive: Arc<dyn Archive>,
        chosen: Vec<SessionSummary>,
    ) -> Result<End, Failure> {
        let (mut plan, mut places) = (Vec::new(), Vec::new());
        for session in chosen {
            let Some((found, place)) = self.look(project, &*archive, session).await? else { continue };
            let fate = fate(&found, self.wish, self.removal.force);
            plan.push((found, fate));
            places.push(place);
        }
        archive.close().await;
        let (sum, text) = (Sum::of(&plan), said(&plan));
        if sum.is_nothing() {
            commands::print(&format!("{text}nothing to remove\n"))?;
            return self.ended(&plan);
        }
        commands::print(&format!("{text}in all: {sum}\n"))?;
        if self.removal.dry_run || !self.is_agreed()? {
            return Ok(End::Finished);
        }
        self.obey(project, &plan, &places).await?;
        commands::print(&format!("removed: {sum}\n"))?;
        self.ended(&plan)
    }

    /// `None`: it can't be looked at from here, and nobody asked for this very one.
    async fn look(
        &self,
        project: &Project,
        archive: &dyn Archive,
        session: SessionSummary,
    ) -> Result<Option<Looked>, Failure> {
        let id = &session.record.id;
        let Some(journal) = archive.journal(id).await.map_err(Failure::failed)? else { return Ok(None) };
        let stored = match (Stored::in_journal(project, journal, self.env).await, self.wish) {
            (Ok(stored), _) => stored,
            (Err(failure), Wish::Remove) => return Err(failure),
            (Err(failure), Wish::Prune { .. }) => {
                eprintln!("midturn: session {id} stays: {failure}");
                return Ok(None);
            }
        };
        let remains = stored.workplace.remains().await.map_err(Failure::failed)?;
        let size = archive.size(id).await.map_err(Failure::failed)?;
        Ok(Some((Found { session, size, remains }, stored)))
    }

    /// Whether the person wants it.
    ///
    /// # Errors
    /// [`Failure::Usage`]: nobody can be asked.
    fn is_agreed(&self) -> Result<bool, Failure> {
        if self.removal.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("nothing was removed: say --yes where nobody can be asked"));
        }
        let mut answer = String::new();
        eprint!("Remove this? [y/N] ");
        let asked = std::io::stderr().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
        asked.map_err(|error| Failure::failed(format!("nobody could be asked: {error}")))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    async fn obey(
        &self,
        project: &Project,
        plan: &[(Found, Fate)],
        places: &[Stored],
    ) -> Result<(), Failure> {
        let layer = LayerArgs { cwd: self.place.cwd.clone(), ..LayerArgs::default() };
        let config = commands::load(&layer, &commands::work_folder(&layer)?, self.env)?;
        let held = match holding::open(project, config.general.store.patience).await? {
            Opened::Ours(held) => held,
            Opened::Theirs(who) => {
                return Err(Failure::failed(format!("nothing was removed: {who}")));
            }
        };
        let removed = remove_all(&*held.archive, plan, places).await;
        held.archive.close().await;
        removed
    }

    /// # Errors
    /// [`Failure::Failed`]: a session stays that was to go.
    fn ended(&self, plan: &[(Found, Fate)]) -> Result<End, Failure> {
        let stays = plan.iter().find(|(_, fate)| !fate.session).filter(|_| self.wish == Wish::Remove);
        match stays {
            None => Ok(End::Finished),
            Some((found, _)) => Err(Failure::failed(format!(
                "session {} stays: work of its agents is on no branch. `midturn merge` says what to do about it, and \
                 --force removes it",
                found.session.record.id
            ))),
        }
    }
}

/// Piece by piece: who is interrupted types the same again.
async fn remove_all(archive: &dyn Archive, plan: &[(Found, Fate)], places: &[Stored]) -> Result<(), Failure> {
    let now = archive.sessions().await.map_err(Failure::failed)?;
    for ((found, fate), place) in plan.iter().zip(places).filter(|((_, fate), _)| fate.is_any()) {
        let SessionSummary { record, epoch, last_seq, .. } = &found.session;
        let is_same = |now: &SessionSummary| {
            now.record.id == record.id && (now.epoch, now.last_seq) == (*epoch, *last_seq)
        };
        if !now.iter().any(is_same) {
            let id = &record.id;
            return Err(Failure::failed(format!("somebody went on with session {id} meanwhile: look again")));
        }
        // What a dead process left running would write on in there.
        leftovers::end(std::slice::from_ref(&record.id)).await.map_err(Failure::failed)?;
        remove_one(archive, found, fate, &place.workplace).await?;
    }
    Ok(())
}

async fn remove_one(
    archive: &dyn Archive,
    found: &Found,
    fate: &Fate,
    workplace: &GitWorkplace,
) -> Result<(), Failure> {
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
        archive.remove(&found.session.record.id).await.map_err(Failure::failed)?;
    }
    Ok(())
}
