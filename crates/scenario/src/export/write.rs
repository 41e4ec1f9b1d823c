//! Writes a scenario, with the durations that a replay of it measured.

use std::collections::HashMap;

use midturn_core::engine::scripted::{EndsAfter, ScriptedCall, ScriptedReply};
use midturn_core::rules::approval::Mode;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::settings::SettingsPatch;
use midturn_core::rules::time::{Micros, Span};
use serde_json::Value;

use super::ExportError;
use super::difference::is_arrival;
use super::out::{Keys, Out};
use super::plan::{Done, NEVER, Plan};
use super::read::UNSAID;
use crate::scenario::{Act, Agent, Anchor, Approvals, Says, Start, When, beginning};

/// How much longer a call would have run that was cut.
const BEYOND: Span = Span::secs(1);

/// When what happened in a replay of the plan: durations are counted from there.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// By agent, type and id; of several, the last.
    last: HashMap<(AgentName, &'static str, String), Micros>,
    /// Each agent's steps, and when they were.
    steps: HashMap<AgentName, Vec<(Micros, Anchor)>>,
    over: Micros,
}

impl Played {
    /// A replay of a session that was over at that time.
    pub(super) fn of(events: &[Event], over: Micros) -> Self {
        let mut played = Self { over, ..Self::default() };
        let mut calls: HashMap<&AgentName, u64> = HashMap::new();
        for event in events {
            let Some(agent) = &event.at.agent else { continue };
            if let EventKind::ModelStarted { call, .. } = event.kind {
                calls.insert(agent, call);
            }
            let named = Anchor::of(event, calls.get(agent).copied().unwrap_or_default());
            let key = (agent.clone(), named.event, named.id.clone().unwrap_or_default());
            let is_first = played.last.insert(key, event.t).is_none();
            if is_first && !is_arrival(&event.kind) {
                played.steps.entry(agent.clone()).or_default().push((event.t, named));
            }
        }
        played
    }

    fn at(&self, agent: &AgentName, event: &'static str, id: &str) -> Option<Micros> {
        self.last.get(&(agent.clone(), event, id.to_owned())).copied()
    }

    /// The agent's last step before that time.
    fn before(&self, agent: &AgentName, at: Micros) -> Option<&(Micros, Anchor)> {
        self.steps.get(agent)?.iter().rev().find(|(step, _)| *step < at)
    }
}

/// Writes the scenario of a plan.
pub(super) struct Writer<'a> {
    pub(super) played: &'a Played,
    /// Results longer than this many bytes are shortened, so that the file can be read.
    pub(super) longest: usize,
}

