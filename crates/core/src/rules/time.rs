//! Instants and durations in whole microseconds, and how they are written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::decimal;

/// An instant: microseconds since the session began. Resolution 1 µs (scenarios.md, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl Micros {
    /// The instant `span` later; the end of time when that can't be said.
    pub fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long it is since `earlier`; zero when it is not earlier.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Micros {
    /// Seconds with at least one decimal and no needless zeros: `2.0`, `1.5`, `0.00004`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::written(self.0, 1_000_000, 1).fmt(f)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw =
            serde_json::value::RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl JsonSchema for Micros {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "minimum": 0, "description": "Seconds since the session began"})
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Ok(Self((seconds * 1e6).round() as u64))
    }
}

/// A duration: whole microseconds, written `250ms`, `1.5s`, `2m`, `1h`, `40us` or `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many milliseconds.
    pub const fn millis(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// So many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(secs * 1_000_000)
    }

    /// As the standard library's duration.
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// Seconds with one decimal, cut off and not rounded (semantics.md, section 4).
    pub fn tenths(self) -> String {
        format!("{}.{}", self.0 / 1_000_000, self.0 / 100_000 % 10)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            n if n % 3_600_000_000 == 0 => write!(f, "{}h", n / 3_600_000_000),
            n if n % 60_000_000 == 0 => write!(f, "{}m", n / 60_000_000),
            n if n >= 1_000_000 => write!(f, "{}s", decimal::written(n, 1_000_000, 0)),
            n if n >= 1_000 => write!(f, "{}ms", decimal::written(n, 1_000, 0)),
            n => write!(f, "{n}us"),
        }
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write 250ms, 1.5s, 2m, 1h, 40us or 0")]
pub struct SpanError(String);

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let fail = || SpanError(text.chars().take(40).collect());
        if text == "0" {
            return Ok(Self::ZERO);
        }
        let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(fail)?;
        let (number, unit) = text.split_at(split);
        let unit: u64 = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            _ => return Err(fail()),
        };
        // What JSON's numbers hold is enough for 285 years.
        decimal::read(number, unit).filter(|n| *n <= 1 << 53).map(Self).ok_or_else(fail)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decimal::of_file(deserializer, "a duration such as 250ms, 1.5s, 2m, 1h, 40us or 0")
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "250ms, 1.5s, 2m, 1h, 40us or 0",
            "anyOf": [
                {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(us|ms|s|m|h)|0)$"},
                {"const": 0}
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly_and_written_shortly() {
        for (text, micros) in [
            ("0", 0),
            ("250ms", 250_000),
            ("1.5s", 1_500_000),
            ("2m", 120_000_000),
            ("1h", 3_600_000_000),
            ("40us", 40),
            ("0.1s", 100_000),
            ("1.000001s", 1_000_001),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span, Span(micros), "{text}");
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        for bad in ["", "1", "s", "-1s", "1.s", ".5s", "1 s", "1d", "0.5us", "1e3s", "99999999999h"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn instants_are_printed_from_whole_microseconds() {
        for (micros, text) in [(0, "0.0"), (2_000_000, "2.0"), (1_500_000, "1.5"), (1, "0.000001")] {
            assert_eq!(Micros(micros).to_string(), text);
            assert_eq!(serde_json::to_string(&Micros(micros)).unwrap(), text);
        }
    }

    #[test]
    fn seconds_in_results_are_cut_off_not_rounded() {
        assert_eq!(Span::millis(1_290).tenths(), "1.2");
        assert_eq!(Span::millis(99).tenths(), "0.0");
    }
}
