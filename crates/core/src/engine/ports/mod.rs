//! The ports: what the engine needs of the world, as object-safe traits. Real providers and
//! tools, scripted models and simulated tools, and the stores come in through the same ones.

pub mod archive;
pub mod clock;
pub mod keeping;
pub mod model;
pub mod observer;
pub mod store;
pub mod tool;

pub use archive::{Archive, SessionJournal, SessionRecord, TakenUp};
pub use clock::{Clock, Phase, RealClock};
pub use keeping::KeepingStore;
pub use model::{ErrorKind, Model, ModelFactory, ModelFailure, Progress, Request};
pub use observer::Observer;
pub use store::{Commit, Store, StoreError, Transaction};
pub use tool::{
    CallTraits, Changes, Diff, Merge, Output, OutputSink, Returned, Tool, ToolCall, ToolError, ToolSpec,
    Toolbox, Workplace,
};
