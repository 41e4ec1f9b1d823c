//! Messages: sent, followed, withdrawn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::engine;
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{self, Refusal, Sender};
use midturn_wire::message::{
    Accepted, Deliveries, Delivery, Message, QueuedMessages, Receipt, ReceiptWord, Receipts, RefusedDelivery,
    SoftInterrupt, WAIT_MAX, WaitQuery, Waited, Withdrawn,
};
use midturn_wire::text::is_id;
use midturn_wire::work::Empty;

use super::agents::journal;
use super::{AgentPath, Change, Made, Meant, MessagePath, Reply, SessionPath};
use crate::app::{App, Named, agent_name, unknown_agent};
use crate::extract::{Path, Query};
use crate::feed::queued_in;
use crate::host::{HostError, Joined, Live};
use crate::problem::{Refused, shown};
use crate::security::Asker;

/// How long a client waits unless it says.
const WAIT: Duration = Duration::from_secs(30);

/// How often a joined session is asked while somebody waits.
const LOOK: Duration = Duration::from_millis(50);

/// A session whose agents can be written to.
pub(super) enum Writable {
    Here(Box<Live>),
    Joined(Arc<dyn Joined>),
}

#[async_trait]
impl Meant for Writable {
    async fn named(app: &App, session: &str) -> Result<Self, Refused> {
        if let Named::Joined(joined) = app.seen(session).await? {
            return Ok(Self::Joined(joined));
        }
        app.live(session).await.map(|live| Self::Here(Box::new(live)))
    }
}

/// Sends a message to an agent, or to `all`.
#[utoipa::path(post, path = "/messages", request_body = Message, responses((status = 202, body = Accepted)))]
pub(super) async fn send(change: Change<AgentPath, Message, Writable>) -> Made<Accepted> {
    let Change { live, path, asker: Asker(from), body: message } = change;
    let live = match live {
        Writable::Here(live) => live,
        Writable::Joined(joined) => {
            let receipt = joined.send(sent_by(from, &path.agent, message)?).await?;
            return Ok((StatusCode::ACCEPTED, Json(Accepted::One(receipt))));
        }
    };
    let to_all = path.agent == "all";
    if !to_all {
        agent_name(&path.agent)?;
    }
    let message = sent_by(from, &path.agent, message)?;
    let mut deliveries = live.coordinator.broadcast(message).await;
    let answer = if to_all {
        if let Some(refusal) = refused_by_all(&deliveries) {
            return Err(refusal.into());
        }
        Accepted::All(Deliveries { deliveries: deliveries.into_iter().map(delivered).collect() })
    } else {
        let delivery = deliveries.pop().ok_or(Refusal::UnknownAgent(path.agent))?;
        Accepted::One(Receipt::accepted(&delivery.result?, delivery.too_late_to_supersede))
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// What waits in an agent's mailbox, or in those of `all`, in order of arrival.
#[utoipa::path(get, path = "/messages", responses((status = 200, body = QueuedMessages)))]
pub(super) async fn queued(
    State(app): State<Arc<App>>,
    Path(path): Path<AgentPath>,
) -> Reply<QueuedMessages> {
    let of_all = path.agent == "all";
    let agent = (!of_all).then(|| agent_name(&path.agent)).transpose()?;
    let queued = match app.seen(&path.session).await? {
        Named::Live(live) => live.feed.queued(agent.as_ref()),
        Named::Joined(joined) => joined.feed().queued(agent.as_ref()),
        Named::Stored(id) => queued_in(&journal(&app, &id).await?.view(), agent.as_ref()),
    };
    queued.map(Json).ok_or_else(|| unknown_agent(&path.agent))
}

/// The engine's message, from whoever the token says.
fn sent_by(from: Sender, to: &str, message: Message) -> Result<engine::Message, Refused> {
    let urgency = match (message.urgent, message.urgency) {
        (Some(_), Some(_)) => return Err(Refused::bad_request("give `urgent` or `urgency`, not both")),
        (Some(true), None) => Some(mail::Urgency::Urgent),
        (Some(false) | None, urgency) => urgency.map(mail::Urgency::from),
    };
    if message.if_queued.is_some() && message.supersedes.is_none() {
        return Err(Refused::bad_request("`if_queued`: only with `supersedes`"));
    }
    let mut sent = engine::Message::new(from, to, message.text.0);
    sent.urgency = urgency;
    sent.id = message.id.map(|id| id.0);
    sent.expires_after = message.expires_after.map(|after| after.0);
    sent.supersedes = message.supersedes.map(|id| id.0);
    sent.if_queued = message.if_queued.unwrap_or_default();
    sent.only_run = message.only_run.map(|run| run.0);
    sent.expects_run = message.stream_run_id.map(|run| run.0);
    Ok(sent)
}

/// What became of a message at one of several receivers.
fn delivered(delivery: engine::Delivery) -> Delivery {
    let engine::Delivery { to, result, too_late_to_supersede } = delivery;
    match result {
        Ok(receipt) => Delivery::Accepted(Receipt::accepted(&receipt, too_late_to_supersede)),
        Err(refusal) => {
            Delivery::Refused(RefusedDelivery { to, problem: Refused::from(refusal).into_wire() })
        }
    }
}

/// Why nobody at all has taken a message, if each of them says the same.
fn refused_by_all(deliveries: &[engine::Delivery]) -> Option<Refusal> {
    let mut refusals = deliveries.iter().map(|delivery| delivery.result.as_ref().err());
    let first = refusals.next()??;
    refusals.all(|other| other.is_some_and(|other| other.code() == first.code())).then(|| first.clone())
}

/// Seed 000's request: a message to the lead.
#[utoipa::path(
    post,
    path = "/soft_interrupt",
    request_body = SoftInterrupt,
    responses((status = 202, body = Receipt))
)]
pub(super) async fn soft_interrupt(change: Change<SessionPath, SoftInterrupt>) -> Made<Receipt> {
    let Change { live, asker: Asker(from), body: message, .. } = change;
    let lead = live.lead.clone().ok_or_else(|| {
        Refused::not_found("no_lead", "this session has no lead; write to one of its agents")
    })?;
    let message = message.sent_by(from, &lead);
    let receipt = live.coordinator.send(message).await?;
    Ok((StatusCode::ACCEPTED, Json(Receipt::from(&receipt))))
}

