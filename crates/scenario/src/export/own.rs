//! The coordinator's tools: they act in a replay as they did, and take no time. What they
//! caused is found here, and when a wait or a stop of theirs was over.

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::Span;
use serde_json::Value;

use super::actor::{Live, Phase};
use super::moments::Moment;
use super::plan::{CallEnd, CallKind, CallPlan};
use super::read::Reader;

/// How long a wait lasts when it names no time (semantics.md, section 9).
const PATIENCE: Span = Span::secs(600);

impl Reader<'_> {
    /// The instant at which a call of the coordinator's tools that runs now acted.
    pub(super) fn acting(
        &self,
        agent: usize,
        names: &[&str],
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<Moment> {
        let running = self.running_own(agent);
        let wanted = |call: &&CallPlan| names.contains(&call.name.as_str()) && wanted(&call.input);
        running.into_iter().find(wanted).and_then(|call| call.start)
    }

    fn running_own(&self, agent: usize) -> Vec<&CallPlan> {
        let actor = &self.actors[agent];
        let Phase::Tools(entry) = actor.phase else { return Vec::new() };
        let own = actor.entries[entry].calls.iter().filter(|call| call.kind != CallKind::Provider);
        let running =
            own.zip(&actor.live).filter(|(call, live)| live.is_running() && call.kind == CallKind::Own);
        running.map(|(call, _)| call).collect()
    }

    /// Notes which id a running call's message was given, if it named none itself.
    pub(super) fn note_id(&mut self, agent: usize, text: &str, id: &MessageId) {
        let actor = &mut self.actors[agent];
        let running: Vec<bool> = actor.live.iter().map(Live::is_running).collect();
        let Some(entry) = actor.entry() else { return };
        let own = entry.calls.iter_mut().filter(|call| call.kind != CallKind::Provider);
        for (call, _) in own.zip(running).filter(|(_, running)| *running) {
            let says = |key: &str| call.input.get(key).and_then(Value::as_str);
            if call.name == "send_message" && says("text") == Some(text) && says("id").is_none() {
                call.sent_as = Some(id.as_str().to_owned());
            }
        }
    }

    /// A call of the coordinator's ended by itself: where the agent's timeline is then.
    pub(super) fn own_ended(&mut self, event: &Event, agent: usize, index: usize, text: &str) {
        let Some((started, _)) = self.actors[agent].live[index].started else { return };
        let Some(plan) = self.actors[agent].plan(index) else { return };
        let (name, input) = (plan.name.clone(), plan.input.clone());
        let Some(start) = plan.start else { return };
        let failed = matches!(&event.kind, EventKind::ToolFinished { is_error: true, .. });
        let over = match name.as_str() {
            _ if failed => start,
            "wait_agents" => self.waited(event, agent, started, start, &input, text),
            "stop_agent" | "close_agent" => self.halted(event, agent, started, start),
            _ => start,
        };
        let now = self.actors[agent].now;
        self.actors[agent].now = self.moments.latest(now, over);
        if let Some(plan) = self.actors[agent].plan(index) {
            plan.end = CallEnd::Natural { at: over, text: String::new(), is_error: failed };
        }
    }

    /// When a wait was over: at the ends it waited for, at other mail, or at its time's end.
    fn waited(
        &mut self,
        event: &Event,
        agent: usize,
        started: u64,
        start: Moment,
        input: &Value,
        text: &str,
    ) -> Moment {
        let names: Vec<AgentName> = input
            .get("names")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(|name| AgentName::new(name.as_str()?).ok()).collect())
            .unwrap_or_default();
        if text.starts_with("The time is up.") {
            let timeout = input.get("timeout").and_then(Value::as_str).and_then(|text| text.parse().ok());
            return self.moments.later(start, timeout.unwrap_or(PATIENCE));
        }
        if text.starts_with("Returned early") {
            return self.other_mail(agent, start, &names);
        }
        let ends = self.ends_of(&names, started, event.seq);
        let any = input.get("mode").and_then(Value::as_str) == Some("any");
        if any { self.first_end(start, &names, &ends) } else { self.last_end(start, &ends) }
    }

    /// Other mail ended the wait: the first that was there.
    fn other_mail(&mut self, agent: usize, start: Moment, names: &[AgentName]) -> Moment {
        let is_answer = |from: &str, id: &str| {
            from == "coordinator"
                && id.split('#').next().is_some_and(|name| names.iter().any(|n| n.as_str() == name))
        };
        let mail = self.actors[agent]
            .pending
            .iter()
            .find(|mail| mail.urgency >= Urgency::AfterTools && !is_answer(&mail.from, mail.id.as_str()));
        match mail.map(|mail| mail.at) {
            Some(at) => self.moments.latest(start, at),
            None => start,
        }
    }

    /// The ends of these agents' runs that came while the wait lasted, in order.
    fn ends_of(&self, names: &[AgentName], from: u64, until: u64) -> Vec<(usize, u64, Moment)> {
        let agents = names.iter().filter_map(|name| self.agent(name.as_str()));
        let mut ends: Vec<(usize, u64, Moment)> = agents
            .flat_map(|agent| {
                let during =
                    self.actors[agent].ended.iter().filter(move |end| end.seq > from && end.seq < until);
                during.map(move |end| (agent, end.seq, end.at))
            })
            .collect();
        ends.sort_by_key(|(_, seq, _)| *seq);
        ends
    }

    /// A wait for all ends at the last end; the others have come by then.
    fn last_end(&mut self, start: Moment, ends: &[(usize, u64, Moment)]) -> Moment {
        ends.iter().fold(start, |last, (_, _, at)| self.moments.latest(last, *at))
    }

    /// A wait for any ends at the first end, or at once if somebody named doesn't run.
    fn first_end(&mut self, start: Moment, names: &[AgentName], ends: &[(usize, u64, Moment)]) -> Moment {
        let rests = |name: &AgentName| {
            self.agent(name.as_str()).is_none_or(|agent| {
                self.actors[agent].phase == Phase::Resting && !ends.iter().any(|(ended, ..)| *ended == agent)
            })
        };
        match ends.first() {
            Some((_, _, at)) if !names.iter().any(rests) => self.moments.latest(start, *at),
            _ => start,
        }
    }

    /// A stop ends when every run that it stopped has ended.
    fn halted(&mut self, event: &Event, agent: usize, started: u64, start: Moment) -> Moment {
        let by = self.actors[agent].journal.record.name.to_string();
        let during = self.events[..self.place].iter().filter(|other| other.seq > started);
        let mut ends = Vec::new();
        for other in during {
            let EventKind::StopRequested { by: who, .. } = &other.kind else { continue };
            let stopped = other.at.agent.as_ref().and_then(|name| self.agent(name.as_str()));
            let end = stopped.and_then(|stopped| self.actors[stopped].end_after(other.seq));
            if let (true, Some(end)) = (*who == by, end.filter(|end| end.seq < event.seq)) {
                ends.push(end.at);
            }
        }
        ends.into_iter().fold(start, |last, at| self.moments.latest(last, at))
    }
}
