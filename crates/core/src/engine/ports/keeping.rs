//! A store in memory that keeps what was recorded of one session, so that it can be taken up
//! again in the same process: for replays in which a process ends, and for tests.
//!
//! It decides nothing: where an agent stands is folded by
//! [`Progress`](crate::rules::progress::Progress), as in every store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::archive::{AgentJournal, KeptMail, REMEMBERED, SessionJournal, SessionRecord};
use super::store::{Accepted, AgentRecord, Commit, ReceiptMove, Store, StoreError, Transaction};
use crate::rules::event::Event;
use crate::rules::id::{AgentName, MessageId};
use crate::rules::lifetime::Lifetime;
use crate::rules::mail::{ReceiptState, Sender};
use crate::rules::time::Micros;

/// Keeps one session. What it was given is durable at once.
#[derive(Debug, Default)]
pub struct KeepingStore(Mutex<Kept>);

/// What was recorded so far. It grows with the session and is bounded by nothing else.
#[derive(Clone, Debug, Default)]
struct Kept {
    last_seq: u64,
    last_t: Micros,
    /// The tail of each is that of its last run, whether or not that has ended.
    agents: Vec<AgentJournal>,
    /// Where each agent stands in `agents`.
    places: HashMap<AgentName, usize>,
    mail: Vec<KeptMail>,
    lifetime: Lifetime,
    /// Where each message stands in `mail`.
    letters: HashMap<(Sender, MessageId, AgentName), usize>,
}

#[async_trait]
impl Store for KeepingStore {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        self.0.lock().keep(&transaction);
        Commit::Done(Ok(()))
    }

    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        let kept = self.0.lock();
        let of = |kept: &&KeptMail| kept.accepted.mail.from == *from && kept.accepted.mail.id == *id;
        Ok(kept.mail.iter().filter(of).cloned().collect())
    }
}

impl KeepingStore {
    /// A store of its own that goes on from what is kept here. Whatever the process before
    /// still writes into this one changes nothing there.
    #[must_use]
    pub fn taken_up(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }

    /// All that was recorded, as the session goes on from it.
    pub fn journal(&self, record: SessionRecord) -> SessionJournal {
        let kept = self.0.lock();
        SessionJournal {
            record,
            last_seq: kept.last_seq,
            last_t: kept.last_t,
            lived: kept.lifetime.lived(),
            limits: kept.lifetime.limits(),
            agents: kept.agents.iter().map(|agent| kept.journal(agent)).collect(),
            mail: kept.remembered(),
        }
    }
}

impl Kept {
    fn keep(&mut self, transaction: &Transaction) {
        for record in &transaction.agents {
            self.agent(record);
        }
        for (accepted, seq) in transaction.accepted() {
            self.accepted(accepted, seq);
        }
        for step in &transaction.receipts {
            self.receipt(step);
        }
        for row in &transaction.rows {
            self.of(&row.agent, |agent| {
                agent.stands.note_line();
                agent.rows.push(row.clone());
            });
        }
        for event in &transaction.events {
            (self.last_seq, self.last_t) = (event.seq, event.t);
            self.lifetime.note(event);
            if let Some(name) = &event.at.agent {
                self.of(name, |agent| note(agent, event));
            }
        }
        for (name, run) in &transaction.resumes {
            self.of(name, |agent| agent.stands.note_resume(*run));
        }
        for (end, seq) in transaction.ends() {
            self.of(&end.agent, |agent| agent.last_end = Some((end.clone(), seq)));
        }
    }

    fn agent(&mut self, record: &AgentRecord) {
        self.places.insert(record.name.clone(), self.agents.len());
        self.agents.push(AgentJournal::new(record.clone()));
    }

    fn journal(&self, agent: &AgentJournal) -> AgentJournal {
        let (worked, limits) = self.lifetime.of(&agent.record.name);
        let mut known = AgentJournal { worked, limits, ..agent.clone() };
        if !known.is_open() {
            known.tail.clear();
        }
        known
    }

    /// Events of an agent that nobody has recorded are about no agent of the session.
    fn of(&mut self, name: &AgentName, note: impl FnOnce(&mut AgentJournal)) {
        if let Some(place) = self.places.get(name) {
            note(&mut self.agents[*place]);
        }
    }

    /// An id stands for one message of its sender to each receiver: what comes again is there.
    fn accepted(&mut self, accepted: &Accepted, seq: u64) {
        let mail = &accepted.mail;
        let Entry::Vacant(letter) = self.letters.entry((mail.from.clone(), mail.id.clone(), mail.to.clone()))
        else {
            return;
        };
        letter.insert(self.mail.len());
        self.mail.push(KeptMail { accepted: accepted.clone(), seq, state: ReceiptState::Queued });
    }

    /// The messages that a journal has: of those that are settled, the newest.
    fn remembered(&self) -> Vec<KeptMail> {
        let settled = self.mail.iter().filter(|kept| kept.state.is_final()).count();
        let mut too_many = settled.saturating_sub(REMEMBERED);
        let mut mail = self.mail.clone();
        mail.retain(|kept| {
            let goes = too_many > 0 && kept.state.is_final();
            too_many -= usize::from(goes);
            !goes
        });
        mail
    }

    /// A receipt only moves forward (semantics.md, section 8).
    fn receipt(&mut self, step: &ReceiptMove) {
        let letter = self.letters.get(&(step.from.clone(), step.id.clone(), step.to.clone()));
        if let Some(kept) = letter.and_then(|place| self.mail.get_mut(*place)) {
            debug_assert!(step.state.rank() > kept.state.rank(), "a receipt goes back: {kept:?} {step:?}");
            kept.state = step.state.clone();
        }
    }
}

fn note(agent: &mut AgentJournal, event: &Event) {
    let AgentJournal { stands, tail, .. } = agent;
    let (run, turn) = (stands.run, stands.turn);
    stands.note(event);
    if (run, turn) != (stands.run, stands.turn) {
        tail.retain(|event| stands.is_in_tail(event));
    }
    if stands.is_in_tail(event) {
        tail.push(event.clone());
    }
}
