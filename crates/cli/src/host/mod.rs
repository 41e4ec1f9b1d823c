//! The process that carries sessions: it holds the store, answers the interface, begins
//! sessions and goes on with those that a process before it left.
//!
//! This module wires. What a message does is decided in `midturn-core`, what is kept in
//! `midturn-store`, who may ask what in `midturn-server`.

pub mod carry;
pub mod holding;
mod interface;
mod living;
mod resume;
pub mod safety;
mod serve;
mod sessions;

pub use interface::Answering;
pub use resume::resume;
pub use serve::serve;
pub use sessions::{Audience, Begun, Carrier};
