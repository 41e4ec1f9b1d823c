//! The words of the interface (docs/protocol.md): what is asked, what is answered and what is
//! refused, once, for the server that speaks them and for whoever asks it.
//!
//! They are the interface's own: what the engine's types look like is nobody's business
//! outside. Only the vocabulary of events is shared. Nothing here waits, opens anything or
//! knows HTTP beyond a status.
//!
//! A request with a field that isn't known is refused. An answer may have some, since the process
//! that gives it may be newer; for the same reason a field that an answer gets later is optional
//! (docs/decisions/0025-wire-and-client.md).

#[macro_use]
mod mirror;

/// The largest body of a request, in bytes.
pub const BODY_MAX: usize = 1 << 20;

pub mod agent;
pub mod approval;
pub mod message;
pub mod page;
pub mod problem;
pub mod process;
pub mod replay;
mod seen;
pub mod session;
pub mod spent;
pub mod stats;
pub mod text;
pub mod work;
