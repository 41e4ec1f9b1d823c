//! Requests for a person's word: listed, answered. Whoever asks with the token of an agent
//! answers nothing (semantics.md, section 9).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use midturn_core::engine::{Coordinator, Meant};
use midturn_core::rules::approval::{self, Rule};
use midturn_wire::approval::{Answer, Answered, Approval, Approvals, Decision, REASON_MAX};

use super::{CallPath, Change, Reply, SessionPath};
use crate::app::{App, Named, present};
use crate::extract::Path;
use crate::problem::Refused;

/// What agents of a session ask a person, the oldest request first.
#[utoipa::path(get, path = "/approvals", responses((status = 200, body = Approvals)))]
pub(super) async fn list(State(app): State<Arc<App>>, Path(path): Path<SessionPath>) -> Reply<Approvals> {
    let as_of = app.as_of(&path.session).await?;
    let approvals = match app.named(&path.session)? {
        Named::Live(live) => {
            let open = live.coordinator.approvals();
            open.iter().map(|approval| Approval::of(live.record.id.as_str(), approval)).collect()
        }
        // Nobody asks in a session that is only stored; what another program asks is answered there.
        Named::Joined(_) | Named::Stored(_) => Vec::new(),
    };
    Ok(Json(Approvals { approvals, as_of }))
}

/// Answers a request: once, for this session, or no.
#[utoipa::path(
    post,
    path = "/agents/{agent}/approvals/{tool}",
    request_body = Answer,
    responses((status = 200, body = Answered))
)]
pub(super) async fn answer(change: Change<CallPath, Answer>) -> Reply<Answered> {
    let Change { live, path, asker, body: answer } = change;
    asker.must_be_a_person()?;
    present(&live, &path.agent)?;
    let decision = answer.decision;
    let meant = answer.since.map_or(Meant::Only, |since| Meant::Since(since.0));
    let word = word(&live.coordinator, &path, meant, answer)?;
    let rule = match &word {
        approval::Answer::Session(rule) => Some(rule.text().to_owned()),
        approval::Answer::Once | approval::Answer::No(_) => None,
    };
    live.coordinator.answer(&path.agent, &path.tool, meant, word)?;
    Ok(Json(Answered { agent: path.agent, tool: path.tool, decision, rule }))
}

/// The answer as the coordinator takes it.
fn word(
    coordinator: &Coordinator,
    path: &CallPath,
    meant: Meant,
    answer: Answer,
) -> Result<approval::Answer, Refused> {
    let Answer { decision, rule, reason, since: _ } = answer;
    let only_with = |field: &str, with: &str| Refused::bad_request(format!("`{field}`: only with `{with}`"));
    match (decision, rule, reason) {
        (Decision::Once, None, None) => Ok(approval::Answer::Once),
        (Decision::Session, rule, None) => {
            let rule = match rule {
                Some(rule) => Rule::parse(&rule.0).map_err(|error| Refused::bad_rule(&error))?,
                None => always(coordinator, path, meant)?,
            };
            Ok(approval::Answer::Session(rule))
        }
        (Decision::Denied, None, Some(reason)) if reason.0.len() > REASON_MAX => {
            let detail = format!("`reason`: at most {REASON_MAX} bytes; a sentence will do");
            Err(Refused::unprocessable("too_large", detail))
        }
        (Decision::Denied, None, reason) => Ok(approval::Answer::No(reason.map(|reason| reason.0))),
        (Decision::Once | Decision::Denied, Some(_), _) => Err(only_with("rule", "session")),
        (Decision::Once | Decision::Session, _, Some(_)) => Err(only_with("reason", "denied")),
    }
}

/// The rule that the request itself names.
fn always(coordinator: &Coordinator, path: &CallPath, meant: Meant) -> Result<Rule, Refused> {
    let open = coordinator.approvals();
    let is_it = |open: &midturn_core::engine::Approval| {
        let is_meant = matches!(meant, Meant::Only) || meant == Meant::Since(open.since);
        is_meant && open.agent.as_str() == path.agent && open.tool.as_str() == path.tool
    };
    match open.into_iter().find(is_it) {
        Some(approval) => Ok(approval.always),
        None => {
            let (agent, tool) = (path.agent.clone(), path.tool.chars().take(80).collect());
            Err(midturn_core::engine::AnswerError::NotAsked { agent, tool }.into())
        }
    }
}
