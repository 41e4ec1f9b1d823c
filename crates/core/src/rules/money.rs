//! Money, counted in whole trillionths of a dollar: sums are exact, whatever their order.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimal;

/// Trillionths in a dollar.
const DOLLAR: u64 = 1_000_000_000_000;

/// An amount of US dollars: from 0 to 18 million of them. In a file it is a number or a text
/// such as `2.50`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

/// Why a text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount of dollars: write a number such as 2.50, without a sign")]
pub struct BadMoney(String);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many trillionths of a dollar.
    pub const fn of_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// In trillionths of a dollar.
    pub fn picos(self) -> u64 {
        self.0
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left when that is taken; nothing, if it is more.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many times.
    #[must_use]
    pub fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// How many at that price each; as many as one likes if it costs nothing.
    pub fn over(self, price: Self) -> u64 {
        self.0.checked_div(price.0).unwrap_or(u64::MAX)
    }
}

impl FromStr for Money {
    type Err = BadMoney;

    fn from_str(text: &str) -> Result<Self, BadMoney> {
        let bad = || BadMoney(text.chars().take(40).collect());
        decimal::read(text.trim(), DOLLAR).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Money {
    /// With cents at least, and no more digits than it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::written(self.0, DOLLAR, 2).fmt(f)
    }
}

impl Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decimal::of_file(deserializer, "an amount of dollars, such as 2.50")
    }
}

impl JsonSchema for Money {
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["number", "string"], "minimum": 0, "description": "US dollars, such as 2.50"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, picos, shown) in [
            ("0", 0, "0.00"),
            ("2.5", 2_500_000_000_000, "2.50"),
            ("0.1", 100_000_000_000, "0.10"),
            ("18000000.000000000001", 18_000_000_000_000_000_001, "18000000.000000000001"),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!((money.picos(), money.to_string().as_str()), (picos, shown));
        }
        assert_eq!(serde_json::from_str::<Money>("0.1").unwrap().picos(), 100_000_000_000);
        assert_eq!(serde_json::from_str::<Money>("\"3\"").unwrap().to_string(), "3.00");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "-1", "1e3", "1.", ".5", "1,5", "0.0000000000001", "99999999999", "$2"] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }
}
