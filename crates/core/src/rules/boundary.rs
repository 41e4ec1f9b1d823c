//! Who interrupts whom, and when: the whole policy on one screen (semantics.md, sections 2
//! and 3). Everything else in the project asks this table.

use super::mail::{Point, Sender, Urgency};
use super::settings::Settings;

/// A moment at which mail may cost the agent work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The model is streaming its reply.
    Streaming,
    /// A failed model call waits to be tried again.
    Retrying,
    /// Calls are running, or continuations are being gathered.
    Working,
    /// Boundary A: the reply is recorded, no call has started.
    BeforeTools,
    /// Boundary C: between two batches, or between two calls of a serial one.
    BetweenCalls,
    /// Boundary C inside a unit of edits that are kept together.
    WithinEdits,
}

/// The least urgency that acts at a moment; `None`: no message does.
///
/// | moment                  | acts            | costs                              |
/// | ----------------------- | --------------- | ---------------------------------- |
/// | streaming               | `urgent`        | the reply (unless the setting says not to cut) |
/// | waiting to try again    | `urgent`        | the wait                           |
/// | working                 | `urgent`        | the running calls                  |
/// | before tools (A)        | `next_boundary` | every call                         |
/// | between calls (C)       | `next_boundary` | the calls that have not started    |
/// | … within a unit of edits| `urgent`        | the same                           |
/// | A and C, turn guarded   | `urgent`        | the same                           |
///
/// `after_tools` and `follow_up` never cost anything: they wait for [`Point::takes`].
pub fn acts(moment: Moment, guarded: bool, settings: &Settings) -> Option<Urgency> {
    match moment {
        Moment::Streaming if !settings.urgent_cuts_stream => None,
        Moment::Streaming | Moment::Retrying | Moment::Working | Moment::WithinEdits => Some(Urgency::Urgent),
        Moment::BeforeTools | Moment::BetweenCalls if guarded => Some(Urgency::Urgent),
        Moment::BeforeTools | Moment::BetweenCalls => Some(Urgency::NextBoundary),
    }
}

/// A look at the mailbox. Looking never takes.
pub trait Inbox {
    /// The highest urgency of what is pending; one atomic load.
    fn pending(&self) -> Option<Urgency>;

    /// Commits what is pending of this urgency and above to have caused a skip, and names
    /// the earliest. `None`: it was withdrawn between the two looks, and nothing is skipped.
    fn commit(&self, at_least: Urgency) -> Option<Committed>;
}

/// The mail that acted at a boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Who sent the earliest message that acts: the NAME of section 4.
    pub sender: Sender,
    /// The highest urgency among them.
    pub highest: Urgency,
}

/// Looks once: does mail that acts at this moment forbid what would start next?
pub fn look(moment: Moment, guarded: bool, settings: &Settings, inbox: &dyn Inbox) -> Option<Committed> {
    let least = acts(moment, guarded, settings)?;
    if inbox.pending()? < least {
        return None;
    }
    inbox.commit(least)
}

/// The point of an injection that closes a turn's tools: how many calls it had, and how many of
/// them mail skipped and interrupted (semantics.md, section 3).
pub fn closing_point(calls: usize, skipped: usize, interrupted: usize) -> Point {
    match (skipped, interrupted) {
        (0, 0) => Point::D,
        (skipped, _) if skipped == calls => Point::A,
        (_, _) => Point::C,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_up_and_after_tools_never_cost_a_call() {
        let moments = [
            Moment::Streaming,
            Moment::Retrying,
            Moment::Working,
            Moment::BeforeTools,
            Moment::BetweenCalls,
            Moment::WithinEdits,
        ];
        for moment in moments {
            for guarded in [false, true] {
                let least = acts(moment, guarded, &Settings::default());
                assert!(least > Some(Urgency::AfterTools), "{moment:?}");
            }
        }
    }

    #[test]
    fn the_guard_and_kept_edits_leave_only_urgent() {
        let settings = Settings::default();
        for moment in [Moment::BeforeTools, Moment::BetweenCalls] {
            assert_eq!(acts(moment, false, &settings), Some(Urgency::NextBoundary));
            assert_eq!(acts(moment, true, &settings), Some(Urgency::Urgent));
        }
        assert_eq!(acts(Moment::WithinEdits, false, &settings), Some(Urgency::Urgent));
        let patient = Settings { urgent_cuts_stream: false, ..Settings::default() };
        assert_eq!(acts(Moment::Streaming, false, &patient), None);
        assert_eq!(acts(Moment::Retrying, false, &patient), Some(Urgency::Urgent));
    }
}
