//! Who waits for whom, and whether one more wait would never end (semantics.md, section 9).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{AgentName, CallId};

/// What ends a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// All that are named don't run.
    #[default]
    All,
    /// One that is named doesn't run.
    Any,
}

/// A wait: for whom, and what ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who is waited for.
    pub names: BTreeSet<AgentName>,
    /// What ends it.
    pub mode: WaitMode,
}

/// All waits, by who waits and in which call: with `concurrency = "all"` an agent can have several.
pub type Waits = BTreeMap<(AgentName, CallId), Wait>;

/// The members of the cycle that `waiter`'s wait would close: a set of waiting agents in
/// which every `all` names a member and every `any` names only members.
pub fn cycle(waits: &Waits, waiter: &AgentName, wait: &Wait) -> Option<Vec<AgentName>> {
    let mut graph: Graph<'_> = waits.iter().map(|((name, _), wait)| (name, wait)).collect();
    graph.push((waiter, wait));
    let mut members: BTreeSet<&AgentName> = graph.iter().map(|(name, _)| *name).collect();
    loop {
        let held = |(_, wait): &&(&AgentName, &Wait)| is_held(wait, &members);
        let kept: BTreeSet<&AgentName> = graph.iter().filter(held).map(|(name, _)| *name).collect();
        let kept: BTreeSet<&AgentName> = kept.intersection(&members).copied().collect();
        if kept.len() == members.len() {
            break;
        }
        members = kept;
    }
    let closes = members.contains(waiter) && is_held(wait, &members);
    closes.then(|| walk(&graph, &members, waiter))
}

type Graph<'a> = Vec<(&'a AgentName, &'a Wait)>;

fn is_held(wait: &Wait, members: &BTreeSet<&AgentName>) -> bool {
    match wait.mode {
        WaitMode::All => wait.names.iter().any(|name| members.contains(name)),
        WaitMode::Any => !wait.names.is_empty() && wait.names.iter().all(|name| members.contains(name)),
    }
}

/// The shortest way from the waiter along the waits back to it. There is one: whoever can't
/// reach the waiter would have waited for ever without it.
fn walk(graph: &Graph<'_>, members: &BTreeSet<&AgentName>, waiter: &AgentName) -> Vec<AgentName> {
    let next = |here: &AgentName| -> BTreeSet<&AgentName> {
        let held = graph.iter().filter(|(name, wait)| *name == here && is_held(wait, members));
        held.flat_map(|(_, wait)| &wait.names).filter(|name| members.contains(name)).collect()
    };
    let mut seen = BTreeSet::from([waiter]);
    let mut paths = VecDeque::from([vec![waiter]]);
    while let Some(path) = paths.pop_front() {
        for other in path.last().map(|here| next(here)).unwrap_or_default() {
            if other == waiter {
                return path.into_iter().cloned().collect();
            }
            if seen.insert(other) {
                paths.push_back(path.iter().copied().chain([other]).collect());
            }
        }
    }
    vec![waiter.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    fn wait(names: &str, mode: WaitMode) -> Wait {
        Wait { names: names.split_whitespace().map(name).collect(), mode }
    }

    #[test]
    fn a_wait_that_would_never_end_is_found_and_named() {
        use WaitMode::{All, Any};
        let call = CallId::new("w");
        let key = |text| (name(text), call.clone());
        let waits: Waits = [(key("a"), wait("b", All)), (key("b"), wait("c d", Any))].into();
        for (waiter, new, expected) in
            [("c", wait("a", All), None), ("a", wait("a", All), Some("a")), ("x", wait("a", All), None)]
        {
            let found = cycle(&waits, &name(waiter), &new);
            let found =
                found.map(|names| names.iter().map(|n| n.as_str().to_owned()).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), expected, "{waiter}");
        }
        let mut closed = waits;
        closed.insert(key("d"), wait("a", All));
        let found = cycle(&closed, &name("c"), &wait("a", All));
        assert_eq!(found, Some(vec![name("c"), name("a"), name("b")]));
    }
}
