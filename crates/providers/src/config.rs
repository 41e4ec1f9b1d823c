//! What a provider is reached with. It comes from the caller: this crate reads no file, and
//! no environment but through the function it is handed.

use std::collections::BTreeMap;
use std::fmt;

use midturn_core::rules::time::Span;
use serde::{Deserialize, Serialize};

use crate::builtin::{BUILT_IN, BuiltIn};
use crate::written::Written;

/// No provider's keys are shorter than this, in bytes.
const SHORTEST: usize = 8;

/// A key. It is shown nowhere: not by `Debug`, not in an error, not in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the key; blanks around it (a line feed out of a file, say) are no part of it.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The key itself, for the request's header alone.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text holds the key. What is shorter than any real key (a local server's `x`,
    /// say) would only be found in innocent words.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.len() >= SHORTEST && text.contains(&self.0)
    }

    /// A text from outside without the key, should a server have put it there.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.is_in(text) { text.replace(&self.0, "[key]") } else { text.to_owned() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// A wire format. It is all that is code in a provider; the rest is an [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which most compatible servers speak.
    Chat,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Responses, Self::Chat];

    /// The word for it in a configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
        }
    }

    /// The header that a key goes into, in small letters.
    pub const fn key_header(self) -> &'static str {
        match self {
            Self::Anthropic => "x-api-key",
            Self::Responses | Self::Chat => "authorization",
        }
    }
}

/// How many calls may run at once under a key of which nothing else is said.
pub const MAX_CONCURRENT: usize = 256;

/// What one provider is reached with. What of it people write is read and written as the table
/// `[providers.NAME]` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What its server speaks.
    pub dialect: Dialect,
    /// Where the server is, as the official SDKs read it: Anthropic's without `/v1`, OpenAI's
    /// with it. A slash at the end, or `/v1` on a bare host, makes no difference.
    pub base_url: String,
    /// The environment variable that holds the key. `None`: the server wants none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// What goes into every request's head besides.
    #[serde(default)]
    pub headers: BTreeMap<String, Written>,
    /// What goes into every request's URL besides.
    #[serde(default)]
    pub query: BTreeMap<String, Written>,
    /// What the environment has of the variables that are named above.
    #[serde(skip)]
    pub environment: BTreeMap<String, Secret>,
    /// How long a connection may take to come about, TLS included.
    #[serde(skip, default = "connect_timeout")]
    pub connect_timeout: Span,
    /// How long a connection may be silent.
    #[serde(skip, default = "idle_timeout")]
    pub idle_timeout: Span,
    /// How many bytes one event of a stream may have. A whole reply may have four times that.
    #[serde(skip, default = "max_event_bytes")]
    pub max_event_bytes: usize,
    /// How many calls may run at once under the key.
    #[serde(default = "max_concurrent")]
    pub max_concurrent: usize,
    /// How many tokens a reply may have, thinking included. `None`: the server's own limit;
    /// Anthropic, which has none, gets 32,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How many tokens the model may think for (Anthropic). `None`: no thinking is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// How much a reasoning model reasons (OpenAI: `low`, `medium`, `high` …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

const fn connect_timeout() -> Span {
    Span::secs(10)
}

const fn idle_timeout() -> Span {
    Span::secs(300)
}

const fn max_event_bytes() -> usize {
    128 << 20
}

const fn max_concurrent() -> usize {
    MAX_CONCURRENT
}

/// A variable that a provider names and the environment doesn't have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no key for {provider} models: set the environment variable {variable}, which `{}` names \
     (to any text, if the server wants none)",
    self.key()
)]
pub struct Missing {
    /// The provider's name.
    pub provider: String,
    /// Where the variable is named: `key_env`, `headers.x-tenant` …
    pub field: String,
    /// The variable.
    pub variable: String,
}

impl Missing {
    /// The key of the configuration that names the variable.
    pub fn key(&self) -> String {
        format!("providers.{}.{}", self.provider, self.field)
    }
}

/// A header or parameter of one provider with another one's key in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` would send the key of {other} to {provider}")]
pub struct ForeignKey {
    /// The key of the configuration that does it.
    pub key: String,
    /// Whose header or parameter it is.
    pub provider: String,
    /// Whose key it is.
    pub other: String,
}

impl Endpoint {
    /// A server that wants no key.
    pub fn new(dialect: Dialect, base_url: impl Into<String>) -> Self {
        Self {
            dialect,
            base_url: base_url.into(),
            key_env: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            environment: BTreeMap::new(),
            connect_timeout: connect_timeout(),
            idle_timeout: idle_timeout(),
            max_event_bytes: max_event_bytes(),
            max_concurrent: MAX_CONCURRENT,
            max_output_tokens: None,
            thinking_budget: None,
            reasoning_effort: None,
        }
    }

    /// Every variable that it names, with where: the key's first.
    pub fn variables(&self) -> impl Iterator<Item = (String, &str)> {
        let key = self.key_env.iter().map(|variable| ("key_env".to_owned(), variable.as_str()));
        let written = self
            .written()
            .flat_map(|(field, written)| written.variables().map(move |variable| (field.clone(), variable)));
        key.chain(written)
    }

    /// What is written into heads and URLs, with where.
    fn written(&self) -> impl Iterator<Item = (String, &Written)> {
        let below = |table: &'static str| move |(name, written)| (format!("{table}.{name}"), written);
        self.headers.iter().map(below("headers")).chain(self.query.iter().map(below("query")))
    }

    /// The key, if it wants one and has it.
    pub(crate) fn key(&self) -> Option<&Secret> {
        self.environment.get(self.key_env.as_ref()?)
    }

