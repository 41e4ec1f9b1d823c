//! Reads every prompt on its way to the model and believes nothing: the invariants of
//! semantics.md, section 10, in full and from the outside. The engine's own validator looks
//! only at what is new; this one also compares all that was sent before.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure, Request};
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
    /// Each agent's last prompt.
    prompts: HashMap<AgentName, Vec<Arc<Entry>>>,
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
        for (agent, entries) in prompts {
            let read = Validator::default().check(&entries);
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
        let entries = request.entries;
        let mut found = self.found.lock();
        let sent = found.prompts.entry(self.agent.clone()).or_default();
        let changed = sent.iter().zip(entries).any(|(old, new)| !Arc::ptr_eq(old, new) && old != new);
        if changed || sent.len() > entries.len() {
            let agent = &self.agent;
            let breach =
                format!("{agent}: invariant 6 is broken: call {} changes what was sent", request.call);
            found.breaches.push(breach);
        } else {
            sent.extend(entries[sent.len()..].iter().cloned());
        }
    }
}
