//! Every setting that semantics.md names, its default, and how layers are laid over it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;
use super::time::Span;
use super::urgency::Urgency;

/// Defines a settings struct and the patch that a file may hold for it, from one list: each
/// with its type, its default, and behind `=>` the least (and the most) that it may be.
macro_rules! settings {
    ($(#[$doc:meta])* $name:ident / $patch:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty = $default:expr $(=> $least:literal $(to $most:literal)?)?),* $(,)? }) => {
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
            fn bounds(key: &str, _: Bounds, table: &mut Vec<(String, Bounds)>) {
                $(<$ty as Bounded>::bounds(&below(key, stringify!($field)), bounds!($($least $(, $most)?)?), table);)*
            }
        }
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
    fn check(&self, key: &str, bounds: Bounds) -> Result<(), OutOfBounds>;
    /// Adds what is bounded to a table.
    fn bounds(key: &str, bounds: Bounds, table: &mut Vec<(String, Bounds)>);
}

macro_rules! counted {
    ($($ty:ty),*) => {$(
        impl Bounded for $ty {
            fn check(&self, key: &str, bounds: Bounds) -> Result<(), OutOfBounds> {
                let value = u64::from(*self);
                let fits = (bounds.least..=bounds.most).contains(&value);
                if fits { Ok(()) } else { Err(OutOfBounds { key: key.to_owned(), value, bounds }) }
            }
            fn bounds(key: &str, bounds: Bounds, table: &mut Vec<(String, Bounds)>) {
                if bounds != Bounds::NONE {
                    table.push((key.to_owned(), bounds));
                }
            }
        }
    )*};
}

macro_rules! free {
    ($($ty:ty),*) => {$(
        impl Bounded for $ty {
            fn check(&self, _: &str, _: Bounds) -> Result<(), OutOfBounds> {
                Ok(())
            }
            fn bounds(_: &str, _: Bounds, _: &mut Vec<(String, Bounds)>) {}
        }
    )*};
}

counted!(u32, u64);
free!(bool, Span, Money, Urgency, Concurrency, OnError, ProgressGuard);

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
        urgent_cuts_stream: bool = true,
        /// Whether consecutive edits of one serial batch are a unit that only `urgent` tears.
        keep_edits_together: bool = false,
        /// Which calls may run at once: `safe` ones only, or `all`.
        concurrency: Concurrency = Concurrency::Safe,
        /// How many calls of a concurrent batch run at once.
        max_parallel_tools: u32 = 8 => 1,
        /// After how many starved turns mail no longer skips the next one; 0 or false is never.
        progress_guard: ProgressGuard = ProgressGuard(2),
        /// What becomes of queued mail when a run fails.
        on_error: OnError = OnError::Keep,
        /// How many messages a mailbox holds.
        mailbox_messages: u32 = 1_024 => 1,
        /// How many bytes of text a mailbox holds.
        mailbox_bytes: u64 = 8 << 20 => 1,
        /// How many bytes one message may have.
        message_bytes: u64 = 256 << 10 => 1,
        /// How long a process has between SIGTERM and SIGKILL.
        abort_grace: Span = Span::millis(100),
        /// How long a call that ignores its token is waited for.
        abort_deadline: Span = Span::secs(2),
        /// Whether agents that are not ancestors may send `urgent`.
        urgent_from_peers: bool = false,
        /// How many urgent messages one agent may send another in any 60 seconds.
        urgent_per_minute: u32 = 6,
        /// How deep agents may be nested; the lead has 0.
        max_depth: u32 = 4,
        /// How many agents of a session may be open at once.
        max_agents: u32 = 64 => 1,
        /// How many turns an agent may take in all; 0 is no limit.
        max_turns: u32 = 0,
        /// How many tokens an agent may read and write in all; 0 is no limit.
        max_tokens: u64 = 0,
        /// What an agent's model calls may cost in all, in US dollars; 0 is no limit.
        max_cost: Money = Money::ZERO,
        /// How long an agent may be at work in all; 0 is no limit.
        max_time: Span = Span::ZERO,
        /// How many agents may ever be spawned below one agent, closed ones included.
        max_spawns: u32 = 256,
        /// The limits of all agents of a session together.
        session: SessionLimits = SessionLimits::default(),
        /// How many tokens the model's context holds; 0: nobody knows, and nothing is compacted.
        context_tokens: u64 = 0,
        /// From how many percent of the context on a conversation is compacted.
        compact_at: u32 = 80 => 1 to 100,
        /// How many of the last turns a compaction keeps whole.
        compact_keep_turns: u32 = 2,
        /// How failed model calls are tried again.
        retry: Retry = Retry::default(),
    }
}

settings! {
    /// The limits of all agents of a session together; 0 is none.
    SessionLimits / LimitsPatch {
        /// How many turns they may take.
        max_turns: u64 = 0,
        /// How many tokens they may read and write.
        max_tokens: u64 = 0,
        /// What their model calls may cost, in US dollars.
        max_cost: Money = Money::ZERO,
        /// How long the session may last, counted while a process carries it.
        max_time: Span = Span::ZERO,
    }
}

settings! {
    /// Urgencies by who writes to whom (semantics.md, section 2).
    DefaultUrgency / DefaultUrgencyPatch {
        /// To a lead, whoever writes.
        to_lead: Urgency = Urgency::AfterTools,
        /// To a subagent, from a person or an ancestor.
        from_above: Urgency = Urgency::NextBoundary,
        /// To a subagent, from all others.
        from_others: Urgency = Urgency::AfterTools,
    }
}

settings! {
    /// Retries of model calls (semantics.md, section 7).
    Retry / RetryPatch {
        /// How many calls one turn may make.
        attempts: u32 = 5 => 1,
        /// Within what time, from the first call's start to the last one's.
        time: Span = Span::secs(300),
        /// The first wait; each further one is twice as long.
        base: Span = Span::millis(500),
        /// The longest wait.
        cap: Span = Span::secs(30),
        /// Up to how much a wait is lengthened at random (scripted models: never).
        jitter: Span = Span::millis(250),
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

    /// Every setting that has bounds, by its name in files, with them.
    pub fn bounds() -> Vec<(String, Bounds)> {
        let mut table = Vec::new();
        <Self as Bounded>::bounds("", Bounds::NONE, &mut table);
        table
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ProgressGuard(pub u32);

impl<'de> Deserialize<'de> for ProgressGuard {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ProgressGuard;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of turns, or true or false")
            }
            fn visit_bool<E>(self, on: bool) -> Result<ProgressGuard, E> {
                Ok(ProgressGuard(if on { 2 } else { 0 }))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<ProgressGuard, E> {
                u32::try_from(n).map(ProgressGuard).map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<ProgressGuard, E> {
                u32::try_from(n).map(ProgressGuard).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
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
