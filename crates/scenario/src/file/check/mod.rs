//! What a type can't say: names that must be known, ids that must be there once, keys that
//! exclude each other. Every error points at the value that is wrong.

mod agents;
mod anchors;
mod approvals;
mod expect;
mod items;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use midturn_core::rules::characters::{hides, is_blank};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::settings::{Patched, Settings, SettingsPatch};

use super::raw::{RawAgent, RawFile, RawTools};
use crate::error::{Error, Place, Source};
use crate::scenario::{Scenario, Tools, Workspace};
use crate::values::At;

/// The only version of the format.
const VERSION: u32 = 1;

/// Checks a file that was read.
pub(super) fn checked(source: Source, raw: RawFile) -> Result<Scenario, Error> {
    if raw.midturn.value != VERSION {
        let found = format!("version {}", raw.midturn.value);
        return Err(source.fault(raw.midturn.place, found, "`midturn: 1`, the only version there is"));
    }
    let tools = tools(&source, raw.tools.as_ref(), raw.workspace.as_ref())?;
    let approvals = approvals::checked(&source, raw.approvals, raw.messages.as_deref().unwrap_or_default())?;
    let settings = settings(&source, raw.settings.as_ref())?;
    let items = raw.messages.unwrap_or_default();
    let known = Known::of(&source, &raw.agents, &items)?;
    let agents = agents::checked(&known, &tools, raw.agents.value)?;
    let items = items::checked(&known, &tools, items)?;
    let expect = expect::checked(&known, &tools, raw.expect.unwrap_or_default())?;
    let name = raw.name.unwrap_or_else(|| source.path.to_string());
    Ok(Scenario { source, name, settings, tools, approvals, agents, items, expect })
}

fn tools(
    source: &Source,
    tools: Option<&At<RawTools>>,
    workspace: Option<&At<Workspace>>,
) -> Result<Tools, Error> {
    match (tools.map(|tools| tools.value), workspace) {
        (Some(RawTools::Real), Some(workspace)) => Ok(Tools::Real(beside(source, &workspace.value))),
        (Some(RawTools::Real), None) => {
            let place = tools.map_or(Place::START, |tools| tools.place);
            let expected = "`workspace: PATH` or `workspace: {clone: PATH}` beside it";
            Err(source.fault(place, "`tools: real` without a workspace", expected))
        }
        (_, Some(workspace)) => {
            Err(source.fault(workspace.place, "a workspace for simulated tools", "`tools: real` beside it"))
        }
        (_, None) => Ok(Tools::Simulated),
    }
}

/// A workspace's path, relative to the file's folder.
fn beside(source: &Source, workspace: &Workspace) -> Workspace {
    let folder = Path::new(&*source.path).parent().map(Path::to_path_buf).unwrap_or_default();
    match workspace {
        Workspace::Folder(path) => Workspace::Folder(folder.join(path)),
        Workspace::Clone(path) => Workspace::Clone(folder.join(path)),
    }
}

/// Settings under which nothing could ever run are refused here, where their place is known.
fn settings(source: &Source, patch: Option<&At<SettingsPatch>>) -> Result<SettingsPatch, Error> {
    let Some(patch) = patch else { return Ok(SettingsPatch::default()) };
    let mut settings = Settings::default();
    settings.patch(&patch.value);
    match settings.check() {
        Ok(()) => Ok(patch.value.clone()),
        Err(out) => {
            let key = out.key.rsplit('.').next().unwrap_or_default();
            let place = source.key_after(patch.place, key);
            Err(source.fault(place, format!("`{}: {}`", out.key, out.value), out.bounds.to_string()))
        }
    }
}

