//! Limits that hold, however many ask at once (semantics.md, section 7): what all requests
//! together use never passes a budget, what is held for a request that is cut comes back, and
//! agents that spawn without end stay within depth, number and lineage.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budget;
mod ledger;
mod requests;
mod spawns;
