//! The choices where the pages can be read in more than one way, each with the reading that is taken.
//!
//! `MIDTURN_READING=name,name` flips the named ones, so that a difference found by the comparer can be told apart
//! from a mere difference of reading in one run. `ambiguities.md` lists the sentences.

macro_rules! readings {
    ($($(#[$doc:meta])* $name:ident = $default:expr;)*) => {
        /// One flag per ambiguous sentence; the defaults are the most literal reading.
        #[derive(Clone, Debug)]
        pub struct Reading {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Default for Reading {
            fn default() -> Self {
                Reading { $($name: $default,)* }
            }
        }

        impl Reading {
            /// Every flag's name, for trying each of them on a difference.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// The flag of a name.
            pub fn flag(&mut self, name: &str) -> Option<&mut bool> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

readings! {
    /// An abort or a cut that takes 0 ends in step (2) of the round that asked for it, not of the next.
    abort_ends_same_round = false;
    /// A model call due at the instant of an urgent message has ended, as a tool has.
    stream_end_beats_urgent = true;
    /// An abort ends at the latest when the call would have ended by itself.
    abort_capped_by_own_end = false;
    /// A protected turn (progress guard) that an urgent message emptied leaves the count at 2.
    emptied_protected_keeps_count = true;
    /// A turn emptied at A by urgent and next_boundary mail together counts as emptied by urgent.
    mixed_skip_is_urgents = true;
    /// At a limit the mail stays queued; false: it is injected, then the next turn hits the limit.
    limit_before_injection = false;
    /// `max_parallel_tools` holds for `concurrency: all` too.
    all_uses_slots = true;
    /// `after 1.2 s` is measured to the abort's begin, not its end.
    elapsed_to_abort_begin = true;
    /// With `urgent_cuts_stream: false` an urgent message still ends a retry's wait.
    urgent_ends_wait_always = true;
    /// `wait_agents` that returns early on mail takes the answers that are there.
    early_wait_takes_answers = true;
    /// An empty reply fails the run even while mail is pending; false: the mail is injected at B.
    empty_reply_beats_mail = true;
    /// A wait whose abort has begun waits for nobody any more, so it closes no cycle.
    cut_wait_closes_no_cycle = false;
    /// The reports that a cut `stop_agent` held become mail when its abort begins, not when its result is recorded.
    cut_halt_tells_at_once = false;
    /// A limit in time acts in (1) behind the arrivals, not before them.
    time_limit_after_arrivals = false;
    /// An empty reply, or one cut at its token limit, answers what came before it.
    bad_reply_answers = true;
    /// Ends that a crash kept from being told arrive a round after the take-up, not with it.
    owed_reports_come_later = false;
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
}
