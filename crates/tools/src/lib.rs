//! The tools that work on a user's files: commands, reads, edits, searches, worktrees.
//!
//! [`workplace::GitWorkplace`] gives each agent its folder and its tools. Commands run under
//! [`process`] supervisors, so that nothing of a call outlives it; files are reached through a
//! root that is held open, so that no path leads out. This is the only crate that touches
//! a user's files; it knows nothing of models, mail or turns.

mod arguments;
mod commands;
mod confined;
mod context;
mod environment;
pub mod leftovers;
mod mark;
pub mod network;
pub mod own_folder;
mod planted;
pub mod process;
pub mod programs;
mod protect;
mod root;
pub mod sandbox;
mod seen;
mod toolbox;
mod tools;
pub mod under_way;
pub mod workplace;

pub use context::Limits;
pub use toolbox::work_tool_names;
