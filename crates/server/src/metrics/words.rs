//! The words that labels may have. Every label is a `&'static str` from here or from core's
//! own enums, so that no name, id or text of a session can ever become one: a label with
//! unbounded values would cost the memory of whoever scrapes.

use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::mail::{Refusal, ReturnReason};

/// A label: its name and its word.
pub(super) type Label = (&'static str, &'static str);

/// All outcomes.
pub(super) const OUTCOMES: [Outcome; 4] =
    [Outcome::Finished, Outcome::Stopped, Outcome::Failed, Outcome::Limit];

/// All statuses of a call.
pub(super) const STATUSES: [ToolStatus; 6] = [
    ToolStatus::Completed,
    ToolStatus::Failed,
    ToolStatus::Interrupted,
    ToolStatus::Skipped,
    ToolStatus::Stopped,
    ToolStatus::Unknown,
];

/// All reasons for which a reply is cut.
pub(super) const CUTS: [InterruptReason; 7] = [
    InterruptReason::UserCancelled,
    InterruptReason::Superseded,
    InterruptReason::MessageInterrupt,
    InterruptReason::StoppedByParent,
    InterruptReason::Shutdown,
    InterruptReason::Limit,
    InterruptReason::Error,
];

/// All reasons for which a message goes back.
pub(super) const RETURNS: [ReturnReason; 6] = [
    ReturnReason::Closed,
    ReturnReason::Stopped,
    ReturnReason::Expired,
    ReturnReason::Withdrawn,
    ReturnReason::Superseded,
    ReturnReason::Error,
];

/// All decisions on requests for a person's word.
pub(super) const DECISIONS: [Decision; 4] =
    [Decision::Once, Decision::Session, Decision::Denied, Decision::NotAnswered];

/// The codes of refusals (semantics.md, section 8), and one for what is none of them.
pub(super) fn refusals() -> impl Iterator<Item = &'static str> {
    Refusal::CODES.into_iter().chain([OTHER])
}

const OTHER: &str = "other";

/// What starts runs.
pub(super) const TRIGGERS: [&str; 3] = ["prompt", "message", "resume"];

/// Who stops.
pub(super) const STOPPERS: [&str; 2] = ["user", "agent"];

pub(super) fn refusal(code: &str) -> &'static str {
    Refusal::CODES.into_iter().find(|known| *known == code).unwrap_or(OTHER)
}

/// A person, or anybody else.
pub(super) fn stopper(by: &str) -> &'static str {
    if by == "user" { "user" } else { "agent" }
}
