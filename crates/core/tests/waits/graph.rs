//! The rule alone: agents that begin to wait, are released and end in a random order.

use std::collections::BTreeSet;

use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::waiting::{Wait, WaitMode, Waits as Rules, cycle};
use proptest::prelude::*;

use crate::world::{Waits, World, is_path, stuck};

const AGENTS: usize = 6;

/// What happens next.
#[derive(Clone, Debug)]
enum Deed {
    /// The agent asks to wait; with `concurrency = "all"` it may wait already.
    Wait { agent: usize, names: BTreeSet<usize>, all: bool },
    /// Mail, a timeout or an urgent message ends the oldest of its waits.
    Release { agent: usize },
    /// It is stopped or closed: none of its waits is left.
    Close { agent: usize },
}

fn deed() -> impl Strategy<Value = Deed> {
    let agent = 0..AGENTS;
    let names = proptest::collection::btree_set(0..AGENTS, 1..=4);
    prop_oneof![
        6 => (agent.clone(), names, any::<bool>()).prop_map(|(agent, names, all)| {
            Deed::Wait { agent, names, all }
        }),
        2 => agent.clone().prop_map(|agent| Deed::Release { agent }),
        1 => agent.prop_map(|agent| Deed::Close { agent }),
    ]
}

fn letter(agent: usize) -> String {
    format!("a{agent}")
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// The same waits as the rules keep them and as the finder does.
#[derive(Default)]
struct Both {
    rules: Rules,
    /// The keys of an agent's waits, oldest first.
    order: Vec<(AgentName, CallId)>,
    calls: usize,
}

impl Both {
    fn world(&self, and: Option<(&AgentName, &Wait)>) -> World {
        let mut world = World::new();
        let known = self.rules.iter().map(|((name, _), wait)| (name, wait));
        for (name, wait) in known.chain(and) {
            let names = wait.names.iter().map(|name| name.as_str().to_owned()).collect();
            let wait = Waits { names, all: wait.mode == WaitMode::All };
            world.entry(name.as_str().to_owned()).or_default().push(wait);
        }
        world
    }

    /// Asks whether the agent may wait, holds the answer against the finder, and takes it in.
    fn wait(&mut self, agent: usize, names: &BTreeSet<usize>, all: bool) -> Result<(), TestCaseError> {
        let waiter = name(&letter(agent));
        let mode = if all { WaitMode::All } else { WaitMode::Any };
        // An agent doesn't wait for itself: that is refused before.
        let names = names.iter().filter(|other| **other != agent).map(|other| name(&letter(*other)));
        let wait = Wait { names: names.collect(), mode };
        if wait.names.is_empty() {
            return Ok(());
        }
        let world = self.world(Some((&waiter, &wait)));
        let would_hang = stuck(&world);
        match cycle(&self.rules, &waiter, &wait) {
            Some(members) => {
                let members: Vec<String> = members.iter().map(|name| name.as_str().to_owned()).collect();
                prop_assert!(would_hang.contains(waiter.as_str()), "{members:?} is none in {world:?}");
                is_named_right(&world, &would_hang, waiter.as_str(), &members)?;
            }
            None => {
                prop_assert!(would_hang.is_empty(), "{would_hang:?} would wait for ever in {world:?}");
                let key = (waiter, CallId::new(format!("w{}", self.calls)));
                self.calls += 1;
                self.order.push(key.clone());
                self.rules.insert(key, wait);
            }
        }
        Ok(())
    }

    fn release(&mut self, agent: usize, most: usize) {
        for _ in 0..most.min(self.order.len()) {
            let Some(at) = self.order.iter().position(|(name, _)| name.as_str() == letter(agent)) else {
                return;
            };
            let key = self.order.remove(at);
            self.rules.remove(&key);
        }
    }
}

/// The cycle that is named begins with who asks, each member waits for the next, and all of
/// them would wait for ever.
fn is_named_right(
    world: &World,
    would_hang: &BTreeSet<String>,
    waiter: &str,
    members: &[String],
) -> Result<(), TestCaseError> {
    let distinct: BTreeSet<&String> = members.iter().collect();
    prop_assert_eq!(distinct.len(), members.len(), "{:?}", members);
    prop_assert_eq!(members.first().map(String::as_str), Some(waiter));
    prop_assert!(
        members.iter().all(|member| would_hang.contains(member)),
        "{:?} of {:?}",
        members,
        would_hang
    );
    let closed: Vec<String> = members.iter().chain(members.first()).cloned().collect();
    prop_assert!(is_path(world, &closed), "{:?} is no circle in {:?}", closed, world);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wait_is_refused_exactly_if_it_would_never_end(deeds in proptest::collection::vec(deed(), 1..40)) {
        let mut both = Both::default();
        for deed in deeds {
            match deed {
                Deed::Wait { agent, names, all } => both.wait(agent, &names, all)?,
                Deed::Release { agent } => both.release(agent, 1),
                Deed::Close { agent } => both.release(agent, usize::MAX),
            }
        }
    }
}
