//! What `spawn_agent` makes an agent of.

use serde_json::Value;

use crate::rules::id::AgentName;
use crate::rules::mail::Role;
use crate::rules::secrets::Secrets;
use crate::rules::settings::Settings;

/// What an agent is made of.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Who gets its ends as mail, and stands above it.
    pub parent: Option<AgentName>,
    /// What starts its first run at once; without it the agent is idle until mail comes.
    pub prompt: Option<String>,
    /// The model by name; without one the agent is a name only.
    pub model: Option<String>,
    /// The system prompt.
    pub system: String,
    /// Its settings.
    pub settings: Settings,
    /// Kept with the agent for whoever made it: what it takes to make its place again.
    pub memo: Value,
}

impl AgentSpec {
    /// An idle subagent with default settings; the fields are public to be changed.
    pub fn new(name: AgentName, model: impl Into<String>) -> Self {
        Self {
            name,
            role: Role::Subagent,
            parent: None,
            prompt: None,
            model: Some(model.into()),
            system: String::new(),
            settings: Settings::default(),
            memo: Value::Null,
        }
    }

    /// Without secrets in what the model is to read. The memo stays as it is: it is read by
    /// who made it, and by nobody else.
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        let prompt = self.prompt.map(|prompt| secrets.redacted(prompt));
        Self { prompt, system: secrets.redacted(self.system), ..self }
    }
}

/// Looks up what the tool `spawn_agent {name, prompt, agent?}` asks for.
pub trait Templates: Send + Sync {
    /// The agent to be: `template` is the definition asked for. The prompt and the parent are
    /// filled in by the coordinator. The error tells the model what there is.
    fn resolve(
        &self,
        name: &AgentName,
        template: Option<&str>,
        parent: &AgentName,
    ) -> Result<AgentSpec, String>;

    /// What can be asked for, each with a description, for the tool's own description.
    fn names(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// No agent can be spawned by a model.
#[derive(Debug, Default)]
pub struct NoTemplates;

impl Templates for NoTemplates {
    fn resolve(&self, _: &AgentName, _: Option<&str>, _: &AgentName) -> Result<AgentSpec, String> {
        Err("no agents can be spawned here".to_owned())
    }
}
