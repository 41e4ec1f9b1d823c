//! Waiting can't hang (semantics.md, section 9): random wait graphs against a finder of cycles
//! that shares nothing with the engine's, and the engine itself with agents that wait at random.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod graph;
mod played;
mod world;
