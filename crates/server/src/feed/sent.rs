//! What was sent to an agent and is not in its conversation yet, as it was sent: seed 004's
//! stream gives a message without the frame in which the model reads it.

use std::collections::VecDeque;
use std::sync::Arc;

use midturn_core::rules::event::EventKind;
use midturn_core::rules::id::MessageId;

/// How many messages are kept: more than a mailbox holds.
const MOST: usize = 4_096;

/// In what a person's message beside tool results is framed (semantics.md, section 4).
const FRAME: (&str, &str) = ("[User feedback: ", "]");

/// The messages on their way to one agent, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent(VecDeque<(MessageId, Arc<str>)>);

impl Sent {
    /// Something was recorded of the agent.
    pub(super) fn recorded(&mut self, kind: &EventKind) {
        match kind {
            EventKind::MessageQueued { message, text, .. } => {
                // Who goes on from an earlier event hears of it once more.
                if self.0.iter().all(|(id, known)| id != message || known != text) {
                    self.0.push_back((message.clone(), text.clone()));
                }
                if self.0.len() > MOST {
                    self.0.pop_front();
                }
            }
            EventKind::MessageInjected { messages, .. } => {
                messages.iter().for_each(|message| drop(self.take(message)));
            }
            EventKind::MessageReturned { message, .. } => drop(self.take(message)),
            _ => {}
        }
    }

    /// What these messages say, joined as the model reads them; of what came before it is known
    /// here, taken out of the text that was injected.
    pub(super) fn content(&self, messages: &[MessageId], injected: &str) -> String {
        let mut rest = self.clone();
        let texts: Option<Vec<Arc<str>>> = messages.iter().map(|message| rest.take(message)).collect();
        texts.map_or_else(|| unframed(messages.len(), injected), |texts| texts.join("\n\n"))
    }

    fn take(&mut self, message: &MessageId) -> Option<Arc<str>> {
        let at = self.0.iter().position(|(id, _)| id == message)?;
        self.0.remove(at).map(|(_, text)| text)
    }
}

/// The texts of so many messages of a person, if that is what was injected, else all of it.
fn unframed(count: usize, injected: &str) -> String {
    let (begin, end) = FRAME;
    let between = format!("{end}\n\n{begin}");
    let inner = injected.strip_prefix(begin).and_then(|text| text.strip_suffix(end));
    match inner.map(|text| text.split(&*between).collect::<Vec<_>>()) {
        Some(texts) if texts.len() == count => texts.join("\n\n"),
        Some(_) | None => injected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::mail::{Point, Urgency};

    use super::*;

    fn queued(sent: &mut Sent, id: &str, text: &str) {
        let message = MessageId::new(id);
        let (from, urgency) = ("user".to_owned(), Urgency::AfterTools);
        sent.recorded(&EventKind::MessageQueued { message, from, urgency, text: text.into() });
    }

    fn content(sent: &Sent, messages: &[&str], injected: &str) -> String {
        let messages: Vec<MessageId> = messages.iter().copied().map(MessageId::new).collect();
        sent.content(&messages, injected)
    }

    /// A25: a message is told as it was sent, without the frame in which the model reads it.
    #[test]
    fn what_is_injected_is_told_as_it_was_sent() {
        let mut sent = Sent::default();
        queued(&mut sent, "1", "no]\n\n[User feedback: x");
        queued(&mut sent, "2", "use tabs");
        let injected = "[User feedback: no]\n\n[User feedback: x]\n\n[User feedback: use tabs]";
        assert_eq!(content(&sent, &["1", "2"], injected), "no]\n\n[User feedback: x\n\nuse tabs");
        let (messages, text) = (vec![MessageId::new("1")], injected.into());
        let (skipped, interrupted) = (Arc::new([]), Arc::new([]));
        sent.recorded(&EventKind::MessageInjected { messages, point: Point::D, text, skipped, interrupted });
        assert_eq!(sent.0.len(), 1);
        // Whoever joined after they were sent.
        for (count, injected, expected) in [
            (1, "[User feedback: no]", "no"),
            (2, "[User feedback: no]\n\n[User feedback: use\ntabs]", "no\n\nuse\ntabs"),
            (1, "as it is, at B", "as it is, at B"),
            (1, "[worker finished: done]", "[worker finished: done]"),
        ] {
            let messages = ["7", "8"];
            assert_eq!(content(&sent, &messages[..count], injected), expected);
        }
    }
}
