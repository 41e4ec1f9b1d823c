//! `midturn serve`: carries sessions until it is told to end, and goes on with those that
//! were under way when the daemon before it ended.

use std::sync::Arc;

use midturn_core::engine::ports::archive::SessionSummary;

use super::carry::{self, Memo};
use super::holding::{self, Opened};
use super::safety::Safety;
use super::{Answering, Carrier, Company};
use crate::args::{LayerArgs, ServeArgs};
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::{Project, StoreAt};
use crate::run::progress::Tone;
use crate::run::{Attended, attended, prepare};

/// `midturn serve`.
///
/// # Errors
/// [`Failure::Usage`]: the configuration is not sound, or there is no sandbox. [`Failure::Failed`]: another process
/// holds the store, the store fails, or an address can't be bound.
pub fn serve(args: &ServeArgs, env: &Env) -> Result<End, Failure> {
    let folder = commands::work_folder(&args.layer)?;
    let layer = LayerArgs { cwd: Some(folder.clone()), ..args.safety.over(&args.layer) };
    let config = commands::load(&layer, &folder, env)?;
    let project = Project::of(&folder, &args.store, env)?;
    attended(false, env, async |attended| {
        let safety = Safety::of(&config, None).await?;
        match holding::open(&project).await? {
            Opened::Theirs(who) => Err(Failure::failed(format!("{who}; `midturn ps` asks it"))),
            Opened::Ours(holding) => {
                attended.tell_notes(&[prepare::notes(&config)?, safety.notes()].concat());
                let carrier = Carrier::new(holding, env, &layer).serving(safety, args.safety.set());
                answer(args, &project, Arc::new(carrier), attended).await
            }
        }
    })
}

async fn answer(
    args: &ServeArgs,
    project: &Project,
    carrier: Arc<Carrier>,
    attended: Attended,
) -> Result<End, Failure> {
    let answering = Answering::start(project, carrier.clone(), args.listen).await?;
    let console = &attended.console;
    console.tell(Tone::Plain, format!("serving sessions kept in {}", project.store()));
    console.tell(Tone::Plain, format!("the interface: {}", project.state().join("interface.json").display()));
    if let Some(tcp) = answering.tcp() {
        console.tell(Tone::Plain, format!("on loopback: http://{tcp}"));
    }
    take_up_what_was_left(&carrier, project, &attended).await?;
    console.tell(Tone::Plain, "ready");
    attended.interrupted.cancelled().await;
    console.tell(Tone::Cut, "stopping all agents; their sessions can be resumed");
    carrier.shutdown().await;
    answering.end().await;
    Ok(End::Finished)
}

/// A session that can't be taken up is told and left as it is: the others go on.
async fn take_up_what_was_left(
    carrier: &Carrier,
    project: &Project,
    attended: &Attended,
) -> Result<(), Failure> {
    let sessions = carrier.sessions().await?;
    for summary in sessions.iter().rev().filter(|summary| is_to_go_on(summary, project)) {
        let id = &summary.record.id;
        match carrier.take_up(id, &[], Company::default()).await {
            Ok(Some((_, working))) => {
                let names: Vec<&str> = working.iter().map(|name| name.as_str()).collect();
                attended.console.tell(Tone::Plain, format!("session {id} goes on: {}", names.join(", ")));
            }
            Ok(None) => {}
            Err(error) => {
                attended.console.tell(Tone::Bad, format!("session {id} can't go on: {error}"));
            }
        }
    }
    Ok(())
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
