//! The way to one provider's server: its client, its headers, its limiter. All agents that use
//! the provider share it, and with it the pool of connections.

use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::config::{Endpoint, Provider, Secret};
use crate::limiter::Limiter;

const USER_AGENT: &str = concat!("midturn/", env!("CARGO_PKG_VERSION"));

/// The API version all requests to Anthropic name.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How a provider's server is reached.
pub(crate) struct Link {
    pub(crate) provider: Provider,
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) key: Secret,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_event_bytes: usize,
}

impl Link {
    /// Makes the client. Certificates are read only if the base URL wants TLS.
    ///
    /// # Errors
    /// A missing key, a key no header can carry, a base URL that is none, no TLS.
    pub(crate) fn new(
        provider: Provider,
        endpoint: &Endpoint,
        limiter: Arc<Limiter>,
    ) -> Result<Self, ModelFailure> {
        let key = key(provider, endpoint)?;
        let url = url(provider, &endpoint.base_url)?;
        Ok(Self {
            provider,
            client: client(&url, endpoint.connect_timeout.duration())?,
            headers: headers(provider, &key)?,
            url,
            key,
            limiter,
            idle_timeout: endpoint.idle_timeout.duration(),
            max_event_bytes: endpoint.max_event_bytes,
        })
    }
}

fn invalid(message: String) -> ModelFailure {
    ModelFailure::new(ErrorKind::InvalidRequest, message)
}

/// The key of an endpoint, or an error that names the variable.
pub(crate) fn key(provider: Provider, endpoint: &Endpoint) -> Result<Secret, ModelFailure> {
    let key = endpoint.api_key.clone().filter(|key| !key.is_empty());
    key.ok_or_else(|| {
        let (variable, word) = (provider.key_variable(), provider.word());
        invalid(format!(
            "there is no key for {word} models: set the environment variable {variable} \
             (to any text, if the server at the base URL wants none)"
        ))
    })
}

/// Where requests go. The URL itself is not quoted: it might hold a password.
fn url(provider: Provider, base: &str) -> Result<Url, ModelFailure> {
    let (word, variable) = (provider.word(), provider.base_url_variable());
    let fail = |why: &str| {
        invalid(format!(
            "the base URL of {word} {why}: correct `base_url` or the environment variable {variable}"
        ))
    };
    let mut url = Url::parse(base.trim()).map_err(|_| fail("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(fail("doesn't begin with http:// or https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fail("holds a user or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(fail("holds a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/');
    let path = match provider {
        Provider::Anthropic => format!("{}/v1/messages", path.strip_suffix("/v1").unwrap_or(path)),
        Provider::OpenAi => format!("{}/responses", or_v1(path)),
        Provider::OpenAiChat => format!("{}/chat/completions", or_v1(path)),
    };
    url.set_path(&path);
    Ok(url)
}

/// The path of an OpenAI base URL: a bare host means `/v1`.
fn or_v1(path: &str) -> &str {
    if path.is_empty() { "/v1" } else { path }
}

fn headers(provider: Provider, key: &Secret) -> Result<HeaderMap, ModelFailure> {
    let (name, value) = match provider {
        Provider::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
        Provider::OpenAi | Provider::OpenAiChat => (AUTHORIZATION, format!("Bearer {}", key.expose())),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let variable = provider.key_variable();
        invalid(format!("{variable} holds characters that no HTTP header can carry: set it to the key alone"))
    })?;
    value.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(name, value);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if provider == Provider::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    Ok(headers)
}

/// No redirect is followed: the key would go where nobody sent it.
fn client(url: &Url, connect_timeout: Duration) -> Result<Client, ModelFailure> {
    Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls(url.scheme() == "https")?)
        .build()
        .map_err(|error| invalid(format!("the HTTP client can't be made: {error}")))
}

/// TLS by ring, with the system's certificates; without any when the URL is plain.
fn tls(wanted: bool) -> Result<rustls::ClientConfig, ModelFailure> {
    let fail = |error: rustls::Error| {
        invalid(format!(
            "TLS can't be set up: {error}; install the system's CA certificates, or set SSL_CERT_FILE"
        ))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(fail)?;
    if !wanted {
        return Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(fail)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_read_as_the_official_sdks_do_and_a_little_kinder() {
        use Provider::{Anthropic, OpenAi, OpenAiChat};
        for (provider, base, expected) in [
            (Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "http://localhost:8/v1/", "http://localhost:8/v1/messages"),
            (Anthropic, "http://h/proxy", "http://h/proxy/v1/messages"),
            (OpenAi, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            (OpenAi, "http://localhost:8", "http://localhost:8/v1/responses"),
            (OpenAiChat, "http://localhost:8/v1/", "http://localhost:8/v1/chat/completions"),
            (OpenAiChat, " http://h/api/v3 ", "http://h/api/v3/chat/completions"),
        ] {
            assert_eq!(url(provider, base).unwrap().as_str(), expected, "{base}");
        }
    }

    #[test]
    fn a_wrong_base_url_is_refused_and_not_quoted() {
        for base in
            ["", "localhost:8", "ftp://h", "https://u:geheim@h", "https://geheim@h", "http://h/?key=geheim"]
        {
            let failure = url(Provider::OpenAi, base).unwrap_err();
            assert!(failure.message.contains("OPENAI_BASE_URL"), "{failure}");
            assert!(!failure.message.contains("geheim"), "{failure}");
        }
    }

    #[test]
    fn a_key_that_is_missing_or_no_header_is_an_error_that_names_the_variable() {
        for (key, says) in [
            (None, "set the environment variable"),
            (Some(" "), "set the"),
            (Some("a\nb"), "holds characters"),
        ] {
            let mut endpoint = Endpoint::new(Provider::Anthropic);
            endpoint.base_url = "http://localhost".to_owned();
            endpoint.api_key = key.map(Secret::new);
            let made = Link::new(Provider::Anthropic, &endpoint, Arc::new(Limiter::new(1)));
            let failure = made.err().unwrap();
            assert!(
                failure.message.contains("ANTHROPIC_API_KEY") && failure.message.contains(says),
                "{failure}"
            );
        }
    }

    #[test]
    fn the_key_s_header_is_marked_as_sensitive() {
        for provider in Provider::ALL {
            let headers = headers(provider, &Secret::new("geheim")).unwrap();
            assert!(!format!("{headers:?}").contains("geheim"));
        }
    }
}
