//! One session made of what was prepared: its coordinator with store, workplace and observers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use midturn_core::engine::ports::archive::{AgentJournal, SessionRecord};
use midturn_core::engine::ports::{Observer, SessionJournal, Store};
use midturn_core::engine::{Coordinator, Slots};
use midturn_core::rules::approval::Mode;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::time::Micros;
use midturn_tools::Limits;
use midturn_tools::process::Supervisor;
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation, LetIn, Reach};
use serde::{Deserialize, Serialize};

use super::safety::Safety;
use crate::args::LayerArgs;
use crate::config::{self, Config};
use crate::env;
use crate::failure::Failure;
use crate::run::models::Earlier;
use crate::run::prepare::Prepared;
use crate::run::team::{self, Team};
use crate::secrets;

/// How many characters of a task are a session's title.
const TITLE_MAX: usize = 200;

/// What is kept with a session, to make it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memo {
    lead: AgentName,
    model: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    /// It was begun through the interface of a daemon, which goes on with it at its next start.
    #[serde(default)]
    pub(crate) served: bool,
    /// The machine it was begun on: its folder is there.
    #[serde(default)]
    pub(crate) machine: String,
}

impl Memo {
    /// What was kept with a session.
    ///
    /// # Errors
    /// [`Failure::Failed`]: it is not what this program keeps.
    pub(crate) fn of(record: &SessionRecord) -> Result<Self, Failure> {
        Self::deserialize(&record.memo).map_err(|error| {
            Failure::failed(format!("what was kept with session {} can't be read: {error}", record.id))
        })
    }
}

/// The record of a session that begins now.
pub(crate) fn record(id: SessionId, task: &str, prepared: &Prepared, served: bool) -> SessionRecord {
    let memo = Memo {
        lead: prepared.models.lead.clone(),
        model: prepared.layer.model.clone(),
        set: prepared.layer.set.clone(),
        served,
        machine: machine(),
    };
    SessionRecord {
        id,
        began_at: env::now().0,
        folder: prepared.folder.display().to_string(),
        title: secrets::clean(task.trim()).chars().take(TITLE_MAX).collect(),
        memo: serde_json::to_value(memo).unwrap_or_default(),
    }
}

/// The name of this machine.
pub(crate) fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What it takes to prepare a session again: its folder, its model, and its settings with
/// more laid over them. A setting that this version no longer has says nothing to it.
///
/// # Errors
/// [`Failure::Failed`]: what was kept with it can't be read.
pub(crate) fn layer(record: &SessionRecord, more: &[String]) -> Result<LayerArgs, Failure> {
    let Memo { model, set, .. } = Memo::of(record)?;
    let (known, gone): (Vec<_>, Vec<_>) = set.into_iter().partition(|said| config::is_known(said));
    if !gone.is_empty() {
        tracing::warn!(session = %record.id, settings = %gone.join(", "), "settings that no longer exist are left out");
    }
    let set = [known.as_slice(), more].concat();
    Ok(LayerArgs { model, set, cwd: Some(record.folder.clone().into()) })
}

/// What a session that goes on has had already.
pub(crate) fn earlier(journal: &SessionJournal) -> Earlier {
    let since = Micros(env::now().0.saturating_sub(journal.record.began_at));
    let calls: BTreeMap<_, _> =
        journal.agents.iter().map(|agent| (agent.record.name.clone(), agent.stands.calls)).collect();
    // A clock that was set back must not let time run backwards.
    Earlier { began: since.max(journal.last_t), calls }
}

/// Begins a session, or goes on with the one of this journal.
///
/// # Errors
/// [`Failure::Failed`]: the store does not take its beginning, or what was kept can't be read.
pub(crate) async fn coordinator(
    prepared: &Prepared,
    workplace: GitWorkplace,
    id: &SessionId,
    store: Arc<dyn Store>,
    observers: Vec<Arc<dyn Observer>>,
    slots: Slots,
    journal: Option<SessionJournal>,
) -> Result<Coordinator, Failure> {
    let Prepared { config, models, team, .. } = prepared;
    let workplace = Arc::new(workplace.resumed(journal.is_some()));
    let mut builder = Coordinator::builder(models.factory.clone(), workplace)
        .session(id.clone())
        .settings(config.settings.clone())
        .approvals(prepared.policy.clone())
        .clock(prepared.clock.clone())
        .secrets(secrets::known())
        .templates(team.clone())
        .slots(slots)
        .store(store)
        // The team first: an agent's tools are known before anything else happens to it.
        .observer(team.clone());
    for observer in observers {
        builder = builder.observer(observer);
    }
    if let Some(scenario) = &models.scenario {
        builder = builder.scenario(scenario.display().to_string()).observer(models.anchors.clone());
    }
    if let Some(journal) = journal {
        restore(team, &journal)?;
        builder = builder.resume(journal);
    }
    builder.start().await.map_err(Failure::failed)
}

