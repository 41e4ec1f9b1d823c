//! `midturn sessions rm` and `midturn prune`: looks what there is, says what will be removed, asks, and removes it. Whoever
//! removes holds the store meanwhile, so that nobody carries any of it: this command, or the process that holds it already.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use midturn_client::{Client, Path, Trouble};
use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::rules::id::SessionId;
use midturn_wire::agent::{Agents, State};
use midturn_wire::session::{Prune, Remove, Removed};
use midturn_wire::text::{Duration, Number};
use serde_json::Value;

use super::plan::{Fate, Found, Sum, Wish, fate, said};
use super::{Stored, removal};
use crate::args::{LayerArgs, PlaceArgs, PruneArgs, RemovalArgs, RmArgs};
use crate::client;
use crate::commands;
use crate::env::{self, Env};
use crate::failure::{End, Failure};
use crate::history;
use crate::host::holding::{self, Opened};
use crate::meanwhile::Meanwhile;
use crate::project::Project;

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
            let carried = carried(&project, &kept).await;
            let is_carried = |session: &SessionSummary| carried.contains(session.record.id.as_str());
            let (stay, chosen): (Vec<_>, Vec<_>) = choose(kept)?.into_iter().partition(is_carried);
            let end = self.look_and_remove(&project, archive, chosen).await;
            if let (Wish::Remove, Some(session)) = (self.wish, stay.first()) {
                end?;
                return Err(Failure::failed(is_live(&session.record.id)));
            }
            end
        })?
    }

    async fn look_and_remove(
        &self,
        project: &Project,
        archive: Arc<dyn Archive>,
        chosen: Vec<SessionSummary>,
    ) -> Result<End, Failure> {
        let (mut plan, mut places) = (Vec::new(), Vec::new());
        let (meanwhile, count) = (Meanwhile::begin("looking at sessions", self.env), chosen.len());
        for (at, session) in chosen.into_iter().enumerate() {
            meanwhile.at(at, count);
            let Some((found, place)) = self.look(project, &*archive, session, &meanwhile).await? else {
                continue;
            };
            let fate = fate(&found, self.wish, self.removal.force);
            plan.push((found, fate));
            places.push(place);
        }
        archive.close().await;
        drop(meanwhile);
        let (sum, text) = (Sum::of(&plan), said(&plan));
        if sum.is_nothing() {
            commands::print(&format!("{text}nothing to remove\n"))?;
            return self.ended(&plan);
        }
        commands::print(&format!("{text}in all: {sum}\n"))?;
        if self.removal.dry_run || !self.is_agreed()? {
            return Ok(End::Finished);
        }
        let meanwhile = Meanwhile::begin("removing", self.env);
        let removed = self.obey(project, &plan, &places, &meanwhile).await;
        drop(meanwhile);
        let removed = removed?;
        commands::print(&format!("removed: {removed}\n"))?;
        self.ended(&plan)
    }

    /// `None`: it can't be looked at from here, and nobody asked for this very one.
    async fn look(
        &self,
        project: &Project,
        archive: &dyn Archive,
        session: SessionSummary,
        meanwhile: &Meanwhile,
    ) -> Result<Option<Looked>, Failure> {
        let id = &session.record.id;
        let Some(journal) = archive.journal(id).await.map_err(Failure::failed)? else { return Ok(None) };
        let stored = match (Stored::in_journal(project, journal, self.env).await, self.wish) {
            (Ok(stored), _) => stored,
            (Err(failure), Wish::Remove) => return Err(failure),
            (Err(failure), Wish::Prune { .. }) => {
                meanwhile.aside(|| eprintln!("midturn: session {id} stays: {failure}"));
                return Ok(None);
            }
        };
        Ok(Some((removal::look(archive, session, &stored).await?, stored)))
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
        meanwhile: &Meanwhile,
    ) -> Result<Sum, Failure> {
        if let Some(client) = client::find(project)? {
            match client.get::<Value>(&Path::of(&["health"])).await {
                Ok(_) => return self.ask(&client, plan, meanwhile).await,
                // It died, and left its file behind.
                Err(Trouble::Nobody) => {}
                Err(trouble) => return Err(trouble.into()),
            }
        }
        let layer = LayerArgs { cwd: self.place.cwd.clone(), ..LayerArgs::default() };
        let config = commands::load(&layer, &commands::work_folder(&layer)?, self.env)?;
        let held = match holding::open(project, config.general.store.patience).await? {
            Opened::Ours(held) => held,
            Opened::Theirs(who) => {
                return Err(Failure::failed(format!("nothing was removed: {who}")));
            }
        };
        let removed = remove_all(&*held.archive, plan, places, meanwhile).await;
        held.archive.close().await;
        removed.map(|()| Sum::of(plan))
    }

    /// Has the process do it that holds the store.
    async fn ask(
        &self,
        client: &Client,
        plan: &[(Found, Fate)],
        meanwhile: &Meanwhile,
    ) -> Result<Sum, Failure> {
        let prune = match self.wish {
            Wish::Remove => None,
            Wish::Prune { older_than, .. } => Some(Prune { older_than: older_than.map(Duration) }),
        };
        let mut sum = Sum::default();
        for (at, (Found { session, .. }, fate)) in plan.iter().enumerate() {
            meanwhile.at(at, plan.len());
            if !fate.is_any() {
                continue;
            }
            let (epoch, last_seq) = (Number(session.epoch), Number(session.last_seq));
            let seen = Remove { epoch, last_seq, force: self.removal.force, prune };
            let path = Path::of(&["sessions", session.record.id.as_str(), "remove"]);
            sum = sum.and(&client.post::<Removed>(&path, &seen).await?);
        }
        Ok(sum)
    }

    /// # Errors
    /// [`Failure::Failed`]: a session stays that was to go.
    fn ended(&self, plan: &[(Found, Fate)]) -> Result<End, Failure> {
        let stays = plan.iter().find(|(_, fate)| !fate.session).filter(|_| self.wish == Wish::Remove);
        match stays {
            None => Ok(End::Finished),
            Some((found, _)) => Err(Failure::failed(removal::stays(&found.session.record.id))),
        }
    }
}

