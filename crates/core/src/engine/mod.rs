//! The engine: it waits, and carries out what the rules decide.
//!
//! It knows no vendor, no file format and no store: those come in through [`ports`].

mod agent;
mod coordinator;
mod journal;
mod mailbox;
mod output;
pub mod ports;
mod receipts;
pub mod scripted;
mod send;
mod session;
mod stop;
mod templates;
pub mod tools;
mod toolset;
mod virtual_clock;

pub use coordinator::{AgentStatus, Builder, Coordinator, SpawnError};
pub use mailbox::{Mailbox, Pushed, StopOrder, Stopped, TakeBack};
pub use receipts::Receipt;
pub use send::{Delivery, Message};
pub use session::LastEnd;
pub use stop::{StopError, StopReply};
pub use templates::{AgentSpec, NoTemplates, Templates};
pub use toolset::ToolSet;
pub use virtual_clock::{MAX_ROUNDS, Stuck, VirtualClock};
