//! What the model server was sent, request by request: is each a prompt that a provider takes,
//! does each begin with all of the one before, and are its replies those that were given? It
//! shares no code with what builds prompts.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::breach::Promise::{PromptsGrow, ValidPrompts};
use crate::breach::{Breaches, Promise};
use crate::rule::{Conversation, Ground};

/// One agent's conversation, as far as it was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) requests: u64,
    /// The messages of the last request.
    pub(crate) messages: Vec<Value>,
    /// What comes before the messages.
    head: Option<[Value; 2]>,
    /// Which daemon sent it.
    life: u64,
}

impl Sent {
    /// The texts that are in it as a person's, an agent's or the coordinator's words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let users = self.messages.iter().filter(|message| message["role"] == "user");
        users.flat_map(blocks).filter(|block| block["type"] == "text").filter_map(|b| b["text"].as_str())
    }

    /// The results in it, by call.
    pub(crate) fn results(&self) -> HashMap<&str, &Value> {
        let results = self.messages.iter().flat_map(blocks).filter(|b| b["type"] == "tool_result");
        results.filter_map(|block| Some((block["tool_use_id"].as_str()?, block))).collect()
    }
}

/// All that was sent.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    agents: BTreeMap<String, Sent>,
    /// Counts the daemons.
    life: u64,
}

impl Prompts {
    pub(crate) fn of(&self, agent: &str) -> Option<&Sent> {
        self.agents.get(agent)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Sent)> {
        self.agents.iter().map(|(name, sent)| (name.as_str(), sent))
    }

    /// All of a daemon's requests are read; the next ones are another's.
    pub(crate) fn next_life(&mut self) {
        self.life += 1;
    }

    /// A request has come: its messages without cache markers, or `None` if it is none.
    pub(crate) fn arrived(
        &mut self,
        body: &[u8],
        ground: &Ground,
        breaches: &Breaches,
    ) -> Option<(String, Vec<Value>)> {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let Some((agent, head, messages)) = parsed.and_then(parts) else {
            breaches.add(ValidPrompts, format!("no request: {}", String::from_utf8_lossy(body)));
            return None;
        };
        let sent = self.agents.entry(agent.clone()).or_default();
        let number = sent.requests + 1;
        let tell = |promise: Promise, what: String| {
            breaches.add(promise, format!("request {number} of {agent}: {what}"));
        };
        if let Err(what) = valid(&messages) {
            tell(ValidPrompts, what);
        }
        if sent.life == self.life && grows(&messages, &sent.messages).is_ok() {
            // One that an urgent message cut: what was sent after it, on another connection, was
            // read before it. No daemon unlearns what it knows while it lives.
            sent.requests = number;
            return Some((agent, messages));
        }
        let grown = grows(&sent.messages, &messages);
        // What was sent before was looked at before.
        let from = if grown.is_ok() { sent.messages.len() } else { 0 };
        if let Err(what) = grown {
            tell(PromptsGrow, what);
        }
        if let Err(what) = replies_are_ours(&agent, &messages, from, ground) {
            tell(ValidPrompts, what);
        }
        if sent.head.as_ref().is_some_and(|before| *before != head) {
            tell(PromptsGrow, "the system prompt or the tools have changed".to_owned());
        }
        *sent = Sent { requests: number, messages: messages.clone(), head: Some(head), life: self.life };
        Some((agent, messages))
    }
}

fn parts(mut body: Value) -> Option<(String, [Value; 2], Vec<Value>)> {
    without_markers(&mut body);
    let system = body["system"].take();
    let who = system[0]["text"].as_str()?.strip_prefix("You are `")?;
    let agent = who.split('`').next()?.to_owned();
    let messages = body["messages"].as_array()?.clone();
    Some((agent, [system, body["tools"].take()], messages))
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
fn replies_are_ours(agent: &str, messages: &[Value], from: usize, ground: &Ground) -> Result<(), String> {
    let new = messages.iter().enumerate().skip(from);
    for (i, message) in new.filter(|(_, message)| message["role"] == "assistant") {
        let said = Conversation { agent, messages: &messages[..i] }.reply(ground);
        let text = serde_json::json!({"type": "text", "text": said.text});
        let call = |call: &crate::rule::Call| serde_json::json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input});
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
    use serde_json::json;

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
        let given = Conversation { agent: "a1", messages: std::slice::from_ref(&asked) }.reply(&ground);
        let says = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let whole = [asked.clone(), says(&given.text)];
        assert_eq!(replies_are_ours("a1", &whole, 0, &ground), Ok(()));
        let part = [asked, says(&given.text[..20])];
        assert!(replies_are_ours("a1", &part, 0, &ground).is_err());
    }
}
