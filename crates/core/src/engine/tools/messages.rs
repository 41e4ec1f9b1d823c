//! `send_message` and `receipts`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::ports::Output;
use crate::engine::receipts::Receipt;
use crate::engine::send::{self, Delivery, Message};
use crate::engine::session::{AgentCell, Session};
use crate::rules::id::{ID_FORM, MessageId, is_id};
use crate::rules::mail::{ReceiptState, Sender, Urgency};
use crate::rules::time::Span;

pub(super) const SEND: &str = "Sends a message to an agent, also while it works: it is seen in the middle of its turn. \
`to` is a name, `parent` or `all`. Without urgency the receiver's default holds. `urgent` aborts what it runs now.";

pub(super) const RECEIPTS: &str = "Says where your messages stand: queued, injected (where, and what was skipped for it), sent, answered or returned.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendInput {
    /// An agent's name, `parent` or `all`.
    to: String,
    /// What you want to say.
    text: String,
    /// Abort what the receiver runs now.
    #[serde(default)]
    urgent: bool,
    /// How soon the message acts, instead of `urgent`.
    urgency: Option<Urgency>,
    /// Your id for it: the same id again is the same message.
    id: Option<MessageId>,
    /// Take it back if it is still queued after this time (`30s`, `5m`).
    expires_after: Option<Span>,
    /// The id of an earlier message of yours to the same agent that this one replaces.
    supersedes: Option<MessageId>,
}

pub(super) async fn send(
    session: &Arc<Session>,
    cell: &Arc<AgentCell>,
    input: SendInput,
) -> Result<Output, Output> {
    if input.urgent && input.urgency.is_some_and(|urgency| urgency != Urgency::Urgent) {
        return Err(Output::error("Give either `urgent` or `urgency`, not both."));
    }
    if input.id.as_ref().is_some_and(|id| !is_id(id.as_str())) {
        return Err(Output::error(format!("Not sent: {ID_FORM}.")));
    }
    let plain = Message::new(Sender::Agent(cell.name.clone()), input.to, input.text).urgent(input.urgent);
    let message = Message {
        urgency: input.urgency.or(plain.urgency),
        id: input.id,
        expires_after: input.expires_after,
        supersedes: input.supersedes,
        // A model is told of the message that came too late, and that this one was accepted.
        if_queued: false,
        ..plain
    };
    let deliveries = send::send(session, message).await;
    let lines: Vec<String> = deliveries.iter().map(line).collect();
    let all_failed = !deliveries.is_empty() && deliveries.iter().all(|delivery| delivery.result.is_err());
    let text = if lines.is_empty() { "There is nobody else.".to_owned() } else { lines.join("\n") };
    if all_failed { Err(Output::error(text)) } else { Ok(Output::ok(text)) }
}

fn line(delivery: &Delivery) -> String {
    let replaced = match delivery.too_late_to_supersede {
        true => " (too_late: the earlier message had acted or was injected already)",
        false => "",
    };
    match &delivery.result {
        Ok(receipt) => format!("{}{replaced}", say(receipt)),
        Err(refusal) => format!("not sent to {} ({}): {refusal}", delivery.to, refusal.code()),
    }
}

fn say(receipt: &Receipt) -> String {
    let state = receipt.state();
    let more = match (&state, state.injection()) {
        (ReceiptState::Returned(reason), _) => format!(" {}", reason.as_str()),
        (_, Some(injection)) => {
            let point = injection.point.as_str();
            let list = |ids: &[crate::rules::id::CallId]| {
                ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ")
            };
            let (skipped, interrupted) = (list(&injection.skipped), list(&injection.interrupted));
            format!(
                " at {point}, run {}, turn {}; skipped: [{skipped}], interrupted: [{interrupted}]",
                injection.run, injection.turn
            )
        }
        _ => String::new(),
    };
    format!("{} to {}: {}{more}", receipt.id, receipt.to, state.as_str())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiptsInput {
    /// The ids asked about; all of yours when absent.
    ids: Option<Vec<MessageId>>,
}

pub(super) fn receipts(session: &Session, cell: &AgentCell, input: ReceiptsInput) -> Result<Output, Output> {
    let own = session.journal.receipts.from(&Sender::Agent(cell.name.clone()));
    let asked = |receipt: &&Receipt| input.ids.as_ref().is_none_or(|ids| ids.contains(&receipt.id));
    let mut lines: Vec<String> = own.iter().filter(asked).map(say).collect();
    for id in input.ids.iter().flatten() {
        if !own.iter().any(|receipt| receipt.id == *id) {
            lines.push(format!("{id}: there is no message of yours with this id"));
        }
    }
    Ok(Output::ok(if lines.is_empty() { "You have sent no messages.".to_owned() } else { lines.join("\n") }))
}
