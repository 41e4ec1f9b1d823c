//! Looks at a history as a whole, once it is over. It knows the interface, the events and what
//! the model server was sent, and it believes each only as far as the others agree.

mod asked;
mod injections;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::api::Answer;
use crate::breach::Promise::{
    EndsAreTold, InOrder, NothingDoubled, NothingLost, OneHistory, ShutdownIsAFence, StaysUp, TrueReceipts,
    TrueResults,
};
use crate::breach::{Breaches, Promise};
use crate::ledger::{CallLog, Ledger};
use crate::life::Life;
use crate::mail::{Letter, Mail, Withdrawal};
use crate::model::Model;
use crate::prompts::Agents;
use crate::story::Story;
use crate::world::World;

/// A token may ask 200 times a second (docs/protocol.md); others ask with it, too.
const PACE: Duration = Duration::from_millis(7);

/// Asks for every receipt while somebody answers.
pub(crate) async fn receipts(life: &Life) {
    let letters = life.story.mail.lock().unwrap().letters.clone();
    let mut pace = tokio::time::interval(PACE);
    for letter in letters {
        pace.tick().await;
        match life.look_at(&letter.id).await {
            Answer::Said(200, _) => {}
            Answer::Said(404, _) if letter.accepted.is_none() => {}
            Answer::Said(404, _) => {
                let what = format!("message {} was accepted, and nobody knows it any more", letter.id);
                life.story.breaches.add(NothingLost, what);
            }
            answer => life.story.breaches.add(StaysUp, format!("asked for {}: {answer:?}", letter.id)),
        }
    }
}

/// Everything that can be said once nothing runs any more.
pub(crate) fn whole(story: &Story, model: &Model) -> Result<()> {
    let Some(session) = story.session.get() else { return Ok(()) };
    let (ledger, mail) = (story.ledger.lock().unwrap(), story.mail.lock().unwrap());
    let mut prompts = model.prompts.lock().unwrap();
    let prompts = prompts.of(story.cast.model);
    let look = Look { ledger: &ledger, mail: &mail, prompts, breaches: &story.breaches };
    look.log_is_what_was_told(&log(&story.world, session)?);
    for letter in &mail.letters {
        look.letter(letter);
    }
    look.all_mail_has_come_to_something();
    look.mail_is_in_order();
    look.ends_are_told();
    look.texts_are_those_told();
    look.compactions_are_those_told();
    look.answers_are_in_their_wait();
    let answers = story.answers.lock().unwrap();
    look.nothing_runs_unasked(story.ways.asks.then_some(&*answers));
    look.costs_are_named();
    // The calls of another session are its own story's.
    let is_ours = |(_, call): &(String, String)| call.starts_with(story.cast.model);
    look.results(&story.world.markers()?.into_iter().filter(is_ours).collect::<Vec<_>>());
    Ok(())
}

/// A daemon was told to end after this event, when no person's stop was on its way: nothing begins
/// behind its stops, no mail goes back because of them, and no stop is of another kind.
pub(crate) fn is_a_fence(life: &Life, after: u64) -> Result<()> {
    let story = &life.story;
    let log = log(&story.world, &life.session)?;
    let mut stopped = false;
    for event in log.iter().filter(|event| event["seq"].as_u64() > Some(after)) {
        let kind = event["type"].as_str().unwrap_or_default();
        let broken = match kind {
            "stop_requested" if event["reason"] == "shutdown" => {
                stopped = true;
                false
            }
            "stop_requested" => event["reason"] == "stop",
            "run_started" | "model_started" | "tool_started" | "agent_spawned" => stopped,
            "message_returned" => stopped && event["reason"] == "stopped",
            _ => false,
        };
        if broken {
            story.breaches.add(ShutdownIsAFence, format!("behind a shutdown: {event}"));
        }
    }
    Ok(())
}

/// What `midturn log` shows, when no daemon is there.
pub(crate) fn log(world: &World, session: &str) -> Result<Vec<Value>> {
    let mut command = world.command(midturn_tests::binary());
    let shown = command.args(["log", session, "--json"]).output()?;
    let told = String::from_utf8_lossy(&shown.stderr);
    ensure!(shown.status.success(), "midturn log: {}: {told}", shown.status);
    let lines = std::str::from_utf8(&shown.stdout)?.lines();
    lines.map(|line| serde_json::from_str(line).context("midturn log prints no JSON")).collect()
}

