//! An independent reference of Midturn's rules: a sequential simulator written from `semantics.md` and
//! `scenarios.md` alone, a generator of random scenarios and a comparer.
//!
//! Nothing here uses the engine's crates. Where the pages leave a choice, `reading.rs` names it and
//! `ambiguities.md` explains it.

// Each binary that includes the module uses another part of it, and in a test binary nothing is reachable from outside.
#![allow(dead_code, unreachable_pub)]

pub mod arrive;
pub mod boundary;
pub mod compare;
pub mod compare_events;
pub mod coordinator;
pub mod ends;
pub mod generate;
pub mod generate_kinds;
pub mod generate_parts;
pub mod halt;
pub mod kinds;
pub mod limits;
pub mod model;
pub mod process;
pub mod reading;
pub mod result;
pub mod run_end;
pub mod send;
pub mod shrink;
pub mod simulate;
pub mod state;
pub mod texts;
pub mod tools;
pub mod yaml;

#[cfg(test)]
mod hand_checks;
#[cfg(test)]
mod hand_checks_agents;
#[cfg(test)]
mod hand_checks_compare;
#[cfg(test)]
mod hand_checks_halts;
#[cfg(test)]
mod hand_checks_invariants;
#[cfg(test)]
mod hand_checks_limits;
#[cfg(test)]
mod hand_checks_mail;
#[cfg(test)]
mod hand_checks_process;
