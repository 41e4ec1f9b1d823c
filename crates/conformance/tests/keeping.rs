//! The engine's own store in memory is held to what a session relies on when it goes on: the suite
//! shows that `KeepingStore` gives back what the databases do, and so does the archive of such
//! stores that other tests work with.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;

use midturn_conformance::SUITE;
use midturn_conformance::memory::Memory;

/// What is not asked of it: it keeps what one coordinator gives it, whom it trusts, for the next one.
const NOT_ASKED: [&str; 8] = [
    // It refuses nothing, so nothing fails.
    "a_transaction_counts_as_a_whole_or_not_at_all",
    "a_failing_transaction_does_no_harm_to_other_sessions",
    "nothing_counts_that_was_submitted_after_what_failed",
    // What an earlier coordinator still writes goes into a copy that nobody reads, and isn't told.
    "a_stale_epoch_writes_nothing_and_is_counted",
    // It asserts that nobody moves a receipt back.
    "receipts_only_move_forward",
    // It keeps no line of an agent that was never made.
    "transactions_count_in_the_order_of_submission",
    // It counts no runs, and keeps no table.
    "sessions_are_listed_the_newest_first",
    "chat_messages_are_what_semantics_section_6_says",
];

#[tokio::test]
async fn the_store_in_memory_gives_back_what_the_databases_do() {
    for name in NOT_ASKED {
        assert!(SUITE.iter().any(|claim| claim.name == name), "there is no claim `{name}`");
    }
    for claim in SUITE.iter().filter(|claim| !NOT_ASKED.contains(&claim.name)) {
        claim.holds(&Arc::new(Memory::default())).await;
    }
}
