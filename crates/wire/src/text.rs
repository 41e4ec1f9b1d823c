//! Texts, ids and durations in requests: what comes in is checked once, here.

use std::fmt::Display;
use std::str::FromStr;

pub use midturn_core::rules::id::is_id;
use midturn_core::rules::id::{ID_FORM, MessageId};
use midturn_core::rules::limits::Money;
use midturn_core::rules::time::{Micros, Span};
use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The largest whole number that every JSON reader reads exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A text without the NUL character, which not every store can keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = String)]
pub struct Text(pub String);

/// The id of a message: 1 to 128 bytes without control characters and others that can't be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 128)]
pub struct Id(pub MessageId);

/// A duration: `250ms`, `1.5s`, `2m`, `1h`, `40us` or `0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = r"^([0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h)|[0-9]{1,9}us|0)$", example = "1.5s")]
pub struct Duration(#[serde(deserialize_with = "parsed")] pub Span);

/// An amount of US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = r"^[0-9]{1,7}(\.[0-9]{1,12})?$", example = "2.50")]
pub struct Amount(#[serde(deserialize_with = "parsed")] pub Money);

/// The number of a run, a call or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = u64, maximum = 9_007_199_254_740_991_u64)]
pub struct Number(pub u64);

/// An instant: seconds since the session began, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = f64, minimum = 0)]
pub struct Since(pub Micros);

/// The id of a message as seed 000 has it, a number, or as everybody else does.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
#[serde(untagged)]
pub enum AnyId {
    /// A whole number; the message's id is its digits.
    Number(Number),
    /// A text.
    Text(Id),
}

impl AnyId {
    /// The id.
    pub fn id(self) -> MessageId {
        match self {
            Self::Number(Number(number)) => MessageId::new(number.to_string()),
            Self::Text(Id(id)) => id,
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.contains('\0') {
            return Err(D::Error::custom("the text has a NUL character; leave it out"));
        }
        Ok(Self(text))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if !is_id(&text) {
            return Err(D::Error::custom(ID_FORM));
        }
        Ok(Self(MessageId::new(text)))
    }
}

impl<'de> Deserialize<'de> for AnyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            number @ Value::Number(_) => Number::deserialize(number).map(Self::Number),
            other => Id::deserialize(other).map(Self::Text),
        }
        .map_err(D::Error::custom)
    }
}

/// What stands in a text, and in a text only: the engine's own types take numbers, too.
fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for Since {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Microseconds that every JSON reader reads exactly.
        if !(0.0..=NUMBER_MAX as f64 / 1e6).contains(&seconds) {
            let says = &"a number of seconds since the session began";
            return Err(D::Error::invalid_value(Unexpected::Float(seconds), says));
        }
        Ok(Self(Micros((seconds * 1e6).round() as u64)))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        // `2.0` is a whole number in JSON Schema, so it is one here.
        let whole = |number: &f64| number.fract() == 0.0 && (0.0..=NUMBER_MAX as f64).contains(number);
        let number = given.as_u64().or_else(|| given.as_f64().filter(whole).map(|number| number as u64));
        number.filter(|number| *number <= NUMBER_MAX).map(Self).ok_or_else(|| {
            let shown: String = given.to_string().chars().take(80).collect();
            D::Error::custom(format!("{shown} is not a whole number from 0 to {NUMBER_MAX}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_nul_and_ids_without_controls_come_in() {
        for (json, good) in
            [(r#""a\nb""#, true), (r#""""#, true), (r#""a\u0000b""#, false), ("3", false), ("null", false)]
        {
            assert_eq!(serde_json::from_str::<Text>(json).is_ok(), good, "{json}");
        }
        let long = format!("\"{}\"", "x".repeat(129));
        for (json, good) in
            [(r#""fix-1 ä""#, true), (r#""""#, false), (r#""a\u202eb""#, false), (long.as_str(), false)]
        {
            assert_eq!(serde_json::from_str::<Id>(json).is_ok(), good, "{json}");
        }
    }

    /// A25: seed 000 counts its messages.
    #[test]
    fn an_id_may_be_a_number_where_the_seed_has_one() {
        for (json, id) in [("7", "7"), ("2.0", "2"), (r#""7""#, "7"), (r#""fix-1""#, "fix-1")] {
            assert_eq!(serde_json::from_str::<AnyId>(json).unwrap().id().as_str(), id, "{json}");
        }
        for json in ["-1", "1.5", "true", "null", r#""""#, "[7]"] {
            assert!(serde_json::from_str::<AnyId>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn instants_come_back_as_they_were_given() {
        for micros in [0, 1, 40, 1_500_000, 12_345_678, 86_400_000_001, 31_536_000_000_007] {
            let json = serde_json::to_string(&Micros(micros)).unwrap();
            assert_eq!(serde_json::from_str::<Since>(&json).unwrap(), Since(Micros(micros)), "{json}");
        }
        for json in ["-0.5", "1e300", "\"1\"", "null"] {
            assert!(serde_json::from_str::<Since>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn numbers_are_whole_and_exact() {
        for (json, number) in [("0", 0), ("7", 7), ("2.0", 2), ("9007199254740991", NUMBER_MAX)] {
            assert_eq!(serde_json::from_str::<Number>(json).unwrap(), Number(number), "{json}");
        }
        for json in ["-1", "1.5", "9007199254740992", "1e300", "99999999999999999999", "\"1\"", "null"] {
            assert!(serde_json::from_str::<Number>(json).is_err(), "{json}");
        }
    }
}
