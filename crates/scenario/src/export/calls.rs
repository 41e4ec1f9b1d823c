//! What replies say and ask for, and tool calls: when each started and ended, which were cut, which tools must have been safe or
//! have returned a continuation.

use std::sync::Arc;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::engine::scripted::ScriptedCall;
use midturn_core::engine::tools::{is_own, is_safe};
use midturn_core::rules::conversation::{Block, Reply, StopReason, ToolStatus};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::CallId;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::settings::{Concurrency, Settings};
use midturn_core::rules::time::{Micros, Span};
use serde_json::Value;

use super::ExportError;
use super::plan::{NEVER, ends_at};
use super::read::{Hand, Reader, free};

/// What stands before the output of a call that was cut.
const SO_FAR: &str = "\nOutput so far:\n";

/// What a call says that mail skipped.
const BY_MAIL: &str = "[Skipped: message received from ";

/// A call of the turn that is read.
#[derive(Clone, Debug)]
pub(super) struct Live {
    /// The id that the model gave it.
    by_model: CallId,
    /// Its place among the entry's calls.
    place: usize,
    /// The event of its start, and the number of its batch.
    started: Option<(u64, u32)>,
    /// The event of its end.
    ended: Option<u64>,
    /// When it returned a continuation.
    continued: Option<Micros>,
}

impl Live {
    /// The calls that a reply asks for.
    pub(super) fn of(reply: &Reply, written: &[ScriptedCall]) -> Vec<Self> {
        let places = (0..written.len()).filter(|place| !written[*place].provider);
        let live = |(call, place): (&midturn_core::rules::conversation::ToolUse, usize)| Self {
            by_model: call.id.clone(),
            place,
            started: None,
            ended: None,
            continued: None,
        };
        reply.calls().zip(places).map(live).collect()
    }

    fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }
}

/// The kind that an error's text begins with, if a scenario can say it.
pub(super) fn kind_of(error: &str) -> Option<ErrorKind> {
    let word = error.split(':').next().unwrap_or_default();
    serde_json::from_value(word.into()).ok()
}

/// What a reply has of thinking.
pub(super) fn thinking(reply: &Reply) -> String {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.text.as_str()),
        Block::Text(_) | Block::ToolUse(_) | Block::Provider(_) => None,
    });
    blocks.collect()
}

/// The stop reason, if it is not the one that a scripted reply has by itself.
pub(super) fn unnatural(reply: &Reply) -> Option<StopReason> {
    let natural = if reply.calls().next().is_some() { StopReason::ToolUse } else { StopReason::EndTurn };
    (reply.stop_reason != natural).then(|| reply.stop_reason.clone())
}

/// The reply's calls, the provider's own among them.
pub(super) fn calls(hand: &mut Hand<'_>, reply: &Reply) -> Vec<ScriptedCall> {
    let mut id = |id: &str| free(id, "call", &mut hand.ids);
    let calls = reply.blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => {
            Some(ScriptedCall::new(&id(call.id.as_str()), &call.name, call.input.clone()))
        }
        Block::Provider(raw) => {
            let raw: Value = serde_json::from_str(&raw.0).unwrap_or_default();
            let text = |key: &str| raw.get(key).and_then(Value::as_str);
            let name = text("name").or(text("type")).unwrap_or("provider");
            let input = raw.get("input").cloned().unwrap_or_default();
            let call = ScriptedCall::new(&id(text("id").unwrap_or("provider")), name, input);
            let result = text("result").unwrap_or_default().to_owned();
            Some(ScriptedCall { provider: true, result, ..call })
        }
        Block::Text(_) | Block::Thinking(_) => None,
    });
    calls.collect()
}

