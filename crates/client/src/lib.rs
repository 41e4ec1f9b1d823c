//! Who asks a running Midturn: how it is found, requests over its socket, and the events of a
//! session that come back by number (docs/protocol.md).
//!
//! It prints nothing, knows no command line and decides nothing about messages; what is asked
//! and answered is in the words of `midturn-wire`.

pub mod events;
mod http;
mod interface;
mod resume;
mod session;

pub use http::{Client, Path, Streaming, Trouble};
pub use interface::{Interface, InterfaceError};
pub use resume::{TakenUp, take_up};
pub use session::{Said, SessionClient};
