//! Tokens: secrets that say who asks. They are compared in constant time and never shown.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use midturn_core::rules::mail::Sender;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

/// A secret of 256 random bits, written as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The machine gives no random bytes.
    #[error("the machine gives no random bytes for a token: {0}")]
    NoRandom(String),
    /// The text is too short to be a secret.
    #[error("a token has 32 to 256 letters, digits, `-`, `_` and `.`; make one with `openssl rand -hex 32`")]
    Form,
}

impl Token {
    /// A new one, of the machine's random bytes.
    ///
    /// # Errors
    /// The machine gives none.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandom(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// One that was made elsewhere.
    ///
    /// # Errors
    /// It is too short, too long, or has other characters than a token may have.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let fits = (32..=256).contains(&text.len());
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if fits && plain { Ok(Self(text.to_owned())) } else { Err(TokenError::Form) }
    }

    /// Whether that is it. It is compared whole, so that the time tells nothing.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The secret itself, for the file that only its owner can read.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How many pages are signed in: of more the oldest has to sign in anew.
const PAGES: usize = 64;

/// Who holds which token.
#[derive(Debug)]
pub struct Tokens {
    holders: Vec<Arc<Holder>>,
    /// The pages, each with a token of its own. They end with the process.
    pages: Mutex<VecDeque<Arc<Holder>>>,
    rate: Rate,
}

/// A token and who holds it.
#[derive(Debug)]
pub(crate) struct Holder {
    token: Token,
    /// What the holder is in the conversation.
    pub(crate) sender: Sender,
    pub(crate) meter: Meter,
}

/// How often somebody asked.
#[derive(Debug)]
pub(crate) struct Meter {
    rate: Rate,
    /// When all requests so far would have come had they come at the rate.
    due: Mutex<Instant>,
}

/// How often the holder of a token may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many requests a second.
    pub per_second: NonZeroU32,
    /// How many at once.
    pub burst: NonZeroU32,
}

impl Default for Rate {
    fn default() -> Self {
        let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self { per_second: number(200), burst: number(400) }
    }
}

impl Tokens {
    /// One token, that of the person.
    pub fn of_user(token: Token) -> Self {
        Self::new([(token, Sender::User)], Rate::default())
    }

    /// Several tokens, each with who holds it.
    pub fn new(holders: impl IntoIterator<Item = (Token, Sender)>, rate: Rate) -> Self {
        let holder = |(token, sender)| Arc::new(Holder { token, sender, meter: Meter::new(rate) });
        Self { holders: holders.into_iter().map(holder).collect(), pages: Mutex::default(), rate }
    }

    /// A token for one more page, which a person looks at.
    pub(crate) fn of_page(&self) -> Result<Token, TokenError> {
        let token = Token::random()?;
        let meter = Meter::new(self.rate);
        let mut pages = self.pages.lock();
        if pages.len() >= PAGES {
            pages.pop_front();
        }
        pages.push_back(Arc::new(Holder { token: token.clone(), sender: Sender::User, meter }));
        Ok(token)
    }

    /// Who holds this token.
    pub(crate) fn holder(&self, given: &[u8]) -> Option<Arc<Holder>> {
        let pages = self.pages.lock();
        let mut found = None;
        for holder in self.holders.iter().chain(pages.iter()) {
            if holder.token.is(given) {
                found = Some(holder.clone());
            }
        }
        found
    }
}

impl Meter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, due: Mutex::new(Instant::now()) }
    }

    /// Counts a request; an error says after how many seconds the next one may come.
    pub(crate) fn count(&self) -> Result<(), u64> {
        let (each, now) = (Duration::from_secs(1) / self.rate.per_second.get(), Instant::now());
        let mut due = self.due.lock();
        let next = now.max(*due) + each;
        let ahead = (next - now).checked_sub(each * self.rate.burst.get());
        if let Some(ahead) = ahead.filter(|ahead| !ahead.is_zero()) {
            return Err(ahead.as_secs() + 1);
        }
        *due = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_token_is_new_each_time_and_is_never_shown() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.secret().len(), 64);
        assert_eq!(Token::parse(one.secret()), Ok(one.clone()));
        let tokens = Tokens::of_user(one.clone());
        assert!(!format!("{one:?} {tokens:?}").contains(one.secret()));
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token = Token::random().unwrap();
        let tokens = Tokens::of_user(token.clone());
        let secret = token.secret();
        assert_eq!(tokens.holder(secret.as_bytes()).map(|holder| holder.sender.clone()), Some(Sender::User));
        for wrong in ["", &secret[1..], &secret[..63], &format!("{secret}0"), &"0".repeat(64)] {
            assert!(tokens.holder(wrong.as_bytes()).is_none(), "{wrong}");
        }
        for bad in ["", "short", &"a".repeat(257), &format!("{} ", "a".repeat(40))] {
            assert_eq!(Token::parse(bad), Err(TokenError::Form), "{bad}");
        }
    }

    #[test]
    fn each_page_has_a_token_of_its_own_and_of_too_many_the_oldest_signs_in_anew() {
        let tokens = Tokens::of_user(Token::random().unwrap());
        let pages: Vec<Token> = (0..=PAGES).map(|_| tokens.of_page().unwrap()).collect();
        let is_in = |page: &Token| tokens.holder(page.secret().as_bytes()).is_some();
        assert!(!is_in(&pages[0]));
        assert!(pages[1..].iter().all(is_in));
    }

    #[test]
    fn who_asks_too_often_is_told_when_to_come_back() {
        let number = |n| NonZeroU32::new(n).unwrap();
        let rate = Rate { per_second: number(1), burst: number(2) };
        let tokens = Tokens::new([(Token::parse(&"a".repeat(32)).unwrap(), Sender::User)], rate);
        let holder = tokens.holder("a".repeat(32).as_bytes()).unwrap();
        assert_eq!([holder.meter.count(), holder.meter.count()], [Ok(()), Ok(())]);
        assert_eq!(holder.meter.count(), Err(1));
    }
}
