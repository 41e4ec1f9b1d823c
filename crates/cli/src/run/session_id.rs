//! Names for sessions: short, in order of time, valid in a branch's name.

use std::hash::{BuildHasher, Hasher, RandomState};

use midturn_core::rules::id::SessionId;

use crate::env;

/// A new name: the time in milliseconds and four random digits, so that two runs that start
/// at the same moment, on two machines even, have two names.
pub(crate) fn new() -> SessionId {
    // The seed of the standard library's hash tables is the one source of chance that is always there.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    written(env::now().0 / 1_000, hasher.finish())
}

fn written(millis: u64, chance: u64) -> SessionId {
    SessionId::new(format!("{}-{}", base36(millis, 8), base36(chance % 36u64.pow(4), 4)))
}

/// The number in digits and small letters, at least so many.
fn base36(mut number: u64, width: usize) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.len() < width {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize]);
        number /= 36;
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_in_order_of_time() {
        for (millis, chance, expected) in [(0, 0, "00000000-0000"), (35, 36, "0000000z-0010")] {
            assert_eq!(written(millis, chance).as_str(), expected);
        }
        assert_eq!(written(1_795_300_000_000, u64::MAX).as_str().len(), 13);
        assert!(written(1_795_300_000_000, 0).as_str() < written(1_795_300_000_001, 0).as_str());
        assert_ne!(new(), new());
    }
}
