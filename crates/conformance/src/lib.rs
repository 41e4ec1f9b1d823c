//! What Midturn asks of a store, as claims that any [`Archive`] can be held to: what is here is
//! what `resume` relies on (docs/semantics.md, sections 6 to 8).
//!
//! A store's own tests name a [`Place`] where it is and say `claim.holds(&place)` for each claim
//! of [`SUITE`], each with a place of its own; one that can fail and be mended is held to
//! [`TROUBLES`], too. A claim that doesn't hold panics, as a test does. What is special about one
//! store (its files, its server, its older formats) is no business of this crate. [`around`] is what
//! tests put around an archive, to see or to change what passes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a claim that doesn't hold panics")]

pub mod around;
mod journal;
mod lines;
pub mod maker;
pub mod memory;
mod transactions;
mod trouble;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::Archive;

/// Where the store of one claim is. It can be opened again once it was closed.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens it to write, as the next process would.
    async fn open(&self) -> Arc<dyn Archive>;
}

/// Where a store is that can be made to fail, and mended.
#[async_trait]
pub trait Faulty: Send + Sync {
    /// Opens it to write. When it fails it is waited for this long.
    async fn open(&self, patience: Duration) -> Arc<dyn Archive>;

    /// From now on no line of 20,000 bytes can be written.
    async fn fail(&self);

    /// From now on it can.
    async fn mend(&self);
}

/// A store that a claim is made of.
struct Given<'a> {
    place: &'a dyn Place,
    archive: Arc<dyn Archive>,
}

impl<'a> Given<'a> {
    async fn at(place: &'a dyn Place) -> Self {
        Self { place, archive: place.open().await }
    }

    /// Closes the store and opens it again, as the next process would.
    async fn reopened(self) -> Self {
        self.archive.close().await;
        Self::at(self.place).await
    }
}

type Holds<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What holds of every store.
pub struct Claim {
    /// The claim, in words.
    pub name: &'static str,
    holds: for<'a> fn(Given<'a>) -> Holds<'a>,
}

impl Claim {
    /// Holds the store at this place to it; nothing is in it yet.
    ///
    /// # Panics
    /// If the claim doesn't hold.
    pub async fn holds(&self, place: &dyn Place) {
        println!("{}", self.name);
        (self.holds)(Given::at(place).await).await;
    }
}

/// What holds of every store that fails for a while (docs/semantics.md, section 7).
pub struct TroubleClaim {
    /// The claim, in words.
    pub name: &'static str,
    holds: for<'a> fn(&'a dyn Faulty) -> Holds<'a>,
}

impl TroubleClaim {
    /// Holds the store at this place to it; nothing is in it yet.
    ///
    /// # Panics
    /// If the claim doesn't hold.
    pub async fn holds(&self, place: &dyn Faulty) {
        println!("{}", self.name);
        (self.holds)(place).await;
    }
}

macro_rules! claims {
    ($of:ident: $($module:ident::$claim:ident),* $(,)?) => {
        &[$($of { name: stringify!($claim), holds: |given| Box::pin($module::$claim(given)) }),*]
    };
}

/// What holds of every store, one claim a line.
pub const SUITE: &[Claim] = claims![
    Claim:
    transactions::what_was_committed_is_there_for_the_next_process,
    transactions::a_transaction_counts_as_a_whole_or_not_at_all,
    transactions::a_failing_transaction_does_no_harm_to_other_sessions,
    transactions::nothing_counts_that_was_submitted_after_what_failed,
    transactions::transactions_count_in_the_order_of_submission,
    transactions::what_nobody_waits_for_counts_with_what_follows_or_once_it_is_given_up,
    transactions::there_is_room_for_all_that_may_be_in_flight,
    transactions::a_stale_epoch_writes_nothing_and_is_counted,
    transactions::receipts_only_move_forward,
    transactions::an_id_stands_for_one_message_of_its_sender,
    transactions::events_come_in_pages_as_they_were_told,
    transactions::a_session_is_begun_once_and_an_unknown_one_is_nobody,
    transactions::sessions_are_listed_the_newest_first,
    transactions::a_session_that_is_removed_is_nobody_and_the_others_stay,
    journal::the_journal_knows_where_every_agent_was,
    journal::only_an_open_run_has_a_tail,
    journal::a_stop_is_in_the_tail_whatever_its_turn,
    journal::a_resume_is_kept_until_its_run_begins_or_a_stop_takes_it_back,
    journal::mail_is_given_back_in_the_order_of_acceptance,
    journal::old_settled_mail_is_left_out_and_the_rest_is_not,
    lines::every_kind_of_line_comes_back_byte_for_byte,
    lines::any_line_comes_back_byte_for_byte,
    lines::chat_messages_are_what_semantics_section_6_says,
];

/// What holds of every store that fails for a while, one claim a line.
pub const TROUBLES: &[TroubleClaim] = claims![
    TroubleClaim:
    trouble::a_store_that_fails_is_waited_for,
    trouble::a_session_whose_store_failed_for_too_long_is_taken_up_again,
    trouble::a_store_that_is_closed_is_not_waited_for,
];
