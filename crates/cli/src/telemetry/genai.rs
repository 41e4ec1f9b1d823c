//! The names of OpenTelemetry's semantic conventions for generative AI, and what they are set
//! to: the only file that knows them. The conventions are "in development" and change; when
//! they do, this file does (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>).
//!
//! What has no name there has one of ours, beginning with `midturn.`. Texts (messages,
//! arguments, results, replies) have names here too; whether they are set is not decided here.

use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::{EventKind, Outcome};
use midturn_core::rules::id::MessageId;
use opentelemetry::{Array, KeyValue, Value};

/// The instrumentation scope.
pub(super) const SCOPE: &str = "midturn";

/// The text of replies, arguments, results and messages goes out only with this set to `true`.
pub(super) const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The longest text of one attribute, in bytes.
const TEXT_MAX: usize = 8 * 1024;

/// What is not in a list of the conventions' own.
const OTHER: &str = "_OTHER";

/// A configured model's name, `PROVIDER/NAME`, in the words of the conventions: provider and name.
fn parts(configured: &str) -> (&'static str, &str) {
    match configured.split_once('/') {
        Some(("anthropic", name)) => ("anthropic", name),
        Some(("openai" | "openai-chat", name)) => ("openai", name),
        _ => (OTHER, configured),
    }
}

/// The name of a span: the operation, and on what. Of a model call that is the model's name.
pub(super) fn name(operation: &str, on: Option<&str>) -> String {
    match on {
        Some(model) if operation == CHAT => format!("{operation} {}", parts(model).1),
        Some(on) => format!("{operation} {on}"),
        None => operation.to_owned(),
    }
}

/// Who does something in which session, on every span.
pub(super) fn of_agent(operation: &'static str, session: &str, agent: &str, run: u64) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.operation.name", operation),
        KeyValue::new("gen_ai.conversation.id", session.to_owned()),
        KeyValue::new("gen_ai.agent.name", agent.to_owned()),
        KeyValue::new("midturn.run", number(run)),
    ]
}

/// The operations.
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const CHAT: &str = "chat";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

/// The model, where it is known.
pub(super) fn of_model(model: Option<&str>) -> Vec<KeyValue> {
    let provider = |provider| KeyValue::new("gen_ai.provider.name", provider);
    match model.map(parts) {
        Some((known, name)) => {
            vec![provider(known), KeyValue::new("gen_ai.request.model", name.to_owned())]
        }
        None => vec![provider(OTHER)],
    }
}

/// A model call, as it begins.
pub(super) fn of_call(call: u64, messages: u64, turn: u32) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.request.stream", true),
        KeyValue::new("midturn.call", number(call)),
        KeyValue::new("midturn.messages", number(messages)),
        KeyValue::new("midturn.turn", i64::from(turn)),
    ]
}

/// A tool call.
pub(super) fn of_tool(id: &str, name: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.tool.name", name.to_owned()),
        KeyValue::new("gen_ai.tool.call.id", id.to_owned()),
        KeyValue::new("gen_ai.tool.type", "function"),
    ]
}

pub(super) fn usage(usage: Usage) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.usage.input_tokens", number(usage.input)),
        KeyValue::new("gen_ai.usage.output_tokens", number(usage.output)),
        KeyValue::new("gen_ai.usage.cache_read.input_tokens", number(usage.cached)),
    ]
}

/// Why a reply ended, in the words of the conventions where they have one.
pub(super) fn finish_reason(reason: &str) -> KeyValue {
    let word = match reason {
        "end_turn" => "stop",
        "tool_use" => "tool_call",
        "max_tokens" => "length",
        other => other,
    };
    KeyValue::new("gen_ai.response.finish_reasons", list([word]))
}

pub(super) fn outcome(outcome: Outcome, turns: u32) -> Vec<KeyValue> {
    vec![
        KeyValue::new("midturn.run.outcome", outcome.as_str()),
        KeyValue::new("midturn.run.turns", i64::from(turns)),
    ]
}

/// Whether a call that ended so is an error.
pub(super) fn is_error(status: ToolStatus) -> bool {
    match status {
        ToolStatus::Completed | ToolStatus::Skipped => false,
        ToolStatus::Failed | ToolStatus::Interrupted | ToolStatus::Stopped | ToolStatus::Unknown => true,
    }
}

/// The class of an error, never its text: that is a provider's, and may say anything.
pub(super) fn error_class(error: &str) -> &'static str {
    const CLASSES: [&str; 8] = [
        "overloaded",
        "rate_limited",
        "server",
        "connection",
        "invalid_request",
        "script exhausted",
        "store",
        "cancelled",
    ];
    let class = error.split(':').next().unwrap_or_default().trim();
    CLASSES.into_iter().find(|known| *known == class).unwrap_or(OTHER)
}

pub(super) fn error_type(class: &'static str) -> KeyValue {
    KeyValue::new("error.type", class)
}

pub(super) fn partial_tokens(tokens: u64) -> KeyValue {
    KeyValue::new("midturn.partial_tokens", number(tokens))
}

pub(super) fn status(word: &'static str) -> KeyValue {
    KeyValue::new("midturn.tool.status", word)
}

pub(super) fn trigger(word: &'static str) -> KeyValue {
    KeyValue::new("midturn.run.trigger", word)
}

