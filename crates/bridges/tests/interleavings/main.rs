//! Hooks, senders and those who look, let go and killed between any two steps, against a model: nothing is lost,
//! nothing is doubled, and order is kept. `MIDTURN_INTERLEAVINGS` says how many histories, `MIDTURN_INTERLEAVING`
//! which one alone.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod baton;
mod model;
mod people;
mod program;

use std::path::Path;

use midturn_bridges::claude::sweep;
use midturn_bridges::spool::State;
use midturn_core::rules::mail::ReturnReason;

use self::baton::{Actor, Dice, Stopped};
use self::people::World;
use self::program::Program;

/// As many as a build has time for.
const HISTORIES: u64 = 1_000;

/// Who waits to be let go.
struct Waiting {
    actor: Actor,
    /// A hook, and when it began.
    hook: Option<u64>,
}

/// One history; what didn't hold in it.
fn history(seed: u64, folder: &Path) -> Vec<String> {
    let mut dice = Dice::of(seed);
    let world = World::at(folder.join("midturn"), seed << 8);
    let mut program = Program::begins(&world, folder.join("transcript.jsonl"), &mut dice);
    let mut waiting: Vec<Waiting> = (0..2 + dice.below(4)).map(|_| one(&world, &mut dice)).collect();
    let mut kills = dice.below(4);
    let deadly = 20 + dice.below(200);
    while !(program.is_over() && waiting.is_empty()) {
        if program.can_die() && dice.once_in(100) {
            program.dies();
        }
        if program.has_unwritten() && dice.once_in(6) {
            program.writes();
            continue;
        }
        if !program.is_over() && !waiting.iter().any(|waits| waits.hook.is_some()) && dice.once_in(3) {
            let hooks = program.goes(&mut dice).into_iter();
            waiting
                .extend(hooks.map(|hook| Waiting { actor: Actor::begins(hook.does), hook: Some(hook.now) }));
            continue;
        }
        if waiting.is_empty() {
            continue;
        }
        let at = dice.below(waiting.len());
        let is_killed = kills > 0 && dice.once_in(deadly);
        let stopped =
            if is_killed { waiting[at].actor.dies() } else { waiting[at].actor.goes(steps(&mut dice)) };
        kills -= usize::from(is_killed);
        if is_killed && let Some(began) = waiting[at].hook {
            world.loses(began);
        }
        match stopped {
            Stopped::Between => {}
            Stopped::Done | Stopped::Killed => drop(waiting.swap_remove(at)),
            Stopped::Panicked => return vec!["one panicked".to_owned()],
        }
    }
    ends(&world, &mut program)
}

fn one(world: &World, dice: &mut Dice) -> Waiting {
    let (own, world) = (dice.fork(), world.clone());
    let does: Box<dyn FnOnce() + Send> = if dice.once_in(4) {
        Box::new(move || world.sweeps(own))
    } else {
        Box::new(move || world.sends(own))
    };
    Waiting { actor: Actor::begins(does), hook: None }
}

/// Mostly the least, at times all that there is.
fn steps(dice: &mut Dice) -> u32 {
    match dice.below(8) {
        0 => 60,
        1 => 1 + u32::try_from(dice.below(20)).unwrap_or_default(),
        2 | 3 => 1 + u32::try_from(dice.below(4)).unwrap_or_default(),
        _ => 1,
    }
}

/// Nobody dies any more, and all that is on its way comes to its end.
fn ends(world: &World, program: &mut Program) -> Vec<String> {
    if !program.gone {
        program.settles();
    }
    if let Err(error) = sweep(&world.spool(world.now(5_000))) {
        return vec![error.to_string()];
    }
    if let Some(key) = world.twice() {
        return vec![format!("there are two files of {key:?}")];
    }
    if let left @ [_, ..] = &*world.left() {
        return vec![format!("a killed sender has left {left:?}")];
    }
    let mailbox = world.mailbox(world.now(0));
    world.log().ends(&mailbox, &program.told())
}

#[test]
fn nothing_is_lost_doubled_or_overtaken_however_the_steps_fall() {
    let number = |name| std::env::var(name).ok().and_then(|count| count.parse::<u64>().ok());
    let seeds = match number("MIDTURN_INTERLEAVING") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MIDTURN_INTERLEAVINGS").unwrap_or(HISTORIES),
    };
    // In memory, where there is such a place: it is synced at each message.
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let mut failed = Vec::new();
    for seed in seeds {
        let folder = tempfile::tempdir_in(&base).unwrap();
        let wrong = history(seed, folder.path());
        if !wrong.is_empty() {
            failed.push((seed, wrong));
        }
    }
    assert!(
        failed.is_empty(),
        "{} histories failed: {:#?}",
        failed.len(),
        failed.iter().take(5).collect::<Vec<_>>()
    );
}

/// One of the two is there, however far it came, and the next look leaves nothing else of it.
#[test]
fn who_is_killed_while_it_replaces_a_message_loses_neither() {
    let (old, new) = (("user", 0), ("user", 4));
    let mut seen = Vec::new();
    for steps in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let world = World::at(folder.path().to_owned(), 0);
        std::fs::create_dir_all(folder.path().join("joined").join(people::SESSION)).unwrap();
        world.send(old, world.now(0));
        let replaces = world.clone();
        let actor = Actor::begins(move || replaces.replaces(new, old, false, replaces.now(0)));
        if actor.goes(steps) == Stopped::Done {
            break;
        }
        actor.dies();
        let mailbox = world.mailbox(world.now(0));
        assert_eq!(mailbox.pending().unwrap().len(), 1, "after {steps} steps");
        assert_eq!(world.left(), [""; 0], "after {steps} steps");
        seen.push(mailbox.state("user", &model::id(old)).unwrap());
    }
    seen.dedup();
    assert_eq!(seen, [Some(State::Queued), Some(State::Returned(ReturnReason::Superseded))]);
}
