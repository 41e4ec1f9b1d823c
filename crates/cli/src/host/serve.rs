//! `midturn serve`: carries sessions until it is told to end, and goes on with those that
//! were under way when the daemon before it ended.

use std::sync::Arc;

use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::rules::id::SessionId;
use midturn_view::words::Tone;

use super::carry::{self, Memo};
use super::holding::{self, Opened};
use super::idle;
use super::safety::Safety;
use super::sessions::end_leftovers;
use super::{Answering, Audience, Carrier};
use crate::args::{LayerArgs, ServeArgs};
use crate::commands;
use crate::config::Page;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::meanwhile::telling;
use crate::project::{Project, StoreAt};
use crate::run::console::Console;
use crate::run::session::attending;
use crate::run::{Attended, Manner, attended, prepare};

/// `midturn serve`.
///
/// # Errors
/// [`Failure::Usage`]: the configuration is not sound, or there is no sandbox. [`Failure::Failed`]: another process
/// holds the store, the store fails, or an address can't be bound.
pub(crate) fn serve(args: &ServeArgs, env: &Env) -> Result<End, Failure> {
    let folder = commands::work_folder(&args.work.layer)?;
    let layer = LayerArgs { cwd: Some(folder.clone()), ..args.work.whole_layer() };
    let config = commands::load(&layer, &folder, env)?;
    let project = Project::of(&folder, &args.work.store, env)?;
    let manner = Manner { json: false, steers: false, screen: None, stays: false, base: None };
    attended(manner, env, async |attended| {
        let safety = Safety::of(&config, None).await?;
        match holding::open(&project, config.general.store.patience).await? {
            Opened::Theirs(who) => Err(Failure::failed(format!("{who}; `midturn ps` asks it"))),
            Opened::Ours(holding) => {
                attended.tell_notes(&[prepare::notes(&config), safety.notes()].concat()).await;
                let carrier = Carrier::new(holding, env, &layer).serving(safety, args.work.safety());
                answer(args, &config.general.page, &project, Arc::new(carrier), attended).await
            }
        }
    })
}

async fn answer(
    args: &ServeArgs,
    page: &Page,
    project: &Project,
    carrier: Arc<Carrier>,
    attended: Attended,
) -> Result<End, Failure> {
    let console = &attended.console;
    // Before anybody can ask for anything: no agent begins beside what is still running.
    end_what_was_left(&carrier, project, console).await?;
    let answering = Answering::start(project, carrier.clone(), args.listen, page.stops_when_left()).await?;
    console.tell(Tone::Plain, format!("serving sessions kept in {}", project.store())).await;
    let place = answering.place().display();
    console.tell(Tone::Plain, format!("the interface: {place}")).await;
    if let Some(tcp) = answering.tcp() {
        console.tell(Tone::Plain, format!("on loopback: http://{tcp}")).await;
    }
    tokio::select! {
        biased;
        () = attended.interrupted.cancelled() => {}
        ended = carries(&carrier, project, console) => return ended,
        () = idle::for_so_long(&carrier, answering.used(), args.until_idle) => {
            console.tell(Tone::Plain, "nobody has asked anything, and no agent has worked: it ends").await;
        }
    }
    // Nothing is waited for before the agents are told, and no agent for another.
    let told = console.tell(Tone::Cut, "stopping all agents; their sessions can be resumed");
    tokio::join!(carrier.shutdown(), told);
    attended.leave(answering).await;
    Ok(End::Finished)
}

/// Whatever the sessions that are kept here left running, those included that nobody goes on with.
async fn end_what_was_left(carrier: &Carrier, project: &Project, console: &Console) -> Result<(), Failure> {
    let sessions = carrier.sessions().await?.into_iter();
    let ours = sessions
        .filter(|summary| Memo::of(&summary.record).is_ok_and(|memo| is_ours(summary, &memo, project)));
    let ours: Vec<SessionId> = ours.map(|summary| summary.record.id).collect();
    if ours.is_empty() {
        return Ok(());
    }
    let (tone, told) = match end_leftovers(&ours).await {
        Ok(0) => (Tone::Plain, "an earlier daemon left no process behind".to_owned()),
        Ok(1) => (Tone::Plain, "ended 1 process that an earlier daemon left behind".to_owned()),
        Ok(ended) => (Tone::Plain, format!("ended {ended} processes that an earlier daemon left behind")),
        // Each session looks again before it goes on, and those of others do.
        Err(error) => (Tone::Bad, error.to_string()),
    };
    console.tell(tone, told).await;
    Ok(())
}

/// Goes on with what was left, and then waits for who comes. A session that can't be taken up is
/// told and left as it is: the others go on.
async fn carries(carrier: &Carrier, project: &Project, console: &Console) -> Result<End, Failure> {
    let sessions = carrier.sessions().await?;
    let left: Vec<_> = sessions.iter().rev().filter(|summary| is_to_go_on(summary, project)).collect();
    for (at, summary) in left.iter().enumerate() {
        let id = &summary.record.id;
        let what = format!("taking up session {id} ({} of {})", at + 1, left.len());
        let tell = async |line| console.tell(Tone::Quiet, line).await;
        match telling(&what, carrier.take_up(id, &[], Audience::default()), tell).await {
            // What waits in it waits for a person: whom they stopped nobody sets to work (decision 0015).
            Ok(Some((begun, working))) if working.is_empty() && !begun.live.coordinator.is_busy() => {
                carrier.let_go(&begun).await;
            }
            Ok(Some((_, working))) => console.tell(Tone::Plain, attending::goes_on(id, &working)).await,
            Ok(None) => {}
            Err(error) => console.tell(Tone::Bad, format!("session {id} can't go on: {error}")).await,
        }
    }
    console.tell(Tone::Plain, "ready").await;
    std::future::pending().await
}

/// A run that never ended was cut off by a crash, and so was what waited to begin. One that a
/// shutdown stopped goes on by itself only if a daemon had it: who ends `midturn run` by Ctrl-C
/// means it.
fn is_to_go_on(summary: &SessionSummary, project: &Project) -> bool {
    let Ok(memo) = Memo::of(&summary.record) else { return false };
    let was_cut_off = summary.running > 0 || (summary.waiting > 0 && summary.shut_down == 0);
    let left = was_cut_off || (summary.shut_down > 0 && memo.served);
    left && is_ours(summary, &memo, project)
}

/// A file has one holder, so that what it holds and nobody carries was left. A server has
/// many: what is not of this project on this machine is another process's to carry.
fn is_ours(summary: &SessionSummary, memo: &Memo, project: &Project) -> bool {
    match project.store() {
        StoreAt::File(_) => true,
        StoreAt::Postgres(_) => {
            memo.machine == carry::machine() && project.holds(summary.record.folder.as_ref())
        }
    }
}
