//! The invariants of semantics.md, section 10, held against what a session tells and what its
//! models are sent. Like [`super::validate`] it shares no code with the engine: it reads from the
//! outside and believes nothing. Every replay is audited, and every session of a test that can.

mod calls;
mod course;
pub mod prompts;

use super::event::Event;
use super::validate::Breach;

/// Reads a session's events one after the other.
#[derive(Debug, Default)]
pub struct Auditor {
    course: course::Course,
    /// The course has a breach: what follows it would be measured against nothing.
    is_lost: bool,
    calls: calls::Calls,
}

impl Auditor {
    /// Checks the next event: what breaks with it.
    pub fn event(&mut self, event: &Event) -> Vec<Breach> {
        let course = if self.is_lost { Ok(()) } else { self.course.event(event) };
        self.is_lost |= course.is_err();
        [course, self.calls.event(event)].into_iter().filter_map(Result::err).collect()
    }

    /// Nothing more happens, and every run has had its time. A run that is over has no call and no
    /// request that is open, so this asks only for the runs.
    ///
    /// # Errors
    /// One of them has not ended.
    pub fn ends(&self) -> Result<(), Breach> {
        self.course.ends()
    }
}
