//! A process may end at any commit: nothing that was accepted is lost or doubled, every
//! prompt stays valid and only grows, and no result lies (semantics.md, section 10).
//!
//! Every place is tried: a session of two agents is ended after its first, second, third …
//! transaction, taken up, ended again a little later, taken up and played to its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod halts;
mod ledger;
mod world;

use std::sync::{Arc, OnceLock};

use ledger::Ledger;
use midturn_core::engine::{AgentSpec, Coordinator};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{ReceiptState, Role, Sender};
use midturn_core::rules::settings::Settings;
use world::{Asked, Life, Play, World};

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// A process that begins the session, or goes on with it.
async fn live(play: Play, world: &Arc<World>, ledger: &Arc<Ledger>) -> Life {
    let life = Life { play, world: world.clone(), coordinator: Arc::new(OnceLock::new()) };
    let builder = Coordinator::builder(Arc::new(life.clone()), Arc::new(life.clone())).store(ledger.clone());
    let begun = ledger.len() > 0;
    let builder = if begun { builder.resume(ledger.journal()) } else { builder };
    let Ok(coordinator) = builder.start().await else { return life };
    life.coordinator.set(coordinator.clone()).ok();
    coordinator.go_on().await;
    for spec in cast(play) {
        // Who is there already keeps its name; a store that has ended takes nobody.
        coordinator.cast_agent(spec).await.ok();
    }
    if begun {
        life.say_again().await;
    } else {
        life.moment("start").await;
    }
    coordinator.quiet().await;
    life
}

fn cast(play: Play) -> [AgentSpec; 2] {
    let context_tokens = if play == Play::Long { 400 } else { 0 };
    let lead = AgentSpec {
        role: Role::Lead,
        prompt: Some("See to it.".into()),
        ..AgentSpec::new(name("lead"), "any")
    };
    let worker = AgentSpec {
        parent: Some(name("lead")),
        prompt: Some("Do it.".into()),
        settings: Settings { context_tokens, compact_keep_turns: 1, ..Settings::default() },
        ..AgentSpec::new(name("worker"), "any")
    };
    [worker, lead]
}

/// Ends processes after so many transactions each, and plays the rest.
async fn played(play: Play, ends: &[usize]) -> (Arc<World>, Arc<Ledger>, Life) {
    let (world, ledger) = (Arc::new(World::default()), Arc::new(Ledger::default()));
    for transactions in ends {
        ledger.live(*transactions);
        live(play, &world, &ledger).await;
    }
    ledger.live(usize::MAX);
    let life = live(play, &world, &ledger).await;
    (world, ledger, life)
}

/// Whether the end of the worker's run comes into the lead's conversation.
fn tells_of(event: &Event, run: usize) -> bool {
    match &event.kind {
        EventKind::MessageInjected { messages, .. } => {
            messages.iter().any(|id| id.as_str() == format!("worker#{run}"))
        }
        _ => false,
    }
}

/// Invariants 1 to 4 and 6 to 8 of a session that was ended at any place.
fn check(world: &World, ledger: &Ledger, life: &Life) -> Result<(), String> {
    let requests = world.requests.lock();
    for (agent, requests) in requests.iter() {
        only_grow(requests).map_err(|what| format!("6: {agent} {what}"))?;
    }
    let last = |agent: &str| requests[&name(agent)].last().unwrap().blocks.join("\n");
    let worker = last("worker");
    for id in world.accepted.lock().keys() {
        let times = worker.matches(&format!("Mind {id}.")).count();
        if times != 1 {
            return Err(format!("3: {id} is in the prompt {times} times: {worker}"));
        }
    }
    let ends = |event: &Event| {
        event.at.agent == Some(name("worker")) && matches!(event.kind, EventKind::RunFinished { .. })
    };
    let ends = ledger.events().iter().filter(|event| ends(event)).count();
    // A wait for somebody who doesn't run says how that run ended, however often it is asked.
    let told = |run: usize| ledger.events().iter().filter(|event| tells_of(event, run)).count();
    let read = last("lead").matches("[worker finished").count();
    if read < ends || (1..=ends).any(|run| told(run) > 1) {
        return Err(format!("2: each of {ends} ends of the worker is not told once: {}", last("lead")));
    }
    let began = world.began.lock();
    for id in ["a", "b", "c", "d", "e", "f", "g"] {
        let times = began.iter().filter(|began| began.as_str() == id).count();
        let said = |status: &str| worker.contains(&format!("{id} {status}: "));
        if times > 1 || (said("Completed") && times == 0) || (said("Skipped") && times > 0) {
            return Err(format!("4: {id} began {times} times: {worker}"));
        }
    }
    seqs(ledger)?;
    receipts(life)
}

