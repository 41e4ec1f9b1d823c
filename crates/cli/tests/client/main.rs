//! The commands that ask a running process, against one that answers as the test says; and a
//! run whose session lives in another process, against a real one.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod afterwards;
mod asked;
#[path = "../common/mod.rs"]
mod common;
mod fake;
mod history;
mod holder;
mod limits;
mod money;
mod notify;
mod open;
mod pauses;
mod remote;
mod second_day;
mod setup;
mod suspended;
mod terminal;
mod undo;
mod waiting;
mod words;
