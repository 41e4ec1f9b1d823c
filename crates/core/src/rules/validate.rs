//! The invariants of semantics.md, section 10, that a prompt can break. This module shares no
//! code with what builds prompts: it reads what is about to be sent and believes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use super::conversation::{Entry, Injected, MessageKey, Reply, ToolResult, ToolStatus};
use super::id::CallId;

/// A broken invariant, by its number in semantics.md, section 10.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant {number} is broken: {what}")]
pub struct Breach {
    /// The number in section 10.
    pub number: u8,
    /// What is wrong, and where.
    pub what: String,
}

impl Breach {
    /// The breach that a text tells of, in the words of one.
    pub(super) fn told_in(text: &str) -> Option<Self> {
        let (_, told) = text.split_once("invariant ")?;
        let (number, what) = told.split_once(" is broken: ")?;
        Some(Self { number: number.parse().ok()?, what: what.to_owned() })
    }
}

/// Checks one agent's prompts, request after request. It looks at what is new only, so a
/// long conversation costs no more than a short one.
#[derive(Debug, Default)]
pub struct Validator {
    checked: usize,
    last: Option<Arc<Entry>>,
    open_calls: Vec<CallId>,
    injected: HashSet<MessageKey>,
}

impl Validator {
    /// Checks what the next request will hold.
    pub fn check(&mut self, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        self.nothing_sent_has_changed(entries)?;
        for entry in &entries[self.checked..] {
            self.one(entry)?;
        }
        self.checked = entries.len();
        self.last = entries.last().cloned();
        match entries.last().map(|entry| &**entry) {
            Some(Entry::User(_) | Entry::ToolResults { .. }) => Ok(()),
            Some(Entry::Assistant(_) | Entry::Interrupted(_)) | None => {
                breach(1, "a request ends with something the model is to answer")
            }
        }
    }

    /// The conversation was compacted: invariants 3 and 6 hold from here on, for what is in
    /// the prompt now and for what was in it before. All that was in it has been checked.
    ///
    /// # Errors
    /// What is kept is not the end of what was there, or not in order.
    pub fn compacted(&mut self, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        match (&self.last, entries) {
            (Some(last), [_, .., now]) if Arc::ptr_eq(last, now) => {}
            _ => return breach(6, "a compaction changes what it should have kept"),
        }
        let mut fresh = Self::default();
        fresh.check(entries)?;
        if let Some(key) = fresh.injected.iter().find(|key| !self.injected.contains(key)) {
            return breach(3, format!("message {} of {} came in by a compaction", key.id, key.from));
        }
        // What was summarised stays known: it never comes again.
        fresh.injected.extend(std::mem::take(&mut self.injected));
        *self = fresh;
        Ok(())
    }

    fn nothing_sent_has_changed(&self, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        let Some(last) = &self.last else { return Ok(()) };
        match self.checked.checked_sub(1).and_then(|i| entries.get(i)) {
            Some(entry) if Arc::ptr_eq(entry, last) => Ok(()),
            _ => breach(6, "what was already sent has changed"),
        }
    }

    fn one(&mut self, entry: &Entry) -> Result<(), Breach> {
        if !self.open_calls.is_empty() && !matches!(entry, Entry::ToolResults { .. }) {
            return breach(1, format!("calls {:?} have no results in the next message", self.open_calls));
        }
        match entry {
            Entry::User(injected) => self.injection(injected),
            Entry::Assistant(reply) => self.reply(reply),
            Entry::Interrupted(_) => breach(7, "a partial reply is in the prompt"),
            Entry::ToolResults { results, mail } => {
                self.results(results)?;
                mail.as_ref().map_or(Ok(()), |mail| self.injection(mail))
            }
        }
    }

    fn reply(&mut self, reply: &Reply) -> Result<(), Breach> {
        self.open_calls = reply.calls().map(|call| call.id.clone()).collect();
        let different: HashSet<&CallId> = self.open_calls.iter().collect();
        if different.len() != self.open_calls.len() {
            return breach(1, format!("a reply names a call twice: {:?}", self.open_calls));
        }
        Ok(())
    }

    fn results(&mut self, results: &[ToolResult]) -> Result<(), Breach> {
        let calls = std::mem::take(&mut self.open_calls);
        if !results.iter().map(|result| &result.id).eq(&calls) {
            let ids: Vec<&CallId> = results.iter().map(|result| &result.id).collect();
            return breach(1, format!("results {ids:?} answer calls {calls:?}"));
        }
        for result in results {
            honest(result)?;
            self.keys(&result.messages)?;
        }
        Ok(())
    }

    fn injection(&mut self, injected: &Injected) -> Result<(), Breach> {
        self.keys(&injected.messages)
    }

    fn keys(&mut self, keys: &[MessageKey]) -> Result<(), Breach> {
        for key in keys {
            if !self.injected.insert(key.clone()) {
                return breach(3, format!("message {} of {} is in the prompt twice", key.id, key.from));
            }
        }
        Ok(())
    }
}

