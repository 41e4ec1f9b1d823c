//! The process that carries sessions: it holds the store, answers the interface, begins
//! sessions and goes on with those that a process before it left.
//!
//! This module wires. What a message does is decided in `midturn-core`, what is kept in
//! `midturn-store`, who may ask what in `midturn-server`.

pub(crate) mod carry;
pub(crate) mod holding;
mod idle;
mod interface;
mod joined;
mod limits;
mod living;
mod resume;
pub(crate) mod safety;
mod serve;
mod sessions;
mod stored;
pub(crate) mod what_if;

pub(crate) use interface::Answering;
pub(crate) use resume::resume;
pub(crate) use serve::serve;
pub(crate) use sessions::{Audience, Begun, Carrier};
