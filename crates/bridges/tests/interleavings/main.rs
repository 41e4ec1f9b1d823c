//! Hooks, senders and those who look, let go and killed between any two steps, against a model: nothing is lost,
//! nothing is doubled, and order is kept. `MIDTURN_INTERLEAVINGS` says how many histories, `MIDTURN_INTERLEAVING`
//! which one alone.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod baton;
mod model;
mod people;
mod program;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use midturn_bridges::claude::sweep;
use midturn_bridges::spool::{MAIN, State};
use midturn_core::rules::mail::ReturnReason;

use self::baton::{Actor, Dice, Stopped};
use self::model::Key;
use self::people::{FIXER, World};
use self::program::{Hook, Program};

/// As many as a build has time for.
const HISTORIES: u64 = 1_000;

/// Who waits to be let go.
struct Waiting {
    actor: Actor,
    /// A hook: when it took what it has taken.
    took: Option<Arc<AtomicU64>>,
    /// Of which process of the program's, and whether that goes on when it has ended.
    hook_of: Option<(usize, bool)>,
    /// What the program delivers when it has ended.
    delivers: Option<Key>,
}

impl Waiting {
    fn hook(hook: Hook, generation: usize) -> Self {
        let hook_of = Some((generation, hook.is_awaited));
        Self { actor: Actor::begins(hook.does), took: Some(hook.took), hook_of, delivers: None }
    }

    fn began(&self) -> Option<u64> {
        self.took.as_ref().map(|took| took.load(Ordering::Relaxed))
    }
}

/// One history.
struct History {
    dice: Dice,
    world: World,
    program: Program,
    waiting: Vec<Waiting>,
    kills: usize,
    deadly: usize,
}

impl History {
    fn begins(seed: u64, folder: &Path) -> Self {
        let mut dice = Dice::of(seed);
        let agent = if dice.once_in(3) { FIXER } else { MAIN };
        let world = World::at(folder.join("midturn"), seed << 8, agent);
        let program = Program::begins(&world, folder.join("transcript.jsonl"), &mut dice);
        let mut waiting: Vec<Waiting> = (0..2 + dice.below(4)).map(|_| one(&world, &mut dice)).collect();
        waiting.extend(program.waiter().map(|hook| Waiting::hook(hook, 0)));
        if agent == FIXER {
            let keys = (0..dice.below(3)).map(|nth| ("main", 100 + nth));
            waiting.extend(keys.map(|key| {
                let hook = Waiting::hook(program.coordinates(key), 0);
                Waiting { took: None, delivers: Some(key), ..hook }
            }));
        }
        let kills = dice.below(4);
        let deadly = 20 + dice.below(200);
        Self { dice, world, program, waiting, kills, deadly }
    }

    /// Until only those are left who wait behind the program. `false`: one panicked.
    fn goes(&mut self) -> bool {
        let waits =
            |one: &Waiting| one.delivers.is_none() && one.hook_of.is_some_and(|(_, awaited)| !awaited);
        while !(self.program.is_over() && self.waiting.iter().all(waits)) {
            if self.program_goes() || self.waiting.is_empty() {
                continue;
            }
            let at = self.dice.below(self.waiting.len());
            if !self.lets_go(at) {
                return false;
            }
        }
        self.program.dismisses();
        self.kills = 0;
        while !self.waiting.is_empty() {
            if !self.lets_go(0) {
                return false;
            }
        }
        true
    }

    /// Whether the program did something.
    fn program_goes(&mut self) -> bool {
        let (program, dice) = (&mut self.program, &mut self.dice);
        if program.can_die() && dice.once_in(100) {
            program.dies(dice);
        }
        if program.has_unwritten() && dice.once_in(6) {
            program.writes();
            return true;
        }
        let generation = program.generation;
        let awaited = |one: &Waiting| one.hook_of == Some((generation, true));
        let hooks = if program.resumes && dice.once_in(10) {
            program.is_resumed(dice)
        } else if !program.is_over() && !self.waiting.iter().any(awaited) && dice.once_in(3) {
            program.goes(dice)
        } else {
            return false;
        };
        let generation = program.generation;
        self.waiting.extend(hooks.into_iter().map(|hook| Waiting::hook(hook, generation)));
        true
    }

    /// One goes on for some steps, or dies. `false`: it panicked.
    fn lets_go(&mut self, at: usize) -> bool {
        let is_killed = self.kills > 0 && self.dice.once_in(self.deadly);
        let one = &self.waiting[at];
        let stopped = if is_killed { one.actor.dies() } else { one.actor.goes(steps(&mut self.dice)) };
        self.kills -= usize::from(is_killed);
        // Nobody hears a hook of a process that is dead, either.
        let is_of_the_dead =
            self.program.gone || one.hook_of.is_some_and(|of| of.0 < self.program.generation);
        if let Some(began) = one.began().filter(|_| is_killed || is_of_the_dead) {
            self.world.loses(Some(began));
        }
        if stopped == Stopped::Between {
            return true;
        }
        if let Some(key) = self.waiting.swap_remove(at).delivers {
            self.program.delivers(key);
        }
        stopped != Stopped::Panicked
    }
}

/// What didn't hold in a history.
fn history(seed: u64, folder: &Path) -> Vec<String> {
    let mut history = History::begins(seed, folder);
    if !history.goes() {
        return vec!["one panicked".to_owned()];
    }
    ends(&history.world, &mut history.program)
}

fn one(world: &World, dice: &mut Dice) -> Waiting {
    let (own, world) = (dice.fork(), world.clone());
    let does: Box<dyn FnOnce() + Send> = if dice.once_in(4) {
        Box::new(move || world.sweeps(own))
    } else {
        Box::new(move || world.sends(own))
    };
    Waiting { actor: Actor::begins(does), took: None, hook_of: None, delivers: None }
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
    if program.gone {
        program.dies(&mut Dice::of(0));
    } else {
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
        let world = World::at(folder.path().to_owned(), 0, MAIN);
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
    // A lock that a process of the other test inherits in the moment of its fork costs a further step, so one death may
    // be a step earlier than the one before: the first and the last are known.
    let (queued, superseded) = (Some(State::Queued), Some(State::Returned(ReturnReason::Superseded)));
    assert_eq!((seen.first(), seen.last()), (Some(&queued), Some(&superseded)));
    assert!(seen.iter().all(|state| *state == queued || *state == superseded), "{seen:?}");
}
