//! Who may be spawned and as what: definition files made into agents, with the models and
//! tools they have. It starts nobody; the coordinator asks it.

use std::collections::BTreeMap;

use midturn_core::engine::ports::Observer;
use midturn_core::engine::{AgentSpec, Templates};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::settings::Settings;
use midturn_tools::workplace::{AgentPlace, Isolation};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts::Facts;
use super::names::{self, Allowed, Forbidden, INHERIT};
use super::prompts::{self, Parts};
use crate::agents::{self, About, Definition};
use crate::config::AgentDefaults;

/// What all agents of a run have in common.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    /// The definition files.
    pub(crate) definitions: BTreeMap<AgentName, Definition>,
    /// What holds where a definition doesn't say.
    pub(crate) defaults: AgentDefaults,
    /// Short names for models.
    pub(crate) aliases: BTreeMap<String, String>,
    /// The block of instructions for prompts.
    pub(crate) instructions: String,
    /// Whether nothing is changed: the mode is `plan`.
    pub(crate) looks_only: bool,
    /// Everybody's settings.
    pub(crate) settings: Settings,
    /// The one model of everybody: a scenario file's script. What definitions name is not used then.
    pub(crate) scripted: Option<String>,
    /// What is known of models.
    pub(crate) facts: Facts,
}

/// What an agent was made with. It is kept with the agent, so that its place is made the
/// same way when its session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    model: String,
    tools: Option<Vec<String>>,
    isolation: Isolation,
    /// Whether nothing was to be changed when it was asked for. A session that goes on in another mode makes it
    /// the place that it would have had.
    #[serde(default)]
    looks_only: bool,
}

impl Member {
    fn read(name: &AgentName, memo: &Value) -> Result<Self, String> {
        Self::deserialize(memo)
            .map_err(|error| format!("what was kept with the agent `{name}` can't be read: {error}"))
    }

    /// Who changes nothing needs no branch, and a worktree would be a change.
    fn place(self, looks_only: bool) -> AgentPlace {
        let looks_only = looks_only && self.looks_only;
        let isolation = if looks_only { Isolation::None } else { self.isolation };
        AgentPlace { isolation, tools: self.tools }
    }
}

/// Where an agent of a stored session worked, by what was kept with it.
///
/// # Errors
/// It is not what this program keeps.
pub(crate) fn kept_place(name: &AgentName, memo: &Value, looks_only: bool) -> Result<AgentPlace, String> {
    Member::read(name, memo).map(|member| member.place(looks_only))
}

/// Makes agents of definitions, and remembers what it made.
#[derive(Debug)]
pub(crate) struct Team {
    common: Common,
    /// Those that are there.
    members: Mutex<BTreeMap<AgentName, Member>>,
    /// Those that were asked for; they are there when the coordinator says so.
    asked: Mutex<BTreeMap<AgentName, Member>>,
}

impl Team {
    /// Checks what the definitions name: one whose model can't be had has its parent's, and a person is told.
    pub(crate) fn new(mut common: Common, check: impl Fn(&str) -> Result<(), String>) -> Self {
        let Common { definitions, aliases, scripted, .. } = &mut common;
        for definition in definitions.values_mut() {
            let (tools, disallowed, model) = definition.lines;
            let unknown =
                definition.tools.as_deref().map(|tools| Allowed::of(tools).unknown).unwrap_or_default();
            for name in unknown {
                definition.remark(About::Tool, tools, format!("`{name}`"));
            }
            for (about, name) in Forbidden::of(&definition.disallowed).remarks {
                definition.remark(about, disallowed, name);
            }
            let Some(named) = definition.model.as_mut().filter(|_| scripted.is_none()) else { continue };
            let found = match names::is_inherited(named) {
                true => Ok(INHERIT.to_owned()),
                false => names::model(named, aliases).and_then(|model| check(&model).map(|()| model)),
            };
            let refused = found.as_ref().err().map(|why| format!("`{named}`: {why}"));
            *named = found.unwrap_or_else(|_| INHERIT.to_owned());
            if let Some(why) = refused {
                definition.remark(About::Model, model, why);
            }
        }
        Self { common, members: Mutex::default(), asked: Mutex::default() }
    }