impl Writer<'_> {
    /// The text of the file.
    pub(super) fn text(&self, plan: &Plan, about: &str, claims: Vec<Out>) -> Result<String, ExportError> {
        let frame = &plan.frame;
        let file = Keys::default()
            .put("midturn", Some(1))
            .put("name", Some(&frame.name))
            .put("description", Some(about))
            .put("settings", settings(&frame.settings))
            .map("approvals", approvals(&frame.approvals))
            .list("agents", frame.agents.iter().map(|agent| self.agent(agent, plan)).collect())
            .list("messages", plan.items.iter().map(|done| self.item(done)).collect())
            .list("expect", claims);
        // Every text is in quotes where it has to be, on lines of its own where it has several.
        serde_saphyr::to_string(&Out::from(file))
            .map_err(|error| ExportError::damaged(format!("it can't be written as YAML: {error}")))
    }

    fn agent(&self, agent: &Agent, plan: &Plan) -> Out {
        let script = plan.scripts.get(&agent.name).filter(|_| agent.model.is_some());
        let entries = script.map(|script| {
            let entries = script.iter().enumerate();
            entries.map(|(n, entry)| self.entry(&agent.name, n, entry)).collect::<Vec<Out>>()
        });
        let keys = Keys::default()
            .put("name", Some(&agent.name))
            .put("role", Some(agent.role))
            .put("parent", agent.parent.as_ref())
            .put("prompt", agent.prompt.as_ref())
            .put("start", (agent.start == Start::Spawned).then_some("spawned"))
            .put("settings", settings(&agent.settings));
        match entries {
            Some(entries) if entries.is_empty() => keys.put("model", Some(Value::Array(Vec::new()))),
            entries => keys.list("model", entries.unwrap_or_default()),
        }
        .into()
    }

    fn entry(&self, agent: &AgentName, n: usize, entry: &ScriptedReply) -> Out {
        let number = (n + 1).to_string();
        let start = self.played.at(agent, "model_started", &number);
        let cut = self.played.at(agent, "model_interrupted", &number);
        let takes = match start.zip(cut) {
            Some((start, cut)) if entry.takes == NEVER => said_until(entry, cut.since(start)),
            _ => entry.takes,
        };
        self.ends(
            Keys::default().unless_default("thinking", &entry.thinking).unless_default("text", &entry.text),
            start,
            takes,
            entry.ends_after.as_ref(),
        )
        .list("tools", entry.tools.iter().map(|call| self.call(agent, call)).collect())
        .put("error", entry.error.map(|kind| kind.to_string()))
        .put("retry_after", entry.retry_after)
        .put("stop_reason", entry.stop_reason.as_ref().map(|reason| reason.as_str().to_owned()))
        .unless_default("usage", &entry.usage)
        .into()
    }

    fn call(&self, agent: &AgentName, call: &ScriptedCall) -> Out {
        let start = self.played.at(agent, "tool_started", call.id.as_str());
        let is_empty = call.input.as_object().is_some_and(serde_json::Map::is_empty);
        let output = call.output.iter().map(|(at, line)| (written(*at), self.shortened(line)));
        let keys = Keys::default()
            .put("id", Some(&call.id))
            .put("name", Some(&call.name))
            .put("input", (!is_empty).then_some(&call.input));
        self.ends(keys, start, call.takes, call.ends_after.as_ref())
            .unless_default("result", &self.shortened(&call.result))
            .put("error", call.error.as_deref().map(|error| self.shortened(error)))
            .unless_default("output", &output.collect::<Vec<_>>())
            .put("safe", call.safe)
            .put("abortable", (!call.abortable).then_some(false))
            .put("abort_takes", (call.abort_takes != Span::ZERO).then_some(call.abort_takes))
            .put("continues", call.continues.map(|more| self.at_most(more)))
            .unless_default("provider", &call.provider)
            .into()
    }

    /// What never ends by itself is cut before the session is over.
    fn at_most(&self, takes: Span) -> Span {
        if takes == NEVER { Span(self.played.over.0.saturating_add(BEYOND.0)) } else { takes }
    }

    /// The end of what began there.
    fn ends(&self, keys: Keys, start: Option<Micros>, takes: Span, end: Option<&EndsAfter>) -> Keys {
        match (end, start) {
            (None, None) if takes == Span::ZERO => keys,
            (None, _) => keys.put("takes", Some(written(self.at_most(takes)))),
            (Some(end), Some(start)) if end.anchor == beginning() => {
                keys.put("takes", Some(written(Micros(end.plus.0).since(start))))
            }
            (Some(end), _) => keys.map("ends_after", Some(after(&end.anchor, end.plus))),
        }
    }

    fn shortened(&self, text: &str) -> String {
        if text.len() <= self.longest {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(self.longest);
        format!("{}\n[{} more bytes are not in this export]", &text[..end], text.len() - end)
    }

    /// An item, after the last step of its agent that was before it.
    fn item(&self, done: &Done) -> Out {
        let keys = Keys::default().put("id", done.item.id.as_ref());
        let before = |at| done.agent.as_ref().and_then(|agent| self.played.before(agent, at));
        let keys = match &done.item.when {
            When::After(anchor, at) if *anchor == beginning() => match before(Micros(at.0)) {
                Some((step, anchor)) => keys.map("after", Some(after(anchor, Micros(at.0).since(*step)))),
                None => keys.put("at", Some(written(*at))),
            },
            When::After(anchor, plus) => keys.map("after", Some(after(anchor, *plus))),
            When::Upon(anchor) => keys.map("upon", Some(after(anchor, Span::ZERO))),
        };
        act(keys, &done.item.act).into()
    }
}

