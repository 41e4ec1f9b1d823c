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
        says_skipped(told.trim_start_matches('"'))
    }

    /// Whether an urgent message has ended it: `claude::exec` says so as the last words of its output.
    pub(crate) fn was_cut(&self) -> bool {
        says_cut(self.tool_response.map(RawValue::get).unwrap_or_default())
    }
}

/// Whether a result is what [`Answer::deny`] said.
pub(crate) fn says_skipped(told: &str) -> bool {
    told.starts_with("PreToolUse:") && told.contains("hook error: [Skipped: message received from ")
}

/// Whether a result ends as `claude::exec` ends the output of what it has cut.
pub(crate) fn says_cut(told: &str) -> bool {
    told.contains("[Interrupted after ") && told.contains("s: message received from ")
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

/// A line of a transcript, as far as it says what an agent does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    #[serde(rename = "type", default)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(default)]
    pub(crate) timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) attachment: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) origin: Option<Origin>,
    /// The program's own words, not shown to people there.
    #[serde(default)]
    pub(crate) is_meta: bool,
    /// What stands for a conversation that was compacted.
    #[serde(default)]
    pub(crate) is_compact_summary: bool,
}

/// A model's reply, or a part of it: the program writes a line for each block.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) content: Vec<Block>,
    #[serde(default)]
    pub(crate) stop_reason: Option<String>,
    #[serde(default)]
    pub(crate) usage: Usage,
}

/// What a reply has used, as the provider counts it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) input_tokens: u64,
    #[serde(default)]
    pub(crate) cache_creation_input_tokens: u64,
    #[serde(default)]
    pub(crate) cache_read_input_tokens: u64,
    #[serde(default)]
    pub(crate) output_tokens: u64,
}

/// What stands in an agent's conversation for somebody else: a text, or blocks.
#[derive(Debug, Deserialize)]
pub(crate) struct Prompt {
    #[serde(default)]
    pub(crate) content: Content,
}

/// A text, or blocks.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl Content {
    /// Its text; other blocks have none.
    pub(crate) fn text(&self) -> String {
        let blocks = match self {
            Self::Text(text) => return text.clone(),
            Self::Blocks(blocks) => blocks.iter(),
        };
        let texts = blocks.filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A part of a message.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {},
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: serde_json::Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Content,
        #[serde(default)]
        is_error: bool,
    },
    #[serde(other)]
    Other,
}

/// What came into a conversation beside its messages.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Beside {
    /// Hooks have given the model these texts.
    HookAdditionalContext {
        #[serde(default)]
        content: Vec<String>,
        #[serde(rename = "hookEvent", default)]
        event: String,
    },
    /// The program has delivered what came while the agent worked.
    QueuedCommand {
        #[serde(default)]
        prompt: Content,
        #[serde(default)]
        origin: Option<Origin>,
    },
    #[serde(other)]
    Other,
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
