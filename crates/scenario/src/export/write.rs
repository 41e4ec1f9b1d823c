//! Makes a scenario of what was read, once every instant is known.

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::{Micros, Span};

use super::actor::{Actor, Opening};
use super::moments::{Moment, Times};
use super::out::{OutAfter, OutAgent, OutCall, OutEntry, OutItem, Us};
use super::plan::{CallEnd, CallKind, CallPlan, Deed, DeedAct, EntryEnd, EntryPlan, Landmark, LandmarkKind};

/// What stands for the words that never came: the replay cuts the reply before them.
const UNSAID: &str = "…";

/// How much longer a call would have run that was cut.
const BEYOND: Span = Span::secs(1);

/// Writes agents and items.
pub(super) struct Writer<'a> {
    pub(super) times: &'a Times,
    pub(super) exact: bool,
    /// Whether messages of models must name their ids: in the session the coordinator also
    /// numbered messages that the file sends.
    pub(super) names_ids: bool,
    /// Results longer than this many bytes are shortened, so that the file can be read.
    pub(super) longest: usize,
}

impl Writer<'_> {
    pub(super) fn agent(&self, actor: &Actor<'_>, settings: serde_json::Value) -> OutAgent {
        let record = &actor.journal.record;
        let (prompt, start) = match actor.opening {
            Opening::AtOnce => (record.prompt.as_deref().map(str::to_owned), None),
            Opening::Spawned => (None, Some("spawned")),
            Opening::Late => (None, None),
        };
        let said = actor.entries.iter().filter(|entry| !matches!(entry.end, EntryEnd::Exhausted));
        OutAgent {
            name: record.name.to_string(),
            role: record.role,
            parent: record.parent.as_ref().map(AgentName::to_string),
            prompt,
            start,
            settings,
            model: record.model.as_ref().map(|_| said.map(|entry| self.entry(actor, entry)).collect()),
        }
    }

    fn between(&self, from: Moment, to: Moment) -> Us {
        Us(self.times.between(from, to))
    }

    fn entry(&self, actor: &Actor<'_>, plan: &EntryPlan) -> OutEntry {
        let mut entry = OutEntry {
            text: plan.text.clone(),
            thinking: plan.thinking.clone(),
            stop_reason: plan.stop_reason.clone(),
            usage: plan.usage,
            tools: plan.calls.iter().map(|call| self.call(actor, call)).collect(),
            ..OutEntry::default()
        };
        match &plan.end {
            EntryEnd::Whole(at) => entry.takes = self.between(plan.start, *at),
            EntryEnd::Failed { at, kind, retry_after } => {
                entry.takes = self.between(plan.start, *at);
                entry.error = Some(word(*kind));
                entry.retry_after = retry_after.map(Us);
            }
            EntryEnd::Cut { at, thought } => self.cut(&mut entry, plan, *at, *thought),
            EntryEnd::Open | EntryEnd::Exhausted => entry.takes = Us(BEYOND),
        }
        entry
    }

    /// A reply that was cut: as much longer than it ran as makes the same words come.
    fn cut(&self, entry: &mut OutEntry, plan: &EntryPlan, at: Moment, thought: bool) {
        let words = plan.text.split_whitespace().count() + plan.thinking.split_whitespace().count();
        let unsaid = if thought || !plan.text.is_empty() { &mut entry.text } else { &mut entry.thinking };
        if !unsaid.is_empty() {
            unsaid.push(' ');
        }
        unsaid.push_str(UNSAID);
        let ran = self.times.between(plan.start, at).0;
        let takes = match words as u64 {
            0 => ran.saturating_add(BEYOND.0),
            words => ran.saturating_add(ran / words).max(ran + 1),
        };
        entry.takes = Us(Span(takes));
    }

    fn call(&self, actor: &Actor<'_>, plan: &CallPlan) -> OutCall {
        let mut call = OutCall {
            id: plan.id.clone(),
            name: plan.name.clone(),
            input: plan.input.clone(),
            takes: Us::default(),
            result: None,
            error: None,
            output: Vec::new(),
            safe: plan.safe,
            abortable: plan.abortable,
            abort_takes: Us::default(),
            continues: None,
            provider: plan.kind == CallKind::Provider,
        };
        if plan.kind == CallKind::Own {
            call.abortable = true;
            if let (Some(input), Some(id), true) = (call.input.as_object_mut(), &plan.sent_as, self.names_ids)
            {
                input.insert("id".to_owned(), id.as_str().into());
            }
            return call;
        }
        let Some(start) = plan.start else {
            if let CallEnd::Given(text) = &plan.end {
                call.result = Some(self.shortened(text));
            }
            return call;
        };
        let limit = actor.journal.record.settings.abort_deadline;
        match &plan.end {
            CallEnd::None | CallEnd::Given(_) => {}
            CallEnd::Natural { at, text, is_error } => {
                (call.takes, call.continues) = self.ran(plan, start, *at);
                let text = Some(self.shortened(text));
                if *is_error { call.error = text } else { call.result = text.filter(|text| !text.is_empty()) }
            }
            CallEnd::Cut { by, at, output } => {
                (call.takes, call.continues) = self.would_run(plan, start, *by);
                // What ends at the deadline itself has ended.
                call.abort_takes = Us(self.times.between(*by, *at).min(limit));
                if !output.is_empty() {
                    call.output = vec![(Us::default(), self.shortened(output))];
                }
            }
            CallEnd::Stuck { by } => {
                (call.takes, call.continues) = self.would_run(plan, start, *by);
                call.abort_takes = Us(Span(limit.0.saturating_add(BEYOND.0)));
            }
        }
        call
    }

    fn ran(&self, plan: &CallPlan, start: Moment, end: Moment) -> (Us, Option<Us>) {
        match plan.continued {
            Some(returned) => (self.between(start, returned), Some(self.between(returned, end))),
            None => (self.between(start, end), None),
        }
    }

    /// Longer than until it was cut.
    fn would_run(&self, plan: &CallPlan, start: Moment, cut: Moment) -> (Us, Option<Us>) {
        let beyond = |us: Us| Us(Span(us.0.0.saturating_add(BEYOND.0)));
        match self.ran(plan, start, cut) {
            (takes, Some(continues)) => (takes, Some(beyond(continues))),
            (takes, None) => (beyond(takes), None),
        }
    }

    fn shortened(&self, text: &str) -> String {
        if text.len() <= self.longest {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(self.longest);
        format!("{}\n[{} more bytes are not in this export]", &text[..end], text.len() - end)
    }

    /// An item, after the last event of its agent that was before it.
    pub(super) fn item(&self, deed: &Deed, actors: &[Actor<'_>]) -> OutItem {
        let name = |agent: usize| actors[agent].journal.record.name.to_string();
        let at = self.times.at(deed.at);
        let mut item = OutItem { id: deed.id.clone(), ..OutItem::default() };
        let own = self.anchor(deed.seq, at, &actors[deed.agent].landmarks);
        // Of several receivers the one that was last in that very instant says in which round.
        let others = deed.also.iter().filter_map(|(agent, seq)| {
            let (landmark, id) = self.anchor(*seq, at, &actors[*agent].landmarks)?;
            (self.times.at(landmark.at) == at).then_some((*agent, landmark, id))
        });
        let own = own.map(|(landmark, id)| (deed.agent, landmark, id));
        let latest = others.max_by_key(|(_, landmark, _)| landmark.seq);
        let together = own.as_ref().is_some_and(|(_, landmark, _)| self.times.at(landmark.at) == at);
        let anchor = match latest {
            Some(other) if !together || own.as_ref().is_some_and(|own| own.1.seq < other.1.seq) => {
                Some(other)
            }
            _ => own,
        };
        match anchor {
            Some((agent, landmark, id)) => {
                let plus = Us(at.since(self.times.at(landmark.at)));
                item.after = Some(OutAfter { agent: name(agent), event: landmark.event, id, plus });
            }
            None => item.at = Some(Us(Span(at.0))),
        }
        self.act(&mut item, deed, name(deed.agent), at);
        item
    }

    fn act(&self, item: &mut OutItem, deed: &Deed, name: String, at: Micros) {
        let by = |by: &String| (by != "user").then(|| by.clone());
        match &deed.act {
            DeedAct::Send(send) => {
                item.from = Some(send.from.clone());
                item.to = Some(send.to.clone());
                item.text = Some(send.text.clone());
                item.urgency = send.urgency;
                item.expires_after = send.expires.map(|end| Us(self.times.at(end).since(at)));
                item.supersedes = send.supersedes.clone();
                item.only_run = send.only_run;
            }
            DeedAct::Stop { by: who } => (item.by, item.stop) = (by(who), Some(name)),
            DeedAct::Supersede { by: who, text } => {
                (item.by, item.supersede, item.text) = (by(who), Some(name), Some(text.clone()));
            }
            DeedAct::Resume => item.resume = Some(name),
            DeedAct::Close { by: who } => (item.by, item.close) = (by(who), Some(name)),
            DeedAct::Withdraw { by: who, message } => {
                (item.by, item.withdraw) = (by(who), Some(message.clone()));
            }
        }
    }

    /// The event that an item follows: the last one before it. In the very instant of an
    /// event of the agent's own it comes a round later; items that arrive together arrive in
    /// the file's order.
    fn anchor<'l>(&self, seq: u64, at: Micros, landmarks: &'l [Landmark]) -> Option<(&'l Landmark, String)> {
        let before = landmarks.iter().filter(|landmark| landmark.seq < seq).rev();
        let fits = |landmark: &&Landmark| {
            let when = self.times.at(landmark.at);
            let together = self.exact && when == at && landmark.kind != LandmarkKind::Item;
            when < at || together
        };
        before.filter(fits).find_map(|landmark| Some((landmark, landmark.id.clone()?)))
    }
}

/// The scenario's word for a failure.
fn word(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Overloaded
        | ErrorKind::RateLimited
        | ErrorKind::Server
        | ErrorKind::Connection
        | ErrorKind::InvalidRequest => kind.to_string(),
        ErrorKind::Cancelled | ErrorKind::ScriptExhausted => ErrorKind::InvalidRequest.to_string(),
    }
}
