//! The words, the rules and the engine of Midturn.
//!
//! [`rules`] decides and knows neither async, nor clocks, nor files; [`engine`] waits and
//! carries out. Whoever looks for the rule of who interrupts whom opens
//! [`rules::boundary`]: it is one table.

pub mod engine;
pub mod fail;
pub mod rules;
