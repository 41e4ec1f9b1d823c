//! A model that answers from a script (scenarios.md, sections 1 and 2).

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{ScriptedReply, Scripts};
use crate::engine::ports::{Clock, ErrorKind, Model, ModelFactory, ModelFailure, Phase, Request};
use crate::rules::conversation::{Block, Opaque, Reply, StopReason, Thinking, ToolUse};
use crate::rules::id::AgentName;
use crate::rules::prompt::last_message;
use crate::rules::time::{Micros, Span};

/// What a scripted model was asked, for whoever checks prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptRecord {
    /// The agent.
    pub agent: AgentName,
    /// The number of the call.
    pub call: u64,
    /// How many messages the prompt had, after merging.
    pub messages: u64,
    /// The texts of its last message: results, then what was injected.
    pub last_message: String,
}

/// Makes scripted models.
pub struct ScriptedModels {
    clock: Arc<dyn Clock>,
    scripts: Scripts,
    asked: Option<Asked>,
}

/// What was asked, in order; bounded by the scripts.
type Asked = Arc<Mutex<Vec<PromptRecord>>>;

impl ScriptedModels {
    /// Models that answer from these scripts, by agent.
    pub fn new(clock: Arc<dyn Clock>, scripts: Scripts) -> Self {
        Self { clock, scripts, asked: None }
    }

    /// The same, and what they are asked is kept for [`ScriptedModels::asked`].
    pub fn recording(clock: Arc<dyn Clock>, scripts: Scripts) -> Self {
        Self { asked: Some(Asked::default()), ..Self::new(clock, scripts) }
    }

    /// What was asked so far, in order, if it is kept.
    pub fn asked(&self) -> Vec<PromptRecord> {
        self.asked.as_ref().map(|asked| asked.lock().clone()).unwrap_or_default()
    }
}

#[async_trait]
impl ModelFactory for ScriptedModels {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        let entries = self.scripts.get(agent).cloned().unwrap_or_default();
        Ok(Box::new(ScriptedModel {
            agent: agent.clone(),
            clock: self.clock.clone(),
            used: vec![false; entries.len()],
            entries,
            asked: self.asked.clone(),
        }))
    }
}

struct ScriptedModel {
    agent: AgentName,
    clock: Arc<dyn Clock>,
    entries: Arc<[ScriptedReply]>,
    used: Vec<bool>,
    asked: Option<Asked>,
}

impl ScriptedModel {
    /// The first entry not yet used whose `when` holds. It is used up, whatever becomes of it.
    fn pick(&mut self, last_message: &str) -> Option<ScriptedReply> {
        let holds = |entry: &ScriptedReply| entry.when.iter().all(|part| last_message.contains(part));
        let index = (0..self.entries.len()).find(|i| !self.used[*i] && holds(&self.entries[*i]))?;
        self.used[index] = true;
        Some(self.entries[index].clone())
    }

    /// The last message's text, where anything depends on it.
    fn read(&self, request: &Request<'_>) -> String {
        let depends = self.entries.iter().any(|entry| !entry.when.is_empty());
        if !depends && self.asked.is_none() {
            return String::new();
        }
        let last_message = last_message(request.entries);
        if let Some(asked) = &self.asked {
            asked.lock().push(PromptRecord {
                agent: self.agent.clone(),
                call: request.call,
                messages: request.messages,
                last_message: last_message.clone(),
            });
        }
        last_message
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let last_message = self.read(&request);
        request.progress.sent();
        let begun = self.clock.now();
        let Some(entry) = self.pick(&last_message) else {
            self.clock.turn(Phase::ModelEnd(request.agent_index)).await;
            return Err(ModelFailure::new(ErrorKind::ScriptExhausted, ""));
        };
        if !self.runs_to_its_end(&request, begun.after(entry.takes)).await {
            say_so_far(&request, &entry, self.clock.now().since(begun));
            // A cut takes no time, and what takes none ends in the next round.
            self.clock.turn(Phase::ModelEnd(request.agent_index)).await;
            return Err(ModelFailure::new(ErrorKind::Cancelled, ""));
        }
        match entry.error {
            Some(kind) => {
                say_so_far(&request, &entry, entry.takes);
                Err(ModelFailure { kind, message: String::new(), retry_after: entry.retry_after })
            }
            None => Ok(whole(&entry)),
        }
    }

    fn jitters(&self) -> bool {
        false
    }
}

impl ScriptedModel {
    /// Waits for the end. `false`: it was cut before. What ends in the instant of the cut has ended.
    async fn runs_to_its_end(&self, request: &Request<'_>, end: Micros) -> bool {
        let ends = self.clock.until(end, Phase::ModelEnd(request.agent_index));
        tokio::pin!(ends);
        tokio::select! {
            biased;
            () = &mut ends => return true,
            () = request.cancel.cancelled() => {}
        }
        if end <= self.clock.now() {
            ends.await;
            return true;
        }
        self.clock.turn(Phase::Cut(request.agent_index)).await;
        false
    }
}

/// The n-th of k words is out at takes · n / k; thinking comes before text.
fn say_so_far(request: &Request<'_>, entry: &ScriptedReply, elapsed: Span) {
    let thinking: Vec<&str> = entry.thinking.split_whitespace().collect();
    let text: Vec<&str> = entry.text.split_whitespace().collect();
    let words = (thinking.len() + text.len()) as u64;
    let out = match entry.takes.0 {
        0 => words,
        takes => u64::try_from(u128::from(elapsed.0.min(takes)) * u128::from(words) / u128::from(takes))
            .unwrap_or(words),
    };
    let out = usize::try_from(out).unwrap_or(usize::MAX);
    let thought = out.min(thinking.len());
    if thought > 0 {
        request.progress.thinking(&thinking[..thought].join(" "));
    }
    if thought == thinking.len() && thought > 0 {
        request.progress.thinking_done();
    }
    if out > thought {
        request.progress.text(&text[..out - thought].join(" "));
    }
}

fn whole(entry: &ScriptedReply) -> Reply {
    let mut blocks = Vec::new();
    if !entry.thinking.is_empty() {
        let replay = serde_json::json!({"type": "thinking", "thinking": entry.thinking}).to_string();
        let replay = Some(Opaque(replay.into()));
        blocks.push(Block::Thinking(Thinking { text: entry.thinking.clone(), replay }));
    }
    if !entry.text.is_empty() {
        blocks.push(Block::Text(entry.text.clone()));
    }
    for call in &entry.tools {
        blocks.push(if call.provider {
            let raw = serde_json::json!({"id": call.id, "name": call.name, "input": call.input, "result": call.result});
            Block::Provider(Opaque(raw.to_string().into()))
        } else {
            let (id, name, input) = (call.id.clone(), call.name.clone(), call.input.clone());
            Block::ToolUse(ToolUse { id, name, input })
        });
    }
    let own = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
    let natural = if own { StopReason::ToolUse } else { StopReason::EndTurn };
    Reply { blocks, stop_reason: entry.stop_reason.clone().unwrap_or(natural), usage: entry.usage }
}
