//! How soon a message acts: the ladder of semantics.md, section 2.

use super::words::words;

words! {
    // Models read it in their tools' schemas, which cite no page.
    /// How soon a message acts, from the mildest on.
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
