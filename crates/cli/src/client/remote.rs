//! A session that runs in the process that holds the project's store, attended to from here:
//! the output, the steering and the exit status are those of a run in this process.
//!
//! It decides nothing about messages, and keeps nothing: when this process ends without a
//! word, the session goes on where it is.

mod attend;

use std::cmp::Reverse;
use std::time::Duration;

use midturn_client::{Client, Path, SessionClient, TakenUp, Trouble, take_up};
use midturn_view::words::Tone;
use midturn_wire::message::Message;
use midturn_wire::session::{NewSession, Session, Sessions};
use midturn_wire::text::Text;
use serde_json::Value;

use crate::args::LayerArgs;
use crate::commands;
use crate::failure::{End, Failure};
use crate::history;
use crate::project::Project;
use crate::run::Attended;
use crate::run::session::attending::{self, Carried};

/// How often, and in which pauses, a process is asked that holds the store and does not answer
/// yet: it may be starting.
const ATTEMPTS: (u32, Duration) = (25, Duration::from_millis(200));

/// Runs a task in the process that holds the project's store.
///
/// # Errors
/// [`Failure::Usage`]: the working folder is not there. [`Failure::Failed`]: the process does
/// not answer, refuses, or ends before the session does.
pub(crate) async fn remote_run(
    task: &str,
    layer: &LayerArgs,
    project: &Project,
    attended: Attended,
) -> Result<End, Failure> {
    let folder = commands::work_folder(layer)?;
    let client = holder(project).await?;
    let asked = NewSession {
        task: Text(task.to_owned()),
        folder: Some(Text(folder.to_string_lossy().into_owned())),
        model: layer.model.clone().map(Text),
        set: layer.set.iter().cloned().map(Text).collect(),
        answers: attended.console.answers(),
    };
    let session: Session = client.post_patiently(&Path::of(&["sessions"]), &asked).await?;
    attend::steer(client, project, &session, attended, 0).await
}

/// Goes on with a session in the process that holds the project's store. `name` is its id,
/// the beginning of it, or `last`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session. [`Failure::Failed`]: as [`remote_run`].
/// A text is what its lead is told.
pub(crate) async fn remote_resume(
    name: &str,
    text: Option<&str>,
    project: &Project,
    attended: Attended,
) -> Result<End, Failure> {
    let client = holder(project).await?;
    let before = find(&client, name).await?;
    let id = &before.session;
    let TakenUp { mut working, notes } = take_up(&client, id, attended.console.answers()).await?;
    for note in notes {
        attended.console.tell(Tone::Plain, note).await;
    }
    let session: Session = client.get(&Path::in_session(id, &[])).await?;
    let asked = SessionClient::new(&client, id);
    let refused = match (text, &session.lead) {
        (Some(text), Some(lead)) => {
            let message = Message { text: Text(text.to_owned()), ..Message::default() };
            asked
                .send(lead, &message)
                .await
                .err()
                .map(|trouble| format!("error: not sent to {lead}: {trouble}"))
        }
        _ => None,
    };
    if let Some(refused) = &refused {
        attended.console.tell(Tone::Bad, refused.clone()).await;
    }
    let agents = asked.agents().await?;
    let at_work = attending::at_work(&agents);
    if at_work.is_empty() && working.is_empty() && (refused.is_some() || text.is_none() && !attended.stays())
    {
        let lead = agents.iter().find(|agent| Some(&agent.name) == session.lead.as_ref());
        let rests = attending::rests(id, lead, Carried::Elsewhere);
        attended.console.tell(Tone::Plain, rests.told).await;
        return Ok(rests.end);
    }
    working.extend(at_work.into_iter().filter(|name| !working.contains(name)).collect::<Vec<_>>());
    attended.console.tell(Tone::Plain, attending::goes_on(id, &working)).await;
    attend::steer(client, project, &session, attended, before.last_seq).await
}

/// The process that holds the store. One that has only just begun may not answer yet.
async fn holder(project: &Project) -> Result<Client, Failure> {
    let (attempts, pause) = ATTEMPTS;
    for _ in 0..attempts {
        if let Some(client) = super::find(project)? {
            match client.get::<Value>(&Path::of(&["health"])).await {
                Err(Trouble::Nobody) => {}
                Err(suspended @ Trouble::Suspended(_)) => return Err(suspended.into()),
                Ok(_) | Err(_) => return Ok(client),
            }
        }
        tokio::time::sleep(pause).await;
    }
    Err(Failure::failed(format!(
        "another process holds the store {} and does not answer: it may be ending, so try again in a moment",
        project.store()
    )))
}

async fn find(client: &Client, asked: &str) -> Result<Session, Failure> {
    let all: Sessions = client.get(&Path::of(&["sessions"])).await?;
    let mut sessions = all.sessions;
    // What runs in another program goes on there.
    sessions.retain(|session| session.joined.is_none());
    // The newest first, whether it lives or not.
    sessions.sort_by_key(|session| Reverse(session.began_at));
    let ids: Vec<&str> = sessions.iter().map(|session| session.session.as_str()).collect();
    let at = history::choose(&ids, asked)?;
    Ok(sessions.swap_remove(at))
}
