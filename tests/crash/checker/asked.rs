//! A command that a person is to be asked about runs after a yes and never without one.

use super::*;
use crate::answering::Answers;
use crate::breach::Promise::AskedFirst;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Open,
    Yes,
    No,
    /// Nobody answered in time, or nobody needed to any more.
    NotAnswered,
}

/// The requests of a session, as the events tell of them.
#[derive(Default)]
struct Requests<'a> {
    stands: BTreeMap<&'a str, Stand>,
    started: BTreeSet<&'a str>,
    /// A word may have been given that stands for all commands as long as the session lives in its
    /// process. Others may profit before it is told of the call that it answered.
    may_all: bool,
}

impl Look<'_> {
    /// Nothing is asked where nobody is to be asked; else no command starts without a yes.
    pub(super) fn nothing_runs_unasked(&self, answers: Option<&Answers>) {
        let mut requests = Requests::default();
        for event in &self.ledger.events {
            let found = match answers {
                Some(answers) => requests.follows(event, answers),
                None if event["type"] == "approval_requested" => Err("nobody is to be asked".to_owned()),
                None => Ok(()),
            };
            if let Err(what) = found {
                self.breaches.add(AskedFirst, format!("{what}: {event}"));
            }
        }
    }
}

impl<'a> Requests<'a> {
    fn follows(&mut self, event: &'a Value, answers: &Answers) -> Result<(), String> {
        let call = event["tool"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            // What was asked and what was allowed ends with the process.
            Some("session_resumed") => {
                self.may_all = false;
                let ended =
                    self.stands.values_mut().filter(|stand| matches!(stand, Stand::Open | Stand::Yes));
                ended.for_each(|stand| *stand = Stand::NotAnswered);
                Ok(())
            }
            Some("approval_requested") => {
                self.may_all |= answers.for_all(call);
                match self.stands.insert(call, Stand::Open) {
                    None if !self.started.contains(call) => Ok(()),
                    before => Err(format!("it was asked before, or runs ({before:?})")),
                }
            }
            Some("approval_resolved") => self.resolved(call, event, answers),
            Some("tool_started") => {
                self.started.insert(call);
                let may =
                    event["name"] != "bash" || self.may_all || self.stands.get(call) == Some(&Stand::Yes);
                if may { Ok(()) } else { Err("it starts, and nobody has allowed it".to_owned()) }
            }
            Some("tool_finished") if !self.started.contains(call) => self.never_ran(call, event),
            _ => Ok(()),
        }
    }

    fn resolved(&mut self, call: &'a str, event: &Value, answers: &Answers) -> Result<(), String> {
        let decision = event["decision"].as_str().unwrap_or_default();
        let stand = match decision {
            "once" | "session" => Stand::Yes,
            "denied" => Stand::No,
            _ => Stand::NotAnswered,
        };
        let before = self.stands.insert(call, stand);
        if before != Some(Stand::Open) {
            return Err(format!("it was not asked any more ({before:?})"));
        }
        if stand == Stand::NotAnswered {
            return Ok(());
        }
        let is_said = answers.said(call, decision) || (decision == "session" && self.may_all);
        match answers.taken(call) {
            _ if event["by"] != "user" || !is_said => Err("no person has said so".to_owned()),
            Some(taken) if taken != decision => Err(format!("the answer that was taken is {taken}")),
            _ => Ok(()),
        }
    }

    /// What its model is told of a call that has not started is what became of its request.
    fn never_ran(&self, call: &str, event: &Value) -> Result<(), String> {
        let output = event["output"].as_str().unwrap_or_default();
        let stand = self.stands.get(call);
        let agrees = match (event["status"].as_str(), stand) {
            (Some("failed"), Some(Stand::No)) => output.starts_with("[Denied by the user: not this one."),
            (Some("failed"), Some(Stand::NotAnswered)) => output.starts_with("[Not answered: "),
            (Some("failed"), None) => output.starts_with("[Denied: ") && event["name"] == "bash",
            (Some("skipped"), stand) => !matches!(stand, Some(Stand::No | Stand::Open)),
            _ => false,
        };
        if agrees { Ok(()) } else { Err(format!("its request stands at {stand:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(answers: &Answers, events: &[Value]) -> usize {
        let mut requests = Requests::default();
        events.iter().filter(|event| requests.follows(event, answers).is_err()).count()
    }

    fn event(kind: &str, call: &str) -> Value {
        json!({"type": kind, "tool": call, "name": "bash"})
    }

    fn resolved(call: &str, decision: &str) -> Value {
        json!({"type": "approval_resolved", "tool": call, "decision": decision, "by": "user"})
    }

    fn ended(call: &str, status: &str, output: &str) -> Value {
        json!({"type": "tool_finished", "tool": call, "name": "bash", "status": status, "output": output})
    }

    #[test]
    fn a_call_runs_after_a_yes_that_somebody_gave_and_in_that_process_only() {
        let mut answers = Answers::default();
        answers.gives("yes", &json!({"decision": "once"}));
        answers.gives("no", &json!({"decision": "denied"}));
        let (asked, starts) = (|call| event("approval_requested", call), |call| event("tool_started", call));
        let again = json!({"type": "session_resumed"});
        assert_eq!(found(&answers, &[asked("yes"), resolved("yes", "once"), starts("yes")]), 0);
        for bad in [
            vec![starts("yes")],
            vec![asked("yes"), starts("yes")],
            vec![asked("no"), resolved("no", "denied"), starts("no")],
            vec![asked("yes"), resolved("yes", "once"), again.clone(), starts("yes")],
            vec![asked("yes"), again, resolved("yes", "once")],
            vec![asked("no"), resolved("no", "once")],
            vec![asked("no"), resolved("no", "denied"), ended("no", "skipped", "[Skipped: …]")],
            vec![asked("yes"), ended("yes", "unknown", "[Unknown: …]")],
        ] {
            assert_eq!(found(&answers, &bad), 1, "{bad:?}");
        }
    }

    #[test]
    fn a_word_for_all_commands_ends_with_the_process() {
        let mut answers = Answers::default();
        answers.gives("first", &json!({"decision": "session", "rule": "bash"}));
        let allowed = [event("approval_requested", "first"), resolved("first", "session")];
        let next = event("tool_started", "next");
        assert_eq!(found(&answers, &[&allowed[..], std::slice::from_ref(&next)].concat()), 0);
        let again = json!({"type": "session_resumed"});
        assert_eq!(found(&answers, &[&allowed[..], &[again, next]].concat()), 1);
    }

    #[test]
    fn the_answer_that_was_taken_is_the_one_that_counts() {
        let (mut answers, breaches) = (Answers::default(), Breaches::default());
        for decision in ["once", "denied"] {
            answers.gives("t", &json!({"decision": decision}));
        }
        answers.is_taken("t", &json!({"decision": "denied"}), &breaches);
        assert_eq!(found(&answers, &[event("approval_requested", "t"), resolved("t", "once")]), 1);
        answers.is_taken("t", &json!({"decision": "once"}), &breaches);
        assert_eq!(breaches.all().len(), 1, "two words for one request");
    }
}
