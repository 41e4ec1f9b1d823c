//! How what was begun ends: a run's outcome, and why a stream or a call was cut.

use super::words::words;

words! {
    /// How a run ended.
    pub enum Outcome {
        /// Nothing more to do.
        Finished = "finished",
        /// Stopped by a person, an ancestor or a shutdown.
        Stopped = "stopped",
        /// An error.
        Failed = "failed",
        /// A limit.
        Limit = "limit",
    }
}

words! {
    /// Why a stream or a call was cut (semantics.md, section 6).
    pub enum InterruptReason {
        /// A person stopped it.
        UserCancelled = "user_cancelled",
        /// A person stopped it and started anew.
        Superseded = "superseded",
        /// An urgent message.
        MessageInterrupt = "message_interrupt",
        /// An ancestor stopped it.
        StoppedByParent = "stopped_by_parent",
        /// The process ends.
        Shutdown = "shutdown",
        /// A limit in time was reached.
        Limit = "limit",
        /// The stream failed, or its process ended.
        Error = "error",
    }
}