fn is_live(id: &SessionId) -> String {
    format!(
        "session {id} is live, so it stays: close it first (`midturn close lead --session {id}`), or end the Midturn that \
         carries it"
    )
}

/// The sessions that a process carries. One of which all agents are closed is nobody's any more.
async fn carried(project: &Project, kept: &[SessionSummary]) -> BTreeSet<String> {
    let (mut live, _) = history::live(project, kept).await;
    let Ok(Some(client)) = client::find(project) else { return live };
    for id in live.clone() {
        let agents = client.get::<Agents>(&Path::of(&["sessions", &id, "agents"])).await;
        if agents.is_ok_and(|all| all.agents.iter().all(|agent| agent.state == State::Closed)) {
            live.remove(&id);
        }
    }
    live
}

async fn remove_all(
    archive: &dyn Archive,
    plan: &[(Found, Fate)],
    places: &[Stored],
    meanwhile: &Meanwhile,
) -> Result<(), Failure> {
    let now = archive.sessions().await.map_err(Failure::failed)?;
    for (at, ((found, fate), place)) in plan.iter().zip(places).enumerate() {
        meanwhile.at(at, plan.len());
        if !fate.is_any() {
            continue;
        }
        let SessionSummary { record, epoch, last_seq, .. } = &found.session;
        let is_same = |now: &SessionSummary| {
            now.record.id == record.id && (now.epoch, now.last_seq) == (*epoch, *last_seq)
        };
        if !now.iter().any(is_same) {
            return Err(Failure::failed(removal::gone_on(&record.id)));
        }
        removal::remove(archive, found, fate, place).await?;
    }
    Ok(())
}