    /// The lead.
    pub(crate) fn lead(&self, name: &AgentName, model: &str, task: &str) -> AgentSpec {
        let instructions = &self.common.instructions;
        let system = prompts::system(Parts { name, parent: None, definition: None, instructions });
        // The lead works where the person stands: what it does is what they asked for.
        let isolation = Isolation::None;
        let memo =
            self.ask(name, Member { model: model.to_owned(), tools: None, isolation, looks_only: false });
        AgentSpec {
            role: Role::Lead,
            memo,
            prompt: Some(task.to_owned()),
            system,
            settings: self.common.facts.settings(model, &self.common.settings),
            ..AgentSpec::new(name.clone(), model)
        }
    }

    /// Where an agent works and with which tools.
    pub(crate) fn place_of(&self, agent: &AgentName) -> AgentPlace {
        let known = self.members.lock().get(agent).cloned();
        // Somebody may have written to it before its spawning was told.
        let known = known.or_else(|| self.asked.lock().get(agent).cloned());
        match known {
            Some(member) => member.place(self.common.looks_only),
            None => AgentPlace { isolation: Isolation::Worktree, tools: Some(Vec::new()) },
        }
    }

    /// What a person is told of the definitions.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Common { definitions, defaults, .. } = &self.common;
        let configured =
            defaults.tools.as_ref().map(|tools| Allowed::of(&tools.0).unknown).unwrap_or_default();
        let configured = (!configured.is_empty())
            .then(|| format!("agents.tools: tools that are not there: {}", configured.join(", ")));
        let remarks: Vec<_> =
            definitions.values().flat_map(|definition| definition.remarks.clone()).collect();
        configured.into_iter().chain(agents::told(&remarks)).chain(self.in_the_project()).collect()
    }

    /// Who works beside the lead though others don't.
    fn in_the_project(&self) -> Option<String> {
        let here = |definition: &&Definition| definition.isolation == Some(Isolation::None);
        let here = self.common.definitions.values().filter(here).map(|definition| definition.name.as_str());
        let here: Vec<&str> = here.collect();
        let is_unlike = !here.is_empty() && self.common.defaults.isolation != Isolation::None;
        is_unlike.then(|| {
            format!(
                "these agents work in the project folder itself, beside the lead: {} (`isolation: none`)",
                here.join(", ")
            )
        })
    }

    /// What a definition says; else what its parent has, so that nobody gets past its own
    /// definition by spawning; else what is configured. `None` is all.
    fn tools_of(&self, definition: Option<&Definition>, parent: &AgentName) -> Option<Vec<String>> {
        let own = definition.and_then(|definition| definition.tools.as_deref());
        let tools = match own {
            Some(own) => Allowed::of(own).tools,
            None => {
                let parents = self.members.lock().get(parent).and_then(|member| member.tools.clone());
                parents.or_else(|| Allowed::of(&self.common.defaults.tools.as_ref()?.0).tools)
            }
        };
        let disallowed = definition.map(|definition| Forbidden::of(&definition.disallowed));
        disallowed.unwrap_or_default().leaves(tools)
    }

    fn model_of(&self, definition: Option<&Definition>, parent: &AgentName) -> Result<String, String> {
        if let Some(scripted) = &self.common.scripted {
            return Ok(scripted.clone());
        }
        let own = definition.and_then(|definition| definition.model.as_deref());
        match own.unwrap_or(&self.common.defaults.model) {
            INHERIT => match self.members.lock().get(parent) {
                Some(member) => Ok(member.model.clone()),
                None => Err(format!("`{parent}` has no model that could be inherited")),
            },
            name => names::model(name, &self.common.aliases),
        }
    }

    fn definition(&self, template: &str) -> Result<&Definition, String> {
        self.common.definitions.get(template).ok_or_else(|| {
            let known: Vec<&str> = self.common.definitions.keys().map(AgentName::as_str).collect();
            match known.is_empty() {
                true => {
                    format!("there is no agent definition `{template}`, nor any other: leave `agent` out")
                }
                false => {
                    format!("there is no agent definition `{template}`; there are: {}", known.join(", "))
                }
            }
        })
    }

    /// Remembers who was asked for, and gives what is to be kept with the agent.
    fn ask(&self, name: &AgentName, member: Member) -> Value {
        let memo = serde_json::to_value(&member).unwrap_or_default();
        self.asked.lock().insert(name.clone(), member);
        memo
    }

    /// An agent of a session that goes on.
    ///
    /// # Errors
    /// What was kept with it is not what this program keeps.
    pub(crate) fn restore(&self, name: &AgentName, memo: &Value) -> Result<(), String> {
        self.members.lock().insert(name.clone(), Member::read(name, memo)?);
        Ok(())
    }
}

