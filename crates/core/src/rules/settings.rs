//! Every setting that semantics.md names, its default, its bounds, which way it is loosened, and
//! how layers are laid over it. A setting more is a line here: whoever reads, checks or shows
//! settings has it from these tables.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;
use super::time::Span;
use super::urgency::Urgency;
use Direction::{Down, DownFromNone, Free, Off, Persons, Words};
use Unit::{Dollars, Number, Time};

/// Defines a settings struct and the patch that a file may hold for it, from one list: each
/// with its type, its default, behind `=>` the least (and the most) that it may be, and behind `;`
/// which way it is loosened. A group has neither: its settings have.
macro_rules! settings {
    ($(#[$doc:meta])* $name:ident / $patch:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty = $default:expr $(=> $least:literal $(to $most:literal)?)? $(; $direction:expr)?),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// A layer over the settings: what is absent stays as it is.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $patch {
            $($(#[$fdoc])* #[serde(default, skip_serializing_if = "Option::is_none")] $(#[schemars(range(min = $least $(, max = $most)?))])?
            pub $field: Option<<$ty as Patched>::Patch>,)*
        }

        impl Patched for $name {
            type Patch = $patch;
            fn patch(&mut self, patch: &$patch) {
                $(if let Some(value) = &patch.$field { Patched::patch(&mut self.$field, value); })*
            }
        }

        impl Bounded for $name {
            fn check(&self, key: &str, _: Bounds) -> Result<(), OutOfBounds> {
                $(self.$field.check(&below(key, stringify!($field)), bounds!($($least $(, $most)?)?))?;)*
                Ok(())
            }
            fn list(group: Setting, table: &mut Vec<Setting>) {
                $(<$ty as Bounded>::list(Setting {
                    key: below(&group.key, stringify!($field)),
                    bounds: bounds!($($least $(, $most)?)?),
                    direction: direction!($($direction)?),
                }, table);)*
            }
        }
    };
}

macro_rules! direction {
    () => {
        Persons(UNSAID)
    };
    ($direction:expr) => {
        $direction
    };
}

macro_rules! bounds {
    () => {
        Bounds::NONE
    };
    ($least:literal) => {
        Bounds { least: $least, most: u64::MAX }
    };
    ($least:literal, $most:literal) => {
        Bounds { least: $least, most: $most }
    };
}

/// The least and the most that a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Bounds {
    /// Whatever its type can be.
    const NONE: Self = Self { least: 0, most: u64::MAX };
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            u64::MAX => write!(f, "{} or more", self.least),
            most => write!(f, "{} to {most}", self.least),
        }
    }
}

/// A setting, for whoever has to know all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name in files, with those of the groups that it is in: `retry.attempts`.
    pub key: String,
    /// What it may be.
    pub bounds: Bounds,
    /// Which way it is loosened.
    pub direction: Direction,
}

/// Which way a value is loosened. Who may only tighten it (a project's file,
/// docs/decisions/0017-who-may-loosen.md) is held to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It gives nobody anything: the nearer file's value holds.
    Free,
    /// Of these words each is stricter than the one before it.
    Words(&'static [&'static str]),
    /// A smaller amount is stricter.
    Down(Unit),
    /// So it is, and 0 is no limit at all.
    DownFromNone(Unit),
    /// So it is, and where nothing is said it is this many.
    DownFrom(u32),
    /// `true` is looser.
    Off,
    /// So it is, and between `true` and `false` there are lists of hosts, of which the longer one is looser.
    OffOrHosts,
    /// More entries are looser.
    Fewer,
    /// More entries are stricter.
    More,
    /// Only a person can know it; the text says why.
    Persons(&'static str),
    /// So it is, and to leave it out in silence would be dangerous: it is an error.
    PersonsOrError(&'static str),
}

/// What an amount is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// It is a plain number.
    Number,
    /// A [`Span`].
    Time,
    /// [`Money`].
    Dollars,
}

/// Why a project may not set what nobody has thought about.
pub const UNSAID: &str = "nobody has said yet that a project may set it";

const MAIL: &str = "how agents are reached and interrupted is yours to say";
const RETRIES: &str = "how often your provider is asked is yours to say";

