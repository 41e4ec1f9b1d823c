//! E1: a shutdown returns no mail, what was accepted in its instant neither.

use midturn_core::engine::Message;
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{ReceiptState, Sender};

use crate::world::{World, name};

/// The message is with the store when the shutdown comes, and arrives while the run ends.
#[tokio::test(start_paused = true)]
async fn e1_mail_that_is_being_accepted_when_the_process_ends_waits_for_the_next_start() {
    let world = World::new().await;
    world.agent("a", "waits").await;
    world.agent("b", "waits").await;
    world.slow_down();
    let peer = Sender::Agent(name("b"));
    let message = Message { id: Some(MessageId::new("m")), ..Message::new(peer.clone(), "a", "Mind this.") };
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