/// Where a message stands, at each of its receivers.
#[utoipa::path(get, path = "/messages/{id}", responses((status = 200, body = Receipts)))]
pub(super) async fn receipts(
    State(app): State<Arc<App>>,
    Path(path): Path<MessagePath>,
    asker: Asker,
) -> Reply<Receipts> {
    if let Named::Joined(joined) = app.named(&path.session)? {
        let receipts = of_joined(&*joined, &path.id, &asker).await?;
        return Ok(Json(Receipts { receipts }));
    }
    let receipts = known(&app, &path, &asker).await?;
    Ok(Json(Receipts { receipts: receipts.iter().map(Receipt::from).collect() }))
}

/// Waits until a message has come as far as asked, can't come so far any more, or the time is up.
#[utoipa::path(
    get,
    path = "/messages/{id}/wait",
    params(WaitQuery),
    responses((status = 200, body = Waited))
)]
pub(super) async fn wait(
    State(app): State<Arc<App>>,
    Path(path): Path<MessagePath>,
    Query(query): Query<WaitQuery>,
    asker: Asker,
) -> Reply<Waited> {
    let timeout = query.timeout.map_or(WAIT, |timeout| timeout.0.duration());
    if timeout > WAIT_MAX.duration() {
        return Err(Refused::bad_request(format!("`timeout`: wait at most {WAIT_MAX}, and again")));
    }
    let _room = app.wait()?;
    if let Named::Joined(joined) = app.named(&path.session)? {
        let waiting = async { until_reached(&*joined, &path.id, &query, &asker, timeout).await };
        return tokio::select! {
            biased;
            waited = waiting => waited,
            () = app.shutdown.cancelled() => Err(HostError::ShuttingDown("the process ends".to_owned()).into()),
        };
    }
    let all = known(&app, &path, &asker).await?;
    let mut one = chosen(all, query.to.as_deref(), &path.id, |receipt| receipt.to.as_str())?;
    let word = query.state.unwrap_or(ReceiptWord::Answered);
    let reached = one.reached(|state| word.is_reached_by(state));
    tokio::select! {
        biased;
        _ = tokio::time::timeout(timeout, reached) => {}
        () = app.shutdown.cancelled() => {}
    }
    Ok(Json(Waited { reached: word.is_reached_by(&one.state()), receipt: Receipt::from(&one) }))
}

