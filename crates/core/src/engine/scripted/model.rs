//! A model that answers from a script (scenarios.md, sections 1 and 2).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::words::Words;
use super::{Anchors, ScriptedReply, Scripts};
use crate::engine::ports::{Clock, ErrorKind, Model, ModelFactory, ModelFailure, Phase, Request};
use crate::rules::conversation::{Block, Opaque, Reply, StopReason, Thinking, ToolUse};
use crate::rules::id::AgentName;
use crate::rules::prompt::last_message;
use crate::rules::time::Micros;

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

/// Makes scripted models, and keeps what outlives each of them: a session that is taken up
/// again goes on with the entries that are left.
pub struct ScriptedModels {
    clock: Arc<dyn Clock>,
    scripts: Scripts,
    anchors: Arc<Anchors>,
    used: Used,
    asked: Option<Asked>,
}

/// Which entries of each agent are used up.
type Used = Arc<Mutex<HashMap<AgentName, Vec<bool>>>>;

/// What was asked, in order; bounded by the scripts.
type Asked = Arc<Mutex<Vec<PromptRecord>>>;

impl ScriptedModels {
    /// Models that answer from these scripts, by agent.
    pub fn new(clock: Arc<dyn Clock>, scripts: Scripts) -> Self {
        Self { clock, scripts, anchors: Arc::default(), used: Used::default(), asked: None }
    }

    /// The same, and what they are asked is kept for [`ScriptedModels::asked`].
    pub fn recording(clock: Arc<dyn Clock>, scripts: Scripts) -> Self {
        Self { asked: Some(Asked::default()), ..Self::new(clock, scripts) }
    }

    /// What tells of the events that `ends_after` names; without it none of them comes.
    #[must_use]
    pub fn anchored(self, anchors: &Arc<Anchors>) -> Self {
        for after in
            self.scripts.values().flat_map(|script| script.iter()).filter_map(|e| e.ends_after.as_ref())
        {
            anchors.watch(&after.anchor);
        }
        Self { anchors: anchors.clone(), ..self }
    }

    /// What was asked so far, in order, if it is kept.
    pub fn asked(&self) -> Vec<PromptRecord> {
        self.asked.as_ref().map(|asked| asked.lock().clone()).unwrap_or_default()
    }
}

#[async_trait]
impl ModelFactory for ScriptedModels {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(ScriptedModel {
            agent: agent.clone(),
            clock: self.clock.clone(),
            entries: self.scripts.get(agent).cloned().unwrap_or_default(),
            anchors: self.anchors.clone(),
            used: self.used.clone(),
            asked: self.asked.clone(),
        }))
    }
}

struct ScriptedModel {
    agent: AgentName,
    clock: Arc<dyn Clock>,
    entries: Arc<[ScriptedReply]>,
    anchors: Arc<Anchors>,
    used: Used,
    asked: Option<Asked>,
}

impl ScriptedModel {
    /// The first entry not yet used whose `when` holds. It is used up, whatever becomes of it.
    fn pick(&self, last_message: &str) -> Option<ScriptedReply> {
        let holds = |entry: &ScriptedReply| entry.when.iter().all(|part| last_message.contains(part));
        let mut used = self.used.lock();
        let used = used.entry(self.agent.clone()).or_insert_with(|| vec![false; self.entries.len()]);
        let index = (0..self.entries.len()).find(|i| !used[*i] && holds(&self.entries[*i]))?;
        used[index] = true;
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
        let mut words = Words::new(&entry, request.progress);
        if !self.runs_to_its_end(&request, &entry, begun, &mut words).await {
            words.say(self.clock.now().since(begun));
            // A cut takes no time, and what takes none ends in the next round.
            self.clock.turn(Phase::ModelEnd(request.agent_index)).await;
            return Err(ModelFailure::new(ErrorKind::Cancelled, ""));
        }
        match entry.error {
            Some(kind) => {
                words.say_all();
                Err(ModelFailure { kind, message: String::new(), retry_after: entry.retry_after })
            }
            None => {
                words.end();
                Ok(whole(&entry))
            }
        }
    }

    fn jitters(&self) -> bool {
        false
    }
}

impl ScriptedModel {
    /// Waits for the end, and says each word at its time where time passes. `false`: it was cut
    /// before. What ends in the instant of the cut has ended: an end comes before a cut.
    async fn runs_to_its_end(
        &self,
        request: &Request<'_>,
        entry: &ScriptedReply,
        begun: Micros,
        words: &mut Words<'_>,
    ) -> bool {
        let ends = async {
            let end = match &entry.ends_after {
                Some(after) => self.anchors.ends(&self.agent, after).await,
                None => begun.after(entry.takes),
            };
            self.clock.until(end, Phase::ModelEnd(request.agent_index)).await;
        };
        let cut = async {
            request.cancel.cancelled().await;
            self.clock.turn(Phase::Cut(request.agent_index)).await;
        };
        tokio::pin!(ends, cut);
        loop {
            let next = words.next(begun);
            tokio::select! {
                biased;
                () = &mut ends => return true,
                () = &mut cut => return false,
                () = self.clock.meanwhile(next.unwrap_or_default()), if next.is_some() => {
                    words.say(self.clock.now().since(begun));
                }
            }
        }
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
