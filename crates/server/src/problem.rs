//! What a refused request gets: a status, a stable code and a sentence. Whatever a client
//! sends ends here or in an answer, never in a 500.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use midturn_core::engine::ports::StoreError;
use midturn_core::engine::{AnswerError, RaiseError, StopError};
use midturn_core::rules::approval::RuleError;
use midturn_core::rules::mail::Refusal;
use midturn_wire::problem::Problem;

use crate::host::HostError;

/// A word out of a request, as it can be repeated in an answer.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Seconds.
    retry_after: Option<u64>,
}

impl Refused {
    /// A refusal; the sentence says what to do.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None }
    }

    /// What was sent doesn't fit.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::unprocessable("bad_request", detail)
    }

    /// What was sent doesn't fit, in a way that has a word of its own.
    pub(crate) fn unprocessable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// A rule that can't be read, or that is not about the call it came with.
    pub(crate) fn bad_rule(error: &RuleError) -> Self {
        let shown: String = error.to_string().chars().filter(|c| !c.is_control()).take(400).collect();
        Self::unprocessable("bad_rule", shown)
    }

    /// There is no such thing.
    pub(crate) fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// It can't be now.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// There are too many; worth another try after these seconds.
    pub(crate) fn too_many(code: &'static str, detail: impl Into<String>, seconds: u64) -> Self {
        let refused = Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
        Self { retry_after: Some(seconds), ..refused }
    }

    /// The process ends; worth another try when the next one is there.
    pub(crate) fn shutting_down(detail: impl Into<String>) -> Self {
        let refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail);
        Self { retry_after: Some(1), ..refused }
    }

    /// As the wire has it.
    pub(crate) fn into_wire(self) -> Problem {
        Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after);
        let body = serde_json::to_vec(&self.into_wire()).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::UnknownAgent(_) | Refusal::UnknownMessage(_) => StatusCode::NOT_FOUND,
            Refusal::ToSelf
            | Refusal::Empty
            | Refusal::TooLarge { .. }
            | Refusal::BadName(_)
            | Refusal::NothingToReplace
            | Refusal::NoParent(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::UrgentNotAllowed => StatusCode::FORBIDDEN,
            Refusal::UrgentRate(_) | Refusal::MailboxFull(_) => StatusCode::TOO_MANY_REQUESTS,
            Refusal::StaleRun { .. }
            | Refusal::DuplicateId(_)
            | Refusal::TooLate(_)
            | Refusal::Limit { .. } => StatusCode::CONFLICT,
            Refusal::Store(_) | Refusal::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        };
        let is_worth_a_try = status == StatusCode::TOO_MANY_REQUESTS || refusal == Refusal::ShuttingDown;
        let retry_after = is_worth_a_try.then_some(1);
        Self { retry_after, ..Self::new(status, refusal.code(), refusal.to_string()) }
    }
}

impl From<StopError> for Refused {
    fn from(error: StopError) -> Self {
        match error {
            StopError::UnknownAgent(_) => Self::not_found("unknown_agent", error.to_string()),
            StopError::NotAllowed { .. } => {
                Self::new(StatusCode::FORBIDDEN, "not_allowed", error.to_string())
            }
            StopError::StaleRun { .. } => Self::conflict("stale_run", error.to_string()),
            StopError::Refused(refusal) => refusal.into(),
            StopError::Limit { .. } => Self::conflict("limit", error.to_string()),
            StopError::ShuttingDown => Refusal::ShuttingDown.into(),
            StopError::Store(error) => error.into(),
        }
    }
}

impl From<RaiseError> for Refused {
    fn from(error: RaiseError) -> Self {
        match error {
            RaiseError::UnknownAgent(_) => Self::not_found("unknown_agent", error.to_string()),
            RaiseError::Nothing => Self::bad_request(error.to_string()),
            RaiseError::BelowSpent(_) => Self::conflict("below_spent", error.to_string()),
            RaiseError::ShuttingDown => Refusal::ShuttingDown.into(),
            RaiseError::Store(error) => error.into(),
        }
    }
}

impl From<AnswerError> for Refused {
    fn from(error: AnswerError) -> Self {
        let listed = format!("{error}; `GET …/approvals` lists what is asked");
        match error {
            AnswerError::NotAsked { .. } => Self::conflict("not_asked", listed),
            AnswerError::Ambiguous { .. } => Self::conflict("ambiguous", listed),
            AnswerError::Rule(error) => Self::bad_rule(&error),
            AnswerError::TooManyRules => Self::conflict("too_many_rules", error.to_string()),
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", error.to_string())
    }
}

impl From<HostError> for Refused {
    fn from(error: HostError) -> Self {
        match error {
            HostError::NotFound(text) => Self::not_found("not_found", text),
            HostError::Invalid(text) => Self::bad_request(text),
            HostError::Conflict { code, text } => Self::conflict(code, text),
            HostError::Refused(refusal) => refusal.into(),
            HostError::ShuttingDown(text) => Self::shutting_down(text),
            HostError::Failed(text) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "failed", text),
        }
    }
}
