//! What agents of the recovery tests work with: models that answer from what they are sent
//! and so need no memory of their own, tools that note what they began and ended, and a
//! person who repeats each message until it is accepted.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use midturn_core::engine::ports::{
    CallTraits, Changes, ErrorKind, Model, ModelFactory, ModelFailure, Output, Request, Returned, Tool,
    ToolCall, ToolError, ToolSpec, Toolbox, Workplace,
};
use midturn_core::engine::{Coordinator, Message};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Block, Entry, Reply, StopReason, ToolUse};
use midturn_core::rules::id::{AgentName, CallId, MessageId, RunId};
use midturn_core::rules::mail::{Sender, Urgency};
use parking_lot::Mutex;
use serde_json::json;

/// What outlives every process: the world outside of the store.
#[derive(Default)]
pub(crate) struct World {
    /// Every request, by agent.
    pub(crate) requests: Mutex<BTreeMap<AgentName, Vec<Asked>>>,
    /// The calls that began, in order.
    pub(crate) began: Mutex<Vec<CallId>>,
    /// The messages that the person was told are accepted.
    pub(crate) accepted: Mutex<BTreeMap<&'static str, ()>>,
}

/// What a model was asked: how often its conversation had been compacted, and the blocks.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) purpose: Purpose,
    pub(crate) compactions: u64,
    pub(crate) blocks: Vec<String>,
}

/// Which session is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    /// Two turns with calls, and what mail adds.
    Short,
    /// Five turns with calls and long replies: the conversation is compacted on the way.
    Long,
}

/// One process: it dies with its coordinator.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) play: Play,
    pub(crate) world: Arc<World>,
    pub(crate) coordinator: Arc<OnceLock<Coordinator>>,
}

/// The person's messages: id (which is in the text too), when it is first sent, how urgent it is.
const MESSAGES: [(&str, &str, Urgency); 4] = [
    ("at-the-start", "start", Urgency::NextBoundary),
    ("while-b-runs", "b", Urgency::Urgent),
    ("in-the-second-call", "call-2", Urgency::AfterTools),
    ("at-the-end", "call-3", Urgency::FollowUp),
];

/// What the person says besides while a long conversation is summarised.
const MEANWHILE: [(&str, &str, Urgency); 2] =
    [("before-the-summary", "summary", Urgency::FollowUp), ("into-the-summary", "summary", Urgency::Urgent)];

impl Play {
    pub(crate) fn messages(self) -> impl Iterator<Item = (&'static str, &'static str, Urgency)> {
        let meanwhile: &[_] = if self == Self::Long { &MEANWHILE } else { &[] };
        MESSAGES.iter().chain(meanwhile).copied()
    }
}

impl Life {
    /// Sends what the person says at this moment.
    pub(crate) async fn moment(&self, name: &str) {
        for (id, when, urgency) in self.play.messages() {
            if when == name {
                self.say(id, urgency).await;
            }
        }
    }

    /// Says everything again, as who can't know what was accepted.
    pub(crate) async fn say_again(&self) {
        for (id, _, urgency) in self.play.messages() {
            self.say(id, urgency).await;
        }
    }

    async fn say(&self, id: &'static str, urgency: Urgency) {
        let Some(coordinator) = self.coordinator.get() else { return };
        let message = Message {
            urgency: Some(urgency),
            id: Some(MessageId::new(id)),
            ..Message::new(Sender::User, "worker", format!("Mind {id}."))
        };
        if coordinator.send(message).await.is_ok() {
            self.world.accepted.lock().insert(id, ());
        }
    }
}

/// What an agent says after so many replies.
fn reply(play: Play, agent: &str, replies: usize) -> Reply {
    let calls: &[&str] = match (play, agent, replies) {
        (_, "worker", 0) => &["a", "b", "c"],
        (_, "worker", 1) => &["d"],
        (_, "lead", 0) => &["wait"],
        (Play::Long, "worker", 2) => &["e"],
        (Play::Long, "worker", 3) => &["f"],
        (Play::Long, "worker", 4) => &["g"],
        _ => &[],
    };
    let call = |id: &&str| {
        let (name, input) = match *id {
            "wait" => ("wait_agents", json!({"names": ["worker"]})),
            _ => ("work", json!({})),
        };
        Block::ToolUse(ToolUse { id: CallId::new(*id), name: name.into(), input })
    };
    let long = if play == Play::Long { " And so on.".repeat(36) } else { String::new() };
    let text = Block::Text(format!("Reply {replies} of {agent}.{long}"));
    let blocks = std::iter::once(text).chain(calls.iter().map(call)).collect();
    let stop_reason = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    Reply { blocks, stop_reason, ..Reply::default() }
}

