//! The types of the wire (docs/protocol.md). They are the interface's own: what the engine's
//! types look like is nobody's business outside. Only the vocabulary of events is shared.

pub mod agent;
pub mod approval;
pub mod message;
pub mod problem;
pub mod process;
pub mod session;
pub mod text;
pub mod work;
