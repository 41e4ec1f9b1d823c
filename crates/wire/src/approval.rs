//! Requests for a person's word, and the word (semantics.md, section 5).

use std::borrow::Cow;

use midturn_core::engine;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::text::{Since, Text};

/// The longest reason, in bytes: a sentence or two that a model reads.
pub const REASON_MAX: usize = 16 * 1024;

/// Arguments up to this many bytes of JSON are given whole.
const INPUT_MAX: usize = 16 * 1024;

/// How many of larger arguments are given, and how many characters of each.
const CUT: (usize, usize) = (16, 1_000);

/// The requests that are open.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Approvals {
    /// The requests, the oldest first.
    pub approvals: Vec<Approval>,
    /// The number of the last event that this knows of.
    #[serde(default)]
    pub as_of: u64,
}

/// A request for a person's word on a call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    /// The session.
    pub session: String,
    /// Whose call it is.
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// The call.
    pub tool: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// Whether the arguments are too long to be given whole: the event `approval_requested` has them all.
    pub truncated: bool,
    /// The rule that `session` allows unless the answer brings its own.
    pub always: String,
    /// Since when: seconds since the session began.
    #[schema(value_type = f64)]
    pub since: Micros,
}

impl Approval {
    /// A request of this session.
    pub fn of(session: &str, approval: &engine::Approval) -> Self {
        let input = bounded(&approval.input);
        Self {
            session: session.to_owned(),
            agent: approval.agent.clone(),
            tool: approval.tool.to_string(),
            name: approval.name.to_string(),
            truncated: matches!(input, Cow::Owned(_)),
            input: input.into_owned(),
            always: approval.always.text().to_owned(),
            since: approval.since,
        }
    }
}

/// The arguments, without the middle of what is too long.
fn bounded(input: &Value) -> Cow<'_, Value> {
    if input.to_string().len() <= INPUT_MAX {
        return Cow::Borrowed(input);
    }
    let (fields, _) = CUT;
    Cow::Owned(match input {
        Value::Object(all) => {
            let kept = all.iter().take(fields).map(|(name, value)| (cut(name), short(value)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        other => short(other),
    })
}

fn short(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(cut(text)),
        Value::Array(_) | Value::Object(_) => Value::String(cut(&value.to_string())),
    }
}

/// Head and tail, and how much is between: what a command does may stand at its end.
fn cut(text: &str) -> String {
    let (_, most) = CUT;
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}[… {} characters …]{tail}", count - 2 * half)
}

/// A person's word on a call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What it is.
    pub decision: Decision,
    /// With `session`: the rule to allow instead of the request's `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text>,
    /// With `denied`: why; the model reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// The request's `since`: only that request is answered. Without it the only one that is open
    /// about a call of that id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This call may run.
    Once,
    /// This call may run, and all that the rule allows while the session lives.
    Session,
    /// It may not.
    Denied,
}

/// What an answer did.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Answered {
    /// Whose call it is.
    pub agent: String,
    /// The call.
    pub tool: String,
    /// What was said.
    pub decision: Decision,
    /// What is allowed from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rule: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_whole_or_show_head_and_tail_and_say_so() {
        let small = json!({"command": "cargo test", "timeout": 3});
        assert_eq!((bounded(&small).as_ref(), matches!(bounded(&small), Cow::Borrowed(_))), (&small, true));
        let hidden = format!("echo hi {}; rm -rf x", "é".repeat(40_000));
        let many: Map<String, Value> = (0..9_000).map(|n| (format!("f{n:05}"), n.into())).collect();
        let deep = json!({"edits": [["x".repeat(60_000)]], "n": 1});
        for (large, shown) in [
            (json!({"command": hidden}), vec!["echo hi", "characters …]", "; rm -rf x"]),
            (Value::Object(many), vec!["f00000"]),
            (deep, vec!["characters …]", "\"n\":1"]),
            (json!({"x".repeat(50_000): 1}), vec!["characters …]"]),
            (json!("y".repeat(50_000)), vec!["characters …]"]),
        ] {
            let cut = bounded(&large);
            assert!(matches!(cut, Cow::Owned(_)));
            let text = cut.to_string();
            assert!(text.len() < 160 * 1024, "{}", text.len());
            shown.iter().for_each(|part| assert!(text.contains(part), "{part}: {text:.200}"));
        }
    }
}
