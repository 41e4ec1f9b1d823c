//! The `Store` port: one call makes a whole step durable, or none of it.

use std::sync::Arc;

use async_trait::async_trait;

use crate::rules::conversation::Entry;
use crate::rules::event::Event;
use crate::rules::id::{AgentName, MessageId, RunId};
use crate::rules::mail::{Mail, ReceiptState, Sender};

/// What belongs together: mail taken, rows written, receipts moved, events told. A store
/// applies all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Mail that is accepted into mailboxes.
    pub accepted: Vec<Arc<Mail>>,
    /// Receipts that move; a message injected or returned leaves its mailbox by this.
    pub receipts: Vec<ReceiptMove>,
    /// Rows that are appended to an agent's conversation.
    pub rows: Vec<Row>,
    /// The events that tell of it, in order.
    pub events: Vec<Event>,
}

/// A receipt that moves forward.
#[derive(Clone, Debug)]
pub struct ReceiptMove {
    /// Who sent the message.
    pub from: Sender,
    /// Its id.
    pub id: MessageId,
    /// Who it is for: a message to all has a receipt for each.
    pub to: AgentName,
    /// Where it stands now.
    pub state: ReceiptState,
}

/// A row of a conversation.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose conversation.
    pub agent: AgentName,
    /// In which run.
    pub run: RunId,
    /// What was said.
    pub entry: Arc<Entry>,
}

/// Why a store took nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store failed: {0}")]
pub struct StoreError(pub String);

/// Keeps what must not be lost.
#[async_trait]
pub trait Store: Send + Sync {
    /// Makes the transaction durable as a whole. After an error nothing of it counts.
    async fn commit(&self, transaction: &Transaction) -> Result<(), StoreError>;
}

/// The store that forgets at the end of the process: the state that lives is the
/// coordinator's own, so there is nothing for it to keep.
#[derive(Debug, Default)]
pub struct MemoryStore;

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, _: &Transaction) -> Result<(), StoreError> {
        Ok(())
    }
}
