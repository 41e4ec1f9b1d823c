//! What a provider is reached with. It comes from the caller: this crate reads no file, and
//! no environment but through the function it is handed.

use std::fmt;

use midturn_core::rules::time::Span;

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

    /// A text from outside without the key, should a server have put it there. What is shorter
    /// than any real key (a local server's `x`, say) would only be found in innocent words.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// The providers, by the word before the slash in a model's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// `anthropic/NAME`: the Messages API.
    Anthropic,
    /// `openai/NAME`: the Responses API.
    OpenAi,
    /// `openai-chat/NAME`: the Chat Completions API.
    OpenAiChat,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::OpenAiChat];

    /// The word before the slash.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
        }
    }

    /// The environment variable that holds the key.
    pub const fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi | Self::OpenAiChat => "OPENAI_API_KEY",
        }
    }

    /// The environment variable that holds the base URL.
    pub const fn base_url_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi | Self::OpenAiChat => "OPENAI_BASE_URL",
        }
    }

    /// The base URL when none is set.
    pub const fn default_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiChat => "https://api.openai.com/v1",
        }
    }
}

/// What one provider is reached with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where the server is, as the official SDKs read it: Anthropic's without `/v1`, OpenAI's
    /// with it. A slash at the end, or `/v1` on a bare host, makes no difference.
    pub base_url: String,
    /// The key; only ever from the environment.
    pub api_key: Option<Secret>,
    /// How long a connection may take to come about, TLS included.
    pub connect_timeout: Span,
    /// How long a connection may be silent.
    pub idle_timeout: Span,
    /// How many bytes one event of a stream may have. A whole reply may have four times that.
    pub max_event_bytes: usize,
    /// How many calls may run at once under the key.
    pub max_concurrent: usize,
    /// How many tokens a reply may have, thinking included. `None`: the server's own limit;
    /// Anthropic, which has none, gets 32,000.
    pub max_output_tokens: Option<u32>,
    /// How many tokens the model may think for (Anthropic). `None`: no thinking is asked for.
    pub thinking_budget: Option<u32>,
    /// How much a reasoning model reasons (OpenAI: `low`, `medium`, `high` …).
    pub reasoning_effort: Option<String>,
}

impl Endpoint {
    /// The provider's own server, without a key.
    pub fn new(provider: Provider) -> Self {
        Self {
            base_url: provider.default_base_url().to_owned(),
            api_key: None,
            connect_timeout: Span::secs(10),
            idle_timeout: Span::secs(300),
            max_event_bytes: 128 << 20,
            max_concurrent: 256,
            max_output_tokens: None,
            thinking_budget: None,
            reasoning_effort: None,
        }
    }
}

/// All providers' endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// For `anthropic/NAME`.
    pub anthropic: Endpoint,
    /// For `openai/NAME`.
    pub openai: Endpoint,
    /// For `openai-chat/NAME`.
    pub openai_chat: Endpoint,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            anthropic: Endpoint::new(Provider::Anthropic),
            openai: Endpoint::new(Provider::OpenAi),
            openai_chat: Endpoint::new(Provider::OpenAiChat),
        }
    }
}

impl Config {
    /// Lays the environment over the configuration: keys and base URLs, where a variable is
    /// set and not blank. `get` is `|name| std::env::var(name).ok()`, or a test's.
    pub fn read_environment(&mut self, get: impl Fn(&str) -> Option<String>) {
        let get = |name| get(name).filter(|value| !value.trim().is_empty());
        for provider in Provider::ALL {
            let endpoint = self.endpoint_mut(provider);
            if let Some(key) = get(provider.key_variable()) {
                endpoint.api_key = Some(Secret::new(key));
            }
            if let Some(url) = get(provider.base_url_variable()) {
                endpoint.base_url = url.trim().to_owned();
            }
        }
    }

    /// A provider's endpoint.
    pub fn endpoint(&self, provider: Provider) -> &Endpoint {
        match provider {
            Provider::Anthropic => &self.anthropic,
            Provider::OpenAi => &self.openai,
            Provider::OpenAiChat => &self.openai_chat,
        }
    }

    /// A provider's endpoint, to be changed.
    pub fn endpoint_mut(&mut self, provider: Provider) -> &mut Endpoint {
        match provider {
            Provider::Anthropic => &mut self.anthropic,
            Provider::OpenAi => &mut self.openai,
            Provider::OpenAiChat => &mut self.openai_chat,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_nowhere() {
        let mut config = Config::default();
        config.read_environment(|name| name.ends_with("KEY").then(|| "sk-very-secret\n".to_owned()));
        assert_eq!(config.openai_chat.api_key, Some(Secret::new("sk-very-secret")));
        assert!(!format!("{config:?} {config:#?}").contains("very-secret"));
        assert_eq!(Secret::new("x").redact("next"), "next");
        assert_eq!(Secret::new("sk-secret").redact("a sk-secret!"), "a [key]!");
    }

    #[test]
    fn the_environment_is_laid_over_the_configuration_where_it_is_set() {
        let mut config = Config::default();
        config.openai.base_url = "http://from-file/v1".to_owned();
        config.read_environment(|name| match name {
            "ANTHROPIC_BASE_URL" => Some(" http://localhost:1 ".to_owned()),
            "OPENAI_BASE_URL" => Some(" ".to_owned()),
            _ => None,
        });
        assert_eq!(config.anthropic.base_url, "http://localhost:1");
        assert_eq!(config.openai.base_url, "http://from-file/v1");
        assert_eq!(config.openai.api_key, None);
    }
}
