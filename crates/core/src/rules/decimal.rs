//! Decimal numbers as people write them, read and written without a detour over floating point.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// `number` · `unit`, if that is a whole number.
pub(super) fn read(number: &str, unit: u64) -> Option<u64> {
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
    u64::try_from(u128::from(unit) * whole.parse::<u128>().ok()? + parts / scale).ok()
}

/// `n` / `unit`, a power of ten: with so many decimals at least, and no more than it has.
pub(super) fn written(n: u64, unit: u64, least: usize) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let width = unit.ilog10() as usize;
        let part = format!("{:0width$}", n % unit);
        match part.trim_end_matches('0').len().max(least) {
            0 => write!(f, "{}", n / unit),
            kept => write!(f, "{}.{}", n / unit, &part[..kept]),
        }
    })
}

/// Reads what a file holds as a text, or as a plain number.
pub(super) fn of_file<'de, T, D>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(OfFile(expected, PhantomData))
}

struct OfFile<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for OfFile<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    // The shortest decimal that means this float is the one that was written.
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}
