//! What stands behind `/limit`: `max_turns=60 max_cost=5`.

use std::fmt::Display;
use std::str::FromStr;

use midturn_core::rules::settings::LimitsPatch;

/// Why words set no limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// It names none.
    #[error(
        "`{0}` is no limit: write max_turns=60, max_tokens=200000, max_cost=5 or max_time=2h; 0 is no limit"
    )]
    Form(String),
    /// It names one, and not how much.
    #[error("{name}: {why}")]
    Amount {
        /// The limit.
        name: &'static str,
        /// What is expected.
        why: String,
    },
}

/// Reads limits; what is not named stays as it is.
///
/// # Errors
/// [`LimitsError`]: a word sets none.
pub fn limits(words: &str) -> Result<LimitsPatch, LimitsError> {
    let mut limits = LimitsPatch::default();
    for word in words.split_whitespace() {
        let (name, amount) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "max_turns" => limits.max_turns = Some(read("max_turns", amount)?),
            "max_tokens" => limits.max_tokens = Some(read("max_tokens", amount)?),
            "max_cost" => limits.max_cost = Some(read("max_cost", amount)?),
            "max_time" => limits.max_time = Some(read("max_time", amount)?),
            _ => return Err(LimitsError::Form(word.chars().take(40).collect())),
        }
    }
    Ok(limits)
}

fn read<T: FromStr<Err: Display>>(name: &'static str, amount: &str) -> Result<T, LimitsError> {
    amount.parse().map_err(|why: T::Err| LimitsError::Amount { name, why: why.to_string() })
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::limits::Money;
    use midturn_core::rules::time::Span;

    use super::*;

    #[test]
    fn each_limit_is_read_in_its_unit_and_the_others_stay() {
        let none = LimitsPatch::default();
        let cost: Money = "5".parse().unwrap();
        for (words, expected) in [
            ("max_turns=60", LimitsPatch { max_turns: Some(60), ..none.clone() }),
            (
                "max_tokens=0  max_cost=5",
                LimitsPatch { max_tokens: Some(0), max_cost: Some(cost), ..none.clone() },
            ),
            ("max_time=2h", LimitsPatch { max_time: Some(Span::secs(7_200)), ..none.clone() }),
        ] {
            assert_eq!(limits(words), Ok(expected), "{words}");
        }
    }

    #[test]
    fn what_sets_no_limit_is_told_with_what_does() {
        for (words, expected) in [
            ("turns=60", "`turns=60` is no limit: write max_turns=60"),
            ("60", "`60` is no limit"),
            ("max_turns", "max_turns: "),
            ("max_turns=-1", "max_turns: "),
            ("max_turns=1 max_cost=free", "max_cost: "),
            ("max_time=5", "max_time: `5` is not a duration: write 250ms"),
        ] {
            let told = limits(words).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{told}");
        }
    }
}
