//! Doing what was decided: requests to the interface. Messages go out one after the other, in their order; a
//! message whose fate is unknown is sent again under its id, and is the same message.

use std::time::Duration;

use midturn_client::{Said, SessionClient, Trouble};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::time::Micros;
use midturn_wire::approval::Approval;
use midturn_wire::message::Message;
use midturn_wire::text::{Id, Text};
use midturn_wire::work::{Log, Stop};

use crate::effect::{Done, Effect, Outgoing};
use crate::what_if::Played;

/// How often a message is sent whose fate is unknown, and how long is waited between.
const ATTEMPTS: (u32, Duration) = (4, Duration::from_millis(250));

/// Whether effects of this kind are done one after the other.
pub(crate) fn is_mail(effect: &Effect) -> bool {
    matches!(effect, Effect::Send(_) | Effect::Instead(_) | Effect::Withdraw { .. } | Effect::Stop { .. })
}

/// Does what is asked of the session. `None`: it is not asked of the session.
pub(crate) async fn perform(session: SessionClient, effect: Effect) -> Option<Done> {
    Some(match effect {
        Effect::Send(message) => {
            let sent = deliver(&session, &message, false).await;
            Done::Sent(message, sent)
        }
        Effect::Instead(message) => {
            let sent = deliver(&session, &message, true).await;
            Done::Sent(message, sent)
        }
        Effect::Withdraw { to, id, text, edit } => {
            let result = session.withdraw(&id).await.map(drop);
            Done::Withdrawn { to, id, text, edit, result }
        }
        Effect::Stop { agent, ours } => stop(&session, agent, ours).await,
        Effect::Answer { agent, call, since, said } => {
            Done::Answered(answer(&session, &agent, &call, since, &said).await)
        }
        Effect::Limit(agent, limits) => {
            let set = session.limit(agent.as_ref(), &limits).await.map(drop);
            Done::Limited(agent, limits, set)
        }
        Effect::Resume(agent) => {
            let started = session.resume(&agent).await;
            Done::Resumed(agent, started)
        }
        Effect::Diff(agent) => {
            let diff = session.diff(&agent).await;
            Done::Diff(agent, diff)
        }
        Effect::Agents => Done::Agents(session.agents().await),
        Effect::Older(agent, before) => {
            let page = session.log(&agent, before).await.map(page);
            Done::Older(agent, page)
        }
        Effect::Replay(shift) => {
            let played = session.replay(&shift.to_string()).await.map_err(|trouble| trouble.to_string());
            Done::Replayed(shift, played.map(|played| Box::new(Played::of(&played))))
        }
        Effect::Editor(_)
        | Effect::Copy(_)
        | Effect::Tell(_)
        | Effect::Title(_)
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Save(_) => return None,
    })
}

/// Asks until it is known what came of it, a few times.
async fn deliver(session: &SessionClient, message: &Outgoing, instead: bool) -> Result<(), Trouble> {
    let (attempts, pause) = ATTEMPTS;
    let mut left = attempts;
    loop {
        left -= 1;
        match deliver_once(session, message, instead).await {
            Err(trouble) if left > 0 && may_be_tried_again(&trouble) => tokio::time::sleep(pause).await,
            known => return known,
        }
    }
}

fn may_be_tried_again(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Broken(_) | Trouble::Slow(_) | Trouble::Suspended(_))
        || trouble.code() == Some("too_many_requests")
}

async fn deliver_once(session: &SessionClient, message: &Outgoing, instead: bool) -> Result<(), Trouble> {
    let Outgoing { to, id, text, urgency, replaces } = message;
    if instead {
        return session.supersede(to, Some(id), text).await.map(drop);
    }
    let message = Message {
        text: Text(text.clone()),
        urgency: urgency.map(Into::into),
        id: Some(Id(id.clone())),
        supersedes: replaces.clone().map(Id),
        // Too late it would be a second message beside the one that was read.
        if_queued: replaces.as_ref().map(|_| true),
        ..Message::default()
    };
    session.send(to, &message).await.map(drop)
}

/// Answers the request that was read: the one about this call that was there when its event was told. One that
/// came since nobody has read.
async fn answer(
    session: &SessionClient,
    agent: &AgentName,
    call: &CallId,
    told: Micros,
    said: &Said,
) -> Result<(), Trouble> {
    let (_, open) = session.approvals().await?;
    let is_it = |open: &&Approval| open.agent == *agent && open.tool == call.as_str() && open.since <= told;
    let since = open.approvals.iter().rfind(is_it).map_or(told, |open| open.since);
    session.answer(agent, call, since, said).await.map(drop)
}

/// The events of a page that this version knows.
fn page(log: Log) -> (Vec<Event>, Option<u64>) {
    let known = log.events.iter().filter_map(|event| serde_json::from_str(event.get()).ok());
    (known.collect(), log.previous)
}

/// Stops an agent, and takes our messages back that wait for it: each becomes a draft.
async fn stop(session: &SessionClient, agent: AgentName, ours: Vec<(MessageId, String)>) -> Done {
    let stopped = session.stop(&agent, &Stop::default()).await;
    let mut back = Vec::new();
    if stopped.is_ok() {
        for (id, text) in ours {
            // One that was read meanwhile is no draft any more.
            if session.withdraw(&id).await.is_ok() {
                back.push(text);
            }
        }
    }
    Done::Stopped { agent, result: stopped.map(|stopped| !stopped.stopped.is_empty()), back }
}
