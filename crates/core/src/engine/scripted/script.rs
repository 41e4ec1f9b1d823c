//! What a scripted model says and what simulated tools do: the plain data of a scenario's
//! `model` entries (scenarios.md, section 1).

use std::sync::Arc;

use serde_json::Value;

use super::EndsAfter;
use crate::engine::ports::ErrorKind;
use crate::rules::conversation::{StopReason, Usage};
use crate::rules::id::CallId;
use crate::rules::time::Span;

/// One model call's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedReply {
    /// The text.
    pub text: String,
    /// The thinking before it.
    pub thinking: String,
    /// How long the call takes.
    pub takes: Span,
    /// Or after which event it ends; until then none of its words is out.
    pub ends_after: Option<EndsAfter>,
    /// The calls it asks for, in order.
    pub tools: Vec<Arc<ScriptedCall>>,
    /// The call fails so, at its end.
    pub error: Option<ErrorKind>,
    /// How long the failed call asks to wait.
    pub retry_after: Option<Span>,
    /// Why the reply ended; by default `tool_use` with calls and `end_turn` without.
    pub stop_reason: Option<StopReason>,
    /// What the call cost.
    pub usage: Usage,
    /// The entry answers only when the prompt's last message contains each of these.
    pub when: Vec<String>,
}

impl ScriptedReply {
    /// A reply that only says something, at once.
    pub fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A reply that asks for a call.
    pub fn calls(call: ScriptedCall) -> Self {
        Self { tools: vec![Arc::new(call)], ..Self::default() }
    }
}

impl ScriptedCall {
    /// A call that, where it is simulated, takes no time and gives nothing.
    pub fn new(id: &str, name: &str, input: Value) -> Self {
        Self {
            id: CallId::new(id),
            name: name.into(),
            input,
            takes: Span::ZERO,
            ends_after: None,
            result: String::new(),
            error: None,
            output: Vec::new(),
            safe: None,
            abortable: true,
            abort_takes: Span::ZERO,
            continues: None,
            provider: false,
        }
    }
}

/// One call, and what the simulated tool does.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedCall {
    /// The call's id, unique in its agent.
    pub id: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments.
    pub input: Value,
    /// How long it runs.
    pub takes: Span,
    /// Or after which event it ends.
    pub ends_after: Option<EndsAfter>,
    /// What it gives.
    pub result: String,
    /// It fails with this text instead.
    pub error: Option<String>,
    /// What it says while it runs: when (since its start) and what; kept when it is cut short.
    pub output: Vec<(Span, String)>,
    /// Whether it may run beside others; by the tool's name when absent.
    pub safe: Option<bool>,
    /// Whether it can be aborted.
    pub abortable: bool,
    /// How long an abort takes.
    pub abort_takes: Span,
    /// It returns a continuation that ends so much later.
    pub continues: Option<Span>,
    /// The provider runs it itself.
    pub provider: bool,
}
