//! How soon a message acts: the ladder of semantics.md, section 2.

use super::words::words;

words! {
    /// How soon a message acts: the ladder of semantics.md, section 2. Ordered.
    #[derive(PartialOrd, Ord)]
    pub enum Urgency {
        /// When the agent would otherwise finish, or at once if it is idle.
        FollowUp = "follow_up",
        /// When all tool results of the turn are in.
        AfterTools = "after_tools",
        /// At the next boundary; what has not started is skipped.
        NextBoundary = "next_boundary",
        /// Now: what runs is aborted.
        Urgent = "urgent",
    }
}
