//! What the model server was sent, request by request: is each a prompt that a provider takes,
//! does each begin with all of the one before, and are its replies those that were given? It
//! shares no code with what builds prompts.

mod summaries;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use crate::breach::Promise::{PromptsGrow, ValidPrompts};
use crate::breach::{Breaches, Promise};
use crate::rule::{Conversation, Ground};

/// One agent's conversation, as far as it was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    requests: u64,
    /// The messages of the last request of a turn.
    messages: Vec<Value>,
    /// What was sent before those, and then summarised; no summary is in it.
    past: Vec<Value>,
    /// What the last compaction found, with all that was added to it.
    before: Vec<Value>,
    /// The summaries that were given since, and how many of the blocks each stands for.
    summaries: HashMap<String, usize>,
    pub(crate) compactions: u64,
    /// What comes before the messages.
    head: Option<[Value; 2]>,
    /// Which daemon sent it.
    life: u64,
}

impl Sent {
    /// All that its agent has read, with whose words it is; a summary is nobody's.
    fn read(&self) -> impl Iterator<Item = (&Value, &Value)> {
        let summary = usize::from(self.compactions > 0);
        flat(&self.past).chain(flat(&self.messages).skip(summary))
    }

    /// The texts that are in it as a person's, an agent's or the coordinator's words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let texts = self.read().filter(|(role, block)| *role == "user" && block["type"] == "text");
        texts.filter_map(|(_, block)| block["text"].as_str())
    }

    /// The results in it, by call.
    pub(crate) fn results(&self) -> HashMap<&str, &Value> {
        let results = self.read().map(|(_, block)| block).filter(|block| block["type"] == "tool_result");
        results.filter_map(|block| Some((block["tool_use_id"].as_str()?, block))).collect()
    }
}

/// All that was sent by the agents of one session.
#[derive(Debug, Default)]
pub(crate) struct Agents(BTreeMap<String, Sent>);

impl Agents {
    pub(crate) fn of(&self, agent: &str) -> Option<&Sent> {
        self.0.get(agent)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Sent)> {
        self.0.iter().map(|(name, sent)| (name.as_str(), sent))
    }
}

/// All that was sent, by what the model was called.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    sessions: BTreeMap<String, Agents>,
    /// Counts the daemons.
    life: u64,
}

impl Prompts {
    /// How many requests there were.
    pub(crate) fn requests(&self) -> u64 {
        self.sessions.values().flat_map(Agents::all).map(|(_, sent)| sent.requests).sum()
    }

    pub(crate) fn of(&mut self, model: &str) -> &Agents {
        self.sessions.entry(model.to_owned()).or_default()
    }

    /// All of a daemon's requests are read; the next ones are another's.
    pub(crate) fn next_life(&mut self) {
        self.life += 1;
    }

    /// A request has come; `None` if it is none.
    pub(crate) fn arrived(&mut self, body: &[u8], ground: &Ground, breaches: &Breaches) -> Option<Arrived> {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let Some((arrived, head)) = parsed.and_then(Arrived::of) else {
            breaches.add(ValidPrompts, format!("no request: {}", String::from_utf8_lossy(body)));
            return None;
        };
        let agent = &arrived.agent;
        let agents = self.sessions.entry(arrived.model.clone()).or_default();
        let sent = agents.0.entry(agent.clone()).or_default();
        sent.requests += 1;
        let number = sent.requests;
        let tell = |promise: Promise, what: String| {
            breaches.add(promise, format!("request {number} of {agent}: {what}"));
        };
        if let Err(what) = valid(&arrived.messages) {
            tell(ValidPrompts, what);
        }
        if sent.head.get_or_insert_with(|| head.clone()) != &head {
            tell(PromptsGrow, "the system prompt or the tools have changed".to_owned());
        }
        if let Err((promise, what)) = sent.follows(&arrived, self.life, ground) {
            tell(promise, what);
        }
        Some(arrived)
    }
}

