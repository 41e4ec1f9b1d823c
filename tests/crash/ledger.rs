//! The events of one session as they were told, life after life: are they one history without
//! gaps, and does it tell of whole runs, calls and messages?

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::breach::Promise::{NothingDoubled, OneHistory, OrdersStand, TrueResults};
use crate::breach::{Breaches, Promise};

/// What the events say of one agent.
#[derive(Debug, Default)]
pub(crate) struct AgentLog {
    pub(crate) parent: Option<String>,
    /// Its last run, and whether that is open.
    pub(crate) run: u64,
    is_open: bool,
    /// Its model calls, and whether the last one is open.
    calls: u64,
    is_calling: bool,
    /// Its runs that have ended, with their outcomes.
    pub(crate) ends: Vec<(u64, String)>,
    /// Its turns, by run, and how many it may have (0: any number), once somebody has said so.
    pub(crate) turns: BTreeSet<(u64, u64)>,
    pub(crate) max_turns: Option<u64>,
    /// Those of them that a shutdown has stopped: they go on, and nobody has to be told of them.
    pub(crate) shut: BTreeSet<u64>,
    pub(crate) is_closed: bool,
}

/// What the events say of one tool call.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    pub(crate) agent: String,
    pub(crate) name: String,
    pub(crate) is_started: bool,
    /// Its status, once it has a result.
    pub(crate) status: Option<String>,
}

/// What the events say of a message and one receiver.
#[derive(Debug, Default)]
pub(crate) struct MailLog {
    pub(crate) from: String,
    pub(crate) urgency: String,
    /// Its injection: the number of the event, and its place in it.
    pub(crate) injected: Option<(u64, usize)>,
    pub(crate) returned: Option<String>,
}

/// All events so far.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) events: Vec<Value>,
    pub(crate) agents: BTreeMap<String, AgentLog>,
    pub(crate) calls: BTreeMap<String, CallLog>,
    /// By receiver and id.
    pub(crate) mail: BTreeMap<(String, String), MailLog>,
    time: f64,
}

