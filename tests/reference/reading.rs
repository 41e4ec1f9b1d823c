//! The choices where the pages can be read in more than one way, each with the reading that is taken.
//!
//! `MIDTURN_READING=name,name` flips the named ones, so that a difference found by the comparer can be told apart
//! from a mere difference of reading in one run. `ambiguities.md` lists the sentences.

/// One flag per ambiguous sentence; the defaults are the most literal reading.
#[derive(Clone, Debug)]
pub struct Reading {
    /// An abort or a cut that takes 0 ends in step (2) of the round that asked for it, not of the next.
    pub abort_ends_same_round: bool,
    /// A model call due at the instant of an urgent message has ended, as a tool has.
    pub stream_end_beats_urgent: bool,
    /// An abort ends at the latest when the call would have ended by itself.
    pub abort_capped_by_own_end: bool,
    /// A protected turn (progress guard) that an urgent message emptied leaves the count at 2.
    pub emptied_protected_keeps_count: bool,
    /// A turn emptied at A by urgent and next_boundary mail together counts as emptied by urgent.
    pub mixed_skip_is_urgents: bool,
    /// `max_turns` counts the turns of one run, not of the agent's life.
    pub max_turns_per_run: bool,
    /// At the turn limit the mail stays queued; false: it is injected, then the next turn hits the limit.
    pub limit_before_injection: bool,
    /// A call given up as `unknown` makes the point C and is listed as interrupted.
    pub unknown_is_interrupted: bool,
    /// `max_parallel_tools` holds for `concurrency: all` too.
    pub all_uses_slots: bool,
    /// `after 1.2 s` is measured to the abort's begin, not its end.
    pub elapsed_to_abort_begin: bool,
    /// `resume` starts a run only of an agent that was stopped.
    pub resume_only_stopped: bool,
    /// With `urgent_cuts_stream: false` an urgent message still ends a retry's wait.
    pub urgent_ends_wait_always: bool,
    /// `wait_agents` that returns early on mail takes the answers that are there.
    pub early_wait_takes_answers: bool,
    /// A superseded run is reported to the parent as a stopped one.
    pub superseded_run_reports: bool,
    /// An empty reply fails the run even while mail is pending; false: the mail is injected at B.
    pub empty_reply_beats_mail: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Reading {
            abort_ends_same_round: false,
            stream_end_beats_urgent: true,
            abort_capped_by_own_end: false,
            emptied_protected_keeps_count: true,
            mixed_skip_is_urgents: true,
            max_turns_per_run: false,
            limit_before_injection: false,
            unknown_is_interrupted: true,
            all_uses_slots: true,
            elapsed_to_abort_begin: true,
            resume_only_stopped: true,
            urgent_ends_wait_always: true,
            early_wait_takes_answers: true,
            superseded_run_reports: true,
            empty_reply_beats_mail: true,
        }
    }
}

impl Reading {
    /// The defaults with the flags flipped that `MIDTURN_READING` names.
    pub fn from_env() -> Reading {
        let mut reading = Reading::default();
        let names = std::env::var("MIDTURN_READING").unwrap_or_default();
        for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            match reading.flag(name) {
                Some(flag) => *flag = !*flag,
                None => eprintln!("MIDTURN_READING: no reading is called {name}"),
            }
        }
        reading
    }

    /// Every flag's name, for trying each of them on a difference.
    pub const NAMES: [&'static str; 15] = [
        "abort_ends_same_round",
        "stream_end_beats_urgent",
        "abort_capped_by_own_end",
        "emptied_protected_keeps_count",
        "mixed_skip_is_urgents",
        "max_turns_per_run",
        "limit_before_injection",
        "unknown_is_interrupted",
        "all_uses_slots",
        "elapsed_to_abort_begin",
        "resume_only_stopped",
        "urgent_ends_wait_always",
        "early_wait_takes_answers",
        "superseded_run_reports",
        "empty_reply_beats_mail",
    ];

    /// The flag of a name.
    pub fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "abort_ends_same_round" => &mut self.abort_ends_same_round,
            "stream_end_beats_urgent" => &mut self.stream_end_beats_urgent,
            "abort_capped_by_own_end" => &mut self.abort_capped_by_own_end,
            "emptied_protected_keeps_count" => &mut self.emptied_protected_keeps_count,
            "mixed_skip_is_urgents" => &mut self.mixed_skip_is_urgents,
            "max_turns_per_run" => &mut self.max_turns_per_run,
            "limit_before_injection" => &mut self.limit_before_injection,
            "unknown_is_interrupted" => &mut self.unknown_is_interrupted,
            "all_uses_slots" => &mut self.all_uses_slots,
            "elapsed_to_abort_begin" => &mut self.elapsed_to_abort_begin,
            "resume_only_stopped" => &mut self.resume_only_stopped,
            "urgent_ends_wait_always" => &mut self.urgent_ends_wait_always,
            "early_wait_takes_answers" => &mut self.early_wait_takes_answers,
            "superseded_run_reports" => &mut self.superseded_run_reports,
            "empty_reply_beats_mail" => &mut self.empty_reply_beats_mail,
            _ => return None,
        })
    }
}
