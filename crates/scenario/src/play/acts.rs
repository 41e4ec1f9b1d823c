//! Does what an item says, when its time has come.

use std::sync::Arc;

use midturn_core::engine::ports::{Clock, Phase};
use midturn_core::engine::{Approval, Coordinator, Meant, Message, RaiseError};
use midturn_core::rules::approval::Answer;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Span;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::{Error, Source};
use crate::scenario::{Act, Item, Says};

/// How many remarks are kept: they are for people who look for a mistake.
const REMARKS: usize = 100;

/// What could not be done, and why.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    remarks: Vec<String>,
    /// The first thing that the file must not ask for.
    refusal: Option<Error>,
}

impl Remarks {
    fn add(&self, remark: String) {
        let mut said = self.0.lock();
        if said.remarks.len() < REMARKS {
            said.remarks.push(remark);
        }
    }

    fn refuse(&self, error: Error) {
        self.0.lock().refusal.get_or_insert(error);
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().remarks)
    }

    /// What the file asks for and can't be, if there is such a thing.
    pub(super) fn refusal(&self) -> Option<Error> {
        self.0.lock().refusal.clone()
    }
}

/// What items act on.
#[derive(Clone)]
pub(super) struct Acting {
    pub(super) coordinator: Coordinator,
    pub(super) remarks: Remarks,
    pub(super) source: Source,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) process: watch::Sender<Process>,
}

/// Whether there is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Lives,
    /// A shutdown waits until all has ended.
    Ends,
    /// It is gone, and its session is taken up so much later.
    Gone(Span),
}

impl Process {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

impl Acting {
    /// Does what an item says. What the engine refuses by an event is left to that; the rest
    /// is remarked.
    pub(super) async fn act(&self, item: &Item) {
        if let Err(why) = self.done(item).await {
            let line = item.place.line;
            self.remarks.add(format!("the item in line {line} was not done: {why}"));
        }
    }

    async fn done(&self, item: &Item) -> Result<(), String> {
        let coordinator = &self.coordinator;
        self.is_there(sender(&item.act))?;
        match &item.act {
            Act::Send(message) => {
                coordinator.broadcast(Message { id: item.id.clone(), ..message.clone() }).await;
                Ok(())
            }
            Act::Stop { agent, by, scope } => {
                in_words(coordinator.stop(agent.as_str(), by.clone(), *scope).await)
            }
            Act::Supersede { agent, by, text } => {
                let message = Message::new(by.clone(), agent.as_str(), text);
                in_words(coordinator.supersede(Message { id: item.id.clone(), ..message }).await)
            }
            Act::Resume { agent: Some(name), .. } => in_words(coordinator.resume(name.as_str()).await),
            Act::Resume { agent: None, .. } => in_words(coordinator.resume_all().await),
            Act::Close { agent, by } => in_words(coordinator.close(agent.as_str(), by.clone()).await),
            Act::Withdraw { message, by } => in_words(coordinator.withdraw(by, message).await),
            Act::Answer { agent, tool, says } => {
                let answer = self.answer(agent.as_str(), tool.as_str(), says)?;
                in_words(coordinator.answer(agent.as_str(), tool.as_str(), Meant::Only, answer))
            }
            Act::Raise { whose, limits } => self.raise(item, whose.as_ref(), limits).await,
            Act::Crash { back_after } => {
                self.process.send_replace(Process::Gone(*back_after));
                Ok(())
            }
            Act::ShutDown { back_after } => {
                self.shut_down(*back_after).await;
                Ok(())
            }
        }
    }

    /// The process ends when all has ended, behind what else comes in that round. A second shutdown
    /// changes nothing.
    async fn shut_down(&self, back_after: Span) {
        if self.process.send_replace(Process::Ends) == Process::Ends {
            return;
        }
        self.coordinator.shutdown().await;
        self.clock.turn(Phase::Over).await;
        self.process.send_replace(Process::Gone(back_after));
    }

    /// What can't be set is a fault of the file: nobody knows beforehand what will be spent by then.
    async fn raise(
        &self,
        item: &Item,
        whose: Option<&AgentName>,
        limits: &LimitsPatch,
    ) -> Result<(), String> {
        match self.coordinator.raise(whose.map(AgentName::as_str), limits.clone()).await {
            Err(RaiseError::BelowSpent(below)) => {
                let found = format!("a raise of {} below what is spent", below.limit);
                let expected = format!("at least {}, or 0 for no limit", below.spent);
                self.remarks.refuse(self.source.fault(item.place, &found, &expected));
                Ok(())
            }
            set => in_words(set),
        }
    }

    /// What is said, with the rule that the request offers where the file names none.
    fn answer(&self, agent: &str, tool: &str, says: &Says) -> Result<Answer, String> {
        let open = || {
            let open = self.coordinator.approvals().into_iter();
            let is_it = |asked: &Approval| asked.agent.as_str() == agent && asked.tool.as_str() == tool;
            open.into_iter()
                .find(is_it)
                .ok_or_else(|| format!("`{agent}` doesn't ask about the call `{tool}`"))
        };
        Ok(match says {
            Says::Once => Answer::Once,
            Says::Session(Some(rule)) => Answer::Session(rule.clone()),
            Says::Session(None) => Answer::Session(open()?.always),
            Says::Denied(reason) => Answer::No(reason.clone()),
        })
    }

    /// An agent that is not spawned yet does nothing.
    fn is_there(&self, sender: &Sender) -> Result<(), String> {
        match sender {
            Sender::Agent(name) if self.coordinator.agent(name.as_str()).is_none() => {
                Err(format!("`{name}` is not spawned yet"))
            }
            Sender::Agent(_) | Sender::User | Sender::Coordinator(_) => Ok(()),
        }
    }
}

fn sender(act: &Act) -> &Sender {
    match act {
        Act::Answer { .. } | Act::Raise { .. } | Act::Crash { .. } | Act::ShutDown { .. } => &Sender::User,
        Act::Send(message) => &message.from,
        Act::Stop { by, .. }
        | Act::Supersede { by, .. }
        | Act::Resume { by, .. }
        | Act::Close { by, .. }
        | Act::Withdraw { by, .. } => by,
    }
}

fn in_words<T>(done: Result<T, impl std::fmt::Display>) -> Result<(), String> {
    done.map(drop).map_err(|error| error.to_string())
}