/// What is told within a run's span and is no span itself: its name, and what is known of it.
pub(super) fn happened(kind: &EventKind, texts: bool) -> Option<(&'static str, Vec<KeyValue>)> {
    match kind {
        EventKind::StopRequested { by, scope, .. } => Some((
            "midturn.stop_requested",
            vec![
                KeyValue::new("midturn.stop.by", by.clone()),
                KeyValue::new("midturn.stop.scope", scope.as_str()),
            ],
        )),
        EventKind::ModelRetry { attempt, error, wait } => Some((
            "midturn.model_retry",
            vec![
                error_type(error_class(error)),
                KeyValue::new("midturn.retry.attempt", i64::from(*attempt)),
                KeyValue::new("midturn.retry.wait", wait.duration().as_secs_f64()),
            ],
        )),
        EventKind::ToolFinished { tool, name, status: ToolStatus::Skipped, .. } => {
            Some(("midturn.call.skipped", of_tool(tool.as_str(), name)))
        }
        EventKind::ApprovalRequested { tool, name, input, .. } => {
            let mut attributes = of_tool(tool.as_str(), name);
            attributes.extend(texts.then(|| text::arguments(input)));
            Some(("midturn.approval.requested", attributes))
        }
        EventKind::ApprovalResolved { tool, decision, .. } => Some((
            "midturn.approval.resolved",
            vec![
                KeyValue::new("gen_ai.tool.call.id", tool.to_string()),
                KeyValue::new("midturn.approval.decision", decision.as_str()),
            ],
        )),
        EventKind::Compacted { tokens, .. } => Some((
            "midturn.compacted",
            vec![
                KeyValue::new("midturn.tokens.before", number(tokens.before)),
                KeyValue::new("midturn.tokens.after", number(tokens.after)),
            ],
        )),
        _ => mail(kind, texts),
    }
}

/// What becomes of a message.
fn mail(kind: &EventKind, texts: bool) -> Option<(&'static str, Vec<KeyValue>)> {
    let told = |said: &str| texts.then(|| KeyValue::new("midturn.message.text", clipped(said)));
    match kind {
        EventKind::MessageQueued { message, from, urgency, text } => {
            let mut attributes = vec![
                ids([message]),
                KeyValue::new("midturn.message.from", from.clone()),
                KeyValue::new("midturn.message.urgency", urgency.as_str()),
            ];
            attributes.extend(told(text));
            Some(("midturn.message.queued", attributes))
        }
        EventKind::MessageInjected { messages, point, text, skipped, interrupted } => {
            let mut attributes = vec![
                ids(messages),
                KeyValue::new("midturn.message.point", point.as_str()),
                KeyValue::new("midturn.message.skipped", number(skipped.len() as u64)),
                KeyValue::new("midturn.message.interrupted", number(interrupted.len() as u64)),
            ];
            attributes.extend(told(text));
            Some(("midturn.message.injected", attributes))
        }
        EventKind::MessageReturned { message, .. } => {
            Some(("midturn.message.returned", vec![ids([message])]))
        }
        _ => None,
    }
}

fn ids<'a>(ids: impl IntoIterator<Item = &'a MessageId>) -> KeyValue {
    KeyValue::new("midturn.message.ids", list(ids.into_iter().map(MessageId::as_str)))
}

/// Texts: set only where a person has asked for it.
pub(super) mod text {
    use super::{KeyValue, clipped};

    pub(crate) fn arguments(input: &serde_json::Value) -> KeyValue {
        KeyValue::new("gen_ai.tool.call.arguments", clipped(&input.to_string()))
    }

    pub(crate) fn result(output: &str) -> KeyValue {
        KeyValue::new("gen_ai.tool.call.result", clipped(output))
    }

    pub(crate) fn reply(said: &str, reason: &str) -> KeyValue {
        let part = serde_json::json!({"type": "text", "content": clipped(said)});
        let message = serde_json::json!([{"role": "assistant", "parts": [part], "finish_reason": reason}]);
        KeyValue::new("gen_ai.output.messages", message.to_string())
    }
}

fn clipped(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Array(Array::String(words.into_iter().map(|word| word.to_owned().into()).collect()))
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_as_their_providers_name_them() {
        for (configured, provider, name) in [
            ("anthropic/claude-x", "anthropic", "claude-x"),
            ("openai/gpt-x", "openai", "gpt-x"),
            ("openai-chat/org/model", "openai", "org/model"),
            ("scripted", OTHER, "scripted"),
            ("elsewhere/model", OTHER, "elsewhere/model"),
        ] {
            assert_eq!(parts(configured), (provider, name), "{configured}");
        }
    }

    #[test]
    fn of_an_error_only_its_class_is_told() {
        for (error, class) in [
            ("overloaded", "overloaded"),
            ("invalid_request: the key sk-very-secret is wrong", "invalid_request"),
            ("sk-very-secret: no", OTHER),
            ("", OTHER),
        ] {
            assert_eq!(error_class(error), class, "{error}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "é".repeat(TEXT_MAX);
        assert_eq!(clipped(&long).len(), TEXT_MAX);
        assert_eq!(clipped(&format!("x{long}")).len(), TEXT_MAX - 1);
        assert_eq!(clipped("short"), "short");
    }
}
