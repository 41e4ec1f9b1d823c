//! A person who answers what agents ask, and what they remember of it: which answers they gave,
//! and which of those were said to be taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api::Answer;
use crate::breach::Breaches;
use crate::breach::Promise::AskedFirst;
use crate::dice::{Dice, hashed};
use crate::life::Life;

/// How long a request waits for its answer. Some wait longer than that: nobody answers them.
pub(crate) const PATIENCE: &str = "400ms";

/// How often somebody looks when nothing is told.
const LOOKS: Duration = Duration::from_millis(40);

/// What a person said, by call.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    given: BTreeMap<String, BTreeSet<String>>,
    /// Those that were answered with a word for all commands.
    for_all: BTreeSet<String>,
    taken: BTreeMap<String, String>,
}

impl Answers {
    /// Whether a person has ever said this about a call.
    pub(crate) fn said(&self, call: &str, decision: &str) -> bool {
        self.given.get(call).is_some_and(|given| given.contains(decision))
    }

    /// Whether what was said about a call may stand for all commands.
    pub(crate) fn for_all(&self, call: &str) -> bool {
        self.for_all.contains(call)
    }

    /// The answer to a call that was said to be taken.
    pub(crate) fn taken(&self, call: &str) -> Option<&str> {
        self.taken.get(call).map(String::as_str)
    }

    /// Before it is sent: whatever is answered, it may count from now on.
    pub(crate) fn gives(&mut self, call: &str, body: &Value) {
        let decision = body["decision"].as_str().unwrap_or_default();
        self.given.entry(call.to_owned()).or_default().insert(decision.to_owned());
        if body["rule"] == "bash" {
            self.for_all.insert(call.to_owned());
        }
    }

    /// The first word counts, so there is one.
    pub(crate) fn is_taken(&mut self, call: &str, body: &Value, breaches: &Breaches) {
        let decision = body["decision"].as_str().unwrap_or_default().to_owned();
        if let Some(before) = self.taken.insert(call.to_owned(), decision) {
            breaches.add(AskedFirst, format!("call {call} was answered with {before} and then with {body}"));
        }
    }
}

/// What is said about a call; `None`: nothing, ever.
fn word(call: &str, dice: &mut Dice) -> Option<Value> {
    if hashed(call).is_multiple_of(8) {
        return None;
    }
    Some(match dice.below(16) {
        0..10 => json!({"decision": "once"}),
        10..14 => json!({"decision": "denied", "reason": "not this one"}),
        14 => json!({"decision": "session"}),
        _ => json!({"decision": "session", "rule": "bash"}),
    })
}

impl Life {
    /// Answers until the daemon is gone.
    pub(crate) async fn answers(&self, mut dice: Dice) {
        let mut told = self.story.told.subscribe();
        while let Answer::Said(_, open) = self.get("/approvals").await {
            for approval in open["approvals"].as_array().into_iter().flatten() {
                self.answer(approval, &mut dice).await;
            }
            told.mark_unchanged();
            let _ = timeout(LOOKS, told.changed()).await;
        }
    }

    async fn answer(&self, approval: &Value, dice: &mut Dice) {
        let call = approval["tool"].as_str().unwrap_or_default();
        let Some(mut body) = word(call, dice) else { return };
        body["since"] = approval["since"].clone();
        self.story.answers.lock().unwrap().gives(call, &body);
        let agent = approval["agent"].as_str().unwrap_or_default();
        let answer = self.post(&format!("/agents/{agent}/approvals/{call}"), body.clone()).await;
        if let Answer::Said(200, _) = answer {
            self.story.answers.lock().unwrap().is_taken(call, &body, &self.story.breaches);
        }
    }
}