/// The names and ids of a file, gathered before anything refers to them.
pub(super) struct Known<'a> {
    source: &'a Source,
    agents: Vec<AgentName>,
    calls: BTreeMap<AgentName, BTreeSet<String>>,
    /// Of each item: its own id or, for a message, the counter's.
    item_ids: Vec<Option<String>>,
    messages: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn of(
        source: &'a Source,
        agents: &At<Vec<RawAgent>>,
        items: &[At<super::raw::RawItem>],
    ) -> Result<Self, Error> {
        if agents.value.is_empty() {
            return Err(source.fault(agents.place, "no agents", "at least one agent"));
        }
        let mut known = Self {
            source,
            agents: Vec::new(),
            calls: BTreeMap::new(),
            item_ids: Vec::new(),
            messages: BTreeSet::new(),
        };
        known.note_agents(&agents.value)?;
        known.note_items(items)?;
        known.note_sent_by_models(&agents.value);
        Ok(known)
    }

    fn note_agents(&mut self, agents: &[RawAgent]) -> Result<(), Error> {
        for agent in agents {
            let name = &agent.name.value;
            if self.agents.contains(name) {
                let found = format!("a second agent `{name}`");
                return Err(self.source.fault(agent.name.place, found, "each name once"));
            }
            self.agents.push(name.clone());
            self.calls.insert(name.clone(), self.note_calls(agent)?);
        }
        Ok(())
    }

    fn note_calls(&self, agent: &RawAgent) -> Result<BTreeSet<String>, Error> {
        let mut ids = BTreeSet::new();
        for call in agent.calls() {
            let id = id(self.source, &call.id)?;
            if !ids.insert(id.to_owned()) {
                let found = format!("a second call `{id}` of {}", agent.name.value);
                return Err(self.source.fault(call.id.place, found, "each call id once in an agent"));
            }
        }
        Ok(ids)
    }

    fn note_items(&mut self, items: &[At<super::raw::RawItem>]) -> Result<(), Error> {
        let mut taken = BTreeSet::new();
        for item in items.iter().filter_map(|item| item.value.id.as_ref()) {
            let id = id(self.source, item)?;
            if !taken.insert(id.to_owned()) {
                return Err(self.source.fault(item.place, format!("a second `{id}`"), "each id once"));
            }
        }
        let mut counter = (1u64..).map(|n| format!("m{n}")).filter(|id| !taken.contains(id));
        for item in items {
            let own = item.value.id.as_ref().map(|id| id.value.clone());
            let is_message = items::sends(&item.value);
            let id = own.or_else(|| if is_message { counter.next() } else { None });
            if is_message || item.value.supersede.is_some() {
                self.messages.extend(id.clone());
            }
            self.item_ids.push(id);
        }
        Ok(())
    }

    /// The ids that scripted `send_message` calls name.
    fn note_sent_by_models(&mut self, agents: &[RawAgent]) {
        let calls = agents.iter().flat_map(RawAgent::calls);
        for call in calls.filter(|call| call.name.value == "send_message") {
            let id = call.input.as_ref().and_then(|input| input.get("id")).and_then(|id| id.as_str());
            self.messages.extend(id.map(str::to_owned));
        }
    }

    fn agent(&self, name: &At<String>) -> Result<AgentName, Error> {
        let found = self.agents.iter().find(|known| known.as_str() == name.value);
        found.cloned().ok_or_else(|| {
            let known = self.agents.iter().map(AgentName::as_str);
            self.source.unknown(name.place, "agent", &name.value, known)
        })
    }

    fn sender(&self, name: &At<String>) -> Result<Sender, Error> {
        if name.value == "user" { Ok(Sender::User) } else { self.agent(name).map(Sender::Agent) }
    }

    fn message(&self, id: &At<String>) -> Result<(), Error> {
        if self.messages.contains(&id.value) || is_generated(&id.value) {
            return Ok(());
        }
        let known = self.messages.iter().map(String::as_str);
        Err(self.source.unknown(id.place, "message", &id.value, known))
    }

    fn call(&self, agent: &AgentName, id: &str, place: Place) -> Result<(), Error> {
        match self.calls.get(agent) {
            Some(calls) if !calls.contains(id) => {
                let what = format!("call of {agent}");
                Err(self.source.unknown(place, &what, id, calls.iter().map(String::as_str)))
            }
            _ => Ok(()),
        }
    }

    /// A call of anybody.
    fn any_call(&self, id: &str, place: Place) -> Result<(), Error> {
        let all = || self.calls.values().flatten().map(String::as_str);
        if all().any(|known| known == id) {
            Ok(())
        } else {
            Err(self.source.unknown(place, "call", id, all()))
        }
    }
}

/// Whether the engine itself may give such an id: `auto-N` to a message that a model sends
/// without one, `NAME#RUN` to the end of a subagent's run.
fn is_generated(id: &str) -> bool {
    let number = id.strip_prefix("auto-").or_else(|| id.split_once('#').map(|(_, run)| run));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Where a value stands, if it is there.
fn place<T>(value: &Option<At<T>>) -> Option<Place> {
    value.as_ref().map(|value| value.place)
}

/// An id that can be written and found again.
fn id<'a>(source: &Source, id: &'a At<String>) -> Result<&'a str, Error> {
    let text = id.value.as_str();
    if is_blank(text) || text == "any" || text.len() > 256 || text.chars().any(hides) {
        let expected = "an id of 1 to 256 printable bytes that is not `any`";
        return Err(source.fault(id.place, source.describe(id.place), expected));
    }
    Ok(text)
}

/// A path of the file's must stay beneath what it is relative to.
fn is_inside(source: &Source, path: &At<String>) -> Result<(), Error> {
    use std::path::Component;
    let mut parts = Path::new(&path.value).components();
    if path.value.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(source.fault(path.place, source.describe(path.place), "a path beneath the worktree"));
    }
    Ok(())
}
