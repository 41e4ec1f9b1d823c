//! Claude Code.

pub mod exec;
