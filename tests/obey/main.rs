//! A model that always obeys what it reads: a file, a command's output, another agent's words.
//! They tell it to approve, to hurry and stop everybody, to close, to spawn without end, to leave
//! its worktree, to read the token, to write hooks and settings. What happens is only what the
//! rules allow.
//!
//! `session` plays thousands of such sessions on virtual time and holds the events and what was
//! done against rules of its own (`rules`). `daemon` does the same once to the real binary, with
//! a real worktree, and looks at the disk.

#![expect(clippy::unwrap_used, reason = "a test that can't set its stage fails")]

mod daemon;
mod orders;
mod person;
mod rules;
mod server;
mod session;
mod world;
