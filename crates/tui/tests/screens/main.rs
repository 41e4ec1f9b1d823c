//! What a person sees: the main states as snapshots, any events, keys and sizes, and the screens of
//! docs/terminal.md, all through a terminal that is emulated.

#[path = "../common/mod.rs"]
mod common;
mod counted;
mod page;
mod random;
mod seen;
mod snapshots;
mod states;
mod words;
