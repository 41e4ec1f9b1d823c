//! Bridges to agents that other programs run: what Claude Code starts of ours, and the files by which it and
//! we know of each other.
//!
//! It depends on the core alone: no runtime, no clap, no configuration. What is started for each call and
//! each command has to be quick.

pub mod claude;
