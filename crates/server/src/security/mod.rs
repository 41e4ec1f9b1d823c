//! Who may ask, and how often (docs/protocol.md, "What every request brings").

mod gate;
mod token;

pub(crate) use gate::{Asker, gate};
pub use token::{Rate, Token, TokenError, Tokens};
