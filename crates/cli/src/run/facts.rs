//! What is known of models: what their tokens cost and how many they hold. It comes from the
//! configuration, and prices that it doesn't say from a table with a date; a cost limit without a price is refused,
//! never guessed at.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::limits::{Money, Prices};
use midturn_core::rules::settings::Settings;
use parking_lot::Mutex;

use super::{models, names};
use crate::config::{Config, ModelFacts};
use crate::failure::Failure;
use crate::prices;

/// The name under which the facts of all scripted models stand.
const SCRIPTED: &str = "scripted";

/// What is known of models.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// What the configuration says, by their whole names.
    said: BTreeMap<String, ModelFacts>,
    /// The host of each provider.
    hosts: BTreeMap<String, String>,
}

/// What is known of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fact {
    /// What it costs and holds.
    pub(crate) facts: ModelFacts,
    /// The date of the table, where any of its prices is from there.
    pub(crate) dated: Option<&'static str>,
}

impl Facts {
    /// What the configuration says; its names may be aliases.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a name is no model's, or two names are the same one's.
    pub(crate) fn of(config: &Config) -> Result<Self, Failure> {
        let mut known = BTreeMap::new();
        for (name, facts) in &config.general.models {
            let whole = match name.as_str() {
                SCRIPTED => SCRIPTED.to_owned(),
                name => names::model(name, &config.general.aliases).map_err(|what| {
                    Failure::usage(format!("{what} (`models.{name}`, {})", place(config, name)))
                })?,
            };
            if known.insert(whole.clone(), facts.clone()).is_some() {
                let place = place(config, name);
                return Err(Failure::usage(format!("{place}: `models.{name}`: {whole} has a table already")));
            }
        }
        let host = |endpoint: &midturn_providers::Endpoint| prices::host(&endpoint.base_url);
        let providers = config.general.providers.iter();
        let hosts = providers.filter_map(|(name, endpoint)| Some((name.clone(), host(endpoint)?))).collect();
        Ok(Self { said: known, hosts })
    }

    fn get(&self, model: &str) -> Option<&ModelFacts> {
        self.said.get(model).or_else(|| self.said.get(SCRIPTED).filter(|_| models::is_scripted(model)))
    }

    fn of_table(&self, model: &str) -> Option<ModelFacts> {
        let (provider, name) = model.split_once('/')?;
        Some(prices::find(self.hosts.get(provider)?, name)?.facts)
    }

    /// What is known of a model: what the configuration says, and the rest as the table has it.
    pub(crate) fn of_model(&self, model: &str) -> Fact {
        let said = self.get(model).cloned().unwrap_or_default();
        let table = self.of_table(model).unwrap_or_default();
        let is_said = said.input.is_some() && said.output.is_some();
        let facts = ModelFacts {
            context_tokens: said.context_tokens.or(table.context_tokens),
            input: said.input.or(table.input),
            output: said.output.or(table.output),
            // Without a word of its own what comes from the cache costs what all else that is read does.
            cached: said.cached.or(if said.input.is_some() { None } else { table.cached }),
        };
        let dated = (!is_said && facts.prices().is_some()).then(prices::date);
        Fact { facts, dated }
    }

    /// The host of a provider, where what its models cost may be known.
    pub(crate) fn host(&self, provider: &str) -> Option<&str> {
        self.hosts.get(provider).map(String::as_str)
    }

    /// Whether a person has said how much a model's context holds.
    pub(crate) fn says_context(&self, model: &str) -> bool {
        self.get(model).is_some_and(|facts| facts.context_tokens.is_some())
    }

    /// What a model's tokens cost.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        self.of_model(model).facts.prices()
    }

    /// An agent's settings, with what is known of its model.
    pub(crate) fn settings(&self, model: &str, settings: &Settings) -> Settings {
        let known = self.get(model).and_then(|facts| facts.context_tokens);
        Settings { context_tokens: known.unwrap_or(settings.context_tokens), ..settings.clone() }
    }

    /// Whether a model's price is known where the configuration limits what it may cost.
    ///
    /// # Errors
    /// Which key is to be set.
    pub(crate) fn check(&self, model: &str, config: &Config) -> Result<(), String> {
        let Some(key) = cost_limit(config).filter(|_| self.prices(model).is_none()) else {
            return Ok(());
        };
        let name = if models::is_scripted(model) { SCRIPTED } else { model };
        Err(format!(
            "`{key}` is set ({}), but nothing says what {model} costs: set `input` and `output` in \
             [models.\"{name}\"], in US dollars per million tokens, in your own configuration file",
            config.origin(key)
        ))
    }

    /// That what a model costs is counted with a price of the table, where that is limited.
    pub(crate) fn note(&self, model: &str, config: &Config) -> Option<String> {
        let key = cost_limit(config)?;
        let Fact { facts: ModelFacts { input, output, .. }, dated } = self.of_model(model);
        let (date, input, output) = (dated?, input?, output?);
        Some(format!(
            "`{key}` is counted with prices of {date} ({}): {model} ${input} read and ${output} written per million \
             tokens; what you pay is set in [models.\"{model}\"]",
            prices::source()
        ))
    }
}

/// The limit on what agents may cost, if there is one.
fn cost_limit(config: &Config) -> Option<&'static str> {
    let settings = &config.settings;
    let limits = [("max_cost", settings.max_cost), ("session.max_cost", settings.session.max_cost)];
    limits.into_iter().find(|(_, limit)| *limit > Money::ZERO).map(|(key, _)| key)
}

/// Models with what their tokens cost.
pub(crate) struct Priced {
    models: Arc<dyn ModelFactory>,
    facts: Facts,
    /// What was looked up: it is asked for at every request.
    found: Mutex<BTreeMap<String, Fact>>,
}

impl Priced {
    pub(crate) fn new(models: Arc<dyn ModelFactory>, facts: Facts) -> Self {
        Self { models, facts, found: Mutex::default() }
    }

    fn fact(&self, model: &str) -> Fact {
        let mut found = self.found.lock();
        if let Some(fact) = found.get(model) {
            return fact.clone();
        }
        let fact = self.facts.of_model(model);
        found.insert(model.to_owned(), fact.clone());
        fact
    }
}

#[async_trait]
impl ModelFactory for Priced {
    async fn model(&self, agent: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        self.models.model(agent, model).await
    }

    fn prices(&self, model: &str) -> Prices {
        self.fact(model).facts.prices().unwrap_or_default()
    }

    fn priced_at(&self, model: &str) -> Option<&'static str> {
        self.fact(model).dated
    }
}

/// Where a model's first fact stands.
fn place(config: &Config, name: &str) -> String {
    let table = format!("models.{name}.");
    let entry = config.entries.iter().find(|(key, _)| key.starts_with(&table));
    entry.map(|(_, entry)| entry.origin.to_string()).unwrap_or_default()
}
