//! The real program in a real terminal: tmux draws what it writes and gives it keys, and the tests look
//! at the screen as a person does. Each has folders, a terminal and processes of its own.
//!
//! `MIDTURN_TERMINAL_KEEP=1` leaves the folders where they are. What a test proves of the seeds it
//! quotes above itself (docs/terminal-lines.md).

#![expect(clippy::unwrap_used, reason = "a test that can't set its stage fails")]

mod day;
mod ground;
mod inbox;
mod itself;
mod joined;
mod keys;
mod leaving;
#[path = "../needs.rs"]
mod needs;
#[path = "../real/mod.rs"]
mod real;
mod review;
mod scripts;
mod seeds;
mod setup;
mod steering;
mod tmux;
mod what_if;
