//! The words, the rules and the engine of Midturn.
//!
//! [`rules`] decides and knows neither async, nor clocks, nor files; [`engine`] waits and
//! carries out. Whoever looks for the rule of who interrupts whom opens
//! [`rules::boundary`]: it is one table. [`sse`] is here because two crates that don't know each
//! other read event streams: what models answer, and what a running Midturn tells.

pub mod engine;
pub mod fail;
pub mod rules;
pub mod sse;
