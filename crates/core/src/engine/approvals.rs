//! Requests for a person's word that are open, and what a person has allowed for the session.
//!
//! What is asked about is decided in `rules::approval`. No message answers a request: an
//! answer comes through [`Coordinator::answer`](super::Coordinator::answer) alone, from
//! whoever holds the coordinator, and no tool of a model leads there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use crate::rules::approval::{Answer, Asked, Effect, Policy, Rule, RuleError, Verdict};
use crate::rules::id::{AgentName, CallId};
use crate::rules::time::Micros;

/// A request that waits for a person.
#[derive(Clone, Debug)]
pub struct Approval {
    /// Whose call it is.
    pub agent: AgentName,
    /// The call.
    pub tool: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub input: Value,
    /// The rule that an answer "always" stands for unless it brings its own.
    pub always: Rule,
    /// When it was asked, in the session's time.
    pub since: Micros,
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Nothing is asked (any more): it was answered, withdrawn, or its time was up.
    #[error("`{agent}` doesn't ask about the call `{tool}`, or not any more")]
    NotAsked {
        /// The agent that was named.
        agent: String,
        /// The call that was named.
        tool: String,
    },
    /// The rule that came with it doesn't fit.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// So many rules are allowed for the session that nobody knows them any more.
    #[error(
        "{GRANTED_MAX} rules are allowed for this session already: answer once, or put a wider rule into `approvals.allow`"
    )]
    TooManyRules,
}

/// How many rules a person can allow for a session.
const GRANTED_MAX: usize = 1_000;

/// The policy of a session, and where its requests stand.
#[derive(Default)]
pub(crate) struct Approvals {
    policy: Policy,
    granted: Mutex<Vec<Rule>>,
    /// In the order in which they were asked; bounded by agents times parallel calls.
    open: Mutex<Vec<Request>>,
    attached: AtomicUsize,
}

struct Request {
    approval: Approval,
    subject: Option<Arc<str>>,
    effect: Effect,
    answer: Option<Answer>,
}

/// Somebody who can answer is there, as long as this lives.
pub struct Attached(Arc<Approvals>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.attached.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Approvals {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What becomes of a call that is about to start.
    pub(crate) fn judge(&self, call: &Asked<'_>) -> Verdict {
        self.policy.judge(call, &self.granted.lock())
    }

    pub(crate) fn attach(self: &Arc<Self>) -> Attached {
        self.attached.fetch_add(1, Ordering::AcqRel);
        Attached(self.clone())
    }

    pub(crate) fn is_attended(&self) -> bool {
        self.attached.load(Ordering::Acquire) > 0
    }

    /// Opens a request.
    pub(crate) fn ask(&self, approval: Approval, call: &Asked<'_>) {
        let (subject, effect) = (call.subject.map(Arc::from), call.effect);
        self.open.lock().push(Request { approval, subject, effect, answer: None });
    }

    /// The requests without an answer, in the order in which they were asked.
    pub(crate) fn open(&self) -> Vec<Approval> {
        let open = self.open.lock();
        open.iter()
            .filter(|request| request.answer.is_none())
            .map(|request| request.approval.clone())
            .collect()
    }

    /// Takes a person's answer. Names the agents that find one now: what is allowed for the
    /// session answers the others' requests too.
    pub(crate) fn answer(
        &self,
        agent: &str,
        tool: &str,
        answer: Answer,
    ) -> Result<Vec<AgentName>, AnswerError> {
        let mut open = self.open.lock();
        let is_it = |request: &&mut Request| {
            let approval = &request.approval;
            approval.agent.as_str() == agent && approval.tool.as_str() == tool && request.answer.is_none()
        };
        let request = open.iter_mut().find(is_it).ok_or_else(|| AnswerError::NotAsked {
            agent: agent.chars().take(80).collect(),
            tool: tool.chars().take(80).collect(),
        })?;
        let Answer::Session(rule) = &answer else {
            request.answer = Some(answer);
            return Ok(vec![request.approval.agent.clone()]);
        };
        if !rule.allows(&request.asked()) {
            return Err(RuleError::OtherCall(rule.text().to_owned()).into());
        }
        self.grant(rule)?;
        let others =
            open.iter_mut().filter(|request| request.answer.is_none() && rule.allows(&request.asked()));
        Ok(others
            .map(|request| {
                request.answer = Some(answer.clone());
                request.approval.agent.clone()
            })
            .collect())
    }

    fn grant(&self, rule: &Rule) -> Result<(), AnswerError> {
        let mut granted = self.granted.lock();
        if granted.iter().any(|known| known.covers(rule)) {
            return Ok(());
        }
        if granted.len() >= GRANTED_MAX {
            return Err(AnswerError::TooManyRules);
        }
        granted.push(rule.clone());
        Ok(())
    }

    /// Closes a request. `None`: it has no answer yet, and will get none.
    pub(crate) fn close(&self, agent: &AgentName, tool: &CallId) -> Option<Answer> {
        let mut open = self.open.lock();
        let at = open.iter().position(|request| request.is(agent, tool))?;
        open.remove(at).answer
    }

    /// Whether a request has its answer.
    pub(crate) fn is_answered(&self, agent: &AgentName, tool: &CallId) -> bool {
        self.open.lock().iter().any(|request| request.is(agent, tool) && request.answer.is_some())
    }
}

impl Request {
    fn asked(&self) -> Asked<'_> {
        Asked { name: &self.approval.name, subject: self.subject.as_deref(), effect: self.effect }
    }

    fn is(&self, agent: &AgentName, tool: &CallId) -> bool {
        self.approval.agent == *agent && self.approval.tool == *tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(approvals: &Approvals, n: usize) -> String {
        let (tool, command) = (format!("c{n}"), format!("make {n}"));
        let call = Asked { name: "bash", subject: Some(&command), effect: Effect::Runs };
        let approval = Approval {
            agent: AgentName::new("worker").unwrap(),
            tool: CallId::new(&*tool),
            name: "bash".into(),
            input: Value::Null,
            always: Rule::always(&call),
            since: Micros(0),
        };
        approvals.ask(approval, &call);
        tool
    }

    fn always(approvals: &Approvals, n: usize, rule: &str) -> Result<Vec<AgentName>, AnswerError> {
        let tool = asked(approvals, n);
        approvals.answer("worker", &tool, Answer::Session(Rule::parse(rule).unwrap()))
    }

    #[test]
    fn rules_for_a_session_are_kept_once_and_not_without_end() {
        let approvals = Approvals::default();
        for n in 0..GRANTED_MAX {
            assert!(always(&approvals, n, &format!("bash(make {n})")).is_ok());
        }
        assert!(always(&approvals, 0, "bash(make 0)").is_ok(), "what is known is no more than it was");
        assert_eq!(always(&approvals, GRANTED_MAX, "bash(make *)"), Err(AnswerError::TooManyRules));
        assert_eq!(approvals.granted.lock().len(), GRANTED_MAX);
    }
}
