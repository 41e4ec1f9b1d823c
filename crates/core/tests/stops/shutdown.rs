//! E1: a shutdown returns no mail, what was accepted in its instant neither.

use midturn_core::engine::Message;
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{ReceiptState, ReturnReason, Sender};
use midturn_core::rules::time::Span;

use crate::world::{World, name};

async fn two_at_work() -> World {
    let world = World::new().await;
    world.agent("a", "waits").await;
    world.agent("b", "waits").await;
    world.slow_down();
    world
}

fn to_a(from: &Sender, id: &str) -> Message {
    Message { id: Some(MessageId::new(id)), ..Message::new(from.clone(), "a", "Mind this.") }
}

/// The message is with the store when the shutdown comes, and arrives while the run ends.
#[tokio::test(start_paused = true)]
async fn e1_mail_that_is_being_accepted_when_the_process_ends_waits_for_the_next_start() {
    let world = two_at_work().await;
    let peer = Sender::Agent(name("b"));
    let message = to_a(&peer, "m");
    let shutdown = async {
        while world.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        world.coordinator.shutdown().await
    };
    let (sent, _) = tokio::join!(world.coordinator.send(message), shutdown);
    assert!(sent.is_ok(), "{sent:?}");
    let receipts = world.coordinator.receipts(&peer, &MessageId::new("m"));
    let states: Vec<ReceiptState> = receipts.iter().map(|receipt| receipt.state()).collect();
    assert_eq!(states, [ReceiptState::Queued]);
}

/// A person's message asks for the next run while a shutdown ends this one, and expires before that:
/// the run isn't asked for any more. Another's mail waits for the next start all the same.
#[tokio::test(start_paused = true)]
async fn what_expires_while_the_process_ends_sends_nobody_elses_mail_back() {
    let world = two_at_work().await;
    let (peer, person) = (Sender::Agent(name("b")), Sender::User);
    // It arrives while the run ends, and the run ends later than this.
    let short = Message { expires_after: Some(Span::millis(450)), ..to_a(&person, "p") };
    let shutdown = async {
        while world.seen().len() < 2 {
            tokio::task::yield_now().await;
        }
        world.coordinator.shutdown().await
    };
    let (sent, short, _) =
        tokio::join!(world.coordinator.send(to_a(&peer, "m")), world.coordinator.send(short), shutdown);
    assert!(sent.is_ok() && short.is_ok(), "{sent:?} {short:?}");
    let receipt = |from: &Sender, id: &str| world.coordinator.receipts(from, &MessageId::new(id)).remove(0);
    let expired = ReceiptState::Returned(ReturnReason::Expired);
    assert_eq!(receipt(&person, "p").reached(|state| *state != ReceiptState::Queued).await, expired);
    assert_eq!(receipt(&peer, "m").state(), ReceiptState::Queued);
}
