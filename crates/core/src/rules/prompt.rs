//! The part of the record that goes into requests: it only grows (semantics.md, section 4),
//! but for compactions (section 7).

use std::sync::Arc;

use super::conversation::{Block, Entry, Injected};

/// An agent's conversation as its next request will hold it. A partial reply never gets in.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    entries: Vec<Arc<Entry>>,
    /// How many bytes there are up to the end of each entry: a turn asks for a part of them, and must
    /// cost no more the longer the conversation is.
    bytes: Vec<u64>,
    messages: u64,
    /// How often it was compacted, and how many entries it had after the last time.
    compactions: u64,
    begin: usize,
}

impl Prompt {
    /// The entries, oldest first.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// How many bytes of text the entries from this one on hold.
    pub fn bytes_from(&self, from: usize) -> u64 {
        let by_the_end_of = |entries: &[u64]| entries.last().copied().unwrap_or(0);
        by_the_end_of(&self.bytes) - by_the_end_of(&self.bytes[..from])
    }

    /// How many messages a provider sees once neighbours of one role are merged.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Appends an entry; a partial reply is for the record only and is left out.
    pub fn push(&mut self, entry: Arc<Entry>) {
        if matches!(*entry, Entry::Interrupted(_)) {
            return;
        }
        let from_user = is_users(&entry);
        let merges = self.entries.last().is_some_and(|last| is_users(last) && from_user);
        self.messages += u64::from(!merges);
        self.bytes.push(self.bytes_from(0) + bytes(&entry) as u64);
        self.entries.push(entry);
    }

    /// How often it was compacted.
    pub fn compactions(&self) -> u64 {
        self.compactions
    }

    /// Where the entries begin that came after the last compaction; 0 without one.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// The first entries of it, so many.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let mut first = Self { compactions: self.compactions, ..Self::default() };
        for entry in self.entries.iter().take(count) {
            first.push(entry.clone());
        }
        first.begin = self.begin.min(first.entries.len());
        first
    }

    /// The same with this summary in the place of all but the last `kept` entries.
    #[must_use]
    pub fn compacted(&self, summary: Arc<str>, kept: usize) -> Self {
        let cut = self.entries.len().saturating_sub(kept);
        let mut compacted = Self { compactions: self.compactions + 1, ..Self::default() };
        compacted.push(Arc::new(Entry::User(Injected::prompt(summary))));
        for entry in &self.entries[cut..] {
            compacted.push(entry.clone());
        }
        compacted.begin = compacted.entries.len();
        compacted
    }

    /// Whether the model has something to answer.
    pub fn awaits_reply(&self) -> bool {
        self.entries.last().is_some_and(|last| is_users(last))
    }
}

/// The texts of a prompt's last message, after merging: results first, then what was
/// injected. It costs what that message is long, however long the conversation is.
pub fn last_message(entries: &[Arc<Entry>]) -> String {
    let own = entries.iter().rev().take_while(|entry| is_users(entry)).count();
    let mut parts: Vec<&str> = Vec::new();
    for entry in &entries[entries.len() - own..] {
        match &**entry {
            Entry::User(injected) => parts.push(&injected.text),
            Entry::ToolResults { results, mail } => {
                parts.extend(results.iter().map(|result| &*result.text));
                parts.extend(mail.iter().map(|mail| &*mail.text));
            }
            Entry::Assistant(_) | Entry::Interrupted(_) => {}
        }
    }
    parts.join("\n\n")
}

fn is_users(entry: &Entry) -> bool {
    match entry {
        Entry::User(_) | Entry::ToolResults { .. } => true,
        Entry::Assistant(_) | Entry::Interrupted(_) => false,
    }
}

fn bytes(entry: &Entry) -> usize {
    match entry {
        Entry::User(injected) => injected.text.len(),
        Entry::Assistant(reply) => reply.blocks.iter().map(block_bytes).sum(),
        Entry::Interrupted(_) => 0,
        Entry::ToolResults { results, mail } => {
            let results: usize = results.iter().map(|result| result.text.len()).sum();
            results + mail.as_ref().map_or(0, |mail| mail.text.len())
        }
    }
}

fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.len(),
        Block::Thinking(thinking) => thinking.replay.as_ref().map_or(0, |raw| raw.0.len()),
        Block::ToolUse(call) => call.name.len() + call.input.to_string().len(),
        Block::Provider(raw) => raw.0.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::conversation::{Injected, InterruptReason, Partial};
    use crate::rules::time::Micros;

    #[test]
    fn partials_stay_out_and_neighbours_count_as_one_message() {
        let mut prompt = Prompt::default();
        let user = |text: &str| Arc::new(Entry::User(Injected::prompt(text)));
        prompt.push(user("a"));
        prompt.push(user("b"));
        assert_eq!((prompt.messages(), last_message(prompt.entries())), (1, "a\n\nb".to_owned()));
        prompt.push(Arc::new(Entry::Interrupted(Arc::new(Partial {
            text: "half".into(),
            thinking: String::new(),
            reason: InterruptReason::MessageInterrupt,
            stream_run_id: 1,
            partial_tokens: 1,
            interrupted_at: Micros(0),
        }))));
        assert_eq!((prompt.entries().len(), prompt.bytes_from(0)), (2, 2));
        prompt.push(Arc::new(Entry::Assistant(Arc::default())));
        prompt.push(user("c"));
        assert_eq!((prompt.messages(), last_message(prompt.entries())), (3, "c".to_owned()));
        assert_eq!([0, 1, 2, 3, 4].map(|from| prompt.bytes_from(from)), [3, 2, 1, 1, 0]);
    }
}
