//! What a session needs before it begins: everything that can be wrong with arguments,
//! configuration, files and environment is found here, and nothing is begun.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::{Clock, RealClock};
use midturn_core::rules::approval::{Mode, Policy};
use midturn_core::rules::characters::is_blank;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_tools::own_folder;
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use tokio::sync::OnceCell;

use super::facts::{Facts, Priced};
use super::models::{self, Earlier, Models, Reached};
use super::names;
use super::team::{Common, Team};
use crate::agents::{self, Instructions};
use crate::args::LayerArgs;
use crate::commands;
use crate::config::{Config, keys_set};
use crate::env::{self, Env};
use crate::failure::Failure;

/// Everything a session needs, checked; nothing has begun.
pub(crate) struct Prepared {
    pub(crate) folder: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Models,
    pub(crate) team: Arc<Team>,
    /// What may run unasked.
    pub(crate) policy: Policy,
    pub(crate) notes: Vec<String>,
    /// What it was made of, to make it again when the session goes on.
    pub(crate) layer: LayerArgs,
    sharing: OnceCell<Option<String>>,
}

/// A task that there is something to do about.
///
/// # Errors
/// [`Failure::Usage`]: it is blank.
pub(crate) fn task(text: &str) -> Result<&str, Failure> {
    if is_blank(text) {
        return Err(Failure::usage(
            "the task is empty: say what is to be done, as in: midturn run \"Fix the failing test\"",
        ));
    }
    Ok(text)
}

/// Prepares a session; `earlier` is what one that goes on has had, `reached` the providers of those
/// that live beside it.
///
/// # Errors
/// [`Failure::Usage`]: arguments, configuration, files or environment are not sound.
pub(crate) fn prepare(
    layer: &LayerArgs,
    env: &Env,
    earlier: &Earlier,
    reached: &Reached,
) -> Result<Prepared, Failure> {
    let folder = commands::work_folder(layer)?;
    let config = commands::load(layer, &folder, env)?;
    let state = env
        .state_folder()
        .ok_or_else(|| Failure::usage("neither XDG_STATE_HOME nor HOME names a folder for worktrees"))?;
    let agents::Found { definitions, left_out } = agents::definitions(&folder, env);
    let instructions = Instructions::read(&folder)?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock::since(earlier.began));
    let mut models = Models::open(&chosen_model(&config, env)?, &config, env, &clock, earlier, reached)?;
    let facts = Facts::of(&config)?;
    facts.check(&models.name, &config).map_err(Failure::usage)?;
    models.factory = Arc::new(Priced::new(models.factory, facts.clone()));
    let policy = config.policy();
    let common = Common {
        definitions,
        defaults: config.general.agents.clone(),
        aliases: config.general.aliases.clone(),
        instructions: instructions.prompt(),
        looks_only: policy.mode == Mode::Plan,
        settings: config.settings.clone(),
        scripted: models.scenario.as_ref().map(|_| models.name.clone()),
        facts: facts.clone(),
    };
    let check = |model: &str| {
        models::check(models.providers.as_deref(), model).and_then(|()| facts.check(model, &config))
    };
    check_default_model(&config, &models, check)?;
    // A key that is missing would be told when the agent is spawned: too late for another model.
    let keyed = |model: &str| check(model).and_then(|()| models::has_key(models.providers.as_deref(), model));
    let team = Arc::new(Team::new(common, keyed));
    let mut notes = [notes(&config), left_out, team.notes()].concat();
    notes.extend(config.setup().err());
    check_base(&config, &folder)?;
    if models.providers.is_some() {
        notes.extend(models::notes(&config));
        notes.extend(models::proxied(&config, &models.name));
    }
    notes.extend(facts.note(&models.name, &config));
    let layer = LayerArgs { cwd: Some(folder.clone()), model: again(layer, &models), set: layer.set.clone() };
    let sharing = OnceCell::new();
    Ok(Prepared { folder, state, config, clock, models, team, policy, notes, layer, sharing })
}

