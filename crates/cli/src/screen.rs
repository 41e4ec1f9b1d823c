//! The screen of `midturn-tui`, opened on a session: one that this process carries, one that another
//! does, one that is only kept, or one that is played.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use midturn_client::events::{Told, read};
use midturn_client::{Client, SessionClient};
use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::{Rows, SessionSummary};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::time::Micros;
use midturn_tui::run::{Place, Replayer, Source, run};
use midturn_tui::settings::Settings;
use midturn_tui::state::{Opening, Standing, State};
use midturn_wire::session::{Session, Sessions};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::args::{AttachArgs, ClientArgs, LayerArgs, ScreenArgs};
use crate::client;
use crate::commands;
use crate::config::Config;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::history;
use crate::host::what_if;
use crate::notify::Own;
use crate::project::Project;
use crate::run::{session_id, signals};

/// How many events are on their way to the screen.
const QUEUE: usize = 256;

/// How many events are read from the store at once.
const PAGE: u32 = 1_000;

/// Whether a screen can be drawn and keys be read here.
pub(crate) fn is_possible(args: &ScreenArgs, env: &Env) -> bool {
    let is_dumb = matches!(env.text("TERM"), Ok(Some("dumb")));
    !args.plain && !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// `midturn attach [SESSION]`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session. [`Failure::Failed`]: it can't be read, or the terminal can't be used.
pub(crate) fn attach(args: &AttachArgs, env: &Env) -> Result<End, Failure> {
    let AttachArgs { session, screen, place } = args;
    if !is_possible(screen, env) {
        let client = ClientArgs { session: session.clone(), json: false, place: place.clone() };
        return client::lines(&client, None, env);
    }
    let settings = settings(screen, place.cwd.as_deref(), env)?;
    let project = Project::named(place, env)?;
    let interrupted = signals::listen()?;
    commands::block_on(async {
        let place = match client::find(&project)? {
            Some(client)
                if client.get::<Sessions>(&midturn_client::Path::of(&["sessions"])).await.is_ok() =>
            {
                carried(&project, &client, session).await?
            }
            _ => kept(&project, session).await?,
        };
        let left = show(place, settings, &interrupted).await?;
        println!("{}", goes_on(&left));
        Ok(End::Finished)
    })?
}

fn settings(args: &ScreenArgs, folder: Option<&Path>, env: &Env) -> Result<Settings, Failure> {
    let layer = LayerArgs { cwd: folder.map(Path::to_owned), ..LayerArgs::default() };
    let config: Config = commands::load(&layer, &commands::work_folder(&layer)?, env)?;
    Ok(config.terminal(env, args.ascii))
}

/// What a person reads who has left a session that goes on without them.
pub(crate) fn goes_on(left: &State) -> String {
    let id = &left.opening.id;
    let working = left.session.view().agents().filter(|(_, agent)| agent.is_working()).count();
    match (&left.standing, working) {
        (Standing::Stored(_) | Standing::Lost(_), _) => {
            format!("session {id}: `midturn resume {id}` goes on with it, `midturn attach {id}` shows it")
        }
        (_, 0) => format!("session {id} rests, and can be written to: `midturn attach {id}`"),
        (_, 1) => format!("session {id} goes on, 1 agent is at work: `midturn attach {id}` shows it again"),
        (_, many) => {
            format!("session {id} goes on, {many} agents are at work: `midturn attach {id}` shows it again")
        }
    }
}

/// Shows a session until the person leaves.
///
/// # Errors
/// [`Failure::Failed`]: the terminal can't be used, or is gone.
pub(crate) async fn show(
    place: Place,
    settings: Settings,
    interrupted: &CancellationToken,
) -> Result<State, Failure> {
    let notifier = Own::of(settings.notify_command.as_deref()).map(Own::notifier);
    let place = Place { notifier, ..place };
    let left = crate::log::held(run(place, settings, interrupted)).await;
    left.map_err(|error| Failure::failed(format!("the terminal: {error}")))
}

/// A session that a process carries, and how that is found again.
///
/// # Errors
/// [`Failure::Failed`]: the session has no lead, and can't have one of the usual name.
pub(crate) fn live(
    project: &Project,
    client: &Client,
    session: &Session,
    standing: Standing,
) -> Result<Place, Failure> {
    let opening = Opening {
        id: session.session.clone(),
        title: session.title.clone(),
        lead: session.lead.clone().map_or_else(nobody, Ok)?,
        began_at: session.began_at,
        last_seq: session.last_seq,
        standing,
        can_ask: true,
        seed: session_id::new().to_string(),
        notes: session.shared.iter().cloned().collect(),
    };
    let (whose, id) = (project.clone(), session.session.clone());
    let finder = Arc::new(move || client::find(&whose).ok().flatten());
    let drafts = Some(project.state().join("drafts").join(&id));
    Ok(Place {
        opening,
        source: Source::Live(SessionClient::new(client, &id), finder),
        drafts,
        notifier: None,
    })
}

/// The usual name of a lead, for a session whose lead is not known before its first event.
fn nobody() -> Result<AgentName, Failure> {
    AgentName::new("lead").map_err(Failure::failed)
}

/// The session that somebody means, of those that the process knows.
async fn carried(project: &Project, client: &Client, asked: &str) -> Result<Place, Failure> {
    let session = client::meant(client, asked).await?;
    let standing = if session.live { Standing::Theirs } else { stored(&session.session) };
    live(project, client, &session, standing)
}

fn stored(id: &str) -> Standing {
    Standing::Stored(format!("the session is only kept: `midturn resume {id}` goes on with it"))
}

/// A session that no process carries, read from the store.
async fn kept(project: &Project, asked: &str) -> Result<Place, Failure> {
    let asked = if asked == "current" { "last" } else { asked };
    let (archive, id) = history::kept(project, asked).await?;
    let sessions = archive.sessions().await.map_err(Failure::failed)?;
    let summary = sessions.into_iter().find(|session| session.record.id == id);
    let summary = summary.ok_or_else(|| Failure::failed(format!("session {id} is gone")))?;
    let SessionSummary { record, last_seq, .. } = summary;
    let opening = Opening {
        id: id.to_string(),
        title: record.title,
        lead: nobody()?,
        began_at: Micros(record.began_at),
        last_seq,
        standing: stored(id.as_str()),
        can_ask: false,
        seed: String::new(),
        notes: Vec::new(),
    };
    let replayer = of_stored(archive.clone(), id.clone());
    let (queue, told) = mpsc::channel(QUEUE);
    // It ends with the store's last event, or when nobody looks any more.
    tokio::spawn(async move { tell_all(&*archive, &id, &queue).await });
    let source = Source::Read { told, plays: false, replayer };
    Ok(Place { opening, source, drafts: None, notifier: None })
}

/// Plays a session of the store again.
fn of_stored(archive: Arc<dyn Archive>, id: SessionId) -> Replayer {
    Arc::new(move |shift| {
        let (archive, id) = (archive.clone(), id.clone());
        Box::pin(async move {
            what_if::session(&*archive, &id, vec![shift]).await.map_err(|error| error.to_string())
        })
    })
}

/// Tells all events that are kept of a session.
async fn tell_all(archive: &dyn Archive, id: &SessionId, queue: &mpsc::Sender<Told>) {
    let mut after = 0;
    loop {
        let page = match archive.events(id, None, Rows::After(after), PAGE).await {
            Ok(page) => page,
            Err(error) => return tracing::error!(%error, "the events can't be read"),
        };
        let Some(last) = page.last() else { return };
        after = last.seq;
        for event in page {
            if queue.send(read(event.json.to_string())).await.is_err() {
                return;
            }
        }
    }
}

/// Shows the events of a scenario of this text that was played, a JSON object a line.
///
/// # Errors
/// [`Failure::Failed`]: the terminal can't be used.
pub(crate) fn played(path: &Path, text: String, events: Vec<u8>, env: &Env) -> Result<End, Failure> {
    let settings = settings(&ScreenArgs { plain: false, ascii: false }, None, env)?;
    let interrupted = signals::listen()?;
    let all: Vec<Told> = String::from_utf8_lossy(&events).lines().map(|line| read(line.to_owned())).collect();
    let last_seq = all.iter().filter_map(|told| match told {
        Told::Event(_, event) => Some(event.seq),
        _ => None,
    });
    let opening = Opening {
        id: path.display().to_string(),
        title: path.display().to_string(),
        lead: nobody()?,
        began_at: Micros::default(),
        last_seq: last_seq.max().unwrap_or_default(),
        standing: Standing::Stored(
            "it was played on a virtual clock: nobody is there to be written to".to_owned(),
        ),
        can_ask: false,
        seed: String::new(),
        notes: Vec::new(),
    };
    let name = path.display().to_string();
    let replayer: Replayer = Arc::new(move |shift| {
        let played = what_if::scenario(name.clone(), text.clone(), vec![shift]);
        Box::pin(async { played.await.map_err(|error| error.to_string()) })
    });
    commands::block_on(async {
        let (queue, told) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            for event in all {
                if queue.send(event).await.is_err() {
                    return;
                }
            }
        });
        let source = Source::Read { told, plays: true, replayer };
        show(Place { opening, source, drafts: None, notifier: None }, settings, &interrupted).await?;
        Ok(End::Finished)
    })?
}