impl Hand<'_> {
    /// The entry of the turn.
    fn entry(&self) -> usize {
        self.script.iter().rposition(|entry| !entry.tools.is_empty()).unwrap_or_default()
    }

    /// A call of the turn, as the model asked for it.
    fn called(&self, index: usize) -> Option<&ScriptedCall> {
        let place = self.turn.get(index)?.place;
        self.script.get(self.entry())?.tools.get(place).map(|call| &**call)
    }

    /// Whether calls of odd batches are safe, if one of the coordinator's calls says it: those are what they are.
    fn own_says_odd_are_safe(&self) -> Option<bool> {
        let says = |(index, live): (usize, &Live)| {
            let call = self.called(index).filter(|call| is_own(&call.name))?;
            Some(is_safe(&call.name) == (live.started?.1 % 2 == 1))
        };
        self.turn.iter().enumerate().find_map(says)
    }

    /// The file that a call of the turn edits.
    fn edits(&self, index: usize) -> Option<&str> {
        let call = self.called(index).filter(|call| matches!(&*call.name, "edit" | "write"))?;
        call.input.get("path")?.as_str()
    }

    /// A call of the turn, as it is written.
    fn written(&mut self, index: usize) -> Option<&mut ScriptedCall> {
        let (entry, place) = (self.entry(), self.turn.get(index)?.place);
        self.script.get_mut(entry)?.tools.get_mut(place).map(Arc::make_mut)
    }
}