struct Answering {
    life: Life,
    agent: AgentName,
}

#[async_trait]
impl Model for Answering {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        let blocks: Vec<String> = request.entries.iter().flat_map(|entry| blocks(entry)).collect();
        let is_reply = |entry: &&Arc<Entry>| matches!(***entry, Entry::Assistant(_));
        let replies = summarised(&blocks) + request.entries.iter().filter(is_reply).count();
        request.progress.sent();
        let (purpose, compactions) = (request.purpose, request.compactions);
        let asked = Asked { purpose, compactions, blocks: blocks.clone() };
        self.life.world.requests.lock().entry(self.agent.clone()).or_default().push(asked);
        if purpose == Purpose::Summary {
            return self.summary(&blocks, replies, &request).await;
        }
        if self.agent.as_str() == "worker" {
            self.life.moment(&format!("call-{}", replies + 1)).await;
        }
        if request.cancel.is_cancelled() {
            return Err(ModelFailure::new(ErrorKind::Cancelled, ""));
        }
        Ok(reply(self.life.play, self.agent.as_str(), replies))
    }
}

impl Answering {
    /// How many replies it stands for, and every message that it stands for.
    async fn summary(
        &self,
        blocks: &[String],
        replies: usize,
        request: &Request<'_>,
    ) -> Result<Reply, ModelFailure> {
        self.life.moment("summary").await;
        if request.cancel.is_cancelled() {
            return Err(ModelFailure::new(ErrorKind::Cancelled, ""));
        }
        let mut text = format!("{replies} replies.");
        for (id, ..) in self.life.play.messages() {
            let words = format!("Mind {id}.");
            blocks.iter().for_each(|block| block.matches(&words).for_each(|words| text.push_str(words)));
        }
        Ok(Reply { blocks: vec![Block::Text(text)], ..Reply::default() })
    }
}

/// How many replies the summary stands for that a prompt begins with.
fn summarised(blocks: &[String]) -> usize {
    let said = blocks.first().and_then(|first| first.strip_prefix("[Summary of the conversation so far: "));
    said.and_then(|said| said.split_once(' ')).map_or(0, |(replies, _)| replies.parse().unwrap())
}

/// The blocks of an entry as a provider sees them.
fn blocks(entry: &Entry) -> Vec<String> {
    match entry {
        Entry::User(injected) => vec![injected.text.to_string()],
        Entry::Assistant(reply) => reply.blocks.iter().map(|block| format!("{block:?}")).collect(),
        Entry::Interrupted(partial) => panic!("a partial reply is in a prompt: {partial:?}"),
        Entry::ToolResults { results, mail } => {
            let result = |r: &midturn_core::rules::conversation::ToolResult| {
                format!("{} {:?}: {}", r.id, r.status, r.text)
            };
            let mail = mail.iter().map(|mail| mail.text.to_string());
            results.iter().map(result).chain(mail).collect()
        }
    }
}

#[async_trait]
impl ModelFactory for Life {
    async fn model(&self, agent: &AgentName, _: &str) -> Result<Box<dyn Model>, ModelFailure> {
        Ok(Box::new(Answering { life: self.clone(), agent: agent.clone() }))
    }
}

#[async_trait]
impl Tool for Life {
    fn spec(&self) -> Arc<ToolSpec> {
        let (name, description) = ("work".into(), "Works.".into());
        Arc::new(ToolSpec { name, description, input_schema: json!({"type": "object"}) })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::SERIAL
    }

    async fn call(&self, call: ToolCall) -> Returned {
        self.world.began.lock().push(call.call.id.clone());
        self.moment(call.call.id.as_str()).await;
        Output::ok(format!("{} is done", call.call.id)).into()
    }
}

impl Toolbox for Life {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![Tool::spec(self)]
    }

    fn find(&self, call: &ToolUse) -> Option<Arc<dyn Tool>> {
        (&*call.name == "work").then(|| Arc::new(self.clone()) as Arc<dyn Tool>)
    }
}

#[async_trait]
impl Workplace for Life {
    async fn open(&self, _: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        Ok(Arc::new(self.clone()))
    }

    async fn run_ended(&self, _: &AgentName, _: RunId) -> Result<Changes, ToolError> {
        Ok(Changes::default())
    }
}