impl Prepared {
    /// What a person is told where all agents work in one folder.
    pub(crate) async fn sharing(&self) -> Option<String> {
        // Who changes nothing is in nobody's way.
        if self.policy.mode == Mode::Plan {
            return None;
        }
        let look = || async {
            let nobody = |_: &AgentName| AgentPlace::new(Isolation::None);
            let place = GitWorkplace::new(&self.folder, &self.state, &SessionId::new(""), nobody);
            let why = place.wishes(self.config.wishes()).shared().await?;
            let folder = self.folder.display();
            Some(format!(
                "all agents work in this one folder, {folder}: {why}. What one changes another sees at once; an edit of \
                 a file that somebody else changed since it was read is refused"
            ))
        };
        self.sharing.get_or_init(look).await.clone()
    }
}

/// Agents' folders in the project would be in each other's way, and in the project's.
fn check_base(config: &Config, folder: &Path) -> Result<(), Failure> {
    let Some(base) = config.general.folder.base() else { return Ok(()) };
    let refused =
        |why: String| Failure::usage(format!("`folder.base` ({}): {why}", config.origin("folder.base")));
    let project = env::repository(folder).unwrap_or(folder);
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let known = base.ancestors().find_map(|path| Some((path, path.canonicalize().ok()?)));
    let real = match known {
        Some((path, real)) => base.strip_prefix(path).map_or(real.clone(), |rest| real.join(rest)),
        None => base.clone(),
    };
    if real.starts_with(&project) || project.starts_with(&real) {
        return Err(refused(format!(
            "{} is in the project, or holds it: name a folder beside it, which has nothing else in it",
            base.display()
        )));
    }
    let (above, name) = (base.parent().unwrap_or(&base), base.file_name().unwrap_or_default());
    own_folder::look(above, Path::new(name))
        .map_err(|error| refused(format!("{error}: name a folder that only you can write in")))
}

/// What a person has to know of the configuration: what a project's files may not say, and
/// rules that don't do what they seem to.
pub(crate) fn notes(config: &Config) -> Vec<String> {
    [config.notes.clone(), config.policy().complaints()].concat()
}

/// The model by a name that means the same to a process in another folder.
fn again(layer: &LayerArgs, models: &Models) -> Option<String> {
    match models.scenario.as_deref().map(std::path::absolute) {
        Some(Ok(path)) => Some(models::scripted_by(&path)),
        Some(Err(_)) | None => layer.model.clone(),
    }
}

/// The lead's model, aliases followed.
fn chosen_model(config: &Config, env: &Env) -> Result<String, Failure> {
    let Some(name) = &config.general.model else { return Err(Failure::usage(first_steps(config, env))) };
    names::model(name, &config.general.aliases)
        .map_err(|what| Failure::usage(format!("{what} (`model`, {})", config.origin("model"))))
}

/// What to do where nothing is configured yet, in four lines.
fn first_steps(config: &Config, env: &Env) -> String {
    let keys = keys_set(config, env);
    let key = match keys.iter().find(|(_, is_set)| **is_set) {
        Some((key, _)) => format!("{key} is set, so only the model is missing"),
        None => "set a provider's key, as in: export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, or one of your own providers)".to_owned(),
    };
    format!(
        "no model is configured: {key}\n\
         then name a model: midturn run --model sonnet \"…\", or `model = \"sonnet\"` in ~/.config/midturn/midturn.toml; `midturn models` lists more\n\
         without any key: midturn run --model scripted:FILE \"…\" plays the models of a scenario file, with real tools\n\
         docs/run.md and docs/configuration.md say the rest; `midturn doctor` says whether agents can work here"
    )
}

fn check_default_model(
    config: &Config,
    models: &Models,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<(), Failure> {
    let name = &config.general.agents.model;
    if name == names::INHERIT || models.providers.is_none() {
        return Ok(());
    }
    names::model(name, &config.general.aliases)
        .and_then(|model| check(&model))
        .map_err(|what| Failure::usage(format!("{what} (`agents.model`, {})", config.origin("agents.model"))))
}
