//! What daemons have to be killed beside: a history in which nothing of it happens tells nothing
//! of it, so somebody counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rule::GUEST;
use crate::story::Story;

/// How to tell one of it by the session and its event.
type Is = fn(&Story, &Value) -> bool;

const TO_BE_MET: [(&str, Is); 6] = [
    ("answers that a wait took", |_, event| event["type"] == "message_injected" && event["point"] == "wait"),
    ("compactions", |_, event| event["type"] == "compacted"),
    ("calls that were allowed", |_, event| {
        event["type"] == "approval_resolved" && event["decision"] == "once"
    }),
    ("calls that were denied", |_, event| {
        event["type"] == "approval_resolved" && event["decision"] == "denied"
    }),
    ("calls of guests", |story, event| story.cast.model == GUEST && event["type"] == "tool_started"),
    ("guests taken up", |story, event| story.cast.model == GUEST && event["type"] == "session_resumed"),
];

/// How often each happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met(BTreeMap<&'static str, u64>);

impl Met {
    pub(crate) fn of(story: &Story, events: &[Value]) -> Self {
        let times = |is: Is| events.iter().filter(|event| is(story, event)).count() as u64;
        Self(TO_BE_MET.into_iter().map(|(word, is)| (word, times(is))).collect())
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (word, times) in &other.0 {
            *self.0.entry(word).or_default() += times;
        }
        self
    }

    /// What never happened.
    pub(crate) fn never(&self) -> Vec<&'static str> {
        let words = TO_BE_MET.into_iter().map(|(word, _)| word);
        words.filter(|word| self.0.get(word).is_none_or(|times| *times == 0)).collect()
    }
}
