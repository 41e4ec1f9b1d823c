//! Claude Code.

pub mod install;