struct Look<'a> {
    ledger: &'a Ledger,
    mail: &'a Mail,
    prompts: &'a Agents,
    breaches: &'a Breaches,
}

impl Look<'_> {
    fn log_is_what_was_told(&self, log: &[Value]) {
        let told = &self.ledger.events;
        let differs = log.iter().zip(told).find(|(kept, told)| kept != told);
        match differs {
            Some((kept, told)) => {
                self.breaches.add(OneHistory, format!("{told} was told and {kept} is kept"))
            }
            None if log.len() < told.len() => {
                let what = format!("{} events were told and {} are kept", told.len(), log.len());
                self.breaches.add(OneHistory, what);
            }
            None => {}
        }
    }

    /// A person's message is where its receipts say, and nowhere else.
    fn letter(&self, letter: &Letter) {
        let mut receivers: BTreeSet<&str> = self.prompts.all().map(|(name, _)| name).collect();
        receivers.extend(self.mail.receivers_seen(&letter.id));
        let mut receipts = 0;
        for to in receivers {
            let receipt = self.mail.receipt(&letter.id, to);
            receipts += usize::from(receipt.is_some());
            self.letter_to(letter, to, receipt);
        }
        if letter.accepted.is_some() && receipts == 0 && letter.to != "all" {
            self.breaches.add(NothingLost, format!("message {} was accepted and has no receipt", letter.id));
        }
        if let (Some(code), 0, false) = (&letter.refused, letter.unanswered, receipts == 0) {
            let what = format!("message {} was refused ({code}) and has a receipt", letter.id);
            self.breaches.add(TrueReceipts, what);
        }
    }

    fn letter_to(&self, letter: &Letter, to: &str, receipt: Option<&Value>) {
        let id = &letter.id;
        let there = self.times_in_prompt(to, &letter.token);
        let state = receipt.and_then(|receipt| receipt["state"].as_str());
        let tell = |promise, what: &str| {
            let receipt = receipt.unwrap_or(&Value::Null);
            self.breaches.add(
                promise,
                format!("message {id} to {to}: {what}; {there} times in its prompt, receipt {receipt}"),
            );
        };
        if there > 1 {
            return tell(NothingDoubled, "more than once");
        }
        match (state, there) {
            (Some("answered"), 1) | (None, 0) => {}
            // The run that was to answer it has failed, or was the last.
            (Some("sent"), 1) if self.has_failed(to) => {}
            (Some("injected" | "sent"), _) if self.is_closed(to) => {}
            (Some("returned"), 0) => self.returned(letter, to, receipt),
            (Some("answered"), _) => tell(NothingLost, "it is said to be answered and was never sent"),
            (Some("returned"), _) => tell(TrueReceipts, "it is said to be returned and was sent"),
            (Some("queued"), _) => tell(NothingLost, "it is still queued, and nobody works any more"),
            (Some(_), _) => tell(TrueReceipts, "its agent has replied since, and it isn't answered"),
            (None, _) => tell(TrueReceipts, "it was sent and has no receipt"),
        }
        let logged = self.ledger.mail.get(&(to.to_owned(), id.clone()));
        let told = logged.map(|log| (log.injected.is_some(), log.returned.as_deref()));
        let expected = match state {
            Some("answered" | "sent" | "injected") => Some((true, None)),
            Some("returned") => Some((false, receipt.and_then(|receipt| receipt["reason"].as_str()))),
            Some(_) => Some((false, None)),
            None => None,
        };
        if told != expected {
            tell(TrueReceipts, &format!("the events say {logged:?}"));
        }
    }

    fn returned(&self, letter: &Letter, to: &str, receipt: Option<&Value>) {
        let reason = receipt.and_then(|receipt| receipt["reason"].as_str()).unwrap_or_default();
        let is_closed = self.is_closed(to);
        if !letter.may_return(reason, is_closed) {
            let what = format!("message {} to {to} was returned as {reason}, for no reason", letter.id);
            self.breaches.add(NothingLost, what);
        }
        if letter.withdrawal == Withdrawal::Returned && reason != "withdrawn" {
            let what =
                format!("message {} was given back to its sender and is returned as {reason}", letter.id);
            self.breaches.add(TrueReceipts, what);
        }
    }

    /// Whoever is closed asks no model any more.
    fn is_closed(&self, agent: &str) -> bool {
        self.ledger.agents.get(agent).is_some_and(|agent| agent.is_closed)
    }

    fn has_failed(&self, agent: &str) -> bool {
        let last = self.ledger.agents.get(agent).and_then(|agent| agent.ends.last());
        last.is_some_and(|(_, outcome)| outcome == "failed")
    }

    fn times_in_prompt(&self, agent: &str, token: &str) -> usize {
        let sent = self.prompts.of(agent);
        sent.map_or(0, |sent| sent.words().map(|words| words.matches(token).count()).sum())
    }

    /// The mail of agents and of the coordinator too.
    fn all_mail_has_come_to_something(&self) {
        for ((to, id), log) in &self.ledger.mail {
            if log.injected.is_none() && log.returned.is_none() {
                let what =
                    format!("message {id} of {} to {to} is queued, and nobody works any more", log.from);
                self.breaches.add(NothingLost, what);
            }
            let Some(token) = id.strip_prefix("l-").map(|call| format!("«{call}»")) else { continue };
            let there = self.times_in_prompt(to, &token);
            let is_unsent = there == 0 && self.is_closed(to);
            if there != usize::from(log.injected.is_some()) && !is_unsent {
                let promise = if there > 1 { NothingDoubled } else { NothingLost };
                let what = format!("message {id} of {} is {there} times in {to}'s prompt: {log:?}", log.from);
                self.breaches.add(promise, what);
            }
        }
    }

    /// Of two messages of a person's, the one that was accepted before the other was sent is
    /// read first, unless it is milder.
    fn mail_is_in_order(&self) {
        let mut read: BTreeMap<&str, Vec<Read>> = BTreeMap::new();
        for letter in &self.mail.letters {
            for to in self.mail.receivers_seen(&letter.id) {
                let Some(log) = self.ledger.mail.get(&(to.to_owned(), letter.id.clone())) else { continue };
                let (Some(at), Some(accepted)) = (log.injected, self.mail.accepted(&letter.id, to)) else {
                    continue;
                };
                let is_mild = log.urgency == "follow_up";
                read.entry(to).or_default().push(Read { letter, accepted, at, is_mild });
            }
        }
        for (to, letters) in &read {
            for first in letters {
                if let Some(other) = letters.iter().find(|other| other.overtakes(first)) {
                    let what =
                        format!("{to} read {} before {}, which came first", other.letter.id, first.letter.id);
                    self.breaches.add(InOrder, what);
                }
            }
        }
    }

    /// Every end of a subagent's run is mail for its parent, once, and nothing else is.
    fn ends_are_told(&self) {
        let (mut owed, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for (name, agent) in &self.ledger.agents {
            let Some(parent) = &agent.parent else { continue };
            owed.extend(agent.owed().map(|run| (parent.clone(), format!("{name}#{run}"))));
            ended.extend(agent.ends.iter().map(|(run, _)| (parent.clone(), format!("{name}#{run}"))));
        }
        let reports = self.ledger.mail.iter().filter(|(_, log)| log.from == "coordinator");
        let told: BTreeSet<_> = reports.map(|(key, _)| key.clone()).collect();
        for (parent, id) in owed.difference(&told) {
            self.breaches.add(EndsAreTold, format!("{parent} never learned of {id}"));
        }
        for (parent, id) in told.difference(&ended) {
            self.breaches.add(EndsAreTold, format!("{parent} was told of {id}, which never was"));
        }
    }

    /// A call that was cut or skipped for a message is named by the injection that follows, unless
    /// the run ends first: who has cost something is read, after a crash too (E3, E4).
    fn costs_are_named(&self) {
        let mut cut: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for event in &self.ledger.events {
            let (Some(agent), Some(kind)) = (event["agent"].as_str(), event["type"].as_str()) else {
                continue;
            };
            let calls = cut.entry(agent).or_default();
            match kind {
                "tool_finished" if is_for_mail(event) => calls.extend(event["tool"].as_str()),
                "message_injected" => {
                    let named = [&event["skipped"], &event["interrupted"]];
                    let named = named.into_iter().filter_map(Value::as_array).flatten();
                    named.filter_map(Value::as_str).for_each(|call| _ = calls.remove(call));
                }
                "model_started" if !calls.is_empty() => {
                    let what =
                        format!("{agent} goes on and no message is said to have cost it {calls:?}: {event}");
                    self.breaches.add(TrueReceipts, what);
                    calls.clear();
                }
                "run_finished" => calls.clear(),
                _ => {}
            }
        }
    }

    fn results(&self, markers: &[(String, String)]) {
        let mut ran: BTreeMap<&str, [u32; 2]> = BTreeMap::new();
        for (what, call) in markers {
            ran.entry(call).or_default()[usize::from(what == "end")] += 1;
        }
        for (id, times) in &ran {
            if times[0] > 1 {
                self.breaches.add(TrueResults, format!("call {id} ran {} times", times[0]));
            }
            if !self.ledger.calls.get(*id).is_some_and(|call| call.is_started) {
                self.breaches.add(TrueResults, format!("call {id} ran, and no event says that it started"));
            }
        }
        for (id, call) in &self.ledger.calls {
            self.result(id, call, ran.get(id.as_str()).copied().unwrap_or_default());
        }
    }

    /// What the events say of a call is what its agent's model is told, and what was.
    fn result(&self, id: &str, call: &CallLog, [begun, ended]: [u32; 2]) {
        let tell =
            |what: String| self.breaches.add(TrueResults, format!("call {id} of {}: {what}", call.agent));
        let Some(status) = call.status.as_deref() else { return tell("it has no result".to_owned()) };
        let results = self.prompts.of(&call.agent).map(|sent| sent.results()).unwrap_or_default();
        let Some(result) = results.get(id) else {
            if self.is_closed(&call.agent) {
                return;
            }
            return tell(format!("its result ({status}) was never sent"));
        };
        let text = result["content"].as_str().unwrap_or_default();
        let said = said(text, result["is_error"] == true);
        if said != status {
            tell(format!("the events say {status} and its model reads {result}"));
        }
        if call.name != "bash" {
            return;
        }
        let is_true = match said {
            "completed" => (begun, ended) == (1, 1),
            "failed" if !call.is_started => begun == 0,
            "failed" => (begun, ended) == (1, 1) && text.contains("[exit status 3]"),
            "skipped" => begun == 0,
            _ => true,
        };
        if !is_true {
            tell(format!("it began {begun} times and ended {ended} times, and its model reads {result}"));
        }
    }
}

