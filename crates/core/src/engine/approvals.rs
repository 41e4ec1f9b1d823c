//! Requests for a person's word that are open, and what a person has allowed for the session.
//!
//! What is asked about is decided in `rules::approval`. No message answers a request: an
//! answer comes through [`Coordinator::answer`](super::Coordinator::answer) alone, from
//! whoever holds the coordinator, and no tool of a model leads there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use crate::rules::approval::{Answer, Asked, Effect, Policy, Rule, RuleError, Verdict};
use crate::rules::id::{AgentName, CallId};
use crate::rules::time::{Micros, Span};

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
    /// When it was asked, in the session's time. A model may use a call's id again: no two
    /// requests about calls of one agent and one id have the same instant.
    pub since: Micros,
}

/// Which of the requests about calls of one agent and one id is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// The one that was asked at this instant.
    Since(Micros),
    /// The only one that is open.
    Only,
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
    /// Several calls of that id are asked about, and it was not said which is meant.
    #[error(
        "`{agent}` asks about several calls `{tool}`: say since when the one that is meant is asked about"
    )]
    Ambiguous {
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
    requests: Mutex<Requests>,
    attached: AtomicUsize,
}

#[derive(Default)]
struct Requests {
    /// In the order in which they were asked; bounded by agents times parallel calls.
    open: Vec<OpenApproval>,
    /// The last one of each agent that was closed.
    closed: BTreeMap<AgentName, (CallId, Micros)>,
}

struct OpenApproval {
    approval: Approval,
    subject: Option<Arc<str>>,
    effect: Effect,
    /// Before that a crash takes it back, and nobody is asked: an answer would be lost.
    is_durable: bool,
    answer: Option<Answer>,
}

/// Somebody who can answer is there, as long as this lives.
pub struct Attached(Arc<Approvals>);

impl Drop for Attached {
    fn drop(&mut self) {
        let before = self.0.attached.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "more let go than were attached");
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

    /// Takes in a request; nobody sees it before it is [`durable`](Self::durable). Gives the instant that
    /// tells it from all others about such a call.
    pub(crate) fn ask(&self, mut approval: Approval, call: &Asked<'_>) -> Micros {
        let (subject, effect) = (call.subject.map(Arc::from), call.effect);
        let mut requests = self.requests.lock();
        let same = requests.open.iter().filter(|request| request.is(&approval.agent, &approval.tool));
        let closed = requests.closed.get(&approval.agent).filter(|(tool, _)| *tool == approval.tool);
        let last = same.map(|request| request.approval.since).chain(closed.map(|(_, since)| *since)).max();
        if let Some(last) = last {
            approval.since = approval.since.max(last.after(Span(1)));
        }
        let since = approval.since;
        requests.open.push(OpenApproval { approval, subject, effect, is_durable: false, answer: None });
        since
    }

    /// What an agent asks is recorded: it is asked from now on.
    pub(crate) fn durable(&self, agent: &AgentName) {
        let open = &mut self.requests.lock().open;
        let of_agent = open.iter_mut().filter(|request| request.approval.agent == *agent);
        of_agent.for_each(|request| request.is_durable = true);
    }

    /// The requests without an answer, in the order in which they were asked.
    pub(crate) fn open(&self) -> Vec<Approval> {
        let requests = self.requests.lock();
        let open = requests.open.iter().filter(|request| request.is_open());
        open.map(|request| request.approval.clone()).collect()
    }

