//! Claude Code: hooks that look into the spool, and the prefix of its commands.

mod agents;
pub mod exec;
pub mod hook;
pub mod install;
mod mirror;
mod sweep;
mod transcript;
mod wait;
mod wire;

pub use self::agents::{Known, known, meant};
pub use self::mirror::Mirror;
pub use self::sweep::sweep;
pub use self::transcript::{is_deaf, rests, settle};
pub use self::wait::{Look, Waiter};