/// Whether a call was cut or skipped for a message.
fn is_for_mail(event: &Value) -> bool {
    let status = event["status"].as_str();
    let output = event["output"].as_str().unwrap_or_default();
    let first = output.lines().next().unwrap_or_default();
    let for_mail = [": message received from ", "[Skipped: not answered, message received from "];
    matches!(status, Some("interrupted" | "skipped")) && for_mail.iter().any(|words| first.contains(words))
}

/// A message that an agent has read.
struct Read<'a> {
    letter: &'a Letter,
    accepted: u64,
    /// The event, and the place in it.
    at: (u64, usize),
    is_mild: bool,
}

impl Read<'_> {
    fn overtakes(&self, first: &Self) -> bool {
        first.accepted < self.letter.sent && self.at < first.at && (!first.is_mild || self.is_mild)
    }
}

/// The status that a model reads out of a result (semantics.md, section 4).
fn said(text: &str, is_error: bool) -> &'static str {
    let openings = [
        ("[Skipped: ", "skipped"),
        ("[Interrupted after ", "interrupted"),
        ("[Stopped by ", "stopped"),
        ("[Unknown: ", "unknown"),
    ];
    let opened = openings.into_iter().find(|(opening, _)| text.starts_with(opening));
    match (opened, is_error) {
        (Some((_, status)), true) => status,
        (Some(_), false) => "a cut result that passes for a whole one",
        (None, true) => "failed",
        (None, false) => "completed",
    }
}