/// A setting that nothing could run with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting `{key}` is {value}, expected {bounds}")]
pub struct OutOfBounds {
    /// Its name, with those of the groups that it is in: `retry.attempts`.
    pub key: String,
    /// What it was to be.
    pub value: u64,
    /// What it may be.
    pub bounds: Bounds,
}

/// What has bounds, or holds what has.
trait Bounded {
    /// Whether all of it is within its bounds.
    fn check(&self, _key: &str, _bounds: Bounds) -> Result<(), OutOfBounds> {
        Ok(())
    }

    /// Adds it to a table; of a group all that is in it.
    fn list(setting: Setting, table: &mut Vec<Setting>) {
        table.push(setting);
    }
}

macro_rules! counted {
    ($($ty:ty),*) => {$(
        impl Bounded for $ty {
            fn check(&self, key: &str, bounds: Bounds) -> Result<(), OutOfBounds> {
                let value = u64::from(*self);
                let fits = (bounds.least..=bounds.most).contains(&value);
                if fits { Ok(()) } else { Err(OutOfBounds { key: key.to_owned(), value, bounds }) }
            }
        }
    )*};
}

macro_rules! boundless {
    ($($ty:ty),*) => {$(
        impl Bounded for $ty {}
    )*};
}

counted!(u32, u64);
boundless!(bool, Span, Money, Urgency, Concurrency, OnError, ProgressGuard);

fn below(group: &str, field: &str) -> String {
    if group.is_empty() { field.to_owned() } else { format!("{group}.{field}") }
}

/// A value that a layer can replace, whole or in part.
pub trait Patched {
    /// What the layer holds.
    type Patch;
    /// Lays the layer over the value.
    fn patch(&mut self, patch: &Self::Patch);
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Patched for $ty {
            type Patch = $ty;
            fn patch(&mut self, patch: &$ty) {
                *self = patch.clone();
            }
        }
    )*};
}

plain!(bool, u32, u64, Span, Money, Urgency, Concurrency, OnError, ProgressGuard);

settings! {
    /// The settings of one agent (scenarios.md, section 1; semantics.md throughout).
    Settings / SettingsPatch {
        /// The urgency of a message that names none.
        default_urgency: DefaultUrgency = DefaultUrgency::default(),
        /// Whether an urgent message cuts a reply that is being streamed, or waits for its end.
        urgent_cuts_stream: bool = true; Persons(MAIL),
        /// Whether consecutive edits of one serial batch are a unit that only `urgent` tears.
        keep_edits_together: bool = false; Persons(MAIL),
        /// Which calls may run at once: `safe` ones only, or `all`.
        concurrency: Concurrency = Concurrency::Safe; Words(&["all", "safe"]),
        /// How many calls of a concurrent batch run at once.
        max_parallel_tools: u32 = 8 => 1; Down(Number),
        /// After how many starved turns mail no longer skips the next one; 0 or false is never.
        progress_guard: ProgressGuard = ProgressGuard(2); Persons(MAIL),
        /// What becomes of queued mail when a run fails.
        on_error: OnError = OnError::Keep; Persons(MAIL),
        /// How many messages a mailbox holds.
        mailbox_messages: u32 = 1_024 => 1; Down(Number),
        /// How many bytes of text a mailbox holds.
        mailbox_bytes: u64 = 8 << 20 => 1; Down(Number),
        /// How many bytes one message may have.
        message_bytes: u64 = 256 << 10 => 1; Down(Number),
        /// How long a process has between SIGTERM and SIGKILL.
        abort_grace: Span = Span::millis(100); Down(Time),
        /// How long a call that ignores its token is waited for.
        abort_deadline: Span = Span::secs(2); Down(Time),
        /// Whether agents that are not ancestors may send `urgent`.
        urgent_from_peers: bool = false; Off,
        /// How many urgent messages one agent may send another in any 60 seconds.
        urgent_per_minute: u32 = 6; Down(Number),
        /// How deep agents may be nested; the lead has 0.
        max_depth: u32 = 4; Down(Number),
        /// How many agents of a session may be open at once.
        max_agents: u32 = 64 => 1; Down(Number),
        /// How many turns an agent may take in all; 0 is no limit.
        max_turns: u32 = 0; DownFromNone(Number),
        /// How many tokens an agent may read and write in all; 0 is no limit.
        max_tokens: u64 = 0; DownFromNone(Number),
        /// What an agent's model calls may cost in all, in US dollars; 0 is no limit.
        max_cost: Money = Money::ZERO; DownFromNone(Dollars),
        /// How long an agent may be at work in all; 0 is no limit.
        max_time: Span = Span::ZERO; DownFromNone(Time),
        /// How many agents may ever be spawned below one agent, closed ones included.
        max_spawns: u32 = 256; Down(Number),
        /// The limits of all agents of a session together.
        session: Limits = Limits::default(),
        // A compaction is a call like any other: it counts against the limits.
        /// How many tokens the model's context holds; 0: nobody knows, and nothing is compacted.
        context_tokens: u64 = 0; Free,
        /// From how many percent of the context on a conversation is compacted.
        compact_at: u32 = 80 => 1 to 100; Free,
        /// How many of the last turns a compaction keeps whole.
        compact_keep_turns: u32 = 2; Free,
        /// How failed model calls are tried again.
        retry: Retry = Retry::default(),
    }
}

