//! A message to a session that nobody carries takes it up: where no Midturn runs in the project, one is
//! started for it, as for the page. What the message does there is decided in `midturn-core`.

use midturn_client::{Client, TakenUp, Trouble, take_up};

use super::open::{self, Answers, UNTIL_IDLE};
use super::{Asking, find, meant, say, send};
use crate::args::SendArgs;
use crate::commands::block_on;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::history;
use crate::project::Project;
use crate::run::session::attending;
use crate::secrets;

/// `midturn send`.
///
/// # Errors
/// [`Failure`]: no process answers and none can be started, there is no such session, or it is refused.
pub(super) fn send(args: &SendArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.client.place, env)?;
    let (asking, answer) = block_on(async {
        let session = args.client.session.clone();
        let ask = |client| Asking { project: project.clone(), client, session, json: args.client.json };
        let mut started = None;
        let mut asking = match find(&project)? {
            Some(client) => ask(client),
            None => ask(begun(&project, args, &mut started).await?),
        };
        let mut answer = send::send(&asking, args).await;
        // It died, and left its file behind.
        if started.is_none() && matches!(answer, Err(Trouble::Nobody)) {
            asking.client = begun(&project, args, &mut started).await?;
            answer = send::send(&asking, args).await;
        }
        if let Err(trouble) = &answer
            && matches!(trouble.code(), Some("not_live" | "no_session"))
        {
            asking.session = taken_up(&asking, started).await?;
            answer = send::send(&asking, args).await;
        }
        Ok::<_, Failure>((asking, answer))
    })??;
    match answer {
        Ok(answer) => say(asking.json, answer),
        Err(trouble) => super::refused(&asking, trouble),
    }
}

/// A process that carries the project's sessions. One is started only for a session that is kept.
async fn begun(project: &Project, args: &SendArgs, started: &mut Option<u32>) -> Result<Client, Failure> {
    let Some(archive) = history::read_only(project).await? else { return Err(Trouble::Nobody.into()) };
    let asked = args.client.session.as_str();
    history::find(&*archive, if asked == "current" { "last" } else { asked }).await?;
    let Answers { client, started: pid } = open::answering(project, &args.client.place).await?;
    *started = pid;
    Ok(client)
}

/// Takes the session up that is meant, and says which that is, and what carries it.
async fn taken_up(asking: &Asking, started: Option<u32>) -> Result<String, Failure> {
    let id = meant(&asking.client, &asking.session).await?.session;
    let TakenUp { working, notes } = take_up(&asking.client, &id, false).await?;
    let mut told = notes;
    if let Some(pid) = started {
        told.push(format!(
            "no Midturn ran here: `midturn serve --until-idle {UNTIL_IDLE}` was started (process {pid}) and carries the session"
        ));
    }
    told.push(match working.is_empty() {
        true => format!("session {id} is taken up: `midturn watch` shows what comes of it"),
        false => format!("{}; `midturn watch` shows it", attending::goes_on(&id, &working)),
    });
    told.iter().for_each(|line| eprintln!("midturn: {}", secrets::clean(line)));
    Ok(id)
}
