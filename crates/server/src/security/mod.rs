//! Who may ask, and how often (docs/protocol.md, "What every request brings").

mod codes;
mod gate;
mod token;

pub(crate) use codes::{Codes, GOOD_FOR, NoEntry};
pub(crate) use gate::{Asker, gate, headed, host_and_origin};
pub(crate) use token::Meter;
pub use token::{Rate, Token, TokenError, Tokens};
