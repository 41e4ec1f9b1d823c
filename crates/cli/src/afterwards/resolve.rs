//! `midturn merge --resolve`: what conflicts is handed to the agent whose branch it is. It merges the project's HEAD in
//! its own repository, where the project's commits can be read; the person merges again.

use std::path::Path;
use std::process::Command;

use midturn_client::{Client, SessionClient, take_up};
use midturn_core::rules::id::AgentName;
use midturn_tools::programs::{self, Program};
use midturn_view::words::Tone;
use midturn_wire::message::Message;
use midturn_wire::text::Text;

use crate::args::{LayerArgs, MergeArgs};
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::history;
use crate::host::holding::{self, Opened};
use crate::host::{Begun, Carrier};
use crate::project::Project;
use crate::run::{Attended, Manner, attended};

/// What the agent is told.
///
/// # Errors
/// [`Failure::Failed`]: the project has no HEAD.
pub(crate) fn task(project: &Project, files: &[String]) -> Result<String, Failure> {
    let head = head(project.root())?;
    let files: String = files.iter().map(|file| format!("- {file}\n")).collect();
    Ok(format!(
        "Your branch can't be merged into the project: both sides changed these files (as seen from the project \
         folder):\n{files}\nThe project's HEAD is now commit {head}, which you can read in your repository. Merge it \
         there with `git merge {head}`, resolve each conflict so that what both sides wanted holds, check that it works, \
         and commit the merge. Your branch is merged again after that."
    ))
}

fn head(folder: &Path) -> Result<String, Failure> {
    let git = programs::find(Program::Git).map_err(Failure::failed)?;
    let words = ["rev-parse", "--verify", "HEAD^{commit}"];
    let said = Command::new(git).args(words).current_dir(folder).output().map_err(Failure::failed)?;
    let line = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if said.status.success() { Ok(line) } else { Err(Failure::failed("the project has no commit at HEAD")) }
}

/// Tells an agent of a session of another process, which takes the session up if nobody has.
///
/// # Errors
/// [`Failure::Failed`]: the process refuses.
pub(crate) async fn hand_over(
    client: &Client,
    session: &str,
    agent: &AgentName,
    task: String,
) -> Result<(), Failure> {
    let session = SessionClient::new(client, session);
    if !session.summary().await?.live {
        take_up(client, &session.id, false).await?;
    }
    session.send(agent, &Message { text: Text(task), ..Message::default() }).await?;
    Ok(())
}

/// Goes on with a session in this process, for the agent to resolve what conflicts.
///
/// # Errors
/// As [`crate::host::resume`].
pub(crate) fn resolve(
    args: &MergeArgs,
    project: &Project,
    files: &[String],
    env: &Env,
) -> Result<End, Failure> {
    let layer = LayerArgs { cwd: args.client.place.cwd.clone(), ..LayerArgs::default() };
    let config = commands::load(&layer, &commands::work_folder(&layer)?, env)?;
    let task = task(project, files)?;
    let asked = if args.client.session == "current" { "last" } else { &args.client.session };
    let manner = Manner { base: config.general.folder.base(), ..Manner::of_lines(args.client.json) };
    attended(manner, env, async |attended| {
        match holding::open(project, config.general.store.patience).await? {
            Opened::Theirs(who) => Err(Failure::failed(format!("nothing was handed over: {who}"))),
            Opened::Ours(holding) => {
                let id = history::find(&*holding.archive, asked).await?;
                let carrier = Carrier::new(holding, env, &layer);
                let begins = async |carrier: &Carrier| {
                    let taken = carrier.take_up(&id, &[], (&attended.console).into()).await?;
                    let gone = || Failure::usage(format!("there is no session {id}"));
                    let (begun, _) = taken.ok_or_else(gone)?;
                    told(&attended, &begun, &args.agent, &task).await?;
                    Ok(Ok(begun))
                };
                attended.carry(project, carrier, begins).await
            }
        }
    })
}

async fn told(attended: &Attended, begun: &Begun, agent: &AgentName, task: &str) -> Result<(), Failure> {
    attended.tell_notes(&begun.safety.notes()).await;
    let sent = begun.live.coordinator.send_message(agent.as_str(), task, false).await;
    sent.map_err(|refusal| Failure::failed(format!("`{agent}` was not told: {refusal}")))?;
    let id = &begun.live.record.id;
    attended.console.tell(Tone::Plain, format!("session {id} goes on: {agent} resolves the conflict")).await;
    Ok(())
}
