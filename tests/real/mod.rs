//! The real daemon and the way to it, for the harnesses that run it: `crash` and `hostile`. What
//! each of them makes of what it hears is its own.

#![allow(dead_code, reason = "each harness uses a part of it")]

pub(crate) mod door;
pub(crate) mod process;
