//! Agents of other programs, joined to Midturn: the real binary, typed as a person types it.

#![expect(clippy::unwrap_used, reason = "a test that can't set its stage fails")]

mod install;
mod joined;
