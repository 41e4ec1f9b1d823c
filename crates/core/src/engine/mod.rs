//! The engine: it waits, and carries out what the rules decide.
//!
//! It knows no vendor, no file format and no store: those come in through [`ports`].

mod agent;
mod approvals;
mod builder;
mod coordinator;
mod deliver;
mod fence;
mod journal;
mod mailbox;
mod output;
pub mod ports;
mod purse;
mod receipts;
mod recovery;
pub mod scripted;
mod send;
mod session;
mod spawn;
mod stop;
mod templates;
pub mod tools;
mod toolset;
mod virtual_clock;

pub use approvals::{AnswerError, Approval, Attached};
pub use builder::Builder;
pub use coordinator::{AgentStatus, Coordinator};
pub use mailbox::{Mailbox, Pushed, StopOrder, Stopped, TakeBack};
pub use receipts::Receipt;
pub use send::{Delivery, Message};
pub use session::{Activity, ActivityKind, LastEnd};
pub use spawn::SpawnError;
pub use stop::{StopError, StopReply};
pub use templates::{AgentSpec, NoTemplates, Templates};
pub use toolset::ToolSet;
pub use virtual_clock::{MAX_ROUNDS, Stuck, VirtualClock};
