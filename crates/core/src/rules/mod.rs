//! The pure rules: what a message does to a working agent, when, and what the model sees.
//!
//! Nothing in here is async, reads a clock, opens a file or locks. The engine asks, these
//! modules answer, so every rule can be tested with plain values.

pub mod approval;
pub mod audit;
pub mod batch;
pub mod boundary;
pub mod capture;
pub mod characters;
pub mod compaction;
pub mod conversation;
mod decimal;
pub mod ending;
pub mod event;
pub mod id;
pub mod lifetime;
pub mod limits;
pub mod mail;
pub mod money;
pub mod progress;
pub mod prompt;
pub mod record;
pub mod recovery;
pub mod run;
pub mod secrets;
pub mod settings;
pub mod time;
pub mod turn;
pub mod urgency;
pub mod validate;
pub mod view;
pub mod waiting;
pub mod wording;
pub(crate) mod words;
