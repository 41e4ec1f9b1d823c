//! Agents: listed, spawned, read.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::engine::ports::SessionJournal;
use midturn_core::engine::ports::archive::Rows;
use midturn_core::rules::characters::is_blank;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::mail::ReceiptState;
use midturn_wire::agent::{Agent, Agents, Conversation, ConversationQuery, NewAgent, Plan, Spawned};
use midturn_wire::text::Text;

use super::{AgentPath, Change, Made, Reply, SessionPath};
use crate::app::{App, Named, not_here, present, unknown_agent, unknown_session};
use crate::extract::{Path, Query};
use crate::host;
use crate::joined;
use crate::problem::Refused;

/// How many rows are given to who asks for no number.
const ROWS: u64 = 200;

/// The agents of a session, in its order.
#[utoipa::path(get, path = "/agents", responses((status = 200, body = Agents)))]
pub(super) async fn list(State(app): State<Arc<App>>, Path(path): Path<SessionPath>) -> Reply<Agents> {
    Ok(Json(match app.seen(&path.session).await? {
        Named::Joined(joined) => {
            let as_of = joined.feed().last();
            Agents { agents: joined::agents(&*joined), as_of }
        }
        Named::Live(live) => {
            let as_of = live.feed.last();
            Agents { agents: live.coordinator.agents().into_iter().map(Agent::from).collect(), as_of }
        }
        Named::Stored(id) => {
            let journal = journal(&app, &id).await?;
            Agents { agents: stored(&journal), as_of: journal.last_seq }
        }
    }))
}

/// Adds an agent.
#[utoipa::path(post, path = "/agents", request_body = NewAgent, responses((status = 201, body = Spawned)))]
pub(super) async fn spawn(
    State(app): State<Arc<App>>,
    change: Change<SessionPath, NewAgent>,
) -> Made<Spawned> {
    let Change { live, body: agent, .. } = change;
    if agent.prompt.as_ref().is_some_and(|prompt| is_blank(&prompt.0)) {
        let detail = "the prompt is empty; say what to do, or leave it out and write to the agent later";
        return Err(Refused::unprocessable("empty", detail));
    }
    let agent = host::NewAgent {
        name: new_name("name", &agent.name)?,
        prompt: agent.prompt.map(|prompt| prompt.0),
        agent: agent.agent.map(|definition| definition.0),
        parent: agent.parent.map(|parent| new_name("parent", &parent)).transpose()?,
    };
    let name = agent.name.clone();
    app.host.spawn(&live.record.id, agent).await?;
    let agent = present(&live, name.as_str())?.into();
    Ok((StatusCode::CREATED, Json(Spawned { agent, shared: live.shared.clone() })))
}

/// An agent.
#[utoipa::path(get, path = "/", responses((status = 200, body = Agent)))]
pub(super) async fn one(State(app): State<Arc<App>>, Path(path): Path<AgentPath>) -> Reply<Agent> {
    find(&app, &path).await.map(|found| Json(found.agent))
}

/// A part of an agent's conversation.
#[utoipa::path(
    get,
    path = "/conversation",
    params(ConversationQuery),
    responses((status = 200, body = Conversation))
)]
pub(super) async fn conversation(
    State(app): State<Arc<App>>,
    Path(path): Path<AgentPath>,
    Query(query): Query<ConversationQuery>,
) -> Reply<Conversation> {
    let limit = rows_wanted(query.limit)?;
    let wanted = rows_asked(query.after, query.before)?;
    if let Named::Joined(joined) = app.named(&path.session)? {
        // It is in a file of its program's.
        return Err(not_here(&*joined));
    }
    let Found { session, agent, as_of } = find(&app, &path).await?;
    let rows = app.host.archive().conversation(&session, &agent.name, wanted, limit).await?;
    let numbers: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    let (next, previous) = around(wanted, &numbers, limit);
    let messages = rows.into_iter().map(Into::into).collect();
    Ok(Json(Conversation { messages, next, previous, as_of }))
}

