//! The way to one provider's server: its client, its headers, its limiter. All agents that use
//! the provider share it, and with it the pool of connections.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use midturn_core::engine::ports::model::{ErrorKind, ModelFailure};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::config::{Dialect, Endpoint};
use crate::limiter::Limiter;
use crate::transcript::Heads;

const USER_AGENT: &str = concat!("midturn/", env!("CARGO_PKG_VERSION"));

/// The API version all requests to Anthropic name.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How a provider's server is reached.
pub(crate) struct Link {
    /// The provider's name.
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) url: Url,
    /// The proxy that requests go through, if one does.
    pub(crate) proxy: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) limiter: Arc<Limiter>,
    /// What the provider's agents begin their requests with.
    pub(crate) heads: Arc<Heads>,
}

impl Link {
    /// Makes the client. Certificates are read only if the base URL wants TLS.
    ///
    /// # Errors
    /// A missing key, a key that no header can carry, a base URL that is not one, no TLS.
    pub(crate) fn new(name: &str, endpoint: &Endpoint, limiter: Arc<Limiter>) -> Result<Self, ModelFailure> {
        if let Some(missing) = endpoint.missing(name) {
            return Err(invalid(missing.to_string()));
        }
        let url = url(name, endpoint)?;
        Ok(Self {
            name: name.to_owned(),
            client: client(&url, endpoint.connect_timeout.duration())?,
            headers: headers(name, endpoint)?,
            proxy: proxy(url.as_str()),
            url,
            endpoint: Arc::new(endpoint.clone()),
            limiter,
            heads: Arc::default(),
        })
    }

    /// How long a connection may be silent.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.endpoint.idle_timeout.duration()
    }

    /// What a person looks at when the server doesn't let us in.
    pub(crate) fn login(&self) -> String {
        let variables: Vec<&str> = self.endpoint.variables().map(|(_, variable)| variable).collect();
        match variables.is_empty() {
            true => {
                format!("no key is sent: `providers.{}.key_env` names the variable that holds one", self.name)
            }
            false => format!("check {}", variables.join(", ")),
        }
    }

    /// What a failure says of the way that its request took.
    pub(crate) fn way(&self) -> String {
        self.proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default()
    }

    /// A text from outside without what was sent to log in.
    pub(crate) fn redact(&self, text: String) -> String {
        self.endpoint.environment.values().fold(text, |text, secret| secret.redact(&text))
    }
}

/// The proxy that a request to this URL goes through, without a password: as the HTTP client finds it in the
/// environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
pub fn proxy(url: &str) -> Option<String> {
    let taken = Matcher::from_env().intercept(&url.parse().ok()?)?;
    let uri = taken.uri();
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{}{port}", uri.scheme_str().unwrap_or("http"), uri.host().unwrap_or_default()))
}

fn invalid(message: String) -> ModelFailure {
    ModelFailure::new(ErrorKind::InvalidRequest, message)
}

/// Where requests go. The URL itself is not quoted: it might hold a password.
fn url(name: &str, endpoint: &Endpoint) -> Result<Url, ModelFailure> {
    let fail = |why: &str| {
        let correct = format!("correct `providers.{name}.base_url` or the variable that sets it");
        invalid(format!("the base URL of {name} {why}: {correct}"))
    };
    let mut url = Url::parse(endpoint.base_url.trim()).map_err(|_| fail("is not a URL"))?;
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
    let path = match endpoint.dialect {
        Dialect::Anthropic => format!("{}/v1/messages", path.strip_suffix("/v1").unwrap_or(path)),
        Dialect::Responses => format!("{}/responses", or_v1(path)),
        Dialect::Chat => format!("{}/chat/completions", or_v1(path)),
    };
    url.set_path(&path);
    for (parameter, written) in &endpoint.query {
        url.query_pairs_mut().append_pair(parameter, &written.filled(&endpoint.environment));
    }
    Ok(url)
}

/// The path of an OpenAI base URL: a bare host means `/v1`.
fn or_v1(path: &str) -> &str {
    if path.is_empty() { "/v1" } else { path }
}

