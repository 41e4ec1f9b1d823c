//! `prompt` expectations: what a model was given.

use midturn_core::engine::scripted::PromptRecord;
use midturn_core::rules::event::EventKind;

use super::Miss;
use crate::error::short;
use crate::record::Record;
use crate::scenario::PromptClaim;
use crate::values::Texts;

/// Checks a claim about a prompt.
pub(super) fn check(claim: &PromptClaim, record: &Record) -> Vec<Miss> {
    let mut of_agent = record.prompts.iter().filter(|given| given.agent.as_str() == claim.agent.value);
    let given = match claim.call {
        Some(call) => of_agent.find(|given| given.call == call),
        None => of_agent.next_back(),
    };
    let Some(given) = given else {
        let call = claim.call.map_or_else(|| "a model call".to_owned(), |call| format!("model call {call}"));
        return vec![Miss::new(format!("{call} of {}", claim.agent.value), "there was none", None)];
    };
    let about = event_of(given, record);
    let who = format!("{} call {}", given.agent, given.call);
    let mut misses: Vec<Miss> = claim
        .last_message_contains
        .iter()
        .flat_map(Texts::as_slice)
        .filter(|text| !given.last_message.contains(text.as_str()))
        .map(|text| {
            let expected = format!("{who}: a last message with {text:?}");
            Miss::new(expected, format!("{:?}", cut(&given.last_message)), about)
        })
        .collect();
    if let Some(messages) = claim.messages
        && messages != given.messages
    {
        let expected = format!("{who}: {messages} messages");
        misses.push(Miss::new(expected, format!("{} messages", given.messages), about));
    }
    misses
}

fn event_of(given: &PromptRecord, record: &Record) -> Option<usize> {
    record.events.iter().position(|event| {
        event.at.agent.as_ref() == Some(&given.agent)
            && matches!(event.kind, EventKind::ModelStarted { call, .. } if call == given.call)
    })
}

/// A last message may be long; its end is where the mail is.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= 600 {
        return text.to_owned();
    }
    let end: String = text.chars().skip(count - 500).collect();
    format!("{} … {end}", short(text))
}
