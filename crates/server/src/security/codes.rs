//! Codes that buy a page its token: each once, and for a minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Token, TokenError};

/// How long a code is good: a browser starts meanwhile.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(60);

/// How many codes wait to be used: of more the oldest is void.
const CODES: usize = 16;

/// The codes that were not used yet.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    all: VecDeque<(Token, Instant)>,
}

/// Why a code opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// It is none, was used, or had to make room.
    Unknown,
    /// It came too late.
    Late,
}

impl Codes {
    /// A new code, good from now on.
    ///
    /// # Errors
    /// The machine gives no random bytes.
    pub(crate) fn make(&mut self, now: Instant) -> Result<Token, TokenError> {
        let code = Token::random()?;
        // Those that are late are told so as long as there is room.
        if self.all.len() >= CODES {
            self.all.pop_front();
        }
        self.all.push_back((code.clone(), now));
        Ok(code)
    }

    /// Uses a code up. Each is compared whole, so that the time tells nothing.
    pub(crate) fn take(&mut self, given: &str, now: Instant) -> Result<(), NoEntry> {
        let mut found = None;
        for (at, (code, _)) in self.all.iter().enumerate() {
            if code.is(given.as_bytes()) {
                found = Some(at);
            }
        }
        let (_, made) = found.and_then(|at| self.all.remove(at)).ok_or(NoEntry::Unknown)?;
        if now.saturating_duration_since(made) <= GOOD_FOR { Ok(()) } else { Err(NoEntry::Late) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_opens_once_and_in_time() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        let code = codes.make(now).unwrap();
        assert_eq!(codes.take("0", now), Err(NoEntry::Unknown));
        assert_eq!(codes.take(code.secret(), now + GOOD_FOR), Ok(()));
        assert_eq!(codes.take(code.secret(), now), Err(NoEntry::Unknown), "a second time");
        let late = codes.make(now).unwrap();
        assert_eq!(codes.take(late.secret(), now + GOOD_FOR + Duration::from_nanos(1)), Err(NoEntry::Late));
        assert_eq!(codes.take(late.secret(), now), Err(NoEntry::Unknown), "a late one is used up, too");
    }

    #[test]
    fn of_too_many_the_oldest_is_void() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        let all: Vec<Token> = (0..=CODES).map(|_| codes.make(now).unwrap()).collect();
        assert_eq!(codes.take(all[0].secret(), now), Err(NoEntry::Unknown));
        assert!(all[1..].iter().all(|code| codes.take(code.secret(), now).is_ok()));
    }
}