settings! {
    /// The limits of all agents of a session together, or of one; 0 is none.
    #[derive(Copy, Eq)]
    Limits / LimitsPatch {
        /// How many turns they may take.
        max_turns: u64 = 0; DownFromNone(Number),
        /// How many tokens they may read and write.
        max_tokens: u64 = 0; DownFromNone(Number),
        /// What their model calls may cost, in US dollars.
        max_cost: Money = Money::ZERO; DownFromNone(Dollars),
        /// How long the session may last, counted while a process carries it.
        max_time: Span = Span::ZERO; DownFromNone(Time),
    }
}

settings! {
    /// Urgencies by who writes to whom (semantics.md, section 2).
    DefaultUrgency / DefaultUrgencyPatch {
        /// To a lead, whoever writes.
        to_lead: Urgency = Urgency::AfterTools; Persons(MAIL),
        /// To a subagent, from a person or an ancestor.
        from_above: Urgency = Urgency::NextBoundary; Persons(MAIL),
        /// To a subagent, from all others.
        from_others: Urgency = Urgency::AfterTools; Persons(MAIL),
    }
}

settings! {
    /// Retries of model calls (semantics.md, section 7).
    Retry / RetryPatch {
        /// How many calls one turn may make.
        attempts: u32 = 5 => 1; Down(Number),
        /// Within what time, from the first call's start to the last one's.
        time: Span = Span::secs(300); Down(Time),
        /// The first wait; each further one is twice as long.
        base: Span = Span::millis(500); Persons(RETRIES),
        /// The longest wait.
        cap: Span = Span::secs(30); Persons(RETRIES),
        /// Up to how much a wait is lengthened at random (scripted models: never).
        jitter: Span = Span::millis(250); Persons(RETRIES),
    }
}

impl Settings {
    /// Whether all settings are within their bounds; the first that isn't. Asked of every side
    /// that settings come from.
    ///
    /// # Errors
    /// [`OutOfBounds`]: which one, and what it may be.
    pub fn check(&self) -> Result<(), OutOfBounds> {
        Bounded::check(self, "", Bounds::NONE)
    }

    /// Every setting.
    pub fn all() -> Vec<Setting> {
        let mut table = Vec::new();
        let whole = Setting { key: String::new(), bounds: Bounds::NONE, direction: Free };
        <Self as Bounded>::list(whole, &mut table);
        table
    }

    /// Every setting that has bounds, by its name in files, with them.
    pub fn bounds() -> Vec<(String, Bounds)> {
        let bounded = Self::all().into_iter().filter(|setting| setting.bounds != Bounds::NONE);
        bounded.map(|setting| (setting.key, setting.bounds)).collect()
    }
}

impl LimitsPatch {
    /// Whether it sets the limit of this name, an agent's or the session's.
    pub fn sets(&self, setting: &str) -> bool {
        match setting.trim_start_matches("session.") {
            "max_turns" => self.max_turns.is_some(),
            "max_tokens" => self.max_tokens.is_some(),
            "max_cost" => self.max_cost.is_some(),
            "max_time" => self.max_time.is_some(),
            _ => false,
        }
    }

