//! From a model's name, `PROVIDER/NAME`, to a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::model::{ErrorKind, Model, ModelFactory, ModelFailure, Request};
use midturn_core::rules::conversation::Reply;
use midturn_core::rules::id::AgentName;
use parking_lot::Mutex;

use crate::call::call;
use crate::config::{Config, Dialect, Endpoint, Missing};
use crate::limiter::Limiter;
use crate::link::Link;
use crate::list::{self, Listed};
use crate::transcript::{Kept, Script};
use crate::{anthropic, chat, responses};

/// Makes models. One per process: its models share connections, and a limiter per key.
pub struct Providers {
    config: Config,
    /// By the provider's name; those of one server and key share theirs.
    limiters: BTreeMap<String, Arc<Limiter>>,
    /// By the provider's name; made when its first model is.
    links: Mutex<BTreeMap<String, Arc<Link>>>,
}

impl Providers {
    /// Takes the configuration; nothing is connected or read yet.
    pub fn new(config: Config) -> Self {
        let limiters = limiters(&config);
        Self { config, limiters, links: Mutex::default() }
    }

    /// How the providers are reached.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a name could be a model: its form and its provider.
    ///
    /// # Errors
    /// Says what is known.
    pub fn check(&self, model: &str) -> Result<(), ModelFailure> {
        self.parse(model).map(drop)
    }

    /// The variable that a model's provider names and the environment doesn't have.
    ///
    /// # Errors
    /// As [`Providers::check`].
    pub fn missing(&self, model: &str) -> Result<Option<Missing>, ModelFailure> {
        self.parse(model).map(|(provider, endpoint, _)| endpoint.missing(provider))
    }

    /// A model for one agent.
    ///
    /// # Errors
    /// As [`Providers::check`], a key that is missing, and a base URL or certificates that are wrong.
    pub fn make(&self, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        let (provider, endpoint, name) = self.parse(model)?;
        let link = self.link(provider, endpoint)?;
        Ok(match endpoint.dialect {
            Dialect::Anthropic => HttpModel::<anthropic::Messages>::boxed(link, name),
            Dialect::Responses => HttpModel::<responses::Items>::boxed(link, name),
            Dialect::Chat => HttpModel::<chat::Messages>::boxed(link, name),
        })
    }

    /// The models that a provider of this name offers, as its server lists them.
    ///
    /// # Errors
    /// There is no such provider, its key is missing, or its server doesn't answer with a list.
    pub async fn list(&self, provider: &str) -> Result<Vec<Listed>, ModelFailure> {
        let (name, endpoint) = self.config.0.get_key_value(provider).ok_or_else(|| {
            let known: Vec<&str> = self.config.0.keys().map(String::as_str).collect();
            let message = format!("there is no provider `{provider}`; there are {}", known.join(", "));
            ModelFailure::new(ErrorKind::InvalidRequest, message)
        })?;
        list::list(&*self.link(name, endpoint)?).await
    }

    fn link(&self, provider: &str, endpoint: &Endpoint) -> Result<Arc<Link>, ModelFailure> {
        let mut links = self.links.lock();
        if let Some(link) = links.get(provider) {
            return Ok(link.clone());
        }
        let link = Arc::new(Link::new(provider, endpoint, self.limiters[provider].clone())?);
        links.insert(provider.to_owned(), link.clone());
        Ok(link)
    }

    /// The provider, and its own name for the model.
    fn parse<'a>(&'a self, model: &'a str) -> Result<(&'a str, &'a Endpoint, &'a str), ModelFailure> {
        let Config(providers) = &self.config;
        let (word, name) = model.split_once('/').unwrap_or((model, ""));
        match providers.get_key_value(word) {
            Some((provider, endpoint)) if !name.trim().is_empty() => Ok((provider, endpoint, name)),
            _ => {
                let known: Vec<_> = providers.keys().map(|known| format!("{known}/NAME")).collect();
                let shown: String = model.chars().take(80).collect();
                let message = format!("there is no model `{shown}`: a model is named {}", known.join(", "));
                Err(ModelFailure::new(ErrorKind::InvalidRequest, message))
            }
        }
    }
}