impl Reader<'_> {
    /// The place of a call in the turn.
    fn call(&self, event: &Event, agent: usize, id: &CallId) -> Result<usize, ExportError> {
        let is_it = |live: &Live| live.by_model == *id && live.ended.is_none();
        self.hands[agent].turn.iter().position(is_it).ok_or_else(|| {
            ExportError::damaged(format!("event {} is about a call that no reply asked for", event.seq))
        })
    }

    /// The file's id of a call of the turn.
    pub(super) fn named(&mut self, agent: usize, id: &CallId) -> CallId {
        let hand = &mut self.hands[agent];
        let index = hand.turn.iter().position(|live| live.by_model == *id);
        index.and_then(|index| hand.written(index)).map_or_else(|| id.clone(), |call| call.id.clone())
    }

    /// The call of the coordinator's tools that runs and did something: its entry and its place there.
    pub(super) fn acts(
        &self,
        agent: usize,
        names: &[&str],
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<(usize, usize)> {
        let hand = &self.hands[agent];
        let entry = hand.entry();
        let mut running = hand.turn.iter().filter(|live| live.is_running()).map(|live| live.place);
        let place = running.find(|place| {
            let call = hand.script.get(entry).and_then(|entry| entry.tools.get(*place));
            call.is_some_and(|call| names.contains(&&*call.name) && wanted(&call.input))
        })?;
        Some((entry, place))
    }

    pub(super) fn tool_started(
        &mut self,
        event: &Event,
        agent: usize,
        tool: &mut CallId,
        batch: u32,
    ) -> Result<(), ExportError> {
        let index = self.call(event, agent, tool)?;
        self.hands[agent].turn[index].started = Some((event.seq, batch));
        let returned = self.returned_before(event, agent, index, batch);
        for running in returned {
            let turn = &self.hands[agent].turn;
            // One after the other: the next one started there.
            let serial = turn[running].started.is_some_and(|(_, of)| of == batch);
            let next = self.start_of(&turn[running + 1]).filter(|_| serial);
            self.hands[agent].turn[running].continued = next.or(Some(event.t));
        }
        let hand = &mut self.hands[agent];
        if let Some(call) = hand.written(index) {
            call.takes = if is_own(&call.name) { Span::ZERO } else { NEVER };
            *tool = call.id.clone();
        }
        Ok(())
    }

    /// The calls beside which another starts that does not run beside them: they must have returned a
    /// continuation.
    fn returned_before(&self, event: &Event, agent: usize, index: usize, batch: u32) -> Vec<usize> {
        let hand = &self.hands[agent];
        let runs = |place: &usize| hand.turn[*place].is_running() && hand.turn[*place].continued.is_none();
        let running = (0..index).filter(runs);
        if hand.record.settings.concurrency == Concurrency::All {
            let file = hand.edits(index);
            return running.filter(|place| file.is_some() && hand.edits(*place) == file).collect();
        }
        let running: Vec<usize> = running.collect();
        let same = |place: &usize| hand.turn[*place].started.is_some_and(|(_, of)| of == batch);
        let safe = hand.own_says_odd_are_safe().is_none_or(|odd| odd == (batch % 2 == 1));
        match self.starts_beside(event, &hand.record.settings, running.len()) {
            Some(beside) if !(beside && safe && running.iter().all(same)) => running,
            _ => Vec::new(),
        }
    }

    /// Whether a call starts at once with another, or in the place of one that ended when all were taken. `None`: it
    /// was asked about.
    fn starts_beside(&self, event: &Event, settings: &Settings, running: usize) -> Option<bool> {
        let mut ended = 0;
        let slots = usize::try_from(settings.max_parallel_tools).unwrap_or(usize::MAX);
        for (before, told) in self.told.iter().rev().enumerate() {
            if told.at.agent != event.at.agent {
                continue;
            }
            match &told.kind {
                EventKind::ToolStarted { .. } if ended == 0 => return Some(before == 0 && told.t == event.t),
                EventKind::ToolFinished { .. } => ended += 1,
                EventKind::ApprovalResolved { .. } => return None,
                EventKind::ToolStarted { .. } | EventKind::ModelFinished { .. } => break,
                _ => {}
            }
        }
        Some(ended > 0 && running + ended >= slots)
    }

    /// When a call started. `None`: it has not.
    fn start_of(&self, live: &Live) -> Option<Micros> {
        let (seq, _) = live.started?;
        self.events.iter().find(|event| event.seq == seq).map(|event| event.t)
    }

    pub(super) fn tool_finished(
        &mut self,
        event: &Event,
        agent: usize,
        tool: &mut CallId,
        status: ToolStatus,
    ) -> Result<(), ExportError> {
        let index = self.call(event, agent, tool)?;
        let text = self.text_of(event, agent, tool)?;
        let abort_takes = self.since_the_cut(event, agent, index, status);
        if status == ToolStatus::Skipped && text.starts_with(BY_MAIL) {
            self.goes_on_beside(event, agent);
        }
        let hand = &mut self.hands[agent];
        hand.turn[index].ended = Some(event.seq);
        let (started, continued) = (hand.turn[index].started, hand.turn[index].continued);
        let Some(call) = hand.written(index) else { return Ok(()) };
        *tool = call.id.clone();
        if started.is_some() && !is_own(&call.name) {
            ended(call, event.t, continued, status, text);
            call.abort_takes = abort_takes;
        }
        infer_safe(hand);
        Ok(())
    }

    /// How long the abort of a call took: since the first that cuts it after its start.
    fn since_the_cut(&self, event: &Event, agent: usize, index: usize, status: ToolStatus) -> Span {
        let hand = &self.hands[agent];
        let started = hand.turn[index].started.map_or(0, |(seq, _)| seq);
        let cuts = |kind: &EventKind| match kind {
            EventKind::MessageQueued { urgency, .. } => {
                status == ToolStatus::Interrupted && *urgency == Urgency::Urgent
            }
            EventKind::StopRequested { .. } => status == ToolStatus::Stopped,
            _ => false,
        };
        if status == ToolStatus::Unknown {
            return Span(hand.record.settings.abort_deadline.0.saturating_add(Span::secs(1).0));
        }
        let own = self.told.iter().filter(|told| told.at.agent == event.at.agent && told.seq > started);
        own.clone().find(|told| cuts(&told.kind)).map_or(Span::ZERO, |cut| event.t.since(cut.t))
    }

    /// The result in full: an event has only so much of it.
    fn text_of(&mut self, event: &Event, agent: usize, tool: &CallId) -> Result<String, ExportError> {
        let EventKind::ToolFinished { output, bytes, .. } = &event.kind else { return Ok(String::new()) };
        let kept = self.hands[agent].results.get_mut(tool).and_then(|results| results.pop_front());
        match kept {
            Some(result) => Ok(result.text.to_string()),
            None if output.len() as u64 == *bytes => Ok(output.clone()),
            None => Err(ExportError::damaged(format!("no record of the result of event {}", event.seq))),
        }
    }

    /// Mail that aborts nothing skips calls at a boundary only, so what still runs then must
    /// have returned a continuation.
    fn goes_on_beside(&mut self, event: &Event, agent: usize) {
        let own = self.told.iter().rev().filter(|told| told.at.agent == event.at.agent);
        let mut turn = own.take_while(|told| !matches!(told.kind, EventKind::ModelFinished { .. }));
        let urgent =
            turn.any(|told| matches!(told.kind, EventKind::MessageQueued { urgency: Urgency::Urgent, .. }));
        let mut running = self.hands[agent].turn.iter_mut();
        let running = running.find(|live| live.is_running() && live.continued.is_none());
        if let (Some(running), false) = (running, urgent) {
            running.continued = Some(event.t);
        }
    }
}

