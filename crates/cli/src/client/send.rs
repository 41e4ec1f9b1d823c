//! `midturn send`: a message, and what became of it.

use std::time::Instant;

use midturn_client::Trouble;
use midturn_core::rules::id::MessageId;
use midturn_core::rules::time::Span;
use midturn_wire::message::{Delivery, Message, Receipt, ReceiptWord, RefusedDelivery, WAIT_MAX, Waited};
use midturn_wire::text::{Duration, Id, Text as Words};
use serde_json::{Value, json};

use super::receipt;
use super::{Answer, Asking, Text};
use crate::args::SendArgs;

/// Said of a message that was refused or returned.
const UNREAD: &str = "the message will not be read";

/// Sends, and waits if that is asked for.
pub(super) async fn send(asking: &Asking, args: &SendArgs) -> Result<Answer, Trouble> {
    let sent_at = Instant::now();
    let path = asking.path(&["agents", &args.to, "messages"]);
    let value: Value = asking.client.post(&path, &message(args)).await?;
    // A message to `all` has a delivery for each receiver.
    let whole = match value.get("deliveries").and_then(Value::as_array) {
        Some(all) => all.clone(),
        None => vec![value.clone()],
    };
    let read = |whole: Value| Ok(One { delivery: asking.client.read(&whole)?, whole });
    let all: Vec<One> = whole.into_iter().map(read).collect::<Result<_, Trouble>>()?;
    match &args.wait {
        None => Ok(accepted(value, &all)),
        Some(state) => waited(asking, all, &Waiting { state, timeout: args.timeout, sent_at }).await,
    }
}

/// What became of the message at one receiver, and the object that says so.
struct One {
    delivery: Delivery,
    whole: Value,
}

/// The message, with what was given and no more.
fn message(args: &SendArgs) -> Message {
    let id = |id: &Option<String>| id.as_deref().map(|id| Id(MessageId::new(id)));
    Message {
        text: Words(args.text.clone()),
        urgent: args.urgent.then_some(true),
        urgency: args.urgency,
        id: id(&args.id),
        expires_after: args.expires_after.map(Duration),
        supersedes: id(&args.supersedes),
        if_queued: args.if_queued.then_some(true),
        ..Message::default()
    }
}

fn accepted(value: Value, all: &[One]) -> Answer {
    let mut text = String::new();
    let mut refused = 0;
    for One { delivery, .. } in all {
        match delivery {
            Delivery::Accepted(receipt) => text.push_str(&receipt::told(receipt, None)),
            Delivery::Refused(refused) => text.push_str(&refusal(refused)),
        }
        refused += usize::from(is_refused(delivery));
    }
    Answer { value, text: Text::Words(text), failure: failure(refused, all.len()) }
}

fn refusal(refused: &RefusedDelivery) -> String {
    format!("not sent to {}: {}\n", refused.to, refused.problem.detail)
}

fn is_refused(delivery: &Delivery) -> bool {
    match delivery {
        Delivery::Accepted(receipt) => receipt.state == ReceiptWord::Returned,
        Delivery::Refused(_) => true,
    }
}

fn failure(refused: usize, all: usize) -> Option<String> {
    match (refused, all) {
        (0, _) => None,
        (1, 1) => Some(UNREAD.to_owned()),
        _ => Some(format!("{refused} of {all} agents will not read the message")),
    }
}

/// What and until when is waited for.
struct Waiting<'a> {
    /// The word of the interface.
    state: &'a str,
    timeout: Span,
    sent_at: Instant,
}

impl Waiting<'_> {
    /// What is left of the time.
    fn left(&self) -> Span {
        Span(self.timeout.0.saturating_sub(Span::from(self.sent_at.elapsed()).0))
    }
}

/// Waits for every receiver, one after the other: the time is for all of them together.
async fn waited(asking: &Asking, all: Vec<One>, waiting: &Waiting<'_>) -> Result<Answer, Trouble> {
    let (mut text, mut values, mut failed) = (String::new(), Vec::new(), Vec::new());
    for One { delivery, mut whole } in all {
        match delivery {
            Delivery::Accepted(receipt) => {
                let (value, waited) = wait(asking, &receipt, waiting).await?;
                let took = Span::from(waiting.sent_at.elapsed());
                whole = value;
                whole["took"] = json!(took.duration().as_secs_f64());
                if waited.reached || waited.receipt.state == ReceiptWord::Returned {
                    text.push_str(&receipt::told(&waited.receipt, Some(took)));
                }
                failed.extend(in_vain(&waited, waiting, took));
            }
            Delivery::Refused(refused) => {
                text.push_str(&refusal(&refused));
                failed.push(UNREAD.to_owned());
            }
        }
        values.push(whole);
    }
    let value = if values.len() == 1 { values.remove(0) } else { json!({"deliveries": values}) };
    let failure = (!failed.is_empty()).then(|| failed.join("\nmidturn: "));
    Ok(Answer { value, text: Text::Words(text), failure })
}

/// Why the message did not get where it was to get.
fn in_vain(waited: &Waited, waiting: &Waiting<'_>, took: Span) -> Option<String> {
    match waited.receipt.state {
        ReceiptWord::Returned => Some(UNREAD.to_owned()),
        _ if waited.reached => None,
        _ => Some(receipt::late(&waited.receipt, waiting.state, took)),
    }
}

/// Waits for one receiver, in as many requests as it takes.
async fn wait(asking: &Asking, receipt: &Receipt, waiting: &Waiting<'_>) -> Result<(Value, Waited), Trouble> {
    loop {
        let patience = waiting.left().min(WAIT_MAX);
        let path = asking
            .path(&["messages", &receipt.id, "wait"])
            .with("state", waiting.state)
            .with("timeout", &patience.to_string())
            .with("to", &receipt.to);
        let value = asking.client.wait(&path, patience.duration()).await?;
        let waited: Waited = asking.client.read(&value)?;
        if waited.reached || waited.receipt.state == ReceiptWord::Returned || waiting.left() == Span::ZERO {
            return Ok((value, waited));
        }
    }
}
