//! The models of a run: real ones behind `midturn-providers`, or scripts out of a scenario file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use midturn_core::engine::ports::{Clock, ModelFactory, ModelFailure, RealClock};
use midturn_core::engine::scripted::{Anchors, ScriptedModels, Scripts};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::time::Micros;
use midturn_providers::{BUILT_IN, Endpoint, Providers};
use parking_lot::Mutex;

use crate::config::{Config, General, Origin};
use crate::env::Env;
use crate::failure::Failure;

/// What begins the name of a scripted model.
const SCRIPTED: &str = "scripted:";

/// The name of the model that a scenario file scripts.
pub(crate) fn scripted_by(path: &Path) -> String {
    format!("{SCRIPTED}{}", path.display())
}

/// Whether a scenario file scripts the model of this name.
pub(crate) fn is_scripted(name: &str) -> bool {
    name.starts_with(SCRIPTED)
}

/// What a session that goes on has had already; nothing of it for a new one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Earlier {
    /// How long ago it began.
    pub(crate) began: Micros,
    /// How many model calls each agent has made.
    pub(crate) calls: BTreeMap<AgentName, u64>,
}

/// The providers of the sessions that live in this process. Those that are reached in the same way are
/// the same: their sessions share connections, and what one of them is told of a key's limits.
#[derive(Default)]
pub(crate) struct Reached(Mutex<Vec<Weak<Providers>>>);

impl Reached {
    /// Those that are reached so; they last as long as a session has them.
    fn by(&self, config: midturn_providers::Config) -> Arc<Providers> {
        let mut all = self.0.lock();
        if let Some(known) = all.iter().filter_map(Weak::upgrade).find(|known| *known.config() == config) {
            return known;
        }
        let providers = Arc::new(Providers::new(config));
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&providers));
        providers
    }
}

/// The models of a run.
pub(crate) struct Models {
    /// The lead's name: a scenario file may call it something else.
    pub(crate) lead: AgentName,
    /// The lead's model, aliases followed.
    pub(crate) name: String,
    /// Who makes them.
    pub(crate) factory: Arc<dyn ModelFactory>,
    /// Who knows whether there is a model of a name; none where all are scripted.
    pub(crate) providers: Option<Arc<Providers>>,
    /// The scenario file, where they are scripted.
    pub(crate) scenario: Option<PathBuf>,
    /// Tells scripts of the events that they wait for; an observer of the session.
    pub(crate) anchors: Arc<Anchors>,
}

impl Models {
    /// Opens the models for a run whose lead has this one.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there is no such model, its key is missing, or the scenario file is not sound.
    pub(crate) fn open(
        name: &str,
        config: &Config,
        env: &Env,
        clock: &Arc<dyn Clock>,
        earlier: &Earlier,
        reached: &Reached,
    ) -> Result<Self, Failure> {
        match name.strip_prefix(SCRIPTED) {
            Some(path) => scripted(name, Path::new(path), clock, earlier),
            None => real(name, config, env, reached),
        }
    }
}

fn real(name: &str, config: &Config, env: &Env, reached: &Reached) -> Result<Models, Failure> {
    let providers = reached.by(reach(config, env)?);
    let unusable = |failure: ModelFailure| Failure::usage(failure.message);
    if let Some(missing) = providers.missing(name).map_err(unusable)? {
        return Err(Failure::usage(match config.origin(&missing.key()) {
            Origin::Default => missing.to_string(),
            origin => format!("{origin}: {missing}"),
        }));
    }
    // Making one finds out all else that can be known before a server is asked.
    providers.make(name).map_err(unusable)?;
    let lead = AgentName::new("lead").map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Models {
        lead,
        name: name.to_owned(),
        factory: providers.clone(),
        providers: Some(providers),
        scenario: None,
        anchors: Arc::default(),
    })
}

fn scripted(name: &str, path: &Path, clock: &Arc<dyn Clock>, earlier: &Earlier) -> Result<Models, Failure> {
    let scenario = midturn_scenario::file::load(path).map_err(|error| Failure::usage(error.to_string()))?;
    let lead = scenario.agents.iter().find(|agent| agent.role == Role::Lead && agent.model.is_some());
    let lead = lead.map(|agent| agent.name.clone()).ok_or_else(|| {
        Failure::usage(format!(
            "{}: there is no agent with `role: lead` and a `model`, so nobody to give the task to",
            path.display()
        ))
    })?;
    let scripts: Scripts = scenario
        .agents
        .into_iter()
        .filter_map(|agent| {
            // Each call has used an entry up, those that were cut short too.
            let used = usize::try_from(earlier.calls.get(&agent.name).copied().unwrap_or(0)).ok()?;
            let rest: Arc<_> = agent.model?.iter().skip(used).cloned().collect();
            Some((agent.name, rest))
        })
        .collect();
    let anchors = Arc::default();
    let factory = Arc::new(ScriptedModels::new(clock.clone(), scripts).anchored(&anchors));
    let (name, scenario) = (name.to_owned(), Some(path.to_owned()));
    Ok(Models { lead, name, factory, providers: None, scenario, anchors })
}

