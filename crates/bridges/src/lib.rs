//! Bridges to programs that run agents of their own (docs/bridges.md).
//!
//! A **joined** agent runs in somebody's own Claude Code. Its mailbox is a folder of files ([`spool`]), so that
//! the hooks which look into it need no daemon; [`claude`] holds those hooks. What a message may interrupt is
//! decided by `midturn_core::rules` here as everywhere.

pub mod claude;
pub mod spool;
