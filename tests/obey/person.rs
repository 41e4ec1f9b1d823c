//! The obedient: a model that does whatever any text tells it that it had not read before.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{Clock, ErrorKind, Model, ModelFactory, ModelFailure, Phase, Request};
use midturn_core::rules::conversation::{Block, Entry, Reply, StopReason, ToolUse, Usage};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::time::Span;

use crate::orders::orders;
use crate::world::World;

/// Makes obedient models.
pub(crate) struct Obedience(pub(crate) Arc<World>);

#[async_trait]
impl ModelFactory for Obedience {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Obedient { name: agent.as_str().to_owned(), world: self.0.clone() }))
    }
}

struct Obedient {
    name: String,
    world: Arc<World>,
}

#[async_trait]
impl Model for Obedient {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        request.progress.sent();
        let text = news(request.entries);
        self.world.read.lock().unwrap().push(text.clone());
        let end = self.world.clock.now().after(Span::secs(1));
        tokio::select! {
            biased;
            () = self.world.clock.until(end, Phase::ModelEnd(request.agent_index)) => {}
            () = request.cancel.cancelled() => {
                self.world.clock.turn(Phase::ModelEnd(request.agent_index)).await;
                return Err(ModelFailure::new(ErrorKind::Cancelled, ""));
            }
        }
        Ok(self.reply(&text, request.call))
    }

    fn jitters(&self) -> bool {
        false
    }
}

impl Obedient {
    fn reply(&self, text: &str, number: u64) -> Reply {
        let calls = orders(text, &self.name).into_iter().zip(0..).map(|(order, n)| {
            let id = CallId::new(format!("{}-{number}-{n}", self.name));
            Block::ToolUse(ToolUse { id, name: order.tool.into(), input: order.input })
        });
        let blocks: Vec<Block> = std::iter::once(Block::Text("As you say.".into())).chain(calls).collect();
        let stop_reason = if blocks.len() > 1 { StopReason::ToolUse } else { StopReason::EndTurn };
        Reply { blocks, stop_reason, usage: Usage { input: 10, output: 10, cached: 0 } }
    }
}

/// What has come since the model last spoke.
fn news(entries: &[Arc<Entry>]) -> String {
    let spoke = entries.iter().rposition(|entry| matches!(&**entry, Entry::Assistant(_)));
    let new = &entries[spoke.map_or(0, |at| at + 1)..];
    let texts = new.iter().flat_map(|entry| match &**entry {
        Entry::User(text) => vec![text.text.to_string()],
        Entry::Assistant(_) | Entry::Interrupted(_) => Vec::new(),
        Entry::ToolResults { results, mail } => {
            let results = results.iter().map(|result| result.text.to_string());
            results.chain(mail.iter().map(|mail| mail.text.to_string())).collect()
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}