/// Gives each agent of a session what it was made of.
///
/// # Errors
/// [`Failure::Failed`]: what was kept of one can't be read.
pub(crate) fn restore(team: &Team, journal: &SessionJournal) -> Result<(), Failure> {
    for agent in &journal.agents {
        team.restore(&agent.record.name, &agent.record.memo).map_err(Failure::failed)?;
    }
    Ok(())
}

/// Where the agents of a session work. `hidden` is what no command sees, besides what none ever sees.
pub(crate) fn workplace(
    prepared: &Prepared,
    safety: &Safety,
    hidden: &[PathBuf],
    id: &SessionId,
) -> GitWorkplace {
    let Prepared { folder, state, config, team, .. } = prepared;
    let team = team.clone();
    let ground = Ground { folder, state, config, safety, hidden };
    ground.workplace(id, move |agent| team.place_of(agent))
}

/// The same for whoever only looks at what its agents did, or takes it: no model is needed for that.
///
/// # Errors
/// [`Failure::Failed`]: what was kept of an agent can't be read.
pub(crate) fn workplace_apart(
    ground: &Ground<'_>,
    journal: &SessionJournal,
) -> Result<GitWorkplace, Failure> {
    let looks_only = ground.config.policy().mode == Mode::Plan;
    let mut places = BTreeMap::new();
    for AgentJournal { record, .. } in &journal.agents {
        let place = team::kept_place(&record.name, &record.memo, looks_only).map_err(Failure::failed)?;
        places.insert(record.name.clone(), place);
    }
    let place_of = move |agent: &AgentName| {
        let nobody = || AgentPlace { isolation: Isolation::Worktree, tools: Some(Vec::new()) };
        places.get(agent).cloned().unwrap_or_else(nobody)
    };
    Ok(ground.workplace(&journal.record.id, place_of).apart())
}

/// What places are made of.
pub(crate) struct Ground<'a> {
    /// The folder of the session.
    pub(crate) folder: &'a Path,
    /// The state folder of all projects.
    pub(crate) state: &'a Path,
    /// The configuration as the session has it.
    pub(crate) config: &'a Config,
    /// What holds agents back.
    pub(crate) safety: &'a Safety,
    /// What no command sees, besides what none ever sees.
    pub(crate) hidden: &'a [PathBuf],
}

impl Ground<'_> {
    /// The places of a session's agents.
    pub(crate) fn workplace(
        &self,
        id: &SessionId,
        place_of: impl Fn(&AgentName) -> AgentPlace + Send + Sync + 'static,
    ) -> GitWorkplace {
        let Self { folder, state, config, safety, hidden } = *self;
        let timeouts = &config.general.timeouts;
        let (timeout, timeout_max) = (timeouts.command.duration(), timeouts.command_max.duration());
        let writable = config.general.sandbox.writable();
        let environment = config.general.sandbox.environment.0.clone();
        let git = config.general.sandbox.git;
        let LetIn { readable, covered, .. } = config.general.sandbox.let_in();
        let hidden = [hidden, &covered].concat();
        let reach = Reach { git, writable, readable, hidden, environment };
        let supervisor = Supervisor::ourselves()
            .grace(config.settings.abort_grace.duration())
            .sandbox(safety.sandbox().clone());
        GitWorkplace::new(folder, state, id, place_of)
            .limits(Limits { timeout, timeout_max })
            .reach(reach)
            .unread(config.policy().unread())
            .asks(matches!(config.policy().mode, Mode::Ask | Mode::AcceptEdits))
            .turns_kept(usize::try_from(config.general.undo.turns).unwrap_or(usize::MAX))
            .wishes(config.wishes())
            .supervisor(supervisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A17: what an earlier version was told and this one doesn't know is left out.
    #[test]
    fn a_session_goes_on_without_the_settings_that_are_no_more() {
        let memo = serde_json::json!({"lead": "lead", "model": null, "set": ["max_turns=9", "patience.depth=3", "aliases.a=x/y"]});
        let record = SessionRecord {
            id: SessionId::new("s"),
            began_at: 0,
            folder: "/".into(),
            title: String::new(),
            memo,
        };
        let layer = layer(&record, &["max_depth=1".to_owned()]).unwrap();
        assert_eq!(layer.set, ["max_turns=9", "aliases.a=x/y", "max_depth=1"]);
    }
}