impl Templates for Team {
    fn resolve(
        &self,
        name: &AgentName,
        template: Option<&str>,
        parent: &AgentName,
    ) -> Result<AgentSpec, String> {
        let definition = template.map(|template| self.definition(template)).transpose()?;
        let model = self.model_of(definition, parent)?;
        let isolation =
            definition.and_then(|definition| definition.isolation).unwrap_or(self.common.defaults.isolation);
        let looks_only = self.common.looks_only;
        let system = prompts::system(Parts {
            name,
            parent: Some(parent),
            definition: definition.map(|definition| definition.system.as_str()),
            instructions: &self.common.instructions,
        });
        let tools = self.tools_of(definition, parent);
        let memo = self.ask(name, Member { model: model.clone(), tools, isolation, looks_only });
        Ok(AgentSpec {
            system,
            memo,
            settings: self.common.facts.settings(&model, &self.common.settings),
            ..AgentSpec::new(name.clone(), model)
        })
    }

    fn names(&self) -> Vec<(String, String)> {
        let definitions = self.common.definitions.values();
        definitions.map(|definition| (definition.name.to_string(), definition.description.clone())).collect()
    }
}

impl Observer for Team {
    /// An agent that was asked for is there. Asking again for a name that is taken must not
    /// change the tools of whoever has it, so what was asked counts only now.
    fn event(&self, event: &Event) {
        if let (EventKind::AgentSpawned { .. }, Some(name)) = (&event.kind, &event.at.agent)
            && let Some(member) = self.asked.lock().remove(name)
        {
            self.members.lock().insert(name.clone(), member);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use midturn_core::rules::event::{Place, VERSION};
    use midturn_core::rules::time::Micros;

    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    fn common(files: &[&str], scripted: Option<&str>) -> Common {
        let parsed = files.iter().map(|source| Definition::parse(Path::new("a.md"), source).unwrap());
        Common {
            definitions: parsed.map(|definition| (definition.name.clone(), definition)).collect(),
            defaults: AgentDefaults::default(),
            aliases: [("fast".to_owned(), "openai/f".to_owned())].into(),
            instructions: "\n\nTabs.".to_owned(),
            looks_only: false,
            settings: Settings { max_turns: 7, ..Settings::default() },
            scripted: scripted.map(str::to_owned),
            facts: Facts::default(),
        }
    }

    fn spawned(team: &Team, agent: &str) {
        let kind = EventKind::AgentSpawned { parent: None, role: Role::Subagent, model: None, prompt: None };
        team.event(&Event { v: VERSION, seq: 1, t: Micros(0), at: Place::of(&name(agent), 0, 0), kind });
    }

    const REVIEWER: &str =
        "---\nname: reviewer\ndescription: Reads.\ntools: Read, WebFetch\nmodel: fast\n---\nReview.";
    const HELPER: &str = "---\nname: helper\ndescription: Helps.\nmodel: inherit\n---\n";

    #[test]
    fn a_definition_gives_prompt_model_and_tools_and_the_rest_is_inherited() {
        let team = Team::new(common(&[REVIEWER, HELPER], None), |_| Ok(()));
        let lead = team.lead(&name("lead"), "anthropic/l", "Do it.");
        assert_eq!((lead.prompt.as_deref(), lead.settings.max_turns), (Some("Do it."), 7));
        spawned(&team, "lead");
        for (agent, template, parent, model, tools) in [
            ("r", Some("reviewer"), "lead", "openai/f", Some("read")),
            ("h", Some("helper"), "r", "openai/f", Some("read")),
            ("plain", None, "lead", "anthropic/l", None),
        ] {
            let spec = team.resolve(&name(agent), template, &name(parent)).unwrap();
            assert!(spec.system.contains(&format!("`{parent}` spawned")) && spec.system.ends_with("Tabs."));
            assert_eq!((spec.model.as_deref(), spec.settings.max_turns), (Some(model), 7));
            spawned(&team, agent);
            assert_eq!(team.place_of(&name(agent)).tools, tools.map(|tool| vec![tool.to_owned()]), "{agent}");
        }
        assert_eq!(team.names()[1], ("reviewer".to_owned(), "Reads.".to_owned()));
        assert_eq!(team.notes(), ["agent files: tools that are not there: `WebFetch` (a.md:4)"]);
    }

    /// C12.
    #[test]
    fn where_nothing_is_changed_a_subagent_looks_at_the_project_itself() {
        let place_of = |looks_only, memo: &Value| {
            let team = Team::new(Common { looks_only, ..common(&[], None) }, |_| Ok(()));
            team.restore(&name("w"), memo).unwrap();
            team.place_of(&name("w")).isolation
        };
        for (asked, isolation) in [(true, Isolation::None), (false, Isolation::Worktree)] {
            let team = Team::new(Common { looks_only: asked, ..common(&[], None) }, |_| Ok(()));
            team.lead(&name("lead"), "anthropic/l", "x");
            spawned(&team, "lead");
            let spec = team.resolve(&name("w"), None, &name("lead")).unwrap();
            assert_eq!(team.place_of(&name("w")).isolation, isolation);
            // The session goes on in a mode.
            assert_eq!(place_of(true, &spec.memo), isolation);
            assert_eq!(place_of(false, &spec.memo), Isolation::Worktree);
        }
    }

    #[test]
    fn asking_for_a_name_that_is_taken_changes_nobodys_tools() {
        let team = Team::new(common(&[REVIEWER], None), |_| Ok(()));
        team.lead(&name("lead"), "anthropic/l", "x");
        spawned(&team, "lead");
        team.resolve(&name("r"), Some("reviewer"), &name("lead")).unwrap();
        spawned(&team, "r");
        team.resolve(&name("r"), None, &name("lead")).unwrap();
        assert_eq!(team.place_of(&name("r")).tools, Some(vec!["read".to_owned()]));
    }

    #[test]
    fn what_is_not_there_is_an_error_that_says_what_is() {
        let resolve = |files: &[&str]| {
            let team = Team::new(common(files, None), |_| Ok(()));
            team.resolve(&name("x"), Some("nobody"), &name("lead")).unwrap_err()
        };
        assert_eq!(
            resolve(&[REVIEWER, HELPER]),
            "there is no agent definition `nobody`; there are: helper, reviewer"
        );
        assert!(resolve(&[]).ends_with("leave `agent` out"));
    }

    #[test]
    fn a_model_that_cannot_be_had_is_told_and_its_agent_has_its_parents() {
        const BAD: &str = "---\nname: a\ndescription: b\nmodel: gpt\n---\n";
        for (file, refused, told) in [
            (BAD, false, "so the parent's is used: `gpt`: unknown model `gpt`"),
            (REVIEWER, true, "so the parent's is used: `fast`: no openai/f (a.md:5)"),
        ] {
            let check = |model: &str| if refused { Err(format!("no {model}")) } else { Ok(()) };
            let team = Team::new(common(&[file], None), check);
            team.lead(&name("lead"), "anthropic/l", "x");
            spawned(&team, "lead");
            assert!(team.notes().iter().any(|note| note.contains(told)), "{:?}", team.notes());
            let template = team.names()[0].0.clone();
            let spec = team.resolve(&name("x"), Some(&template), &name("lead")).unwrap();
            assert_eq!(spec.model.as_deref(), Some("anthropic/l"));
        }
    }

    #[test]
    fn with_a_script_everybody_has_it() {
        let team = Team::new(common(&[REVIEWER], Some("scripted:x.yaml")), |_| Err("no".to_owned()));
        let spec = team.resolve(&name("r"), Some("reviewer"), &name("lead")).unwrap();
        assert_eq!(spec.model.as_deref(), Some("scripted:x.yaml"));
    }
}
