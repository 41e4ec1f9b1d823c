//! The faults that can be planted into the daemon (tests/planted, and the one of the
//! tools): what each does, and what the checker has to find of it.

use crate::breach::Promise;
use crate::breach::Promise::{
    AskedFirst, EndsAreTold, InOrder, NoSurvivors, NothingDoubled, NothingLost, OneHistory, OneHolder,
    OrdersStand, PromptsGrow, ShutdownIsAFence, StaysUp, TrueReceipts, TrueResults, ValidPrompts, WorkGoesOn,
};
use crate::story::Ways;

/// A fault, by the word of `_MIDTURN_PLANTED`, and the promises that it may be found to break.
pub(crate) struct Fault {
    pub(crate) word: &'static str,
    pub(crate) breaks: &'static [Promise],
    /// In which histories it can be found.
    pub(crate) ways: Ways,
}

const NOTHING_ELSE: Ways = Ways { asks: false, compacts: false, has_guests: false };

const fn fault(word: &'static str, breaks: &'static [Promise]) -> Fault {
    Fault { word, breaks, ways: NOTHING_ELSE }
}

/// One of what agents ask a person.
const fn of_asking(word: &'static str, breaks: &'static [Promise]) -> Fault {
    Fault { ways: Ways { asks: true, ..NOTHING_ELSE }, ..fault(word, breaks) }
}

/// One of what is left of a conversation that was compacted.
const fn of_compacting(word: &'static str, breaks: &'static [Promise]) -> Fault {
    Fault { ways: Ways { compacts: true, ..NOTHING_ELSE }, ..fault(word, breaks) }
}

/// One of a session that somebody else began.
const fn of_guests(word: &'static str, breaks: &'static [Promise]) -> Fault {
    Fault { ways: Ways { has_guests: true, ..NOTHING_ELSE }, ..fault(word, breaks) }
}

/// All of them.
pub(crate) const FAULTS: &[Fault] = &[
    // Said before it is so.
    fault("ack_before_durable", &[NothingLost, OneHistory, TrueReceipts, TrueResults, PromptsGrow]),
    // Where the conversation lacks mail that alone asked for a turn, the next process takes the turn for one
    // that wasn't begun: nobody ends its model call.
    fault("drain_before_save", &[NothingLost, PromptsGrow, TrueReceipts, ValidPrompts, OneHistory]),
    fault("tool_started_is_late", &[TrueResults, OneHistory]),
    fault("reply_is_late", &[TrueResults, OneHistory, PromptsGrow, ValidPrompts]),
    // Not kept.
    // A prompt that is not valid is refused by the coordinator itself: what was in it is never sent.
    fault("results_are_not_kept", &[TrueResults, PromptsGrow, TrueReceipts, NothingLost]),
    fault("injections_are_not_kept", &[NothingDoubled, PromptsGrow, TrueReceipts, OneHistory]),
    fault("mail_beside_results_is_not_kept", &[NothingLost, PromptsGrow, TrueReceipts, ValidPrompts]),
    fault("waits_take_too_early", &[TrueResults, NothingLost, PromptsGrow]),
    fault("reports_are_not_owed", &[EndsAreTold]),
    fault("partial_replies_are_whole", &[ValidPrompts, PromptsGrow, TrueReceipts, NothingLost]),
    // Not believed, or not read, by the next process.
    // What is gone is also not told (an end), accepted again when it is repeated, or then read late.
    fault("queue_is_cleared_on_error", &[NothingLost, InOrder, EndsAreTold, NothingDoubled, TrueReceipts]),
    fault("mail_is_turned_round", &[InOrder]),
    fault("last_mail_is_dropped", &[NothingLost, InOrder, EndsAreTold, NothingDoubled, TrueReceipts]),
    fault("last_mail_is_doubled", &[NothingDoubled, OneHistory, TrueReceipts]),
    fault("settled_mail_is_forgotten", &[NothingDoubled, NothingLost, TrueReceipts]),
    fault("started_calls_look_unstarted", &[TrueResults]),
    fault("lost_calls_are_completed", &[TrueResults]),
    fault("lost_calls_run_again", &[TrueResults, OneHistory, PromptsGrow]),
    fault("last_row_is_dropped", &[PromptsGrow, TrueResults, NothingLost, ValidPrompts, OneHistory]),
    fault("runs_begin_anew", &[OneHistory]),
    fault("open_runs_are_left", &[WorkGoesOn, OneHistory, NothingLost, TrueResults]),
    fault("time_begins_anew", &[OneHistory]),
    // A close that was not answered yet has given mail back, and whoever is open again never reads it.
    fault("closes_are_forgotten", &[OrdersStand, NothingLost]),
    fault("limits_are_forgotten", &[OrdersStand]),
    fault("committed_is_forgotten", &[TrueReceipts]),
    // What nobody has asked the model with yet is compacted, and told, once more.
    of_compacting("compactions_are_not_kept", &[PromptsGrow, OneHistory]),
    of_compacting("compactions_keep_no_turns", &[PromptsGrow]),
    of_asking("modes_are_forgotten", &[AskedFirst]),
    of_asking("requests_look_started", &[TrueResults, AskedFirst]),
    of_guests("guests_are_left", &[WorkGoesOn]),
    // A shutdown that is none.
    fault("shutdown_accepts", &[ShutdownIsAFence, StaysUp]),
    // No fence.
    fault("no_fence", &[OneHolder]),
    // Processes.
    fault("group_kill_only", &[NoSurvivors]),
    fault("no_leftovers", &[NoSurvivors]),
    fault("supervisor_ignores_pipe", &[NoSurvivors]),
];