impl Ledger {
    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.events.len() as u64
    }

    /// Whether, as far as the events tell, nothing is left to come: every run has ended, every
    /// end was told, every message has come to something.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_told = |name: &str, parent: &str, run: u64| {
            self.mail.contains_key(&(parent.to_owned(), format!("{name}#{run}")))
        };
        let rests = |(name, agent): (&String, &AgentLog)| {
            let parent = agent.parent.as_deref();
            !agent.is_open && agent.owed().all(|run| parent.is_none_or(|parent| is_told(name, parent, run)))
        };
        self.agents.iter().all(rests)
            && self.mail.values().all(|log| log.injected.is_some() || log.returned.is_some())
    }

    /// Whether its last run has failed, or a person stopped it: then nobody goes on with it unasked.
    pub(crate) fn may_rest(&self, name: &str) -> bool {
        let Some(agent) = self.agents.get(name) else { return false };
        let last = agent.ends.last().filter(|(run, _)| *run == agent.run && !agent.shut.contains(run));
        !agent.is_open && last.is_some_and(|(_, outcome)| outcome == "failed" || outcome == "stopped")
    }

    /// An event has come under this number.
    pub(crate) fn told(&mut self, number: u64, event: Value, breaches: &Breaches) {
        let tell = |promise: Promise, what: String| {
            breaches.add(promise, format!("event {number}: {what}: {event}"))
        };
        if event["seq"] != number {
            tell(OneHistory, "its number is not the stream's".to_owned());
        }
        if let Some(known) = number.checked_sub(1).and_then(|i| self.events.get(i as usize)) {
            if *known != event {
                tell(OneHistory, format!("it was told before as {known}"));
            }
            return;
        }
        if number != self.last() + 1 {
            tell(OneHistory, format!("it comes after event {}", self.last()));
            return;
        }
        if let Err((promise, what)) = self.follows(number, &event) {
            tell(promise, what);
        }
        self.events.push(event);
    }

    fn follows(&mut self, number: u64, event: &Value) -> Result<(), (Promise, String)> {
        let time = event["t"].as_f64().unwrap_or_default();
        if time < self.time {
            return Err((OneHistory, format!("time went back from {}", self.time)));
        }
        self.time = time;
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        match kind.as_str() {
            "message_queued" | "message_injected" | "message_returned" => self.mail(number, event),
            "tool_started" | "tool_finished" => self.tool(event),
            "model_finished" => {
                self.named(event);
                self.agent(&kind, event)
            }
            _ => self.agent(&kind, event),
        }
    }

    fn agent(&mut self, kind: &str, event: &Value) -> Result<(), (Promise, String)> {
        let Some(name) = event["agent"].as_str() else { return Ok(()) };
        let agent = self.agents.entry(name.to_owned()).or_default();
        agent.follows(kind, event).map_err(|what| (OneHistory, what))?;
        agent.within_limits(kind, event).map_err(|what| (OrdersStand, what))
    }

    fn named(&mut self, event: &Value) {
        let agent = event["agent"].as_str().unwrap_or_default().to_owned();
        for call in event["tools"].as_array().into_iter().flatten() {
            let (id, name) =
                (call["id"].as_str().unwrap_or_default(), call["name"].as_str().unwrap_or_default());
            let log = CallLog { agent: agent.clone(), name: name.to_owned(), ..CallLog::default() };
            self.calls.entry(id.to_owned()).or_insert(log);
        }
    }

    fn tool(&mut self, event: &Value) -> Result<(), (Promise, String)> {
        let unnamed = || (TrueResults, "no reply that was recorded names this call".to_owned());
        let call = self.calls.get_mut(event["tool"].as_str().unwrap_or_default()).ok_or_else(unnamed)?;
        if call.status.is_some() {
            return Err((TrueResults, "the call had its result".to_owned()));
        }
        if event["type"] == "tool_started" {
            let twice = std::mem::replace(&mut call.is_started, true);
            return if twice { Err((TrueResults, "the call was started before".to_owned())) } else { Ok(()) };
        }
        let status = event["status"].as_str().unwrap_or_default();
        call.status = Some(status.to_owned());
        match (status, call.is_started) {
            ("skipped", true) => Err((TrueResults, "a started call is said to be skipped".to_owned())),
            ("skipped", false) | (_, true) => Ok(()),
            ("failed", false) if is_denied(event) => Ok(()),
            (_, false) => Err((TrueResults, "a call that never started has a result".to_owned())),
        }
    }

    fn mail(&mut self, number: u64, event: &Value) -> Result<(), (Promise, String)> {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let to = text("agent");
        match event["type"].as_str() {
            Some("message_queued") => {
                let log = MailLog { from: text("from"), urgency: text("urgency"), ..MailLog::default() };
                match self.mail.insert((to, text("message")), log) {
                    Some(_) => Err((NothingDoubled, "the message was accepted before".to_owned())),
                    None => Ok(()),
                }
            }
            Some("message_returned") => {
                let log = self.pending(&to, &text("message"))?;
                log.returned = Some(text("reason"));
                Ok(())
            }
            _ => {
                let ids = event["messages"].as_array().into_iter().flatten();
                for (place, id) in ids.enumerate() {
                    let log = self.pending(&to, id.as_str().unwrap_or_default())?;
                    log.injected = Some((number, place));
                }
                Ok(())
            }
        }
    }

    /// A message that was accepted and has come to nothing yet.
    fn pending(&mut self, to: &str, id: &str) -> Result<&mut MailLog, (Promise, String)> {
        let key = (to.to_owned(), id.to_owned());
        let unknown = || (OneHistory, format!("no message {id} was accepted"));
        let log = self.mail.get_mut(&key).ok_or_else(unknown)?;
        match (&log.injected, &log.returned) {
            (None, None) => Ok(log),
            (Some(_), _) => Err((NothingDoubled, format!("message {id} was injected before"))),
            (_, Some(_)) => Err((NothingDoubled, format!("message {id} was returned before"))),
        }
    }
}

/// Whether a call was asked about and not allowed: it has ended and never started.
fn is_denied(event: &Value) -> bool {
    let output = event["output"].as_str().unwrap_or_default();
    ["[Denied", "[Not answered: "].iter().any(|words| output.starts_with(words))
}

impl AgentLog {
    /// The runs of whose end the parent has to be told.
    pub(crate) fn owed(&self) -> impl Iterator<Item = u64> {
        self.ends.iter().map(|(run, _)| *run).filter(|run| !self.shut.contains(run))
    }

    fn follows(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let run = event["run"].as_u64().unwrap_or_default();
        match kind {
            "agent_spawned" => {
                self.parent = event["parent"].as_str().map(str::to_owned);
                return Ok(());
            }
            "run_started" => {
                let before = (self.run, std::mem::replace(&mut self.is_open, true));
                self.run = run;
                return match before {
                    (last, false) if run == last + 1 => Ok(()),
                    (last, is_open) => Err(format!("run {last} (open: {is_open}) is followed by this one")),
                };
            }
            "limit_raised" => self.max_turns = event["limits"]["max_turns"].as_u64().or(self.max_turns),
            "agent_closed" => self.is_closed = true,
            "stop_requested" if event["reason"] == "shutdown" => _ = self.shut.insert(run),
            _ => {}
        }
        // Mail, a stop and a limit may find an agent that was woken and has not begun (docs/decisions/0012).
        let from_outside = matches!(kind, "stop_requested" | "limit_raised")
            || kind.starts_with("message_") && kind != "message_injected";
        let is_the_next = from_outside && !self.is_open && run == self.run + 1;
        if run != self.run && !is_the_next {
            return Err(format!("the agent is at run {}", self.run));
        }
        self.in_a_run(kind, event)
    }