/// How the providers are reached: the configuration, and what their variables hold.
///
/// # Errors
/// [`Failure::Usage`]: a variable is no text, or one provider's key would go to another.
pub(crate) fn reach(config: &Config, env: &Env) -> Result<midturn_providers::Config, Failure> {
    let General { providers, timeouts, max_event_bytes, .. } = &config.general;
    let endpoint = |provider: &Endpoint| Endpoint {
        connect_timeout: timeouts.connect,
        idle_timeout: timeouts.idle,
        max_event_bytes: usize::try_from(*max_event_bytes).unwrap_or(usize::MAX),
        ..provider.clone()
    };
    let endpoints = providers.iter().map(|(name, provider)| (name.clone(), endpoint(provider)));
    let mut reached = midturn_providers::Config(endpoints.collect());
    reached.read_environment(|name| Ok::<_, Failure>(env.text(name)?.map(str::to_owned)))?;
    match reached.foreign_key() {
        Some(foreign) => Err(Failure::usage(format!("{}: {foreign}", config.origin(&foreign.key)))),
        None => Ok(reached),
    }
}

/// Whether a model can be had; for definition files, before anything starts.
///
/// # Errors
/// What is wrong with the name. That a key is missing is told when the model is wanted: a
/// definition that nobody uses must not keep a run from starting.
pub(crate) fn check(providers: Option<&Providers>, name: &str) -> Result<(), String> {
    providers.map_or(Ok(()), |providers| providers.check(name).map_err(|failure| failure.message))
}

/// Whether there is what logs in to a model's server.
///
/// # Errors
/// Which variable is missing.
pub(crate) fn has_key(providers: Option<&Providers>, name: &str) -> Result<(), String> {
    let missing =
        providers.map(|providers| providers.missing(name)).transpose().map_err(|failure| failure.message)?;
    missing.flatten().map_or(Ok(()), |missing| Err(missing.to_string()))
}

/// Whether a model can be had, as far as can be known before its server is asked; its whole
/// name if so.
///
/// # Errors
/// What is wrong with the name, the scenario file or the key.
pub(crate) fn can_be_had(name: &str, config: &Config, env: &Env) -> Result<String, String> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let opened = Models::open(name, config, env, &clock, &Earlier::default(), &Reached::default());
    opened.map(|models| models.name).map_err(|failure| failure.to_string())
}

/// The proxy that a model's requests go through, in a sentence.
pub(crate) fn proxied(config: &Config, model: &str) -> Option<String> {
    let (provider, _) = model.split_once('/')?;
    let proxy = midturn_providers::proxy(&config.general.providers.get(provider)?.base_url)?;
    Some(format!(
        "requests for {provider}/… go through the proxy {proxy} (the environment's HTTPS_PROXY and its kin)"
    ))
}

/// What a person is told when requests, and the key with them, go elsewhere than usual.
pub(crate) fn notes(config: &Config) -> Vec<String> {
    let elsewhere = BUILT_IN.iter().filter_map(|one| {
        let entry = config.entries.get(&format!("providers.{}.base_url", one.name))?;
        let (url, origin) = (entry.value.as_str()?, &entry.origin);
        (*origin != Origin::Default).then(|| format!("requests for {}/… go to {url} ({origin})", one.name))
    });
    elsewhere.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_reach_their_providers_in_the_same_way_share_them_as_long_as_one_lives() {
        let reached = Reached::default();
        let keyed = |key: &str| {
            let mut config = midturn_providers::Config::default();
            config.read_environment(|_| Ok::<_, ()>(Some(key.to_owned()))).unwrap();
            config
        };
        let first = reached.by(keyed("one"));
        assert!(Arc::ptr_eq(&first, &reached.by(keyed("one"))));
        assert!(!Arc::ptr_eq(&first, &reached.by(keyed("another"))), "they have another key");
        drop(first);
        drop(reached.by(keyed("a third")));
        assert_eq!(reached.0.lock().len(), 1, "those that nobody has are forgotten");
    }
}
