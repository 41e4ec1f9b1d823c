//! The engine: it waits, and carries out what the rules decide.
//!
//! It knows no vendor, no file format and no store: those come in through [`ports`].

mod agent;
mod approvals;
mod body;
mod builder;
mod coordinator;
mod deliver;
mod fence;
mod journal;
mod limits;
mod mailbox;
mod output;
pub mod ports;
mod receipts;
mod recovery;
mod report;
mod resume;
pub mod scripted;
mod send;
mod session;
mod session_budget;
mod slots;
mod spawn;
mod stop;
mod templates;
pub mod tools;
mod toolset;
mod until;
mod virtual_clock;

pub use approvals::{AnswerError, Approval, Attached, Meant};
pub use builder::{Builder, StartError};
pub use coordinator::{AgentStatus, Coordinator};
pub use limits::RaiseError;
pub use mailbox::{Mailbox, Pushed, Queued, Resume, StopOrder, Stopped, TakenBack};
pub use receipts::Receipt;
pub use resume::Resumed;
pub use send::{Delivery, Message};
pub use session::{Activity, ActivityKind, Conflict};
pub use slots::Slots;
pub use spawn::SpawnError;
pub use stop::{StopError, StopReply};
pub use templates::{AgentSpec, NoTemplates, Templates};
pub use toolset::ToolSet;
pub use virtual_clock::{MAX_ROUNDS, Stuck, VirtualClock};
