//! A3: what was asked for happens whole, whether or not the asker still waits: the future is
//! dropped when it was polled once, while the store has it, and while the calls end.

use std::time::Duration;

use midturn_core::engine::{AgentSpec, Message};
use midturn_core::rules::event::{EventKind, Outcome, Scope};
use midturn_core::rules::mail::{Rest, Sender, Standing};
use midturn_core::rules::settings::{LimitsPatch, Settings};

use crate::world::{World, name};

/// When the asker goes: at once, while the first transaction is on its way, and after it.
const PATIENCE: [Duration; 3] = [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(301)];

async fn and_goes(asked: impl Future, patience: Duration) {
    tokio::time::timeout(patience, asked).await.ok();
}

fn ended(kind: &EventKind) -> bool {
    matches!(kind, EventKind::RunFinished { .. })
}

#[tokio::test(start_paused = true)]
async fn a3_a_stop_of_a_subtree_whose_asker_has_gone_stops_all_of_it() {
    for patience in PATIENCE {
        let world = World::new().await;
        world.agent("a", "waits").await;
        for below in ["b", "c", "d"] {
            world.coordinator.spawn_agent(World::spec(below, "waits", "a")).await.unwrap();
        }
        world.slow_down();
        and_goes(world.coordinator.stop("a", Sender::User, Scope::Subtree), patience).await;
        for agent in ["a", "b", "c", "d"] {
            world.until_ended(agent, 1).await;
            assert_eq!(world.log.ends(agent)[0].0, Outcome::Stopped);
        }
        assert_eq!(*world.stops.lock(), [4]);
    }
}

#[tokio::test(start_paused = true)]
async fn a3_an_agent_whose_spawner_has_gone_begins() {
    for patience in PATIENCE {
        let world = World::new().await;
        world.slow_down();
        and_goes(world.coordinator.spawn_agent(World::spec("a", "says", "lead")), patience).await;
        world.until_ended("a", 1).await;
        assert_eq!(world.log.ends("a")[0].0, Outcome::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn a3_a_supersede_whose_asker_has_gone_stops_the_run_and_starts_the_next() {
    for patience in PATIENCE {
        let world = World::new().await;
        world.agent("a", "waits once").await;
        world.slow_down();
        let message = Message::new(Sender::User, "a", "This instead.");
        and_goes(world.coordinator.supersede(message), patience).await;
        world.until_ended("a", 2).await;
        let outcomes: Vec<Outcome> = world.log.ends("a").into_iter().map(|(outcome, _)| outcome).collect();
        assert_eq!(outcomes, [Outcome::Stopped, Outcome::Finished]);
    }
}

#[tokio::test(start_paused = true)]
async fn a3_a_close_whose_asker_has_gone_closes_all_of_it() {
    for patience in PATIENCE {
        let world = World::new().await;
        world.agent("a", "waits").await;
        for below in ["b", "c"] {
            world.coordinator.spawn_agent(World::spec(below, "waits", "a")).await.unwrap();
        }
        world.slow_down();
        and_goes(world.coordinator.close("a", Sender::User), patience).await;
        world.log.until(3, |kind, _| matches!(kind, EventKind::AgentClosed {})).await;
        for agent in ["a", "b", "c"] {
            let standing = world.coordinator.agent(agent).unwrap().standing;
            assert_eq!(standing, Standing::Resting(Rest::Closed));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a3_a_resume_whose_asker_has_gone_starts_the_run() {
    for patience in PATIENCE {
        let world = World::new().await;
        world.agent("a", "fails once").await;
        world.until_ended("a", 1).await;
        world.coordinator.quiet().await;
        world.slow_down();
        and_goes(world.coordinator.resume("a"), patience).await;
        world.until_ended("a", 2).await;
        assert_eq!(world.log.ends("a")[1].0, Outcome::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn a3_a_limit_whose_raiser_has_gone_is_raised() {
    for patience in PATIENCE {
        let world = World::new().await;
        let settings = Settings { max_turns: 1, ..Settings::default() };
        let spec = AgentSpec { settings, ..World::spec("a", "says", "lead") };
        world.coordinator.spawn_agent(spec).await.unwrap();
        world.until_ended("a", 1).await;
        world.coordinator.quiet().await;
        let refused = world.coordinator.send_message("a", "More.", false).await.unwrap_err();
        assert_eq!(refused.code(), "limit");
        world.slow_down();
        let limits = LimitsPatch { max_turns: Some(5), ..LimitsPatch::default() };
        and_goes(world.coordinator.raise(Some("a"), limits), patience).await;
        world.log.until(1, |kind, _| matches!(kind, EventKind::LimitRaised { .. })).await;
        // What a raise does, it does behind its record.
        tokio::task::yield_now().await;
        world.coordinator.send_message("a", "More.", false).await.unwrap();
        world.log.until(2, |kind, of| of == name("a").as_str() && ended(kind)).await;
    }
}
