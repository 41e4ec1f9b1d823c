//! Compares the engine's events with the reference's findings and says what differs, the earliest first.

use super::compare_events::{Seen, SeenCall, SeenInjection, SeenMessage, SeenRun, SeenTool, instant, read};
use super::model::{Micros, Scenario};
use super::result::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// One difference, with the instant by which they are ordered: the first is nearest to the cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// When it shows, in microseconds.
    pub at: Micros,
    /// What the reference says and what the engine did.
    pub what: String,
}

/// What the comparison gathers.
struct Diffs<'a> {
    sc: &'a Scenario,
    found: &'a Findings,
    seen: &'a Seen,
    out: Vec<Difference>,
}

/// All differences, by instant.
pub fn compare(sc: &Scenario, found: &Findings, events: &[Value]) -> Vec<Difference> {
    let seen = read(sc, found, events);
    let mut d = Diffs { sc, found, seen: &seen, out: Vec::new() };
    d.runs();
    d.calls();
    d.tools();
    d.messages();
    d.injections();
    d.session();
    d.out.sort();
    d.out
}

fn ms(us: Micros) -> String {
    if us.is_multiple_of(1000) { format!("{}ms", us / 1000) } else { format!("{us}us") }
}

fn maybe(us: Option<Micros>) -> String {
    us.map_or("never".to_string(), ms)
}

/// Whether a text is the reference's, with any words for what it leaves open.
pub fn fits(want: &str, got: &str) -> bool {
    let Some((head, rest)) = want.split_once(UNSAID) else {
        return want == got;
    };
    let Some(tail) = got.strip_prefix(head) else {
        return false;
    };
    (0..=tail.len()).filter(|i| tail.is_char_boundary(*i)).any(|i| fits(rest, &tail[i..]))
}

