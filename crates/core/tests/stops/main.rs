//! What ends runs happens whole and at once (semantics.md, sections 6 and 7): whoever stops many
//! cancels all of them before the store is asked for anything, whoever asked may be gone by then,
//! and a panic ends a run as an error does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dropped;
mod many;
mod panics;
mod shutdown;
mod world;
