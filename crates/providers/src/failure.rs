//! Failures: which kind a provider's word or status is, and what a person is told.
//!
//! No key gets into a message: what comes from outside passes [`crate::Secret::redact`].

use std::time::{Duration, SystemTime};

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure};
use midturn_core::rules::time::Span;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How many characters of a provider's own message are shown.
const SHOWN: usize = 600;

/// No provider's wish to wait is taken for longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

/// The kind of an HTTP status that is not 200.
pub(crate) fn status_kind(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        429 => ErrorKind::RateLimited,
        529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::InvalidRequest,
    }
}

/// The kind of a provider's own word for an error.
fn word_kind(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "overloaded_error" | "overloaded" | "server_overloaded" | "server_is_overloaded" | "slow_down" => {
            ErrorKind::Overloaded
        }
        "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" | "insufficient_quota" => {
            ErrorKind::RateLimited
        }
        "invalid_request_error"
        | "authentication_error"
        | "permission_error"
        | "not_found_error"
        | "request_too_large"
        | "billing_error"
        | "context_length_exceeded"
        | "invalid_prompt"
        | "invalid_api_key"
        | "model_not_found"
        | "exceed_context_size_error" => ErrorKind::InvalidRequest,
        "api_error" | "server_error" | "internal_error" | "timeout_error" => ErrorKind::Server,
        _ => return number_kind(word),
    })
}

fn number_kind(word: &str) -> Option<ErrorKind> {
    let status = StatusCode::from_u16(word.parse().ok()?).ok()?;
    (status.as_u16() >= 400).then(|| status_kind(status))
}

/// An error that came as an event of the stream, `{"message", "type", "code"}`.
pub(crate) fn stream_error(error: &Value) -> ModelFailure {
    let word = |key: &str| match error.get(key) {
        Some(Value::String(word)) => Some(word.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let words = [word("code"), word("type")];
    let kind = words.iter().flatten().find_map(|word| word_kind(word)).unwrap_or(ErrorKind::Server);
    let said = message_in(error).unwrap_or_else(|| "no reason was given".to_owned());
    let named = words.into_iter().flatten().next().map(|word| format!(" ({word})")).unwrap_or_default();
    ModelFailure::new(kind, shorten(&format!("the provider broke the reply off: {said}{named}")))
}

/// What a provider says in the body of an error.
pub(crate) fn said_in_body(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let said = json.as_ref().and_then(message_in);
    shorten(said.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()).trim())
}

fn message_in(json: &Value) -> Option<String> {
    let inner = json.get("error").unwrap_or(json);
    let said = inner.get("message").or_else(|| inner.get("detail")).unwrap_or(inner);
    said.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The beginning of a text, without line breaks and control characters.
pub(crate) fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Span> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let in_ms = text("retry-after-ms").and_then(|text| number(text, 1e-3));
    let wait = in_ms.or_else(|| {
        let text = text("retry-after")?;
        number(text, 1.0).or_else(|| until(text, now))
    })?;
    Some(wait.min(LONGEST_WAIT).into())
}

fn until(date: &str, now: SystemTime) -> Option<Duration> {
    let then = httpdate::parse_http_date(date).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_of_the_kind_that_says_whether_to_try_again() {
        for (status, kind) in [
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::InvalidRequest),
            (301, ErrorKind::InvalidRequest),
            (429, ErrorKind::RateLimited),
            (500, ErrorKind::Server),
            (503, ErrorKind::Server),
            (529, ErrorKind::Overloaded),
        ] {
            assert_eq!(status_kind(StatusCode::from_u16(status).unwrap()), kind, "{status}");
        }
    }

    #[test]
    fn error_events_are_of_the_kind_their_word_says() {
        for (error, kind) in [
            (r#"{"type":"overloaded_error","message":"m"}"#, ErrorKind::Overloaded),
            (r#"{"type":"api_error","message":"m"}"#, ErrorKind::Server),
            (r#"{"type":"rate_limit_error"}"#, ErrorKind::RateLimited),
            (r#"{"type":"invalid_request_error","message":"m"}"#, ErrorKind::InvalidRequest),
            (r#"{"code":"rate_limit_exceeded","message":"m"}"#, ErrorKind::RateLimited),
            (r#"{"code":503,"message":"m"}"#, ErrorKind::Server),
            (r#"{"code":429,"type":"x"}"#, ErrorKind::RateLimited),
            (r#"{"code":"brand_new","type":"server_error"}"#, ErrorKind::Server),
            (r#""just a text""#, ErrorKind::Server),
            ("null", ErrorKind::Server),
        ] {
            let failure = stream_error(&serde_json::from_str(error).unwrap());
            assert_eq!(failure.kind, kind, "{error}: {failure}");
        }
    }

    #[test]
    fn the_wish_to_wait_is_read_in_every_form() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, wait) in [
            ("retry-after", "7", Some(Span::secs(7))),
            ("retry-after", "1.5", Some(Span::millis(1_500))),
            ("retry-after", "0", Some(Span::ZERO)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(Span::secs(7))),
            ("retry-after", "Sat, 05 Nov 1994 08:49:37 GMT", Some(Span::ZERO)),
            ("retry-after", "999999999999", Some(Span::secs(86_400))),
            ("retry-after-ms", "250", Some(Span::millis(250))),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("other", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(retry_after(&headers, now), wait, "{name}: {value}");
        }
    }

    #[test]
    fn what_a_body_says_is_found_and_kept_short() {
        for (body, said) in [
            (r#"{"type":"error","error":{"type":"x","message":"too long"}}"#, "too long"),
            (r#"{"error":"plain"}"#, "plain"),
            (r#"{"message":"m"}"#, "m"),
            (r#"{"detail":"d"}"#, "d"),
            ("<html>\n", "<html>"),
            ("", ""),
        ] {
            assert_eq!(said_in_body(body.as_bytes()), said);
        }
        assert_eq!(said_in_body(&[b'x'; 10_000]).chars().count(), SHOWN + 1);
    }
}
