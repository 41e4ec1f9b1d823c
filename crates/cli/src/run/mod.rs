//! `midturn run`: everything that can be wrong is found before anything starts, then a lead
//! gets the task and a person may steer until it is done.
//!
//! This module wires; what a message does is decided in `midturn-core`, what a tool does in
//! `midturn-tools`, what a model says in `midturn-providers`.

pub mod console;
pub mod input;
pub mod models;
pub mod names;
pub mod progress;
pub mod prompts;
mod session;
pub mod session_id;
pub mod signals;
pub mod steering;
pub mod team;
pub mod watcher;

use std::path::PathBuf;
use std::sync::Arc;

use midturn_core::engine::Coordinator;
use midturn_core::engine::ports::{Clock, RealClock};
use midturn_core::rules::id::SessionId;
use midturn_tools::Limits;
use midturn_tools::process::Supervisor;
use midturn_tools::workplace::GitWorkplace;
use tokio_util::sync::CancellationToken;

use crate::agents::{self, Instructions};
use crate::args::RunArgs;
use crate::commands;
use crate::config::Config;
use crate::env::{self, Env};
use crate::failure::{End, Failure};
use console::Console;
use models::Models;
use progress::Tone;
use session::Session;
use team::{Common, Team};
use watcher::LeadWatcher;

/// Said at every start until approvals and a sandbox are there.
const UNASKED: &str =
    "note: tools run unasked: agents run commands and change files here without asking anybody";

/// Everything a run needs, checked; nothing has begun.
struct Prepared {
    task: String,
    folder: PathBuf,
    state: PathBuf,
    config: Config,
    clock: Arc<dyn Clock>,
    models: Models,
    team: Arc<Team>,
    notes: Vec<String>,
}

/// `midturn run "TASK"`.
///
/// # Errors
/// [`Failure::Usage`]: arguments, configuration, files or environment are not sound, and
/// nothing was begun. [`Failure::Failed`]: the run could not be begun.
pub fn run(args: &RunArgs, env: &Env) -> Result<End, Failure> {
    let prepared = prepare(args, env)?;
    let interrupted = signals::listen()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the runtime can't be started: {error}")))?;
    let console = Arc::new(Console::start(args.json, env));
    let ended = runtime.block_on(play(prepared, console.clone(), interrupted));
    // Whatever still holds a thread (a blocked read, say) must not hold the end.
    runtime.shutdown_background();
    console.finish();
    match ended {
        Ok(_) if console.is_broken() => {
            Err(Failure::failed("standard output can't be written; the run was stopped"))
        }
        ended => ended,
    }
}

fn prepare(args: &RunArgs, env: &Env) -> Result<Prepared, Failure> {
    if args.task.trim().is_empty() {
        return Err(Failure::usage(
            "the task is empty: say what is to be done, as in: midturn run \"Fix the failing test\"",
        ));
    }
    let folder = commands::work_folder(&args.layer)?;
    let config = commands::load(&args.layer, &folder, env)?;
    let state = env
        .state_folder()
        .ok_or_else(|| Failure::usage("neither XDG_STATE_HOME nor HOME names a folder for worktrees"))?;
    let definitions = agents::definitions(&folder, env)?;
    let instructions = Instructions::read(&folder)?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let models = Models::open(&chosen_model(&config)?, &config, env, &clock)?;
    check_default_model(&config, &models)?;
    let common = Common {
        definitions,
        defaults: config.general.agents.clone(),
        aliases: config.general.aliases.clone(),
        instructions: instructions.prompt(),
        folder: folder.display().to_string(),
        in_repository: env::in_repository(&folder),
        settings: config.settings.clone(),
        scripted: models.scenario.as_ref().map(|_| models.name.clone()),
    };
    let team = Arc::new(Team::new(common, |model| models::check(models.providers.as_deref(), model))?);
    let mut notes = team.notes();
    if models.providers.is_some() {
        notes.extend(models::notes(&config));
    }
    Ok(Prepared { task: args.task.clone(), folder, state, config, clock, models, team, notes })
}

/// The lead's model, aliases followed.
fn chosen_model(config: &Config) -> Result<String, Failure> {
    let Some(name) = &config.general.model else {
        return Err(Failure::usage(
            "no model is configured: give --model NAME (anthropic/NAME, openai/NAME, openai-chat/NAME, an alias, \
             scripted:FILE), or set `model` in midturn.toml",
        ));
    };
    names::model(name, &config.general.aliases)
        .map_err(|what| Failure::usage(format!("{what} (`model`, {})", config.origin("model"))))
}

fn check_default_model(config: &Config, models: &Models) -> Result<(), Failure> {
    let name = &config.general.agents.model;
    if name == names::INHERIT || models.providers.is_none() {
        return Ok(());
    }
    names::model(name, &config.general.aliases)
        .and_then(|model| models::check(models.providers.as_deref(), &model))
        .map_err(|what| Failure::usage(format!("{what} (`agents.model`, {})", config.origin("agents.model"))))
}

async fn play(
    prepared: Prepared,
    console: Arc<Console>,
    interrupted: CancellationToken,
) -> Result<End, Failure> {
    console.tell(Tone::Quiet, UNASKED);
    prepared.notes.iter().for_each(|note| console.tell(Tone::Quiet, format!("note: {note}")));
    let watcher = Arc::new(LeadWatcher::new(prepared.models.lead.clone()));
    let coordinator = coordinator(&prepared, watcher.clone(), console.clone()).await?;
    let Prepared { task, models, team, .. } = prepared;
    let lead = team.lead(&models.lead, &models.name, &task);
    coordinator.spawn_agent(lead).await.map_err(|error| Failure::failed(error.to_string()))?;
    let session = Session { coordinator, lead: models.lead, watcher, console };
    Ok(session.steer(input::lines(), interrupted).await)
}

async fn coordinator(
    prepared: &Prepared,
    watcher: Arc<LeadWatcher>,
    console: Arc<Console>,
) -> Result<Coordinator, Failure> {
    let Prepared { config, models, team, .. } = prepared;
    let id = session_id::new();
    let workplace = workplace(prepared, &id);
    let mut builder = Coordinator::builder(models.factory.clone(), Arc::new(workplace))
        .session(id)
        .settings(config.settings.clone())
        .clock(prepared.clock.clone())
        .templates(team.clone())
        // The team first: an agent's tools are known before anything else happens to it.
        .observer(team.clone())
        .observer(watcher)
        .observer(console);
    if let Some(scenario) = &models.scenario {
        builder = builder.scenario(scenario.display().to_string());
    }
    builder.start().await.map_err(|error| Failure::failed(error.to_string()))
}

fn workplace(prepared: &Prepared, id: &SessionId) -> GitWorkplace {
    let Prepared { folder, state, config, team, .. } = prepared;
    let team = team.clone();
    let timeouts = &config.general.timeouts;
    let limits = Limits {
        timeout: timeouts.command.duration(),
        timeout_max: timeouts.command_max.duration(),
        ..Limits::default()
    };
    GitWorkplace::new(folder, state, id, move |agent| team.place_of(agent))
        .limits(limits)
        .supervisor(Supervisor::ourselves().grace(config.settings.abort_grace.duration()))
}