/// What is written for the provider stands above the dialect's own, and below what makes a
/// request one that we can read the answer to.
fn headers(name: &str, endpoint: &Endpoint) -> Result<HeaderMap, ModelFailure> {
    let mut headers = HeaderMap::new();
    if endpoint.dialect == Dialect::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    for (header, written) in &endpoint.headers {
        let place = format!("`providers.{name}.headers.{header}`");
        let header = HeaderName::from_bytes(header.as_bytes())
            .map_err(|_| invalid(format!("{place} is not the name of a header")))?;
        headers.insert(header, sensitive(&place, &written.filled(&endpoint.environment))?);
    }
    if let (Some(variable), Some(key)) = (&endpoint.key_env, endpoint.key()) {
        let value = match endpoint.dialect {
            Dialect::Anthropic => key.expose().to_owned(),
            Dialect::Responses | Dialect::Chat => format!("Bearer {}", key.expose()),
        };
        let header = HeaderName::from_static(endpoint.dialect.key_header());
        headers.insert(header, sensitive(variable, &value)?);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    Ok(headers)
}

fn sensitive(place: &str, value: &str) -> Result<HeaderValue, ModelFailure> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        invalid(format!("{place} holds characters that no HTTP header can carry: set it to the key alone"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// No redirect is followed: the key would go where nobody sent it.
fn client(url: &Url, connect_timeout: Duration) -> Result<Client, ModelFailure> {
    Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls(url.scheme() == "https").map_err(invalid)?)
        .build()
        .map_err(|error| invalid(format!("the HTTP client can't be made: {error}")))
}

/// TLS by ring, with the system's certificates; without any when the URL is plain.
///
/// # Errors
/// A sentence: there are no certificates.
pub fn tls(wanted: bool) -> Result<rustls::ClientConfig, String> {
    let fail = |error: rustls::Error| {
        format!("TLS can't be set up: {error}; install the system's CA certificates, or set SSL_CERT_FILE")
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
    use crate::builtin::BUILT_IN;
    use crate::config::Secret;
    use crate::written::Written;

    #[test]
    fn base_urls_are_read_as_the_official_sdks_do_and_a_little_kinder() {
        use Dialect::{Anthropic, Chat, Responses};
        for (dialect, base, expected) in [
            (Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "http://localhost:8/v1/", "http://localhost:8/v1/messages"),
            (Anthropic, "http://h/proxy", "http://h/proxy/v1/messages"),
            (Responses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            (Responses, "http://localhost:8", "http://localhost:8/v1/responses"),
            (Chat, "http://localhost:8/v1/", "http://localhost:8/v1/chat/completions"),
            (Chat, " http://h/api/v3 ", "http://h/api/v3/chat/completions"),
        ] {
            assert_eq!(url("x", &Endpoint::new(dialect, base)).unwrap().as_str(), expected, "{base}");
        }
    }

    #[test]
    fn a_query_is_what_is_written_percent_encoded_and_filled() {
        let mut endpoint = Endpoint::new(Dialect::Responses, "http://h");
        for (name, value) in [("api-version", "2025-04-01"), ("k", "${K} &c")] {
            endpoint.query.insert(name.into(), Written::parameter(name, value).unwrap());
        }
        endpoint.environment.insert("K".into(), Secret::new("a=b"));
        let expected = "http://h/v1/responses?api-version=2025-04-01&k=a%3Db+%26c";
        assert_eq!(url("x", &endpoint).unwrap().as_str(), expected);
    }

    #[test]
    fn a_wrong_base_url_is_refused_and_not_quoted() {
        for base in
            ["", "localhost:8", "ftp://h", "https://u:geheim@h", "https://geheim@h", "http://h/?key=geheim"]
        {
            let failure = url("openai", &Endpoint::new(Dialect::Responses, base)).unwrap_err();
            assert!(failure.message.contains("providers.openai.base_url"), "{failure}");
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
            let mut endpoint = Endpoint::new(Dialect::Anthropic, "http://localhost");
            endpoint.key_env = Some("A_KEY".to_owned());
            endpoint.environment.extend(key.map(|key| ("A_KEY".to_owned(), Secret::new(key))));
            let failure = Link::new("x", &endpoint, Arc::new(Limiter::new(1))).err().unwrap();
            assert!(failure.message.contains("A_KEY") && failure.message.contains(says), "{failure}");
        }
    }

    #[test]
    fn the_headers_of_a_login_are_marked_as_sensitive() {
        for built_in in BUILT_IN {
            let mut endpoint = Endpoint::from(built_in);
            endpoint.headers.insert("x-more".into(), Written::header("x-more", "${MORE}").unwrap());
            let secrets = [built_in.key_env, "MORE"].map(|name| (name.to_owned(), Secret::new("geheim")));
            endpoint.environment = secrets.into();
            let headers = headers(built_in.name, &endpoint).unwrap();
            assert_eq!(headers["x-more"], "geheim");
            assert!(headers[endpoint.dialect.key_header()].to_str().unwrap().ends_with("geheim"));
            assert!(!format!("{headers:?}").contains("geheim"));
        }
    }

    #[test]
    fn a_written_header_stands_above_the_dialect_s_own_and_one_of_nobody_is_keyless() {
        let mut endpoint = Endpoint::new(Dialect::Anthropic, "http://h");
        let version = Written::header("anthropic-version", "2030-01-01").unwrap();
        endpoint.headers.insert("Anthropic-Version".into(), version);
        let headers = headers("x", &endpoint).unwrap();
        assert_eq!(
            (&headers["anthropic-version"], headers.get("x-api-key")),
            (&"2030-01-01".parse().unwrap(), None)
        );
    }
}