    /// Takes a person's answer. Names the agents that find one now: what is allowed for the
    /// session answers the others' requests too.
    pub(crate) fn answer(
        &self,
        agent: &str,
        tool: &str,
        meant: Meant,
        answer: Answer,
    ) -> Result<Vec<AgentName>, AnswerError> {
        let open = &mut self.requests.lock().open;
        let is_it = |request: &&mut OpenApproval| {
            let approval = &request.approval;
            let is_meant = match meant {
                Meant::Since(since) => approval.since == since,
                Meant::Only => true,
            };
            is_meant
                && approval.agent.as_str() == agent
                && approval.tool.as_str() == tool
                && request.is_open()
        };
        let [agent, tool] = [agent, tool].map(|name| name.chars().take(80).collect());
        let mut fitting = open.iter_mut().filter(is_it);
        let request = match (fitting.next(), fitting.next()) {
            (Some(request), None) => request,
            (None, _) => return Err(AnswerError::NotAsked { agent, tool }),
            (Some(_), Some(_)) => return Err(AnswerError::Ambiguous { agent, tool }),
        };
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
    pub(crate) fn close(&self, agent: &AgentName, tool: &CallId, since: Micros) -> Option<Answer> {
        let mut requests = self.requests.lock();
        let is_it = |request: &OpenApproval| request.is(agent, tool) && request.approval.since == since;
        let at = requests.open.iter().position(is_it)?;
        requests.closed.insert(agent.clone(), (tool.clone(), since));
        requests.open.remove(at).answer
    }

    /// Whether a request has its answer.
    pub(crate) fn is_answered(&self, agent: &AgentName, tool: &CallId, since: Micros) -> bool {
        let is_it = |request: &OpenApproval| request.is(agent, tool) && request.approval.since == since;
        self.requests.lock().open.iter().any(|request| is_it(request) && request.answer.is_some())
    }
}

impl OpenApproval {
    fn asked(&self) -> Asked<'_> {
        Asked { name: &self.approval.name, subject: self.subject.as_deref(), effect: self.effect }
    }

    fn is_open(&self) -> bool {
        self.is_durable && self.answer.is_none()
    }

    fn is(&self, agent: &AgentName, tool: &CallId) -> bool {
        self.approval.agent == *agent && self.approval.tool == *tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(approvals: &Approvals, n: usize) -> String {
        let tool = format!("c{n}");
        asked_about(approvals, &tool, &format!("make {n}"));
        tool
    }

    /// All are asked in one instant.
    fn asked_about(approvals: &Approvals, tool: &str, command: &str) -> Micros {
        let call = Asked { name: "bash", subject: Some(command), effect: Effect::Runs };
        let approval = Approval {
            agent: AgentName::new("worker").unwrap(),
            tool: CallId::new(tool),
            name: "bash".into(),
            input: Value::Null,
            always: Rule::always(&call),
            since: Micros(0),
        };
        let since = approvals.ask(approval, &call);
        approvals.durable(&AgentName::new("worker").unwrap());
        since
    }

    fn always(approvals: &Approvals, n: usize, rule: &str) -> Result<Vec<AgentName>, AnswerError> {
        let tool = asked(approvals, n);
        approvals.answer("worker", &tool, Meant::Only, Answer::Session(Rule::parse(rule).unwrap()))
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

    /// A24: a model that uses an id again never gets the answer to an earlier request.
    #[test]
    fn an_answer_is_for_the_request_it_names_and_for_no_other_of_that_id() {
        let approvals = Approvals::default();
        let (worker, call) = (AgentName::new("worker").unwrap(), CallId::new("c1"));
        let since = asked_about(&approvals, "c1", "cargo test");
        assert!(approvals.close(&worker, &call, since).is_none());
        // Withdrawn, and asked again in the same instant: the first answer comes late.
        let again = asked_about(&approvals, "c1", "rm -r x");
        let late = approvals.answer("worker", "c1", Meant::Since(since), Answer::Once);
        assert!(matches!(late, Err(AnswerError::NotAsked { .. })), "{late:?}");
        assert!(!approvals.is_answered(&worker, &call, again));
        // Of several at once the one is answered that is meant, and without a word which, none.
        let third = asked_about(&approvals, "c1", "ls");
        assert_ne!(third, again);
        let unclear = approvals.answer("worker", "c1", Meant::Only, Answer::Once);
        assert!(matches!(unclear, Err(AnswerError::Ambiguous { .. })), "{unclear:?}");
        assert!(approvals.answer("worker", "c1", Meant::Since(third), Answer::Once).is_ok());
        assert_eq!(
            (approvals.is_answered(&worker, &call, third), approvals.is_answered(&worker, &call, again)),
            (true, false)
        );
        assert!(approvals.close(&worker, &call, again).is_none());
        assert!(matches!(approvals.close(&worker, &call, third), Some(Answer::Once)));
    }
}