    /// The first variable that it names and doesn't have; `provider` is its name.
    pub(crate) fn missing(&self, provider: &str) -> Option<Missing> {
        let is_missing = |variable: &str| self.environment.get(variable).is_none_or(Secret::is_empty);
        let (field, variable) = self.variables().find(|(_, variable)| is_missing(variable))?;
        Some(Missing { provider: provider.to_owned(), field, variable: variable.to_owned() })
    }
}

impl From<BuiltIn> for Endpoint {
    fn from(built_in: BuiltIn) -> Self {
        let key_env = Some(built_in.key_env.to_owned());
        Self { key_env, ..Self::new(built_in.dialect, built_in.base_url) }
    }
}

/// All providers, each by the word before the slash in its models' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(pub BTreeMap<String, Endpoint>);

impl Default for Config {
    fn default() -> Self {
        Self(BUILT_IN.into_iter().map(|one| (one.name.to_owned(), one.into())).collect())
    }
}

impl Config {
    /// Takes what the environment has of the variables that the providers name.
    ///
    /// # Errors
    /// Those of `get`, which is asked for one variable after the other.
    pub fn read_environment<E>(&mut self, get: impl Fn(&str) -> Result<Option<String>, E>) -> Result<(), E> {
        for endpoint in self.0.values_mut() {
            let named: Vec<String> = endpoint.variables().map(|(_, variable)| variable.to_owned()).collect();
            for variable in named {
                if let Some(value) = get(&variable)? {
                    endpoint.environment.insert(variable, Secret::new(value));
                }
            }
        }
        Ok(())
    }

    /// A header or parameter that would carry another provider's key, by whatever variable it
    /// comes. What is as short as no key is would be found in innocent values.
    pub fn foreign_key(&self) -> Option<ForeignKey> {
        self.0.iter().find_map(|(provider, endpoint)| {
            endpoint.written().find_map(|(field, written)| {
                let sent = written.filled(&endpoint.environment);
                let carried = |other: &Endpoint| {
                    let key = other.key().filter(|key| Some(*key) != endpoint.key());
                    key.is_some_and(|key| key.is_in(&sent))
                };
                let (other, _) = self.0.iter().find(|(_, other)| carried(other))?;
                let key = format!("providers.{provider}.{field}");
                Some(ForeignKey { key, provider: provider.clone(), other: other.clone() })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn read(config: &mut Config, get: impl Fn(&str) -> Option<&'static str>) {
        let get = |name: &str| Ok::<_, Infallible>(get(name).map(str::to_owned));
        config.read_environment(get).unwrap();
    }

    #[test]
    fn a_key_is_shown_nowhere() {
        let mut config = Config::default();
        read(&mut config, |_| Some("sk-very-secret\n"));
        assert_eq!(config.0["openai-chat"].key(), Some(&Secret::new("sk-very-secret")));
        assert!(!format!("{config:?} {config:#?}").contains("very-secret"));
        assert_eq!(Secret::new("x").redact("next"), "next");
        assert_eq!(Secret::new("sk-secret").redact("a sk-secret!"), "a [key]!");
    }

    #[test]
    fn a_provider_gets_the_variables_that_it_names_and_no_other_s() {
        let mut config = Config::default();
        let mut azure = Endpoint::new(Dialect::Responses, "http://h");
        azure.headers.insert("api-key".into(), Written::header("api-key", "${AZURE}").unwrap());
        azure.query.insert("v".into(), Written::parameter("v", "1").unwrap());
        config.0.insert("azure".into(), azure);
        config.0.insert("local".into(), Endpoint::new(Dialect::Chat, "http://l"));
        read(&mut config, |name| (name != "ANTHROPIC_API_KEY").then_some("a-long-value"));
        for (name, has, missing) in [
            ("anthropic", &[][..], Some("ANTHROPIC_API_KEY")),
            ("openai", &["OPENAI_API_KEY"], None),
            ("azure", &["AZURE"], None),
            ("local", &[], None),
        ] {
            let endpoint = &config.0[name];
            assert_eq!(endpoint.environment.keys().collect::<Vec<_>>(), has, "{name}");
            let found = endpoint.missing(name).map(|found| (found.key(), found.variable));
            let key = format!("providers.{name}.key_env");
            assert_eq!(found, missing.map(|variable| (key, variable.to_owned())), "{name}");
        }
    }

    #[test]
    fn a_header_with_another_provider_s_key_is_found_by_its_value() {
        for (variable, value, is_foreign) in [
            ("GATEWAY", "sk-of-openai", true),
            ("GATEWAY", "sk-of-another", false),
            // Its own key twice is nobody else's.
            ("MINE", "sk-of-openai", false),
        ] {
            let mut config = Config::default();
            let written = Written::header("x-login", &format!("Bearer ${{{variable}}}")).unwrap();
            let mut mine = Endpoint::new(Dialect::Chat, "http://h");
            mine.key_env = Some("MINE".to_owned());
            mine.headers.insert("x-login".into(), written);
            config.0.insert("mine".into(), mine);
            read(&mut config, |name| match name {
                "OPENAI_API_KEY" => Some("sk-of-openai"),
                "ANTHROPIC_API_KEY" => Some("short"),
                _ if name == variable => Some(value),
                _ => None,
            });
            let found = config.foreign_key().map(|found| found.to_string());
            let expected = "`providers.mine.headers.x-login` would send the key of openai to mine";
            assert_eq!(found.as_deref(), is_foreign.then_some(expected), "{variable} {value}");
        }
    }
}
