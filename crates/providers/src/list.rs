//! The models that a provider offers: the list its server gives, whatever it says of each.

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure};
use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request, Response, Url};
use serde::Deserialize;
use tokio::time::timeout;

use crate::call::{broken, refusal, silent, told, with_body};
use crate::config::Dialect;
use crate::link::Link;

/// How large a page of a list may be.
const PAGE_MAX: usize = 8 << 20;

/// How many pages are read: no provider has so many models.
const PAGES: usize = 50;

/// The names that servers have for how many tokens a context holds.
const CONTEXT: [&str; 5] =
    ["max_input_tokens", "context_length", "context_window", "max_context_length", "max_model_len"];

/// A model that a provider offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name at the provider.
    pub name: String,
    /// How many tokens its context holds, where the server says it.
    pub context_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<serde_json::Map<String, serde_json::Value>>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    last_id: Option<String>,
}

/// Asks the server for its models, page by page.
///
/// # Errors
/// The server can't be reached, refuses, or answers with something else.
pub(crate) async fn list(link: &Link) -> Result<Vec<Listed>, ModelFailure> {
    let (mut listed, mut after) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = page(link, after.as_deref()).await.map_err(|failure| told(link, failure))?;
        listed.extend(page.data.into_iter().filter_map(listed_as));
        after = page.last_id.filter(|_| page.has_more);
        if after.is_none() {
            break;
        }
    }
    Ok(listed)
}

fn listed_as(model: serde_json::Map<String, serde_json::Value>) -> Option<Listed> {
    let name = model.get("id")?.as_str()?.to_owned();
    let known = CONTEXT.iter().find_map(|field| model.get(*field)?.as_u64());
    Some(Listed { name, context_tokens: known.filter(|tokens| *tokens > 0) })
}

async fn page(link: &Link, after: Option<&str>) -> Result<Page, ModelFailure> {
    let mut request = Request::new(Method::GET, url(link, after));
    *request.headers_mut() = link.headers.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let asked = timeout(link.idle_timeout(), link.client.execute(request)).await;
    let mut response = asked.map_err(|_| silent(link))?.map_err(|error| broken(link, &error))?;
    if !response.status().is_success()
        && let Some(failure) = refusal(link, &response)
    {
        return Err(with_body(link, failure, &mut response).await);
    }
    let body = whole(link, &mut response).await?;
    serde_json::from_slice(&body).map_err(|_| wrong(link, "is no list of models (check the base URL)"))
}

async fn whole(link: &Link, response: &mut Response) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    loop {
        let chunk = timeout(link.idle_timeout(), response.chunk()).await.map_err(|_| silent(link))?;
        match chunk.map_err(|error| broken(link, &error))? {
            None => return Ok(body),
            Some(bytes) if body.len() + bytes.len() > PAGE_MAX => return Err(wrong(link, "is too large")),
            Some(bytes) => body.extend_from_slice(&bytes),
        }
    }
}

fn wrong(link: &Link, why: &str) -> ModelFailure {
    ModelFailure::new(ErrorKind::InvalidRequest, format!("what {} answered {why}", link.name))
}

/// Beside where the messages go.
fn url(link: &Link, after: Option<&str>) -> Url {
    let mut url = link.url.clone();
    let dialect = link.endpoint.dialect;
    let messages = match dialect {
        Dialect::Anthropic => "/messages",
        Dialect::Responses => "/responses",
        Dialect::Chat => "/chat/completions",
    };
    let path = url.path().strip_suffix(messages).unwrap_or_default().to_owned();
    url.set_path(&format!("{path}/models"));
    if dialect == Dialect::Anthropic {
        url.query_pairs_mut().append_pair("limit", "1000");
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after_id", after);
        }
    }
    url
}
