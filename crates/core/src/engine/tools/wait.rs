//! `wait_agents` (semantics.md, section 9).

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ends, input, turn_index};
use crate::engine::ports::{Output, Phase, ToolCall};
use crate::engine::session::{AgentCell, Claimed, Session};
use crate::rules::id::{AgentName, CallId};
use crate::rules::mail::{End, Point, Sender};
use crate::rules::time::{Micros, Span};
use crate::rules::waiting::{Wait, WaitMode, cycle};
use crate::rules::wording;

pub(super) const WAIT: &str = "Waits until agents don't run any more and returns how each ended. \
Returns early when other mail comes for you, and after `timeout` (10 minutes).";

/// How long a wait lasts when it names no time.
const PATIENCE: Span = Span::secs(600);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitInput {
    /// The agents to wait for.
    names: Vec<String>,
    /// `all` of them, or `any` one.
    #[serde(default)]
    mode: WaitMode,
    /// How long at most: `30s`, `10m`.
    timeout: Option<Span>,
}

/// Why a wait is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Answered,
    OtherMail,
    TimeOut,
}

pub(super) async fn wait(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    call: &ToolCall,
) -> Result<Output, Output> {
    let (wait, until) = match begin(session, cell, call) {
        Ok(begun) => begun,
        Err(refusal) => {
            ends(session, call).await;
            return Err(refusal);
        }
    };
    match wait.until_over(until).await {
        Some(over) => Ok(wait.answer(over)),
        None => {
            // Until its abort has ended it is somebody who waits; what it returns is nobody's answer.
            ends(session, call).await;
            Err(Output::error(""))
        }
    }
}

/// A wait that is registered, and how long it lasts at most.
fn begin<'a>(
    session: &'a Arc<Session>,
    cell: &'a Arc<AgentCell>,
    call: &'a ToolCall,
) -> Result<(Waiting<'a>, Micros), Output> {
    let input: WaitInput = input(&call.call)?;
    let others = others(session, cell, &input.names)?;
    let wait = Waiting { session, cell, call, others, mode: input.mode };
    wait.register()?;
    Ok((wait, session.clock.now().after(input.timeout.unwrap_or(PATIENCE))))
}

fn others(session: &Session, cell: &AgentCell, names: &[String]) -> Result<Vec<Arc<AgentCell>>, Output> {
    let mut others: Vec<Arc<AgentCell>> = Vec::new();
    for name in names {
        let Some(other) = session.agent(name) else {
            return Err(Output::error(format!("There is no agent `{name}`.")));
        };
        if other.name == cell.name {
            return Err(Output::error("An agent doesn't wait for itself."));
        }
        if !others.iter().any(|known| known.name == other.name) {
            others.push(other);
        }
    }
    if others.is_empty() {
        return Err(Output::error("Name at least one agent to wait for."));
    }
    Ok(others)
}

struct Waiting<'a> {
    session: &'a Arc<Session>,
    cell: &'a Arc<AgentCell>,
    call: &'a ToolCall,
    others: Vec<Arc<AgentCell>>,
    mode: WaitMode,
}

/// Also where a call that was given up is dropped: it waits for nobody any more.
impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.session.waits.lock().remove(&self.key());
    }
}

impl Waiting<'_> {
    /// A wait that would never end is refused, and the cycle is named.
    fn register(&self) -> Result<(), Output> {
        let names: BTreeSet<AgentName> = self.others.iter().map(|other| other.name.clone()).collect();
        let wait = Wait { names, mode: self.mode };
        let mut waits = self.session.waits.lock();
        if let Some(members) = cycle(&waits, &self.cell.name, &wait) {
            let mut path: Vec<&str> = members.iter().map(AgentName::as_str).collect();
            path.extend(path.first().copied());
            return Err(Output::error(format!(
                "Refused: this wait would never end ({}).",
                path.join(" waits for ")
            )));
        }
        waits.insert(self.key(), wait);
        Ok(())
    }

    fn key(&self) -> (AgentName, CallId) {
        (self.cell.name.clone(), self.call.call.id.clone())
    }

    fn is_named(&self, name: &AgentName) -> bool {
        self.others.iter().any(|other| other.name == *name)
    }

    fn over(&self) -> Option<Over> {
        let mailbox = &self.cell.mailbox;
        let mut done = self.others.iter().map(|other| !other.is_at_work() || mailbox.has_answer(&other.name));
        let answered = match self.mode {
            WaitMode::All => done.all(|done| done),
            WaitMode::Any => done.any(|done| done),
        };
        if answered {
            Some(Over::Answered)
        } else if self.cell.mailbox.has_other(|name| self.is_named(name)) {
            Some(Over::OtherMail)
        } else {
            None
        }
    }

    /// `None`: the call's token was cancelled, and nothing is taken.
    async fn until_over(&self, until: Micros) -> Option<Over> {
        let clock = &self.session.clock;
        let time_out = clock.until(until, Phase::ToolEnd(self.call.agent_index, turn_index(self.call)));
        tokio::pin!(time_out);
        loop {
            let rested = self.session.rested.notified();
            let arrived = self.cell.mailbox.arrived();
            if self.over().is_some() {
                ends(self.session, self.call).await;
                // Looked at once more at its own turn: an agent may have been woken again.
                if let Some(over) = self.over() {
                    return Some(over);
                }
            }
            tokio::select! {
                biased;
                () = self.call.cancel.cancelled() => return None,
                () = rested => {}
                () = arrived => {}
                () = &mut time_out => return Some(Over::TimeOut),
            }
        }
    }

    /// Takes the answers out of the mailbox; the driver records that with the result.
    fn answer(&self, over: Over) -> Output {
        let taken = self.cell.mailbox.take_answers(|name| self.is_named(name));
        let mut lines: Vec<String> = Vec::new();
        match over {
            Over::Answered => {}
            Over::OtherMail => lines.push("Returned early: there is other mail for you.".to_owned()),
            Over::TimeOut => lines.push("The time is up.".to_owned()),
        }
        for other in &self.others {
            let answers = taken
                .iter()
                .map(|queued| &*queued.mail)
                .filter(|mail| matches!(&mail.from, Sender::Coordinator(name) if *name == other.name));
            let answers: Vec<String> = answers.map(|mail| wording::one(Point::Wait, mail)).collect();
            if answers.is_empty() { lines.push(state_of(other)) } else { lines.extend(answers) }
        }
        if !taken.is_empty() {
            self.cell.state.lock().claims.insert(self.call.call.id.clone(), Claimed::Answers(taken));
        }
        Output::ok(lines.join("\n\n"))
    }
}

fn state_of(other: &AgentCell) -> String {
    let last = other.state.lock().last_end.clone();
    match (other.is_at_work(), last) {
        (true, _) => format!("{} is still running.", other.name),
        (false, None) => format!("{} has not run yet.", other.name),
        (false, Some(end)) => wording::ended(other.name.as_str(), End::of(end.outcome), &end.text),
    }
}