/// The same for a joined session: nothing tells when its program writes what a receipt says, so it is asked again.
async fn until_reached(
    joined: &dyn Joined,
    id: &str,
    query: &WaitQuery,
    asker: &Asker,
    timeout: Duration,
) -> Reply<Waited> {
    let word = query.state.unwrap_or(ReceiptWord::Answered);
    let until = tokio::time::Instant::now() + timeout;
    loop {
        let all = of_joined(joined, id, asker).await?;
        let receipt = chosen(all, query.to.as_deref(), id, |receipt| &receipt.to)?;
        // What is known of it ends at `injected`.
        let is_final = matches!(receipt.state, ReceiptWord::Injected | ReceiptWord::Returned);
        let is_reached = word == ReceiptWord::Queued || word == receipt.state;
        if is_reached || is_final || tokio::time::Instant::now() >= until || !joined.lives() {
            return Ok(Json(Waited { reached: is_reached, receipt }));
        }
        tokio::time::sleep_until(until.min(tokio::time::Instant::now() + LOOK)).await;
    }
}

async fn of_joined(joined: &dyn Joined, id: &str, Asker(from): &Asker) -> Result<Vec<Receipt>, Refused> {
    let receipts = joined.receipts(from, &message_id(id)?).await?;
    if receipts.is_empty() { Err(unknown_message(id)) } else { Ok(receipts) }
}

/// Takes back what is queued and has not acted.
#[utoipa::path(
    post,
    path = "/messages/{id}/withdraw",
    request_body = Empty,
    responses((status = 200, body = Withdrawn))
)]
pub(super) async fn withdraw(change: Change<MessagePath, Empty, Writable>) -> Reply<Withdrawn> {
    let Change { live, path, asker: Asker(from), .. } = change;
    let id = message_id(&path.id)?;
    let returned = match live {
        Writable::Here(live) => live.coordinator.withdraw(&from, &id).await?,
        Writable::Joined(joined) => joined.withdraw(&from, &id).await?,
    };
    if returned == 0 {
        let detail =
            format!("the message `{}` has already acted or been returned; its receipt says which", path.id);
        return Err(Refused::conflict("too_late", detail));
    }
    Ok(Json(Withdrawn { returned: returned as u64 }))
}

/// The receipts of the asker's own message: what the session remembers, else what is stored.
async fn known(app: &App, path: &MessagePath, Asker(from): &Asker) -> Result<Vec<engine::Receipt>, Refused> {
    let id = message_id(&path.id)?;
    let session = match app.named(&path.session)? {
        Named::Live(live) => {
            let receipts = live.coordinator.receipts(from, &id);
            if !receipts.is_empty() {
                return Ok(receipts);
            }
            live.record.id.clone()
        }
        // Its receipts are asked for before.
        Named::Joined(_) => return Err(unknown_message(&path.id)),
        Named::Stored(session) => app.summary(&session).await?.record.id,
    };
    let stored = app.host.archive().receipts(&session, from, &id).await?;
    if stored.is_empty() {
        return Err(unknown_message(&path.id));
    }
    let receipt = |(to, state)| engine::Receipt::left_at(state, id.clone(), to);
    Ok(stored.into_iter().map(receipt).collect())
}

fn chosen<R>(all: Vec<R>, to: Option<&str>, id: &str, of: fn(&R) -> &str) -> Result<R, Refused> {
    let names: Vec<String> = all.iter().map(|one| format!("`{}`", of(one))).collect();
    let mut fitting = all.into_iter().filter(|one| to.is_none_or(|to| of(one) == to));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            let names = names.join(", ");
            Err(Refused::bad_request(format!("`to`: the message went to several, name one of {names}")))
        }
        (None, _) => Err(unknown_message(id)),
    }
}

fn message_id(text: &str) -> Result<MessageId, Refused> {
    if is_id(text) { Ok(MessageId::new(text)) } else { Err(unknown_message(text)) }
}

fn unknown_message(text: &str) -> Refused {
    let detail = format!("there is no message `{}` of yours to such a receiver", shown(text));
    Refused::not_found("unknown_message", detail)
}
