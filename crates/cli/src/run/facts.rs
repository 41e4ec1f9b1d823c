//! What is known of models: what their tokens cost and how many they hold. It comes from the
//! configuration alone; a cost limit without a price is refused, never guessed at.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::limits::{Money, Prices};
use midturn_core::rules::settings::Settings;

use super::{models, names};
use crate::config::{Config, ModelFacts};
use crate::failure::Failure;

/// The name under which the facts of all scripted models stand.
const SCRIPTED: &str = "scripted";

/// What is known of models, by their whole names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts(BTreeMap<String, ModelFacts>);

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
        Ok(Self(known))
    }

    fn get(&self, model: &str) -> Option<&ModelFacts> {
        self.0.get(model).or_else(|| self.0.get(SCRIPTED).filter(|_| models::is_scripted(model)))
    }

    /// What a model's tokens cost.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        self.get(model)?.prices()
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
        let settings = &config.settings;
        let limits = [("max_cost", settings.max_cost), ("session.max_cost", settings.session.max_cost)];
        let limit = limits.iter().find(|(_, limit)| *limit > Money::ZERO);
        let Some((key, _)) = limit.filter(|_| self.prices(model).is_none()) else {
            return Ok(());
        };
        let name = if models::is_scripted(model) { SCRIPTED } else { model };
        Err(format!(
            "`{key}` is set ({}), but nothing says what {model} costs: set `input` and `output` in \
             [models.\"{name}\"], in US dollars per million tokens, in your own configuration file",
            config.origin(key)
        ))
    }
}

/// Models with what their tokens cost.
pub(crate) struct Priced {
    pub(crate) models: Arc<dyn ModelFactory>,
    pub(crate) facts: Facts,
}

#[async_trait]
impl ModelFactory for Priced {
    async fn model(&self, agent: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        self.models.model(agent, model).await
    }

    fn prices(&self, model: &str) -> Prices {
        self.facts.prices(model).unwrap_or_default()
    }
}

/// Where a model's first fact stands.
fn place(config: &Config, name: &str) -> String {
    let table = format!("models.{name}.");
    let entry = config.entries.iter().find(|(key, _)| key.starts_with(&table));
    entry.map(|(_, entry)| entry.origin.to_string()).unwrap_or_default()
}