/// A duration to the microsecond; none at all needs no quotes.
fn written(span: Span) -> Value {
    if span == Span::ZERO { 0.into() } else { span.to_string().into() }
}

/// As much longer than a reply ran as makes the same words come.
fn said_until(entry: &ScriptedReply, ran: Span) -> Span {
    let words = entry.text.split_whitespace().chain(entry.thinking.split_whitespace());
    match words.filter(|word| *word != UNSAID).count() as u64 {
        0 => Span(ran.0.saturating_add(BEYOND.0)),
        words => Span(ran.0.saturating_add(ran.0 / words).max(ran.0 + 1)),
    }
}

fn settings(patch: &SettingsPatch) -> Option<&SettingsPatch> {
    (*patch != SettingsPatch::default()).then_some(patch)
}

fn approvals(approvals: &Approvals) -> Option<Keys> {
    let policy = &approvals.policy;
    let texts = |rules: &[midturn_core::rules::approval::Rule]| -> Vec<String> {
        rules.iter().map(|rule| rule.text().to_owned()).collect()
    };
    (policy.mode != Mode::Auto || !policy.deny.is_empty()).then(|| {
        Keys::default()
            .put("mode", Some(policy.mode))
            .unless_default("allow", &texts(&policy.allow))
            .unless_default("deny", &texts(&policy.deny))
            .put("patience", Some(policy.patience))
            .put("attached", Some(approvals.attached))
    })
}

/// `{agent, EVENT: ID, plus}`.
fn after(anchor: &Anchor, plus: Span) -> Keys {
    Keys::default()
        .put("agent", anchor.agent.as_ref())
        .put(anchor.event, Some(anchor.id.as_deref().unwrap_or("any")))
        .put("plus", (plus != Span::ZERO).then_some(plus))
}

fn act(keys: Keys, act: &Act) -> Keys {
    let by = |by: &Sender| (*by != Sender::User).then(|| by.to_string());
    match act {
        Act::Send(send) => keys
            .put("from", Some(send.from.to_string()))
            .put("to", Some(&send.to))
            .put("text", Some(&send.text))
            .put("urgency", send.urgency)
            .put("expires_after", send.expires_after)
            .put("supersedes", send.supersedes.as_ref())
            .put("if_queued", (send.if_queued && send.supersedes.is_some()).then_some(true))
            .put("only_run", send.only_run),
        Act::Stop { agent, by: who, .. } => keys.put("by", by(who)).put("stop", Some(agent)),
        Act::Supersede { agent, by: who, text } => {
            keys.put("by", by(who)).put("supersede", Some(agent)).put("text", Some(text))
        }
        Act::Resume { agent, by: who } => keys.put("by", by(who)).put("resume", agent.as_ref()),
        Act::Close { agent, by: who } => keys.put("by", by(who)).put("close", Some(agent)),
        Act::Withdraw { message, by: who } => keys.put("by", by(who)).put("withdraw", Some(message)),
        Act::Answer { agent, tool, says } => {
            let keys = keys.put("answer", Some(agent)).put("tool", Some(tool));
            match says {
                Says::Once => keys.put("decision", Some("once")),
                Says::Session(rule) => {
                    keys.put("decision", Some("session")).put("rule", rule.as_ref().map(|rule| rule.text()))
                }
                Says::Denied(why) => keys.put("decision", Some("denied")).put("text", why.as_ref()),
            }
        }
        Act::Raise { whose, limits } => keys
            .put("raise", Some(whose.as_ref().map_or("session", |whose| whose.as_str())))
            .put("limits", Some(limits)),
        Act::Crash { back_after } => keys.put("crash", Some(written(*back_after))),
        Act::ShutDown { back_after } => keys.put("shutdown", Some(written(*back_after))),
    }
}
