//! Does what an item says, when its time has come.

use std::sync::Arc;

use midturn_core::engine::{Approval, Coordinator, Message};
use midturn_core::rules::approval::Answer;
use midturn_core::rules::mail::Sender;
use parking_lot::Mutex;

use crate::scenario::{Act, Item, Says, Send};

/// How many remarks are kept: they are for people who look for a mistake.
const REMARKS: usize = 100;

/// What could not be done, and why.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks(Arc<Mutex<Vec<String>>>);

impl Remarks {
    fn add(&self, remark: String) {
        let mut remarks = self.0.lock();
        if remarks.len() < REMARKS {
            remarks.push(remark);
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// An item on its way.
pub(super) struct Acting {
    pub(super) coordinator: Coordinator,
    pub(super) item: Item,
    pub(super) remarks: Remarks,
}

impl Acting {
    /// Does it. What the engine refuses by an event is left to that; the rest is remarked.
    pub(super) async fn act(self) {
        if let Err(why) = self.done().await {
            let line = self.item.place.line;
            self.remarks.add(format!("the item in line {line} was not done: {why}"));
        }
    }

    async fn done(&self) -> Result<(), String> {
        let coordinator = &self.coordinator;
        self.is_there(sender(&self.item.act))?;
        match &self.item.act {
            Act::Send(send) => {
                coordinator.broadcast(self.message(send)).await;
            }
            Act::Stop { agent, by, scope } => {
                coordinator.stop(agent.as_str(), by.clone(), *scope).await.map_err(in_words)?;
            }
            Act::Supersede { agent, by, text } => {
                let message =
                    Message { id: self.item.id.clone(), ..Message::new(by.clone(), agent.as_str(), text) };
                coordinator.supersede(message).await.map_err(in_words)?;
            }
            Act::Resume { agent, .. } => {
                coordinator.resume(agent.as_str()).map_err(in_words)?;
            }
            Act::Close { agent, by } => {
                coordinator.close(agent.as_str(), by.clone()).await.map_err(in_words)?;
            }
            Act::Withdraw { message, by } => {
                coordinator.withdraw(by, message).await.map_err(in_words)?;
            }
            Act::Answer { agent, tool, says } => {
                let answer = self.answer(agent.as_str(), tool.as_str(), says)?;
                coordinator.answer(agent.as_str(), tool.as_str(), answer).map_err(in_words)?;
            }
        }
        Ok(())
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

    fn message(&self, send: &Send) -> Message {
        Message {
            from: send.from.clone(),
            to: send.to.clone(),
            text: send.text.clone(),
            urgency: send.urgency,
            id: self.item.id.clone(),
            expires_after: send.expires_after,
            supersedes: send.supersedes.clone(),
            only_run: send.only_run,
            expects_run: None,
        }
    }
}

fn sender(act: &Act) -> &Sender {
    match act {
        Act::Answer { .. } => &Sender::User,
        Act::Send(send) => &send.from,
        Act::Stop { by, .. }
        | Act::Supersede { by, .. }
        | Act::Resume { by, .. }
        | Act::Close { by, .. }
        | Act::Withdraw { by, .. } => by,
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