impl Diffs<'_> {
    fn say(&mut self, at: Micros, what: String) {
        self.out.push(Difference { at, what });
    }

    fn name(&self, agent: usize) -> String {
        self.sc.agents[agent].name.clone()
    }

    fn same(&mut self, at: Micros, subject: &str, field: &str, want: &str, got: &str) {
        if want != got {
            self.say(at, format!("{subject}: {field}: reference {want}, engine {got}"));
        }
    }

    /// Something that only one of the two has.
    fn only(&mut self, at: Micros, subject: &str, who: &str, what: &str) {
        let other = if who == "reference" { "engine" } else { "reference" };
        self.say(at, format!("{subject}: only the {who} has it: {what} at {}, {other} none", ms(at)));
    }

    fn runs(&mut self) {
        let mut known = BTreeSet::new();
        for r in &self.found.runs {
            let key = (self.name(r.agent), u64::from(r.run));
            let subject = format!("run {}/{}", key.0, key.1);
            match self.seen.runs.get(&key) {
                Some(got) => self.run(&subject, r, got),
                None => self.only(r.started, &subject, "reference", "started"),
            }
            known.insert(key);
        }
        for (key, got) in self.seen.runs.iter().filter(|(k, _)| !known.contains(*k)) {
            let at = got.started.or(got.ended).unwrap_or(0);
            self.only(at, &format!("run {}/{}", key.0, key.1), "engine", "started");
        }
    }

    fn run(&mut self, subject: &str, r: &RunResult, got: &SeenRun) {
        self.same(r.started, subject, "start", &ms(r.started), &maybe(got.started));
        let at = r.ended.unwrap_or(r.started).min(got.ended.unwrap_or(Micros::MAX));
        let outcome = got.outcome.as_deref().unwrap_or("waiting");
        self.same(at, subject, "outcome", r.outcome.word(), outcome);
        self.same(at, subject, "end", &maybe(r.ended), &maybe(got.ended));
        if let Some(turns) = got.turns {
            self.same(at, subject, "turns", &r.turns.to_string(), &turns.to_string());
        }
        let exhausted = |e: &Option<String>| e.as_deref().is_some_and(|e| e.contains("script exhausted"));
        // The words of the other errors are not given by the pages: only that there is one.
        if r.error.is_some() != got.error.is_some() || exhausted(&r.error) != exhausted(&got.error) {
            let (want, got) = (format!("{:?}", r.error), format!("{:?}", got.error));
            self.same(at, subject, "error", &want, &got);
        }
    }

    fn calls(&mut self) {
        let mut known = BTreeSet::new();
        for c in &self.found.calls {
            let key = (self.name(c.agent), u64::from(c.call));
            let subject = format!("model_call {}/{}", key.0, key.1);
            match self.seen.calls.get(&key) {
                Some(got) => self.call(&subject, c, got),
                None => self.only(c.started, &subject, "reference", "started"),
            }
            known.insert(key);
        }
        for (key, got) in self.seen.calls.iter().filter(|(k, _)| !known.contains(*k)) {
            self.only(got.started, &format!("model_call {}/{}", key.0, key.1), "engine", "started");
        }
    }

    fn call(&mut self, subject: &str, c: &ModelCall, got: &SeenCall) {
        let at = c.started.min(got.started);
        self.same(at, subject, "start", &ms(c.started), &ms(got.started));
        let place = format!("{}/{}", c.run, c.turn);
        self.same(at, subject, "run/turn", &place, &format!("{}/{}", got.run, got.turn));
        self.cut(at, subject, c, got);
        // Calls that the provider runs itself are not among the reference's.
        let known = |id: &String| c.inputs.iter().flatten().any(|(w, _)| w == id);
        let seen: Option<Vec<_>> =
            got.inputs.as_ref().map(|seen| seen.iter().filter(|(id, _)| known(id)).collect());
        let want: Option<Vec<_>> = c.inputs.as_ref().map(|want| want.iter().collect());
        self.same(at, subject, "inputs", &format!("{want:?}"), &format!("{seen:?}"));
    }

    fn cut(&mut self, at: Micros, subject: &str, c: &ModelCall, got: &SeenCall) {
        let (want_at, got_at) = (c.cut.as_ref().map(|c| c.at), got.cut.as_ref().map(|c| c.at));
        let shown = want_at.or(got_at).unwrap_or(at);
        self.same(shown, subject, "cut", &maybe(want_at), &maybe(got_at));
        let (Some(want), Some(got)) = (&c.cut, &got.cut) else {
            return;
        };
        if let Some((words, text)) = &want.said {
            let seen = got.words.unwrap_or(u64::MAX);
            self.same(shown, subject, "partial_tokens", &words.to_string(), &seen.to_string());
            if let Some(seen) = &got.text {
                self.same(shown, subject, "partial text", &format!("{text:?}"), &format!("{seen:?}"));
            }
        }
        if let Some(reason) = want.reason {
            self.same(shown, subject, "reason", reason, &got.reason);
        }
    }

    /// What concerns the session, and the fields that name what was done to an agent.
    fn session(&mut self) {
        let list = |times: &[Micros]| times.iter().map(|t| ms(*t)).collect::<Vec<_>>().join(" ");
        let at = self.found.resumed.first().or(self.seen.resumed.first()).copied().unwrap_or(0);
        let (want, got) = (list(&self.found.resumed), list(&self.seen.resumed));
        self.same(at, "session", "resumed", &want, &got);
        let name = |agent: &Option<usize>| agent.map_or(String::new(), |a| self.sc.agents[a].name.clone());
        let want: Vec<(Micros, String)> = self.found.raised.iter().map(|(t, a)| (*t, name(a))).collect();
        let at = want.first().or(self.seen.raised.first()).map_or(0, |(t, _)| *t);
        let (want, got) = (format!("{want:?}"), format!("{:?}", self.seen.raised));
        self.same(at, "session", "raised", &want, &got);
        for (agent, prompt) in &self.found.prompts {
            let name = self.name(*agent);
            let got = self.seen.prompts.get(&name).cloned().unwrap_or_default();
            self.same(0, &format!("agent {name}"), "prompt", prompt, &got);
        }
        self.stops();
    }

    fn stops(&mut self) {
        let mut known = BTreeSet::new();
        for stop in &self.found.stops {
            let key = (self.name(stop.agent), u64::from(stop.run));
            let subject = format!("stop of {}/{}", key.0, key.1);
            // A run that never began is none.
            let began = self.found.runs.iter().any(|r| r.agent == stop.agent && r.run == stop.run);
            if !known.insert(key.clone()) || !began {
                continue;
            }
            let Some(got) = self.seen.stops.get(&key) else {
                self.only(stop.at, &subject, "reference", stop.reason);
                continue;
            };
            self.same(stop.at, &subject, "at", &ms(stop.at), &ms(got.at));
            self.same(stop.at, &subject, "reason", stop.reason, got.reason.as_deref().unwrap_or("none"));
            if stop.reason == "stop" {
                self.same(stop.at, &subject, "by", &stop.by, &got.by);
                let queued = |ids: &[String]| ids.join(" ");
                let (want, seen) = (queued(&stop.still_queued), queued(&got.still_queued));
                self.same(stop.at, &subject, "still_queued", &want, &seen);
            }
        }
        for (key, got) in self.seen.stops.iter().filter(|(k, _)| !known.contains(*k)) {
            let reason = got.reason.clone().unwrap_or_default();
            self.only(got.at, &format!("stop of {}/{}", key.0, key.1), "engine", &reason);
        }
    }

    fn tools(&mut self) {
        let mut known = BTreeSet::new();
        for t in &self.found.tools {
            let key = (self.name(t.agent), t.id.clone());
            let subject = format!("tool {}/{} ({})", key.0, key.1, t.name);
            match self.seen.tools.get(&key) {
                Some(got) => self.tool(&subject, t, got),
                None => self.only(t.ended, &subject, "reference", t.status.word()),
            }
            known.insert(key);
        }
        for (key, got) in self.seen.tools.iter().filter(|(k, _)| !known.contains(*k)) {
            let at = got.started.or(got.ended).unwrap_or(0);
            self.only(at, &format!("tool {}/{}", key.0, key.1), "engine", &got.status);
        }
    }

    fn tool(&mut self, subject: &str, t: &ToolResult, got: &SeenTool) {
        let at = t.ended.min(got.ended.unwrap_or(Micros::MAX));
        self.same(at, subject, "status", t.status.word(), &got.status);
        let started_at = t.started.unwrap_or(at).min(got.started.unwrap_or(Micros::MAX));
        self.same(started_at, subject, "start", &maybe(t.started), &maybe(got.started));
        // When a skipped call is said to be skipped is bookkeeping; when one that ran ended is not.
        if t.started.is_some() {
            self.same(at, subject, "end", &ms(t.ended), &maybe(got.ended));
        }
        let place = format!("{}/{}", t.run, t.turn);
        self.same(at, subject, "run/turn", &place, &format!("{}/{}", got.run, got.turn));
        self.same(at, subject, "results", "1", &got.results.to_string());
        if let Some(is_error) = got.is_error {
            let want = t.status != Status::Completed;
            self.same(at, subject, "is_error", &want.to_string(), &is_error.to_string());
        }
        if let (Some(want), Some(output)) = (&t.text, &got.output) {
            self.same_text(at, subject, want, output);
        }
    }

    /// A text of which the pages may leave parts open.
    fn same_text(&mut self, at: Micros, subject: &str, want: &str, got: &str) {
        if !fits(want, got) {
            self.say(at, format!("{subject}: text: reference {want:?}, engine {got:?}"));
        }
    }

    fn messages(&mut self) {
        let mut known = BTreeSet::new();
        for m in &self.found.messages {
            let key = (self.name(m.to), m.id.clone());
            let subject = format!("message {} to {}", key.1, key.0);
            match self.seen.messages.get(&key) {
                Some(got) => self.message(&subject, m, got),
                None => self.only(m.sent, &subject, "reference", "sent"),
            }
            known.insert(key);
        }
        for (key, got) in self.seen.messages.iter().filter(|(k, _)| !known.contains(*k)) {
            self.only(got.sent, &format!("message {} to {}", key.1, key.0), "engine", &got.fate);
        }
    }

    fn message(&mut self, subject: &str, m: &MessageResult, got: &SeenMessage) {
        let (fate, at) = match m.fate {
            Fate::Queued => ("queued".to_string(), m.sent),
            Fate::Injected(i) => ("injected".to_string(), self.found.injections[i].at),
            Fate::Returned { reason, at } => (format!("returned: {reason}"), at),
            Fate::Refused { reason, at } => (format!("refused: {reason}"), at),
        };
        self.same(m.sent.min(got.sent), subject, "sent", &ms(m.sent), &ms(got.sent));
        if let Some(urgency) = &got.urgency {
            self.same(m.sent, subject, "urgency", m.urgency.word(), urgency);
        }
        // Where several reasons hold, which one is named is not said; `limit` may say which.
        let seen =
            got.fate.split_once(": limit").map_or(got.fate.clone(), |(word, _)| format!("{word}: limit"));
        let other = m.reasons.iter().any(|reason| format!("refused: {reason}") == seen);
        let fate = if other { seen.clone() } else { fate };
        let (want, seen) = (format!("{fate} at {}", ms(at)), format!("{seen} at {}", ms(got.at)));
        self.same(at.min(got.at), subject, "fate", &want, &seen);
    }

    fn injections(&mut self) {
        for agent in 0..self.sc.agents.len() {
            let name = self.name(agent);
            let want: Vec<&Injection> = self.found.injections.iter().filter(|i| i.agent == agent).collect();
            let got: Vec<&SeenInjection> = self.seen.injections.iter().filter(|i| i.agent == name).collect();
            let subject = |n: usize, ids: &[String]| format!("injection {n} of {name} ({})", ids.join(" "));
            for (n, (w, g)) in want.iter().zip(got.iter()).enumerate() {
                self.injection(&subject(n + 1, &w.messages), w, g);
            }
            for (n, w) in want.iter().enumerate().skip(got.len()) {
                self.only(w.at, &subject(n + 1, &w.messages), "reference", w.point.word());
            }
            for (n, g) in got.iter().enumerate().skip(want.len()) {
                self.only(g.at, &subject(n + 1, &g.messages), "engine", &g.point);
            }
        }
    }

    fn injection(&mut self, subject: &str, w: &Injection, g: &SeenInjection) {
        let at = w.at.min(g.at);
        let w_place = format!("{} run {} turn {} at {}", w.point.word(), w.run, w.turn, ms(w.at));
        let g_place = format!("{} run {} turn {} at {}", g.point, g.run, g.turn, ms(g.at));
        self.same(at, subject, "place", &w_place, &g_place);
        let with = |ids: &[String], reports: usize| format!("[{}] and {reports} reports", ids.join(" "));
        let (want, got) = (with(&w.messages, w.reports), with(&g.messages, g.reports));
        self.same(at, subject, "messages", &want, &got);
        self.same(at, subject, "skipped", &w.skipped.join(" "), &g.skipped.join(" "));
        self.same(at, subject, "interrupted", &w.interrupted.join(" "), &g.interrupted.join(" "));
        if let Some(text) = &w.text {
            self.same_text(at, subject, text, &g.text);
        }
    }
}

/// A readable report: the seed's name, the differences, the engine's events around the first, the YAML.
pub fn report(sc: &Scenario, yaml: &str, diffs: &[Difference], events: &[Value]) -> String {
    let mut out = format!(
        "=== {}: {} differences, the first at {}\n",
        sc.name,
        diffs.len(),
        maybe(diffs.first().map(|d| d.at))
    );
    for d in diffs.iter().take(12) {
        out.push_str(&format!("  {:>8}  {}\n", ms(d.at), d.what));
    }
    if let Some(first) = diffs.first() {
        out.push_str("--- the engine's events up to there\n");
        let near: Vec<&Value> = events.iter().filter(|e| instant(e) <= first.at).collect();
        for event in near.iter().skip(near.len().saturating_sub(20)) {
            out.push_str(&format!("  {event}\n"));
        }
    }
    out.push_str("--- the scenario\n");
    out.push_str(yaml);
    out
}
