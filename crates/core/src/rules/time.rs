//! Instants and durations in whole microseconds, and how they are written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        let digits = format!("{:06}", self.0 % 1_000_000);
        let kept = digits.trim_end_matches('0');
        write!(f, "{}.{}", self.0 / 1_000_000, if kept.is_empty() { "0" } else { kept })
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw =
            serde_json::value::RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
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
            n if n >= 1_000_000 => write!(f, "{}s", Decimal(n, 1_000_000)),
            n if n >= 1_000 => write!(f, "{}ms", Decimal(n, 1_000)),
            n => write!(f, "{n}us"),
        }
    }
}

struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / self.1, self.0 % self.1);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let width = self.1.ilog10() as usize;
        write!(f, "{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
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
        parse_decimal(number, unit).map(Self).ok_or_else(fail)
    }
}

/// `number` · `unit` without a detour over floating point; nothing finer than a microsecond.
fn parse_decimal(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 15 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = u128::from(unit) * fraction.parse::<u128>().ok()?;
    if parts % scale != 0 {
        return None;
    }
    let total = u128::from(unit) * whole.parse::<u128>().ok()? + parts / scale;
    u64::try_from(total).ok().filter(|n| *n <= 1 << 53)
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl serde::de::Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 250ms, 1.5s, 2m, 1h, 40us or 0")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Span, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Span, E> {
        self.visit_str(&number.to_string())
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
