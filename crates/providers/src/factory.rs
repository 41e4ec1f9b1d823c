//! From a model's name to a model: `anthropic/NAME`, `openai/NAME`, `openai-chat/NAME`.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::model::{ErrorKind, Model, ModelFactory, ModelFailure, Request};
use midturn_core::rules::conversation::Reply;
use midturn_core::rules::id::AgentName;
use parking_lot::Mutex;

use crate::anthropic::Anthropic;
use crate::call::{call, unwritable};
use crate::chat::Chat;
use crate::config::{Config, Provider};
use crate::dialect::Dialect;
use crate::limiter::Limiter;
use crate::link::{Link, key};
use crate::responses::Responses;

/// Makes models. One per process: its models share connections, and a limiter per key.
pub struct Providers {
    config: Config,
    limiters: [Arc<Limiter>; 3],
    /// Made when a provider's first model is.
    links: Mutex<[Option<Arc<Link>>; 3]>,
}

impl Providers {
    /// Takes the configuration; nothing is connected or read yet.
    pub fn new(config: Config) -> Self {
        let limiter = |provider| Arc::new(Limiter::new(config.endpoint(provider).max_concurrent));
        let (anthropic, openai) = (limiter(Provider::Anthropic), limiter(Provider::OpenAi));
        let chat = if config.openai.api_key == config.openai_chat.api_key
            && config.openai.base_url == config.openai_chat.base_url
        {
            openai.clone()
        } else {
            limiter(Provider::OpenAiChat)
        };
        Self { config, limiters: [anthropic, openai, chat], links: Mutex::default() }
    }

    /// Whether a name could be a model: its form, its provider, and that there is a key.
    ///
    /// # Errors
    /// Says what is known, or which environment variable is missing.
    pub fn check(&self, model: &str) -> Result<(), ModelFailure> {
        let (provider, _) = parse(model)?;
        key(provider, self.config.endpoint(provider)).map(drop)
    }

    /// A model for one agent.
    ///
    /// # Errors
    /// As [`Providers::check`], and a base URL or certificates that are wrong.
    pub fn make(&self, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        let (provider, name) = parse(model)?;
        let endpoint = self.config.endpoint(provider);
        let dialect: Box<dyn Dialect> = match provider {
            Provider::Anthropic => Box::new(Anthropic::new(name, endpoint)),
            Provider::OpenAi => Box::new(Responses::new(name, endpoint)),
            Provider::OpenAiChat => Box::new(Chat::new(name, endpoint)),
        };
        Ok(Box::new(HttpModel { link: self.link(provider)?, dialect }))
    }

    fn link(&self, provider: Provider) -> Result<Arc<Link>, ModelFailure> {
        let at = provider as usize;
        let mut links = self.links.lock();
        if let Some(link) = &links[at] {
            return Ok(link.clone());
        }
        let limiter = self.limiters[at].clone();
        let link = Arc::new(Link::new(provider, self.config.endpoint(provider), limiter)?);
        links[at] = Some(link.clone());
        Ok(link)
    }
}

#[async_trait]
impl ModelFactory for Providers {
    async fn model(&self, _: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        self.make(model)
    }
}

/// The provider and its own name for the model.
fn parse(model: &str) -> Result<(Provider, &str), ModelFailure> {
    let (word, name) = model.split_once('/').unwrap_or((model, ""));
    let provider = Provider::ALL.into_iter().find(|provider| provider.word() == word);
    match provider {
        Some(provider) if !name.trim().is_empty() => Ok((provider, name)),
        _ => {
            let known: Vec<_> = Provider::ALL.iter().map(|known| format!("{}/NAME", known.word())).collect();
            let shown: String = model.chars().take(80).collect();
            let message = format!("there is no model `{shown}`: a model is named {}", known.join(", "));
            Err(ModelFailure::new(ErrorKind::InvalidRequest, message))
        }
    }
}

/// One agent's model: the way to its provider, and what was encoded so far.
struct HttpModel {
    link: Arc<Link>,
    dialect: Box<dyn Dialect>,
}

#[async_trait]
impl Model for HttpModel {
    fn max_output(&self) -> Option<u64> {
        Some(self.dialect.max_output())
    }

    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let body = self.dialect.body(&request);
        let body = body.map_err(|error| unwritable(self.link.provider, &error))?;
        let assembler = self.dialect.assembler(request.call);
        call(&self.link, body, assembler, &request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

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

    #[test]
    fn a_missing_key_is_an_error_that_names_the_variable() {
        for (name, variable) in [
            ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
            ("openai/gpt-x", "OPENAI_API_KEY"),
            ("openai-chat/org/model:free", "OPENAI_API_KEY"),
        ] {
            assert!(message(Config::default(), name).contains(variable));
            assert!(Providers::new(Config::default()).check(name).is_err());
            let mut config = Config::default();
            config.read_environment(|asked| (asked == variable).then(|| "k".to_owned()));
            assert!(Providers::new(config).check(name).is_ok());
        }
    }

    #[test]
    fn calls_under_one_key_share_one_limiter() {
        let mut config = Config::default();
        config.read_environment(|_| Some("http://same".to_owned()));
        let shared = Providers::new(config.clone());
        assert!(Arc::ptr_eq(&shared.limiters[1], &shared.limiters[2]));
        config.openai_chat.api_key = Some(Secret::new("other"));
        let apart = Providers::new(config);
        assert!(!Arc::ptr_eq(&apart.limiters[1], &apart.limiters[2]));
    }
}
