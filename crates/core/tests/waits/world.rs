//! Who would wait for ever, told by letting everybody else come to an end.
//!
//! Not the definition of section 9, but what it stands for: whoever waits for nothing ends
//! sooner or later, a wait is over when those it names have ended (or one of them), and whoever
//! is left when nobody can end any more would have waited for ever.

use std::collections::{BTreeMap, BTreeSet};

/// A wait: for whom, and whether for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) names: BTreeSet<String>,
    pub(crate) all: bool,
}

impl Waits {
    fn is_over(&self, ended: &BTreeSet<&String>) -> bool {
        let has_ended = |name: &String| ended.contains(name);
        if self.all { self.names.iter().all(has_ended) } else { self.names.iter().any(has_ended) }
    }
}

/// The waits of every agent that has any.
pub(crate) type World = BTreeMap<String, Vec<Waits>>;

/// Who waits for ever.
pub(crate) fn stuck(world: &World) -> BTreeSet<String> {
    let named = world.values().flatten().flat_map(|wait| &wait.names);
    let everybody: BTreeSet<&String> = world.keys().chain(named).collect();
    let mut ended: BTreeSet<&String> = BTreeSet::new();
    loop {
        let can_end = |name: &&&String| {
            let waits = world.get(**name);
            waits.is_none_or(|waits| waits.iter().all(|wait| wait.is_over(&ended)))
        };
        let now: BTreeSet<&String> = everybody.iter().filter(can_end).copied().collect();
        if now.len() == ended.len() {
            return everybody.into_iter().filter(|name| !ended.contains(name)).cloned().collect();
        }
        ended = now;
    }
}

/// Whether each of a row of names waits for the next.
pub(crate) fn is_path(world: &World, path: &[String]) -> bool {
    let waits_for = |one: &String, other: &String| {
        world.get(one).is_some_and(|waits| waits.iter().any(|wait| wait.names.contains(other)))
    };
    path.windows(2).all(|pair| waits_for(&pair[0], &pair[1]))
}

#[test]
fn the_finder_itself_knows_the_plain_cases() {
    let wait = |names: &str, all| Waits { names: names.split_whitespace().map(str::to_owned).collect(), all };
    for (waits, expected) in [
        (vec![("a", wait("b", true))], ""),
        (vec![("a", wait("b", true)), ("b", wait("a", true))], "a b"),
        (vec![("a", wait("a", false))], "a"),
        (vec![("a", wait("b c", false)), ("b", wait("a", true))], ""),
        (vec![("a", wait("b c", false)), ("b", wait("a", true)), ("c", wait("b", true))], "a b c"),
        (vec![("a", wait("b c", true)), ("b", wait("a", false))], "a b"),
        (vec![("a", wait("b", true)), ("b", wait("c", true)), ("c", wait("b", true))], "a b c"),
    ] {
        let mut world = World::new();
        for (name, wait) in waits {
            world.entry(name.to_owned()).or_default().push(wait);
        }
        let found: Vec<String> = stuck(&world).into_iter().collect();
        assert_eq!(found.join(" "), expected, "{world:?}");
    }
}
