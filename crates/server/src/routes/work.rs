//! What is done to agents, and what became of their work.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::engine::Message;
use midturn_core::engine::ports::ToolError;
use midturn_wire::agent::Agent;
use midturn_wire::message::Receipt;
use midturn_wire::session::Session;
use midturn_wire::work::{Closed, Diff, Empty, Limits, Merge, Started, Stop, Stopped, Supersede};

use super::agents::existing;
use super::{AgentPath, Change, Made, Reply, SessionPath};
use crate::app::{App, Named, agent_name, not_here, present};
use crate::extract::{Brought, Path};
use crate::host::Live;
use crate::problem::Refused;
use crate::security::Asker;

/// Ends the current run of an agent, and of all below it if asked.
#[utoipa::path(post, path = "/stop", request_body = Stop, responses((status = 200, body = Stopped)))]
pub(super) async fn stop(change: Change<AgentPath, Stop>) -> Reply<Stopped> {
    let Change { live, path, asker: Asker(by), body: stop } = change;
    let scope = stop.scope.unwrap_or_default().into();
    let name = path.agent.as_str();
    let reply = match stop.stream_run_id {
        Some(run) => live.coordinator.stop_run(name, by, scope, run.0).await?,
        None => live.coordinator.stop(name, by, scope).await?,
    };
    Ok(Json(reply.into()))
}

/// Stops the run and starts the next one with a message, as one action.
#[utoipa::path(
    post,
    path = "/supersede",
    request_body = Supersede,
    responses((status = 202, body = Receipt))
)]
pub(super) async fn supersede(change: Change<AgentPath, Supersede>) -> Made<Receipt> {
    let Change { live, path, asker: Asker(from), body: supersede } = change;
    agent_name(&path.agent)?;
    let mut message = Message::new(from, path.agent, supersede.text.0);
    message.id = supersede.id.map(|id| id.0);
    message.expects_run = supersede.stream_run_id.map(|run| run.0);
    let delivery = live.coordinator.supersede(message).await?;
    let receipt = Receipt::accepted(&delivery.result?, delivery.too_late_to_supersede);
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

/// Starts a stopped agent's next run.
#[utoipa::path(post, path = "/resume", request_body = Empty, responses((status = 200, body = Started)))]
pub(super) async fn resume(change: Change<AgentPath, Empty>) -> Reply<Started> {
    let Change { live, path, .. } = change;
    Ok(Json(live.coordinator.resume(&path.agent).await?.into()))
}

/// Sets limits of an agent, higher or lower, but not below what is spent. Whom one of them had
/// kept goes on.
#[utoipa::path(post, path = "/limits", request_body = Limits, responses((status = 200, body = Agent)))]
pub(super) async fn agent_limits(change: Change<AgentPath, Limits>) -> Reply<Agent> {
    let Change { live, path, asker, body: limits } = change;
    asker.must_be_a_person()?;
    live.coordinator.raise(Some(&path.agent), limits.into()).await?;
    Ok(Json(present(&live, &path.agent)?.into()))
}

/// Sets limits of all agents of a session together.
#[utoipa::path(post, path = "/limits", request_body = Limits, responses((status = 200, body = Session)))]
pub(super) async fn session_limits(change: Change<SessionPath, Limits>) -> Reply<Session> {
    let Change { live, asker, body: limits, .. } = change;
    asker.must_be_a_person()?;
    live.coordinator.raise(None, limits.into()).await?;
    Ok(Json(Session::from(&live)))
}

/// Closes an agent and all below it, leaves first.
#[utoipa::path(post, path = "/close", request_body = Empty, responses((status = 200, body = Closed)))]
pub(super) async fn close(change: Change<AgentPath, Empty>) -> Reply<Closed> {
    let Change { live, path, asker: Asker(by), .. } = change;
    let closed = live.coordinator.close(&path.agent, by).await?;
    Ok(Json(Closed { closed: closed.iter().map(ToString::to_string).collect() }))
}

/// What an agent's branch changed since it began; of an agent without one, what is not committed in the project
/// folder.
#[utoipa::path(get, path = "/diff", responses((status = 200, body = Diff)))]
pub(super) async fn diff(State(app): State<Arc<App>>, Path(path): Path<AgentPath>) -> Reply<Diff> {
    let diff = match app.named(&path.session)? {
        Named::Live(live) => {
            let name = present(&live, &path.agent)?.name;
            let diff = live.coordinator.diff(&name).await;
            diff.map_err(|error| no_diff(&live, &path.agent, &error))?
        }
        Named::Joined(joined) => return Err(not_here(&*joined)),
        Named::Stored(_) => {
            let (session, agent) = existing(&app, &path).await?;
            app.host.diff(&session, &agent).await?
        }
    };
    Ok(Json(diff.into()))
}

/// Merges an agent's branch into what the project folder has checked out. Nothing is forced.
#[utoipa::path(post, path = "/merge", request_body = Empty, responses((status = 200, body = Merge)))]
pub(super) async fn merge(
    State(app): State<Arc<App>>,
    Path(path): Path<AgentPath>,
    Brought(Empty {}): Brought<Empty>,
) -> Reply<Merge> {
    let merge = match app.named(&path.session)? {
        Named::Live(live) => {
            let name = present(&live, &path.agent)?.name;
            let merge = live.coordinator.merge(&name).await;
            // What conflicts waits for a person, whichever face they look at.
            live.feed.agents_changed();
            merge.map_err(|error| no_diff(&live, &path.agent, &error))?
        }
        Named::Joined(joined) => return Err(not_here(&*joined)),
        Named::Stored(_) => {
            let (session, agent) = existing(&app, &path).await?;
            app.host.clone().merge(session, agent).await?
        }
    };
    Ok(Json(merge.into()))
}

/// Why there is neither diff nor merge: no branch, or git fails.
fn no_diff(live: &Live, agent: &str, error: &ToolError) -> Refused {
    let branch = live.coordinator.agent(agent).and_then(|agent| agent.branch);
    let code = if branch.is_some() { "git_failed" } else { "no_branch" };
    Refused::conflict(code, error.to_string())
}