/// Which part is asked for.
pub(super) fn rows_asked(after: Option<u64>, before: Option<u64>) -> Result<Rows, Refused> {
    match (after, before) {
        (Some(_), Some(_)) => Err(Refused::bad_request("give `after` or `before`, not both")),
        (after, None) => Ok(Rows::After(after.unwrap_or_default())),
        (None, Some(before)) => Ok(Rows::Before(before)),
    }
}

/// What to ask for the part that follows a part of these numbers, and for the one before it.
pub(super) fn around(rows: Rows, numbers: &[u64], limit: u32) -> (Option<u64>, Option<u64>) {
    let is_full = numbers.len() >= limit as usize;
    let (is_followed, has_before) = match rows {
        Rows::After(after) => (is_full, after > 0),
        Rows::Before(_) => (false, is_full),
    };
    let next = numbers.last().filter(|_| is_followed).copied();
    let previous = numbers.first().filter(|first| has_before && **first > 1).copied();
    (next, previous)
}

/// How many rows a part has at most.
pub(super) fn rows_wanted(limit: Option<u64>) -> Result<u32, Refused> {
    let limit = limit.unwrap_or(ROWS);
    if !(1..=1000).contains(&limit) {
        return Err(Refused::bad_request("`limit`: write a number from 1 to 1000"));
    }
    Ok(u32::try_from(limit).unwrap_or(u32::MAX))
}

/// An agent's plan.
#[utoipa::path(get, path = "/plan", responses((status = 200, body = Plan)))]
pub(super) async fn plan(State(app): State<Arc<App>>, Path(path): Path<AgentPath>) -> Reply<Plan> {
    let found = find(&app, &path).await?;
    Ok(Json(Plan { steps: found.agent.plan }))
}

/// The ids of a session and an agent that are there.
pub(super) async fn existing(app: &App, path: &AgentPath) -> Result<(SessionId, AgentName), Refused> {
    find(app, path).await.map(|found| (found.session, found.agent.name))
}

/// An agent that is there.
struct Found {
    session: SessionId,
    agent: Agent,
    /// The number of the last event before it was looked for.
    as_of: u64,
}

async fn find(app: &App, path: &AgentPath) -> Result<Found, Refused> {
    match app.seen(&path.session).await? {
        Named::Joined(joined) => {
            let as_of = joined.feed().last();
            let found = joined::agents(&*joined).into_iter().find(|agent| agent.name.as_str() == path.agent);
            let agent = found.ok_or_else(|| unknown_agent(&path.agent))?;
            Ok(Found { session: SessionId::new(joined.id()), agent, as_of })
        }
        Named::Live(live) => {
            let as_of = live.feed.last();
            let agent = present(&live, &path.agent)?.into();
            Ok(Found { session: live.record.id.clone(), agent, as_of })
        }
        Named::Stored(id) => {
            let journal = journal(app, &id).await?;
            let found = stored(&journal).into_iter().find(|agent| agent.name.as_str() == path.agent);
            let agent = found.ok_or_else(|| unknown_agent(&path.agent))?;
            Ok(Found { session: id, agent, as_of: journal.last_seq })
        }
    }
}

pub(super) async fn journal(app: &App, id: &SessionId) -> Result<SessionJournal, Refused> {
    app.host.archive().journal(id).await?.ok_or_else(|| unknown_session(id.as_str()))
}

fn stored(journal: &SessionJournal) -> Vec<Agent> {
    let pending = |name: &AgentName| {
        let queued = journal
            .mail
            .iter()
            .filter(|kept| kept.accepted.mail.to == *name && matches!(kept.state, ReceiptState::Queued));
        queued.count() as u64
    };
    journal.agents.iter().map(|agent| Agent::stored(agent, pending(&agent.record.name))).collect()
}

fn new_name(field: &str, text: &Text) -> Result<AgentName, Refused> {
    AgentName::new(&text.0).map_err(|error| {
        let short: String = error.to_string().chars().filter(|c| !c.is_control()).collect();
        Refused::unprocessable("invalid_name", format!("`{field}`: {short}"))
    })
}
