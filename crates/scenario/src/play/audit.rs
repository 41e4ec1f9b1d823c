//! Reads every prompt on its way to the model and believes nothing: the invariants of
//! semantics.md, section 10, in full and from the outside. The engine's own validator looks
//! only at what is new; this one also compares all that was sent before, up to the last
//! compaction, and holds every compaction against the request for its summary.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure, Request};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{Entry, Reply};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::validate::Validator;

/// Models that do as the ones they wrap, and what was found in their prompts.
pub(super) struct Audit {
    inner: Arc<dyn ModelFactory>,
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    breaches: Vec<String>,
    /// What each agent was sent.
    prompts: HashMap<AgentName, Sent>,
}

/// What an agent was sent since its last compaction.
#[derive(Default)]
struct Sent {
    entries: Vec<Arc<Entry>>,
    compactions: u64,
    /// How many of the entries the last request for a summary held, since the last turn's.
    summarised: Option<usize>,
}

impl Audit {
    pub(super) fn of(inner: Arc<dyn ModelFactory>) -> Self {
        Self { inner, found: Arc::default() }
    }

    /// What was found, each agent's last prompt read once more from its begin.
    pub(super) fn breaches(&self) -> Vec<String> {
        let mut found = self.found.lock();
        let mut breaches = std::mem::take(&mut found.breaches);
        let mut prompts: Vec<_> = found.prompts.drain().collect();
        prompts.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (agent, sent) in prompts {
            let read = Validator::default().check(&sent.entries);
            breaches.extend(read.err().map(|breach| format!("{agent}: {breach}")));
        }
        breaches
    }
}

#[async_trait]
impl ModelFactory for Audit {
    async fn model(&self, agent: &AgentName, model: &str) -> Result<Box<dyn Model>, ModelFailure> {
        let inner = self.inner.model(agent, model).await?;
        Ok(Box::new(Audited { agent: agent.clone(), inner, found: self.found.clone() }))
    }
}

struct Audited {
    agent: AgentName,
    inner: Box<dyn Model>,
    found: Arc<Mutex<Found>>,
}

#[async_trait]
impl Model for Audited {
    async fn call(&mut self, request: Request<'_>) -> Result<Reply, ModelFailure> {
        self.read(&request);
        self.inner.call(request).await
    }

    fn jitters(&self) -> bool {
        self.inner.jitters()
    }
}

impl Audited {
    fn read(&self, request: &Request<'_>) {
        let mut found = self.found.lock();
        let sent = found.prompts.entry(self.agent.clone()).or_default();
        if let Err(what) = sent.read(request.purpose, request.compactions, request.entries) {
            let (agent, call) = (&self.agent, request.call);
            found.breaches.push(format!("{agent}: {what} in call {call}"));
        }
    }
}

impl Sent {
    fn read(&mut self, purpose: Purpose, compactions: u64, entries: &[Arc<Entry>]) -> Result<(), String> {
        if purpose == Purpose::Summary {
            return self.summary(entries);
        }
        if compactions != self.compactions {
            self.compacted(compactions, entries)?;
        }
        self.summarised = None;
        if !begins_with(entries, &self.entries) {
            return Err("invariant 6 is broken: what was sent is changed".to_owned());
        }
        self.entries.extend(entries[self.entries.len()..].iter().cloned());
        Ok(())
    }

    /// It holds a part of what was sent, or all of it and what came since, and the instruction.
    fn summary(&mut self, entries: &[Arc<Entry>]) -> Result<(), String> {
        let read = Validator::default().check(entries);
        read.map_err(|breach| breach.to_string())?;
        let part = entries.split_last().map_or(&[][..], |(_, part)| part);
        self.summarised = Some(part.len());
        if begins_with(&self.entries, part) || begins_with(part, &self.entries) {
            return Ok(());
        }
        Err("invariant 6 is broken: a summary is asked for of something else".to_owned())
    }

    /// The summary stands for what was asked for, and the rest is as it was.
    fn compacted(&mut self, compactions: u64, entries: &[Arc<Entry>]) -> Result<(), String> {
        let last = std::mem::replace(&mut self.compactions, compactions);
        let sent = std::mem::take(&mut self.entries);
        let Some(cut) = self.summarised.filter(|_| compactions == last + 1) else {
            return Err("invariant 6 is broken: compacted without a summary".to_owned());
        };
        let kept = entries.get(1..).unwrap_or_default();
        if begins_with(kept, sent.get(cut..).unwrap_or_default()) {
            return Ok(());
        }
        Err("invariant 6 is broken: a compaction changes what it keeps".to_owned())
    }
}

fn begins_with(entries: &[Arc<Entry>], with: &[Arc<Entry>]) -> bool {
    let same = |(one, other): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(one, other) || one == other;
    entries.len() >= with.len() && entries.iter().zip(with).all(same)
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::conversation::Injected;

    use super::*;

    /// One entry for each letter: capitals are the model's.
    fn entries(letters: &str) -> Vec<Arc<Entry>> {
        let entry = |letter: char| match letter.is_uppercase() {
            true => Entry::Assistant(Arc::default()),
            false => Entry::User(Injected::prompt(letter.to_string())),
        };
        letters.chars().map(|letter| Arc::new(entry(letter))).collect()
    }

    #[test]
    fn invariant_6_begins_anew_at_a_compaction_that_keeps_what_it_says() {
        use Purpose::{Summary, Turn};
        for (requests, holds) in [
            (&[(Turn, 0, "a"), (Turn, 0, "aAb")][..], true),
            (&[(Turn, 0, "a"), (Turn, 0, "bAb")], false),
            (&[(Turn, 0, "aAb"), (Turn, 0, "a")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 1, "sbBc")], true),
            (&[(Turn, 0, "a"), (Summary, 0, "aA?"), (Turn, 1, "sb")], true),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 0, "aAbc")], true),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 1, "scBc")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "bA?"), (Turn, 1, "sb")], false),
            (&[(Turn, 0, "aAb"), (Turn, 1, "sb")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 2, "sb")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 0, "sb")], false),
        ] {
            let mut sent = Sent::default();
            let read = |(purpose, compactions, letters): &(Purpose, u64, &str)| {
                sent.read(*purpose, *compactions, &entries(letters))
            };
            assert_eq!(requests.iter().try_for_each(read).is_ok(), holds, "{requests:?}");
        }
    }
}
