//! The interface from outside: a real server on a real socket, and clients good and bad.
#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

#[path = "../../../../tests/needs.rs"]
mod needs;
#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod bounds;
mod connections;
mod hostile;
mod limits;
mod messages;
mod page;
mod reads;
mod streams;
mod work;