    /// A limit that a person has set holds, after a crash too.
    fn within_limits(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        if kind != "model_started" {
            return Ok(());
        }
        self.turns.insert((self.run, event["turn"].as_u64().unwrap_or_default()));
        match self.max_turns {
            Some(most @ 1..) if self.turns.len() as u64 > most => Err(format!("it may take {most} turns")),
            _ => Ok(()),
        }
    }

    fn in_a_run(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "model_started" => {
                let expected = self.calls + 1;
                self.calls = event["call"].as_u64().unwrap_or_default();
                if std::mem::replace(&mut self.is_calling, true) {
                    return Err("the call before has no end".to_owned());
                }
                if self.calls != expected {
                    return Err(format!("call {expected} was the next"));
                }
            }
            "model_finished" | "model_interrupted" | "model_retry" => self.is_calling = false,
            "run_finished" => {
                self.is_calling = false;
                self.ends.push((self.run, event["outcome"].as_str().unwrap_or_default().to_owned()));
                if !std::mem::replace(&mut self.is_open, false) {
                    return Err("the run had ended".to_owned());
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        if self.is_open { Ok(()) } else { Err("no run is open".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(events: &[Value]) -> Vec<Promise> {
        let (mut ledger, breaches) = (Ledger::default(), Breaches::default());
        for (number, event) in (1..).zip(events) {
            let mut event = event.clone();
            event["seq"] = number.into();
            event["agent"] = "a1".into();
            ledger.told(number, event, &breaches);
        }
        breaches.all().into_iter().map(|breach| breach.promise).collect()
    }

    fn of_run(kind: &str, run: u64) -> Value {
        json!({"type": kind, "run": run})
    }

    #[test]
    fn runs_follow_each_other_and_hold_what_belongs_to_them() {
        let whole = |run| [of_run("run_started", run), of_run("run_finished", run)];
        assert_eq!(found(&[whole(1), whole(2)].concat()), []);
        assert_eq!(found(&[whole(1), whole(1)].concat()), [OneHistory]);
        assert_eq!(found(&[of_run("run_started", 1), of_run("run_started", 2)]), [OneHistory]);
        assert_eq!(found(&[of_run("run_started", 1), of_run("model_finished", 2)]), [OneHistory]);
    }

    #[test]
    fn a_message_comes_to_one_end() {
        let queued = json!({"type": "message_queued", "message": "m"});
        let injected = json!({"type": "message_injected", "messages": ["m"]});
        let returned = json!({"type": "message_returned", "message": "m", "reason": "withdrawn"});
        assert_eq!(found(&[queued.clone(), injected.clone()]), []);
        assert_eq!(found(&[queued.clone(), injected.clone(), injected.clone()]), [NothingDoubled]);
        assert_eq!(found(&[queued.clone(), returned, injected.clone()]), [NothingDoubled]);
        assert_eq!(found(&[queued.clone(), queued]), [NothingDoubled]);
        assert_eq!(found(&[injected]), [OneHistory]);
    }

    #[test]
    fn invariant_4_a_calls_result_agrees_with_its_start() {
        let named = json!({"type": "model_finished", "tools": [{"id": "t", "name": "bash"}]});
        let begun = [of_run("run_started", 0), named];
        let started = json!({"type": "tool_started", "tool": "t"});
        let ended = |status: &str| json!({"type": "tool_finished", "tool": "t", "status": status});
        let of = |rest: &[Value]| {
            found(&[&begun, rest].concat()).into_iter().filter(|p| *p == TrueResults).count()
        };
        assert_eq!(of(&[started.clone(), ended("completed")]), 0);
        assert_eq!(of(&[ended("skipped")]), 0);
        let denied = json!({"type": "tool_finished", "tool": "t", "status": "failed", "output": "[Denied by the user"});
        assert_eq!(of(&[denied]), 0);
        for bad in [
            vec![ended("completed")],
            vec![started.clone(), ended("skipped")],
            vec![started.clone(), started.clone()],
            vec![started, ended("failed"), ended("unknown")],
        ] {
            assert_eq!(of(&bad), 1, "{bad:?}");
        }
    }

    #[test]
    fn an_event_that_was_told_stays_as_it_was() {
        let (mut ledger, breaches) = (Ledger::default(), Breaches::default());
        ledger.told(1, json!({"seq": 1, "t": 1.0}), &breaches);
        ledger.told(1, json!({"seq": 1, "t": 1.0}), &breaches);
        assert!(!breaches.any());
        ledger.told(1, json!({"seq": 1, "t": 2.0}), &breaches);
        ledger.told(3, json!({"seq": 3, "t": 3.0}), &breaches);
        assert_eq!(breaches.all().len(), 2);
    }
}