/// What did not run to its end says so, and is an error to the model.
fn honest(result: &ToolResult) -> Result<(), Breach> {
    let opening = match result.status {
        ToolStatus::Completed | ToolStatus::Failed => return Ok(()),
        ToolStatus::Skipped => "[Skipped",
        ToolStatus::Interrupted => "[Interrupted after ",
        ToolStatus::Stopped => "[Stopped by ",
        ToolStatus::Unknown => "[Unknown: ",
    };
    if result.is_error && result.text.starts_with(opening) {
        Ok(())
    } else {
        breach(7, format!("the result of {} passes for a whole one", result.id))
    }
}

pub(super) fn breach<T>(number: u8, what: impl Into<String>) -> Result<T, Breach> {
    Err(Breach { number, what: what.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::conversation::{Block, ToolUse};
    use crate::rules::id::MessageId;
    use crate::rules::mail::Sender;

    fn user(id: Option<&str>) -> Arc<Entry> {
        let keys = id.map(|id| MessageKey { from: Sender::User, id: MessageId::new(id) });
        let messages = keys.into_iter().collect();
        Arc::new(Entry::User(Injected { text: "hello".into(), messages }))
    }

    fn asks(ids: &[&str]) -> Arc<Entry> {
        let call = |id: &&str| {
            Block::ToolUse(ToolUse {
                id: CallId::new(*id),
                name: "edit".into(),
                input: serde_json::json!({}),
            })
        };
        Arc::new(Entry::Assistant(Arc::new(Reply {
            blocks: ids.iter().map(call).collect(),
            ..Reply::default()
        })))
    }

    fn answers(ids: &[&str], status: ToolStatus, text: &str) -> Arc<Entry> {
        let result = |id: &&str| ToolResult {
            id: CallId::new(*id),
            name: "edit".into(),
            status,
            is_error: status != ToolStatus::Completed,
            text: text.into(),
            messages: Arc::default(),
            cost: Default::default(),
        };
        Arc::new(Entry::ToolResults { results: ids.iter().map(result).collect(), mail: None })
    }

    fn number(entries: &[Arc<Entry>]) -> Option<u8> {
        Validator::default().check(entries).err().map(|breach| breach.number)
    }

    #[test]
    fn invariant_1_every_call_has_its_result_in_the_next_message_in_order() {
        let done = ToolStatus::Completed;
        assert_eq!(number(&[user(None), asks(&["a", "b"]), answers(&["a", "b"], done, "")]), None);
        for bad in [
            vec![user(None), asks(&["a"])],
            vec![user(None), asks(&["a"]), user(None)],
            vec![user(None), asks(&["a", "b"]), answers(&["b", "a"], done, "")],
            vec![user(None), asks(&["a", "b"]), answers(&["a"], done, "")],
            vec![user(None), answers(&["a"], done, "")],
            vec![user(None), asks(&["a", "a"]), answers(&["a", "a"], done, "")],
            vec![],
        ] {
            assert_eq!(number(&bad), Some(1));
        }
    }

    #[test]
    fn invariant_3_a_message_is_in_the_prompt_once() {
        assert_eq!(number(&[user(Some("m")), user(Some("n"))]), None);
        assert_eq!(number(&[user(Some("m")), user(Some("m"))]), Some(3));
    }

    #[test]
    fn invariant_6_what_was_sent_never_changes() {
        let mut validator = Validator::default();
        assert_eq!(validator.check(&[user(None)]), Ok(()));
        let breach = validator.check(&[user(None), user(None)]).unwrap_err();
        assert_eq!(breach.number, 6);
    }

    #[test]
    fn invariants_3_and_6_begin_anew_at_a_compaction_and_only_there() {
        let done = ToolStatus::Completed;
        let (asked, tail) = (user(Some("m")), user(Some("n")));
        let before = [asked, asks(&["a"]), answers(&["a"], done, ""), tail.clone()];
        let checked = || {
            let mut validator = Validator::default();
            validator.check(&before).unwrap();
            validator
        };
        let number = |result: Result<(), Breach>| result.err().map(|breach| breach.number);
        let compacted = [user(None), tail.clone()];
        assert_eq!(number(checked().check(&compacted)), Some(6));
        let mut validator = checked();
        assert_eq!(validator.compacted(&compacted), Ok(()));
        let more = [compacted.as_slice(), &[user(Some("o"))]].concat();
        assert_eq!(validator.check(&more), Ok(()));
        for (bad, breach) in [
            (vec![user(None), user(Some("n"))], 6),
            (vec![tail.clone()], 6),
            (vec![user(None), answers(&["a"], done, ""), tail.clone()], 1),
            (vec![user(Some("x")), tail.clone()], 3),
        ] {
            assert_eq!(number(checked().compacted(&bad)), Some(breach));
        }
        let again = [more.as_slice(), &[user(Some("m"))]].concat();
        assert_eq!(number(validator.check(&again)), Some(3), "what was summarised comes again");
    }

    #[test]
    fn invariant_7_a_partial_never_passes_for_a_whole() {
        let status = ToolStatus::Interrupted;
        let lies = answers(&["a"], status, "done");
        assert_eq!(number(&[user(None), asks(&["a"]), lies]), Some(7));
    }
}