/// The end of a call that had started.
fn ended(call: &mut ScriptedCall, at: Micros, continued: Option<Micros>, status: ToolStatus, text: String) {
    let natural = matches!(status, ToolStatus::Completed | ToolStatus::Failed);
    call.ends_after = continued.or(natural.then_some(at)).and_then(ends_at);
    if call.ends_after.is_some() {
        call.takes = Span::ZERO;
    }
    call.continues = continued.map(|returned| if natural { at.since(returned) } else { NEVER });
    match status {
        ToolStatus::Completed => call.result = text,
        ToolStatus::Failed => call.error = Some(text),
        _ => {
            let output = text.split_once(SO_FAR).map(|(_, output)| (Span::ZERO, output.to_owned()));
            call.output = output.into_iter().collect();
        }
    }
}

/// What may run beside others, from how the calls of a turn ran.
fn infer_safe(hand: &mut Hand<'_>) {
    if hand.record.settings.concurrency == Concurrency::All {
        return;
    }
    let odd_are_safe = odd_batches_are_safe(hand);
    for index in 0..hand.turn.len() {
        let live = &hand.turn[index];
        let skipped = live.started.is_none() && live.ended.is_some();
        // A safe call beside one that ran would have started with it.
        let waited = index > 0 && skipped && hand.turn[index - 1].started.is_some();
        let ran = live.started.map(|(_, batch)| (batch % 2 == 1) == odd_are_safe);
        if let Some(call) = hand.written(index).filter(|call| !is_own(&call.name)) {
            let by_name = is_safe(&call.name);
            let safe = ran.or((by_name && waited).then_some(false));
            call.safe = safe.filter(|safe| *safe != by_name);
        }
    }
}

/// Batches of safe calls and of others take turns, so what one of the calls was says it of all: a call of the
/// coordinator's, or else one that ran beside another. Where there is none, most are what they are called.
fn odd_batches_are_safe(hand: &Hand<'_>) -> bool {
    let slots = hand.record.settings.max_parallel_tools > 1;
    let odd = |live: &Live, safe: bool| Some(safe == (live.started?.1 % 2 == 1));
    let beside = || {
        let mut beside = hand.turn.iter().filter_map(|live| odd(live, ran_beside(live, &hand.turn)?));
        beside.next().filter(|_| slots)
    };
    let by_name = || {
        let calls = hand.turn.iter().enumerate();
        let named = calls.filter_map(|(index, live)| odd(live, is_safe(&hand.called(index)?.name)));
        let (yes, no): (Vec<bool>, Vec<bool>) = named.partition(|odd| *odd);
        yes.len() >= no.len()
    };
    hand.own_says_odd_are_safe().or_else(beside).unwrap_or_else(by_name)
}

/// Whether calls of the same batch ran at once. `None`: nothing says so.
fn ran_beside(live: &Live, turn: &[Live]) -> Option<bool> {
    let (_, batch) = live.started?;
    let own = turn.iter().filter(|live| live.started.is_some_and(|(_, of)| of == batch));
    let own: Vec<&Live> = own.collect();
    let beside = |pair: &[&Live]| {
        let start = pair[1].started.map_or(0, |(seq, _)| seq);
        pair[0].continued.is_none() && pair[0].ended.is_none_or(|end| start < end)
    };
    (own.len() > 1).then(|| own.windows(2).any(beside))
}
