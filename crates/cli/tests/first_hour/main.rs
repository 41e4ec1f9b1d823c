//! The first hour with Midturn: what somebody meets who has just installed it, through the real binary.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod agent_files;
#[path = "../common/mod.rs"]
mod common;
mod errors;
mod pages;
mod provider;
mod task;