/// Each request begins with the one before, or with a summary of what was asked for last and
/// then with what is left of the one before.
fn only_grow(requests: &[Asked]) -> Result<(), String> {
    let (mut sent, mut compactions): (&[String], u64) = (&[], 0);
    let mut part: &[String] = &[];
    for asked in requests {
        let blocks = asked.blocks.as_slice();
        if asked.purpose == Purpose::Summary {
            part = &blocks[..blocks.len() - 1];
            if !part.starts_with(sent) && !sent.starts_with(part) {
                return Err(format!("was asked for a summary of {part:#?} after {sent:#?}"));
            }
            continue;
        }
        let follows = match asked.compactions - compactions {
            0 => blocks.starts_with(sent),
            1 => {
                let left = sent.get(part.len()..).unwrap_or_default();
                blocks[0].starts_with("[Summary of the conversation so far: ")
                    && blocks[1..].starts_with(left)
            }
            _ => false,
        };
        if !follows {
            return Err(format!("was sent {sent:#?} and then {asked:#?}"));
        }
        (sent, compactions) = (blocks, asked.compactions);
    }
    Ok(())
}

fn seqs(ledger: &Ledger) -> Result<(), String> {
    let seqs: Vec<u64> = ledger.events().iter().map(|event| event.seq).collect();
    let gapless = (1..).zip(&seqs).all(|(expected, seq)| expected == *seq);
    if gapless { Ok(()) } else { Err(format!("events are not numbered without gaps: {seqs:?}")) }
}

fn receipts(life: &Life) -> Result<(), String> {
    let coordinator = life.coordinator.get().unwrap();
    for id in life.world.accepted.lock().keys() {
        let receipts = coordinator.receipts(&Sender::User, &midturn_core::rules::id::MessageId::new(*id));
        let states: Vec<ReceiptState> = receipts.iter().map(|receipt| receipt.state()).collect();
        if !matches!(states.as_slice(), [ReceiptState::Answered { .. }]) {
            return Err(format!("2: {id} was accepted and is {states:?}"));
        }
    }
    Ok(())
}

/// Ends two processes after so many transactions each, everywhere, and checks every session.
async fn end_everywhere(play: Play) {
    let whole = played(play, &[]).await.1.len();
    assert!(whole > 30, "the session has {whole} transactions");
    for first in 1..whole {
        for second in [0, 1, 2, 3, 5, 8, 13] {
            let (world, ledger, life) = played(play, &[first, second]).await;
            if let Err(breach) = check(&world, &ledger, &life) {
                panic!("ended after {first} and {second} transactions: {breach}");
            }
        }
    }
}

#[tokio::test]
async fn invariants_2_3_4_6_hold_wherever_a_process_ends() {
    end_everywhere(Play::Short).await;
}

/// How many requests for a summary there were.
fn summaries(world: &World) -> usize {
    let requests = world.requests.lock();
    requests.values().flatten().filter(|asked| asked.purpose == Purpose::Summary).count()
}

/// The session goes on with the compacted prompt, or asks for the summary again.
#[tokio::test]
async fn invariants_3_and_6_hold_wherever_a_process_ends_that_compacts() {
    let (world, ledger, life) = played(Play::Long, &[]).await;
    check(&world, &ledger, &life).unwrap();
    let compacted = |event: &&Event| matches!(event.kind, EventKind::Compacted { .. });
    let compactions = ledger.events().iter().filter(compacted).count();
    assert!(compactions >= 2, "{compactions} compactions");
    let summaries = summaries(&world);
    assert!(summaries > compactions, "one of {summaries} was cut by an urgent message");
    end_everywhere(Play::Long).await;
}