impl Sent {
    fn follows(&mut self, arrived: &Arrived, life: u64, ground: &Ground) -> Result<(), (Promise, String)> {
        let Arrived { model, agent, messages, .. } = arrived;
        if arrived.wants_summary {
            let summary = arrived.conversation().reply(ground).text;
            return self.is_to_be_summarised(messages.clone(), &summary).map_err(|what| (PromptsGrow, what));
        }
        let is_known = |known: &[Value]| grows(messages, known).is_ok();
        if self.life == life && (is_known(&self.messages) || is_known(&self.before)) {
            // One that an urgent message cut: what was sent after it, on another connection, was
            // read before it. No daemon unlearns what it knows while it lives.
            return Ok(());
        }
        let unfolded = self.unfolded(messages);
        let whole = unfolded.as_deref().unwrap_or(messages);
        let grown = grows(&self.messages, whole);
        // What was sent before was looked at before.
        let from = if grown.is_ok() { self.messages.len() } else { 0 };
        let are_ours = replies_are_ours((model, agent), whole, from, ground);
        // Nothing is replied to the summary yet: any reply in it is one that was kept.
        let keeps_a_turn =
            unfolded.is_none() || messages.iter().any(|message| message["role"] == "assistant");
        if let Some(unfolded) = unfolded {
            self.is_summarised(unfolded, messages);
        }
        (self.messages, self.life) = (messages.clone(), life);
        if !keeps_a_turn {
            return Err((PromptsGrow, "of what was summarised the last turn is not kept whole".to_owned()));
        }
        grown.map_err(|what| (PromptsGrow, what)).and(are_ours.map_err(|what| (ValidPrompts, what)))
    }
}

/// A request.
pub(crate) struct Arrived {
    model: String,
    agent: String,
    /// Without cache markers.
    messages: Vec<Value>,
    /// It may call no tools: its reply is to take the place of what it holds.
    wants_summary: bool,
}

impl Arrived {
    /// The request, and what comes before its messages.
    fn of(mut body: Value) -> Option<(Self, [Value; 2])> {
        without_markers(&mut body);
        let system = body["system"].take();
        let who = system[0]["text"].as_str()?.strip_prefix("You are `")?;
        let agent = who.split('`').next()?.to_owned();
        let messages = body["messages"].as_array()?.clone();
        let wants_summary = body["tool_choice"]["type"] == "none";
        let model = body["model"].as_str()?.to_owned();
        Some((Self { model, agent, messages, wants_summary }, [system, body["tools"].take()]))
    }

    pub(crate) fn conversation(&self) -> Conversation<'_> {
        let Self { model, agent, messages, wants_summary } = self;
        Conversation { model, agent, messages, wants_summary: *wants_summary }
    }
}

/// Cache markers move from request to request and are no part of what is said.
fn without_markers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_markers);
        }
        Value::Array(items) => items.iter_mut().for_each(without_markers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

/// Whether a provider would take it (invariant 1).
fn valid(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut called: HashSet<&str> = HashSet::new();
    for (i, message) in messages.iter().enumerate() {
        let expected = if i % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Err(format!("message {i} is not the {expected}'s"));
        }
        if blocks(message).next().is_none() {
            return Err(format!("message {i} is empty"));
        }
        if i % 2 == 0 {
            answers(message, &std::mem::take(&mut open)).map_err(|what| format!("message {i}: {what}"))?;
        } else {
            open = asks(message)?;
            if let Some(twice) = open.iter().find(|id| !called.insert(id)) {
                return Err(format!("call {twice} is there twice"));
            }
        }
    }
    if messages.len().is_multiple_of(2) { Err("it doesn't end with the user".to_owned()) } else { Ok(()) }
}

fn asks(message: &Value) -> Result<Vec<&str>, String> {
    let mut calls = Vec::new();
    for block in blocks(message) {
        match (block["type"].as_str(), block["id"].as_str()) {
            (Some("tool_use"), Some(id)) => calls.push(id),
            (Some("text"), _) if block["text"].as_str().is_some_and(|text| !text.is_empty()) => {}
            _ => return Err(format!("a reply holds {block}")),
        }
    }
    Ok(calls)
}

/// Every call has its result, in order, before any text.
fn answers(message: &Value, open: &[&str]) -> Result<(), String> {
    let kinds: Vec<(Option<&str>, Option<&str>)> =
        blocks(message).map(|block| (block["type"].as_str(), block["tool_use_id"].as_str())).collect();
    let leading = kinds.iter().take_while(|(kind, _)| *kind == Some("tool_result"));
    let answered: Vec<&str> = leading.filter_map(|(_, id)| *id).collect();
    if answered != open {
        return Err(format!("results {answered:?} follow calls {open:?}"));
    }
    match kinds[answered.len()..].iter().find(|(kind, _)| *kind != Some("text")) {
        Some((kind, id)) => Err(format!("{kind:?} {id:?} stands after the results or among texts")),
        None => Ok(()),
    }
}

