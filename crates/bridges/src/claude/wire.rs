//! What Claude Code writes to a hook, and what it takes from one. Whatever else stands there is ignored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a hook is told. Bodies stay as they are until somebody needs them: they can be megabytes.
#[derive(Debug, Deserialize)]
pub(crate) struct Input<'a> {
    pub(crate) hook_event_name: Cow<'a, str>,
    pub(crate) session_id: Cow<'a, str>,
    /// The main agent's, in subagents too.
    #[serde(default)]
    pub(crate) transcript_path: Cow<'a, str>,
    #[serde(default)]
    pub(crate) cwd: Cow<'a, str>,
    /// `None`: the main agent.
    #[serde(default)]
    pub(crate) agent_id: Option<Cow<'a, str>>,
    /// Of `SessionStart`: what began it.
    #[serde(default)]
    pub(crate) source: Cow<'a, str>,
    #[serde(default)]
    pub(crate) tool_name: Cow<'a, str>,
    #[serde(default)]
    pub(crate) tool_use_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) tool_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<&'a RawValue>,
}

/// The input of `Bash`.
#[derive(Debug, Deserialize)]
pub(crate) struct Bash {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) run_in_background: bool,
}

/// The input of `SendMessage`.
#[derive(Debug, Deserialize)]
pub(crate) struct SendMessage {
    pub(crate) to: String,
    #[serde(default)]
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) message: String,
}

/// A call of a turn that has ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Call<'a> {
    #[serde(default)]
    pub(crate) tool_use_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) tool_response: Option<&'a RawValue>,
}

impl Call<'_> {
    /// Whether a message skipped it: it reads what [`Answer::deny`] says.
    pub(crate) fn was_skipped(&self) -> bool {
        let told = self.tool_response.map(RawValue::get).unwrap_or_default();
        told.starts_with("\"PreToolUse:") && told.contains("hook error: [Skipped: message received from ")
    }

    /// Whether an urgent message has ended it: `claude::exec` says so as the last words of its output.
    pub(crate) fn was_cut(&self) -> bool {
        let told = self.tool_response.map(RawValue::get).unwrap_or_default();
        told.contains("[Interrupted after ") && told.contains("s: message received from ")
    }
}

/// What a hook answers. It never allows anything: that is the person's rules.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    #[serde(rename = "hookSpecificOutput")]
    output: Output,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    hook_event_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

impl Answer {
    /// The call doesn't run, and reads this.
    pub(crate) fn deny(reason: String) -> Self {
        let output = Output {
            hook_event_name: "PreToolUse".to_owned(),
            permission_decision: Some("deny"),
            permission_decision_reason: Some(reason),
            additional_context: None,
        };
        Self { output }
    }

    /// The model reads this with its next request.
    pub(crate) fn context(event: &str, text: String) -> Self {
        let output = Output {
            hook_event_name: event.to_owned(),
            permission_decision: None,
            permission_decision_reason: None,
            additional_context: Some(text),
        };
        Self { output }
    }
}

/// A line of a transcript, as far as it says what the model was given.
#[derive(Debug, Deserialize)]
pub(crate) struct Row<'a> {
    #[serde(rename = "type", default)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(default)]
    pub(crate) timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) attachment: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// Of the program's own queue: `enqueue`, and later `dequeue` or `remove`.
    #[serde(default)]
    pub(crate) operation: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
}

/// What the model said, or was told.
#[derive(Debug, Deserialize)]
pub(crate) struct Said<'a> {
    /// A reply can be several lines.
    #[serde(default)]
    pub(crate) id: Cow<'a, str>,
    #[serde(default)]
    pub(crate) model: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
}

/// Who wrote a line that is no prompt of a person's.
#[derive(Debug, Deserialize)]
pub(crate) struct Origin {
    #[serde(default)]
    pub(crate) kind: String,
}

/// What hooks have given, or what had waited in the program's own queue.
#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) content: Vec<String>,
    /// Of what had waited.
    #[serde(default)]
    pub(crate) prompt: String,
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
}

/// What the program notes of a subagent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) agent_type: Option<String>,
    #[serde(default)]
    pub(crate) parent_agent_id: Option<String>,
}
