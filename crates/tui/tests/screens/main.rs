//! What a person sees: the main states as snapshots, any events, keys and sizes, and the screens of
//! docs/terminal.md, all through a terminal that is emulated.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's helpers")]

#[path = "../common/mod.rs"]
mod common;
mod counted;
mod page;
mod random;
mod seen;
mod snapshots;
mod states;
mod words;