/// Every reply in it, from a message on, is the one that was given to what stands before it:
/// none is invented, changed, or a part that passes for a whole (invariant 7).
fn replies_are_ours(
    (model, agent): (&str, &str),
    messages: &[Value],
    from: usize,
    ground: &Ground,
) -> Result<(), String> {
    let new = messages.iter().enumerate().skip(from);
    for (i, message) in new.filter(|(_, message)| message["role"] == "assistant") {
        let said = Conversation::of(model, agent, &messages[..i]).reply(ground);
        let text = json!({"type": "text", "text": said.text});
        let call = |call: &crate::rule::Call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input});
        let blocks: Vec<Value> = std::iter::once(text).chain(said.calls.iter().map(call)).collect();
        if message["content"] != Value::from(blocks) {
            return Err(format!("message {i} is no reply that was given to what precedes it: {message}"));
        }
    }
    Ok(())
}

/// The blocks of the request before are the first ones of this (invariant 6).
fn grows(before: &[Value], now: &[Value]) -> Result<(), String> {
    let mut rest = flat(now);
    for (i, was) in flat(before).enumerate() {
        match rest.next() {
            Some(is) if is == was => {}
            Some(is) => return Err(format!("block {i} was {} and is {}", was.1, is.1)),
            None => return Err(format!("block {i} was {} and is gone", was.1)),
        }
    }
    Ok(())
}

/// Blocks with their roles: neighbours of one role may have been merged.
fn flat(messages: &[Value]) -> impl Iterator<Item = (&Value, &Value)> {
    messages.iter().flat_map(|message| blocks(message).map(|block| (&message["role"], block)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(blocks: &[Value]) -> Value {
        json!({"role": "user", "content": blocks})
    }

    fn calls(ids: &[&str]) -> Value {
        let blocks: Vec<Value> = ids.iter().map(|id| json!({"type": "tool_use", "id": id})).collect();
        json!({"role": "assistant", "content": blocks})
    }

    fn text() -> Value {
        json!({"type": "text", "text": "hello"})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id})
    }

    #[test]
    fn invariant_1_a_prompt_that_no_provider_takes_is_found() {
        let good = [user(&[text()]), calls(&["a", "b"]), user(&[result("a"), result("b"), text()])];
        assert_eq!(valid(&good), Ok(()));
        for bad in [
            vec![],
            vec![calls(&["a"])],
            vec![user(&[])],
            vec![user(&[text()]), calls(&["a"])],
            vec![user(&[text()]), calls(&["a"]), user(&[text()])],
            vec![user(&[text()]), calls(&["a"]), user(&[text(), result("a")])],
            vec![user(&[text()]), calls(&["a", "b"]), user(&[result("b"), result("a")])],
            vec![user(&[text()]), calls(&["a", "b"]), user(&[result("a")])],
            vec![user(&[text()]), calls(&["a"]), user(&[result("a"), result("a")])],
            vec![user(&[text()]), user(&[text()]), user(&[text()])],
            vec![user(&[text()]), calls(&["a"]), user(&[result("a")]), calls(&["a"]), user(&[result("a")])],
        ] {
            assert!(valid(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn invariant_6_a_block_that_was_sent_and_has_changed_is_found() {
        let first = [user(&[text()])];
        let more = [user(&[text(), result("a")])];
        assert_eq!(grows(&first, &more), Ok(()));
        assert_eq!(grows(&more, &more), Ok(()));
        assert!(grows(&more, &first).is_err());
        assert!(grows(&more, &[user(&[text(), result("b")])]).is_err());
    }

    #[test]
    fn invariant_7_a_reply_that_nobody_gave_is_found() {
        let ground = Ground { marker: "/m".into(), mark: "w".to_owned() };
        let asked = user(&[json!({"type": "text", "text": format!("x {}", crate::rule::FINISH)})]);
        let given = Conversation::of("host", "a1", std::slice::from_ref(&asked)).reply(&ground);
        let says = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let whole = [asked.clone(), says(&given.text)];
        assert_eq!(replies_are_ours(("host", "a1"), &whole, 0, &ground), Ok(()));
        let part = [asked, says(&given.text[..20])];
        assert!(replies_are_ours(("host", "a1"), &part, 0, &ground).is_err());
    }
}
