//! A stop of many waits for the store between no two of them, nor does a resume: counted by the store.

use midturn_core::engine::AgentSpec;
use midturn_core::rules::event::{EventKind, Outcome, Scope};
use midturn_core::rules::mail::{Rest, Sender, Standing};
use midturn_core::rules::settings::Settings;

use crate::world::{World, name};

/// How many agents are stopped.
const MANY: usize = 64;

/// So many agents at work, `root` above all the others, three deep.
async fn at_work() -> World {
    let world = World::new().await;
    let settings = Settings { max_agents: 100, ..Settings::default() };
    for n in 0..MANY {
        let parent = match n {
            0 => "lead".to_owned(),
            1..8 => "root".to_owned(),
            _ => format!("a{}", 1 + n % 7),
        };
        let agent = if n == 0 { "root".to_owned() } else { format!("a{n}") };
        let spec = AgentSpec { settings: settings.clone(), ..World::spec(&agent, "waits", &parent) };
        world.coordinator.cast_agent(spec).await.unwrap();
    }
    while world.tokens.count().0 < MANY {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.tokens.count(), (MANY, 0));
    world.slow_down();
    world
}

/// Whenever the store began or ended something, none of them was cancelled or all were; and
/// they are recorded as one.
fn is_between_no_two(world: &World) {
    let seen = world.seen();
    assert!(seen.iter().all(|cancelled| [0, MANY].contains(cancelled)), "{seen:?}");
    assert!(seen.contains(&MANY), "the store was not asked: {seen:?}");
    assert_eq!(*world.stops.lock(), [MANY]);
    let below = |_: &EventKind, of: &str| of != "lead";
    let stopped = world.log.count(|kind, of| {
        let EventKind::RunFinished { outcome, .. } = kind else { return false };
        below(kind, of) && *outcome == Outcome::Stopped
    });
    assert_eq!(stopped, MANY);
}

/// A2: sixteen agents over a store that takes 300 ms were cancelled one after the other.
#[tokio::test(start_paused = true)]
async fn a2_between_the_first_and_the_last_cancellation_of_a_stop_the_store_does_nothing() {
    let world = at_work().await;
    let reply = world.coordinator.stop("root", Sender::User, Scope::Subtree).await.unwrap();
    assert_eq!(reply.stopped.len(), MANY);
    world.coordinator.quiet().await;
    is_between_no_two(&world);
}

/// A2: the same for a close; each is closed, leaves first.
#[tokio::test(start_paused = true)]
async fn a2_between_the_first_and_the_last_cancellation_of_a_close_the_store_does_nothing() {
    let world = at_work().await;
    let closed = world.coordinator.close("root", Sender::User).await.unwrap();
    assert_eq!((closed.len(), closed.last()), (MANY, Some(&name("root"))));
    let is_closed = |kind: &EventKind, _: &str| matches!(kind, EventKind::AgentClosed {});
    world.log.until(MANY, is_closed).await;
    is_between_no_two(&world);
    let standing = world.coordinator.agent("root").unwrap().standing;
    assert_eq!(standing, Standing::Resting(Rest::Closed));
}

/// A2: the same for a shutdown.
#[tokio::test(start_paused = true)]
async fn a2_between_the_first_and_the_last_cancellation_of_a_shutdown_the_store_does_nothing() {
    let world = at_work().await;
    world.coordinator.shutdown().await;
    is_between_no_two(&world);
}

/// Many runs are still ending when all are resumed: no agent's record waits for another's.
#[tokio::test(start_paused = true)]
async fn the_records_of_many_resumes_wait_for_none_of_them() {
    let world = at_work().await;
    world.coordinator.stop("root", Sender::User, Scope::Subtree).await.unwrap();
    let resumed = world.coordinator.resume_all().await.unwrap();
    assert_eq!(resumed.len(), MANY);
    let ended = world.resumes.lock().clone();
    assert_eq!(ended.len(), MANY);
    assert_eq!(ended.first(), ended.last(), "{ended:?}");
}
