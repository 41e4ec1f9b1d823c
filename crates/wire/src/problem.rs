//! Errors as the wire has them: `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What is wrong, in a word that stays.
    #[schema(example = "unknown_agent")]
    pub code: String,
    /// What is wrong and what to do, in a sentence.
    pub detail: String,
}

/// How a question can be refused, for the OpenAPI document.
#[derive(IntoResponses)]
pub enum Unanswered {
    /// `no_token`, `wrong_token`.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] Problem),
    /// `wrong_origin`.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// `unknown_session`, `unknown_agent`, `unknown_message`, `no_session`, `no_lead`.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] Problem),
    /// What was asked for can't be had now: `no_branch`, `git_failed`.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// `wrong_host`.
    #[response(status = 421, content_type = "application/problem+json")]
    Misdirected(#[to_schema] Problem),
    /// `bad_request`: the place is in the sentence.
    #[response(status = 422, content_type = "application/problem+json")]
    Unprocessable(#[to_schema] Problem),
    /// `too_many_requests`, `too_many_streams`, `too_many_waits`.
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(#[to_schema] Problem),
    /// `store`: it can't be read; the sentence says why.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// How a change can be refused, for the OpenAPI document. Nothing was changed then.
#[derive(IntoResponses)]
pub enum Unchanged {
    /// `bad_json`.
    #[response(status = 400, content_type = "application/problem+json")]
    BadJson(#[to_schema] Problem),
    /// `no_token`, `wrong_token`.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] Problem),
    /// `wrong_origin`, `urgent_not_allowed`, `not_allowed`.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// `unknown_session`, `unknown_agent`, `unknown_message`, `no_session`, `no_lead`, `not_found`.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] Problem),
    /// `slow_body`.
    #[response(status = 408, content_type = "application/problem+json")]
    Slow(#[to_schema] Problem),
    /// `duplicate_id`, `stale_run`, `too_late`, `limit`, `below_spent`, `not_asked`, `ambiguous`, `too_many_rules`, `not_live`, `already_live`, `no_branch`, `git_failed`, and what the process says.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// `body_too_large`.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] Problem),
    /// `not_json`.
    #[response(status = 415, content_type = "application/problem+json")]
    NotJson(#[to_schema] Problem),
    /// `wrong_host`.
    #[response(status = 421, content_type = "application/problem+json")]
    Misdirected(#[to_schema] Problem),
    /// `bad_request`, `bad_rule`, `empty`, `too_large`, `invalid_name`, `no_parent`, `to_self`.
    #[response(status = 422, content_type = "application/problem+json")]
    Unprocessable(#[to_schema] Problem),
    /// `too_many_requests`, `mailbox_full`, `urgent_rate`.
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(#[to_schema] Problem),
    /// `store`, `failed`: it could not be done; the sentence says why. `shutting_down`: the process ends.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}
