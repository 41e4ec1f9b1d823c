//! Agents of other programs, joined to Midturn (docs/bridges.md).

pub mod claude;
