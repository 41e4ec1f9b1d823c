//! `has_pending_messages()` when nothing is pending: what the loop does between two calls.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dashmap::DashMap;
use midturn_core::engine::Mailbox;
use midturn_core::rules::boundary::Inbox;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Case, Row};

pub fn row() -> Row {
    let mailbox = Arc::new(Mailbox::default());
    let word = AtomicU8::new(0);
    let (sender, channel) = mpsc::unbounded_channel::<u64>();
    let token = CancellationToken::new();
    let locked = Mutex::new(VecDeque::<u64>::new());
    let map = DashMap::new();
    map.insert("worker".to_owned(), VecDeque::<u64>::new());
    let (first, second, third) = (mailbox.clone(), mailbox.clone(), mailbox);
    Row {
        name: "peek, nothing pending",
        target: Some((1.1, "atomic load")),
        per_round: 100_000,
        countable: true,
        cases: vec![
            Case::plain("has_pending_messages", move || black_box(&*first).has_pending_messages()),
            Case::plain("pending", move || black_box(&*second).pending()),
            Case::plain("pending, through the rules' trait", move || {
                let inbox: &dyn Inbox = black_box(&*third);
                inbox.pending()
            }),
            Case::plain("atomic load", move || black_box(&word).load(Ordering::Acquire) != 0),
            Case::plain("tokio mpsc is_empty", move || {
                black_box(&sender);
                black_box(&channel).is_empty()
            }),
            Case::plain("is_cancelled", move || black_box(&token).is_cancelled()),
            Case::plain("parking_lot, is_empty", move || black_box(&locked).lock().is_empty()),
            Case::plain("dashmap, is_empty", move || {
                black_box(&map).get(black_box("worker")).is_some_and(|queue| queue.is_empty())
            }),
        ],
    }
}
