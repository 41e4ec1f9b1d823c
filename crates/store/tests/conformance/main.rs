//! One suite of claims that every store has to pass, and what is special about each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on fails")]

mod claims;
mod claims_journal;
mod claims_lines;
mod claims_trouble;
mod files;
mod formats;
mod maker;
#[path = "../../../../tests/needs.rs"]
mod needs;
mod postgres;
mod proxy;
mod server;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use claims_trouble::Faulty;
use midturn_core::engine::ports::Archive;
use midturn_store::SqlArchive;

/// Where the store of one claim is. It can be opened again once it was closed.
pub(crate) trait Place: Send + Sync {
    /// Opens it to write.
    fn open(&self) -> Pin<Box<dyn Future<Output = SqlArchive> + '_>>;
}

/// A store that a claim is made of.
pub(crate) struct Given<'a> {
    pub(crate) place: &'a dyn Place,
    open: SqlArchive,
    pub(crate) archive: Arc<dyn Archive>,
}

impl<'a> Given<'a> {
    pub(crate) async fn at(place: &'a dyn Place) -> Self {
        let open = place.open().await;
        Self { place, archive: Arc::new(open.clone()), open }
    }

    /// Closes the store and opens it again, as the next process would.
    pub(crate) async fn reopened(self) -> Self {
        self.open.close().await;
        Self::at(self.place).await
    }
}

type Holds<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What holds of every store, one claim a line.
pub(crate) struct Claim {
    pub(crate) name: &'static str,
    pub(crate) holds: for<'a> fn(Given<'a>) -> Holds<'a>,
}

macro_rules! suite {
    ($($module:ident::$claim:ident),* $(,)?) => {
        pub(crate) const SUITE: &[Claim] =
            &[$(Claim { name: stringify!($claim), holds: |given| Box::pin($module::$claim(given)) }),*];
    };
}

suite![
    claims::what_was_committed_is_there_for_the_next_process,
    claims::a_transaction_counts_as_a_whole_or_not_at_all,
    claims::a_failing_transaction_does_no_harm_to_other_sessions,
    claims::nothing_counts_that_was_submitted_after_what_failed,
    claims::transactions_count_in_the_order_of_submission,
    claims::there_is_room_for_all_that_may_be_in_flight,
    claims::a_stale_epoch_writes_nothing_and_is_counted,
    claims::receipts_only_move_forward,
    claims::an_id_stands_for_one_message_of_its_sender,
    claims::events_come_in_pages_as_they_were_told,
    claims::a_session_is_begun_once_and_an_unknown_one_is_nobody,
    claims::sessions_are_listed_the_newest_first,
    claims_journal::the_journal_knows_where_every_agent_was,
    claims_journal::only_an_open_run_has_a_tail,
    claims_journal::a_stop_is_in_the_tail_whatever_its_turn,
    claims_journal::a_resume_is_kept_until_its_run_begins_or_a_stop_takes_it_back,
    claims_journal::mail_is_given_back_in_the_order_of_acceptance,
    claims_journal::old_settled_mail_is_left_out_and_the_rest_is_not,
    claims_lines::every_kind_of_line_comes_back_byte_for_byte,
    claims_lines::any_line_comes_back_byte_for_byte,
    claims_lines::chat_messages_are_what_semantics_section_6_says,
];

type FaultyHolds<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What holds of every store that fails for a while, one claim a line.
pub(crate) struct TroubleClaim {
    holds: for<'a> fn(&'a dyn Faulty) -> FaultyHolds<'a>,
    name: &'static str,
}

impl TroubleClaim {
    pub(crate) async fn holds(&self, place: &dyn Faulty) {
        println!("{}", self.name);
        (self.holds)(place).await;
    }
}

macro_rules! troubles {
    ($($claim:ident),* $(,)?) => {
        pub(crate) const TROUBLES: &[TroubleClaim] = &[$(TroubleClaim {
            name: stringify!($claim),
            holds: |place| Box::pin(claims_trouble::$claim(place)),
        }),*];
    };
}

troubles![
    a_store_that_fails_is_waited_for,
    a_session_whose_store_failed_for_too_long_is_taken_up_again,
    a_store_that_is_closed_is_not_waited_for,
];