    /// Whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What it sets, as `max_turns 20, max_cost 5`.
    pub fn words(&self) -> String {
        let Self { max_turns, max_tokens, max_cost, max_time } = self;
        let turns = max_turns.map(|n| format!("max_turns {n}"));
        let tokens = max_tokens.map(|n| format!("max_tokens {n}"));
        let cost = max_cost.map(|cost| format!("max_cost {cost}"));
        let time = max_time.map(|span| format!("max_time {span}"));
        [turns, tokens, cost, time].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Retry {
    /// The wait after the `failed`-th failed attempt (1, 2 …), before jitter.
    pub fn wait(&self, failed: u32, retry_after: Option<Span>) -> Span {
        let doubled =
            self.base.0.saturating_mul(1u64.checked_shl(failed.saturating_sub(1)).unwrap_or(u64::MAX));
        Span(doubled.min(self.cap.0)).max(retry_after.unwrap_or_default())
    }
}

/// Which calls may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// Concurrency-safe ones.
    Safe,
    /// All of a turn; edits of the same file wait for each other.
    All,
}

/// What becomes of queued mail when a run fails or reaches a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It waits for the next run.
    Keep,
    /// It goes back to its senders.
    Return,
}

/// After how many starved turns the guard acts. `true` is 2, `false` and 0 are never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "WrittenGuard")]
pub struct ProgressGuard(pub u32);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of turns, or true or false")]
enum WrittenGuard {
    On(bool),
    Turns(u32),
}

impl From<WrittenGuard> for ProgressGuard {
    fn from(written: WrittenGuard) -> Self {
        match written {
            WrittenGuard::On(on) => Self(if on { 2 } else { 0 }),
            WrittenGuard::Turns(turns) => Self(turns),
        }
    }
}

impl JsonSchema for ProgressGuard {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProgressGuard".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["integer", "boolean"], "minimum": 0})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_replaces_only_what_it_names() {
        let patch: SettingsPatch =
            serde_json::from_str(r#"{"max_turns": 3, "retry": {"attempts": 2}}"#).unwrap();
        let mut settings = Settings::default();
        settings.patch(&patch);
        assert_eq!(settings.max_turns, 3);
        assert_eq!(settings.retry.attempts, 2);
        assert_eq!(settings.retry.cap, Span::secs(30));
        assert!(serde_json::from_str::<SettingsPatch>(r#"{"max_turn": 3}"#).is_err());
    }

    /// A22: one table for every side.
    #[test]
    fn every_setting_with_bounds_is_refused_just_beyond_them_and_taken_at_them() {
        let table = Settings::bounds();
        assert!(table.len() >= 7 && table.iter().any(|(key, _)| key == "retry.attempts"), "{table:?}");
        assert_eq!(Settings::default().check(), Ok(()));
        for (key, bounds) in table {
            for (value, fits) in [
                (bounds.least.checked_sub(1), false),
                (Some(bounds.least), true),
                (Some(bounds.most.min(u32::MAX.into())), true),
                (bounds.most.checked_add(1), false),
            ] {
                let Some(value) = value else { continue };
                let mut settings = Settings::default();
                settings.patch(&patch_of(&key, value));
                let checked = settings.check();
                assert_eq!(checked.is_ok(), fits, "{key}: {value}");
                if let Err(out) = checked {
                    assert_eq!((out.key, out.value, out.bounds), (key.clone(), value, bounds));
                }
            }
        }
    }

    fn patch_of(key: &str, value: u64) -> SettingsPatch {
        let inner = |value: serde_json::Value, name: &str| serde_json::json!({name: value});
        serde_json::from_value(key.rsplit('.').fold(value.into(), inner)).unwrap()
    }

    #[test]
    fn waits_double_up_to_the_cap_and_obey_retry_after() {
        let retry = Retry::default();
        let waits: Vec<_> = (1..=8).map(|n| retry.wait(n, None).0 / 100_000).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(retry.wait(1, Some(Span::secs(7))), Span::secs(7));
    }
}
