//! Hands every prompt on its way to the model to the auditor of core's rules.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use midturn_core::engine::ports::{Model, ModelFactory, ModelFailure, Request};
use midturn_core::rules::audit::prompts::Prompts;
use midturn_core::rules::conversation::Reply;
use midturn_core::rules::id::AgentName;

/// Models that do as the ones they wrap, and what was found in their prompts.
pub(super) struct Audit {
    inner: Arc<dyn ModelFactory>,
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    breaches: Vec<String>,
    prompts: Prompts,
}

impl Audit {
    pub(super) fn of(inner: Arc<dyn ModelFactory>) -> Self {
        Self { inner, found: Arc::default() }
    }

    /// What was found, each agent's last prompt read once more from its beginning.
    pub(super) fn breaches(&self) -> Vec<String> {
        let mut found = self.found.lock();
        let mut breaches = std::mem::take(&mut found.breaches);
        let last = std::mem::take(&mut found.prompts).ends();
        breaches.extend(last.into_iter().map(|(agent, breach)| format!("{agent}: {breach}")));
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
        let Request { purpose, compactions, entries, call, .. } = *request;
        if let Err(breach) = found.prompts.read(&self.agent, purpose, compactions, entries) {
            found.breaches.push(format!("{}: {breach} in call {call}", self.agent));
        }
    }
}
