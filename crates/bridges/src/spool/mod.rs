//! The mailboxes of joined agents, as files:
//!
//! ```text
//! STATE/joined/SESSION/session.json          the program whose session it is
//!                     /AGENT/new/            accepted and not handed over
//!                           /handed/         given to the program, not yet seen in its transcript
//!                           /taken/          in the conversation
//!                           /returned/       will never be: NAME.REASON
//!                           /landed/         where what was handed over goes in, and what it has cost
//!                           /calls/          commands that are about to start (claude::exec), running/ those that have
//! ```
//!
//! `AGENT` is the program's id of a subagent, or `main`. A message is one file, complete before it has its name,
//! and only ever renamed: who renames it has it, so no two hand it over, and whatever dies between two steps
//! leaves it in one of the folders. One that replaces another stands beside it until that is gone: `new/.NAME~OLD`.

mod listing;
mod mailbox;
mod message;
mod place;
mod sending;
mod session;
#[cfg(feature = "steps")]
pub mod steps;
#[cfg(not(feature = "steps"))]
mod steps;

pub(crate) use self::listing::Listed;
pub(crate) use self::mailbox::{By, Handed};
pub use self::mailbox::{Landed, Mailbox, State, Withdrawn};
pub use self::message::{Message, Name};
pub(crate) use self::message::{tame, told};
pub(crate) use self::place::state_folder;
pub use self::place::{MAIN, is_name};
pub use self::sending::{Accepted, Refused};
pub use self::session::{Call, Joined, Program, Spool};
pub(crate) use self::session::{Count, started};
pub(crate) use self::steps::step;
