//! Scenario files of Midturn: one claim a file, replayed on the real engine.
//!
//! [`mod@file`] reads and checks a file, [`scenario`] is what it says, [`play`] plays it on
//! virtual time, [`expect`] holds what came of it against the file and the invariants, and
//! [`replay()`] does all of it for the command. Nothing in this crate decides what a message
//! does to an agent: that is the engine's. It knows no tools and no vendor either; real tools
//! are handed in ([`play::RealWorkplaces`]).

pub mod error;
pub mod expect;
pub mod export;
pub mod file;
pub mod play;
pub mod record;
pub mod replay;
mod report;
pub mod scenario;
pub mod shift;
mod values;
pub mod what_if;

pub use error::Error;
pub use file::schema;
pub use replay::{Options, check_text, replay, replay_text};
pub use report::Exit;
pub use shift::Shift;
pub use what_if::{WhatIf, what_if};