/// A limiter per server and key, as large as the first of the providers that share it says.
fn limiters(config: &Config) -> BTreeMap<String, Arc<Limiter>> {
    let is_one = |a: &Endpoint, b: &Endpoint| {
        a.base_url == b.base_url && a.environment.values().eq(b.environment.values())
    };
    let mut limiters: BTreeMap<String, Arc<Limiter>> = BTreeMap::new();
    for (name, endpoint) in &config.0 {
        let shared = limiters.iter().find(|(other, _)| is_one(&config.0[*other], endpoint));
        let limiter =
            shared.map_or_else(|| Arc::new(Limiter::new(endpoint.max_concurrent)), |(_, one)| one.clone());
        limiters.insert(name.clone(), limiter);
    }
    limiters
}

#[async_trait]
impl ModelFactory for Providers {
    async fn model(&self, _: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        self.make(model)
    }
}

/// One agent's model: the way to its provider, and what was encoded so far.
struct HttpModel<S> {
    link: Arc<Link>,
    kept: Kept<S>,
}

impl<S: Script + 'static> HttpModel<S> {
    fn boxed(link: Arc<Link>, name: &str) -> Box<dyn Model> {
        Box::new(Self { kept: Kept::new(name, link.endpoint.clone(), link.heads.clone()), link })
    }
}

#[async_trait]
impl<S: Script> Model for HttpModel<S> {
    fn max_output(&self) -> Option<u64> {
        Some(self.kept.max_output())
    }

    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let body = self.kept.body(&request);
        call(&self.link, body, &request).await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn message(config: Config, model: &str) -> String {
        Providers::new(config).make(model).err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_what_is_known() {
        for name in ["", "gpt-5", "anthropic", "anthropic/", "openai/ ", "mistral/large", "Anthropic/x"] {
            let said = message(Config::default(), name);
            for known in ["anthropic/NAME", "openai/NAME", "openai-chat/NAME"] {
                assert!(said.contains(known), "{name}: {said}");
            }
        }
    }

    /// The default, and one of this name; the variables that are set have this value.
    fn read(own: Option<(&str, Endpoint)>, get: impl Fn(&str) -> Option<&'static str>) -> Config {
        let mut config = Config::default();
        config.0.extend(own.map(|(name, endpoint)| (name.to_owned(), endpoint)));
        config.read_environment(|name| Ok::<_, Infallible>(get(name).map(str::to_owned))).unwrap();
        config
    }

    #[test]
    fn a_missing_key_is_an_error_that_names_the_variable() {
        for (name, variable) in [
            ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
            ("openai/gpt-x", "OPENAI_API_KEY"),
            ("openai-chat/org/model:free", "OPENAI_API_KEY"),
        ] {
            assert!(message(Config::default(), name).contains(variable));
            let missing = Providers::new(Config::default()).missing(name).unwrap().unwrap();
            assert_eq!((missing.variable.as_str(), missing.field.as_str()), (variable, "key_env"));
            let config = read(None, |asked| (asked == variable).then_some("k"));
            assert_eq!(Providers::new(config).missing(name).unwrap(), None);
        }
    }

    #[test]
    fn a_provider_of_one_s_own_is_a_provider_and_wants_no_key() {
        let config = read(Some(("local", Endpoint::new(Dialect::Chat, "http://localhost:1"))), |_| None);
        assert_eq!(message(config.clone(), "local/m"), "");
        assert!(message(config, "lcoal/m").contains("anthropic/NAME, local/NAME, openai/NAME"));
    }

    #[test]
    fn calls_under_one_key_at_one_server_share_one_limiter() {
        let gateway = |url: &str| {
            let mut endpoint = Endpoint::new(Dialect::Chat, url);
            endpoint.key_env = Some("OTHER_KEY".to_owned());
            Some(("gateway", endpoint))
        };
        let openai = "https://api.openai.com/v1";
        for (url, other, is_shared) in
            [(openai, "same", true), (openai, "another", false), ("http://h", "same", false)]
        {
            let config = read(gateway(url), |name| Some(if name == "OTHER_KEY" { other } else { "same" }));
            let Providers { limiters, .. } = Providers::new(config);
            assert!(Arc::ptr_eq(&limiters["openai"], &limiters["openai-chat"]));
            let at_gateway = Arc::ptr_eq(&limiters["openai"], &limiters["gateway"]);
            assert_eq!(at_gateway, is_shared, "{url} {other}");
        }
    }
}
