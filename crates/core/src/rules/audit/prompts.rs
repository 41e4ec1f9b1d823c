//! The prompts on their way to the models, in full. The engine's own validator looks only at what
//! is new; this one also compares all that was sent before, up to the last compaction, and holds
//! every compaction against the request for its summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rules::compaction::Purpose;
use crate::rules::conversation::Entry;
use crate::rules::id::AgentName;
use crate::rules::validate::{Breach, Validator, breach};

/// What each agent was sent.
#[derive(Debug, Default)]
pub struct Prompts(BTreeMap<AgentName, Sent>);

/// What an agent was sent since its last compaction.
#[derive(Debug, Default)]
struct Sent {
    entries: Vec<Arc<Entry>>,
    compactions: u64,
    /// How many of the entries the last request for a summary held, since the last turn's.
    summarised: Option<usize>,
}

impl Prompts {
    /// Checks the agent's next request.
    ///
    /// # Errors
    /// It breaks an invariant. What is sent afterwards is compared with what was in order.
    pub fn read(
        &mut self,
        agent: &AgentName,
        purpose: Purpose,
        compactions: u64,
        entries: &[Arc<Entry>],
    ) -> Result<(), Breach> {
        self.0.entry(agent.clone()).or_default().read(purpose, compactions, entries)
    }

    /// Reads each agent's last prompt once more, from its beginning.
    pub fn ends(&self) -> Vec<(AgentName, Breach)> {
        let read = |(agent, sent): (&AgentName, &Sent)| {
            let breach = Validator::default().check(&sent.entries).err()?;
            Some((agent.clone(), breach))
        };
        self.0.iter().filter_map(read).collect()
    }
}

impl Sent {
    fn read(&mut self, purpose: Purpose, compactions: u64, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        if purpose == Purpose::Summary {
            return self.summary(entries);
        }
        if compactions != self.compactions {
            self.compacted(compactions, entries)?;
        }
        self.summarised = None;
        if !begins_with(entries, &self.entries) {
            return breach(6, "what was sent is changed");
        }
        self.entries.extend(entries[self.entries.len()..].iter().cloned());
        Ok(())
    }

    /// It holds a part of what was sent, or all of it and what came since, and the instruction.
    fn summary(&mut self, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        Validator::default().check(entries)?;
        let part = entries.split_last().map_or(&[][..], |(_, part)| part);
        self.summarised = Some(part.len());
        if begins_with(&self.entries, part) || begins_with(part, &self.entries) {
            return Ok(());
        }
        breach(6, "a summary is asked for of something else")
    }

    /// The summary stands for what was asked for, and the rest is as it was.
    fn compacted(&mut self, compactions: u64, entries: &[Arc<Entry>]) -> Result<(), Breach> {
        let last = std::mem::replace(&mut self.compactions, compactions);
        let sent = std::mem::take(&mut self.entries);
        let Some(cut) = self.summarised.filter(|_| compactions == last + 1) else {
            return breach(6, "compacted without a summary");
        };
        let kept = entries.get(1..).unwrap_or_default();
        if begins_with(kept, sent.get(cut..).unwrap_or_default()) {
            return Ok(());
        }
        breach(6, "a compaction changes what it keeps")
    }
}

fn begins_with(entries: &[Arc<Entry>], with: &[Arc<Entry>]) -> bool {
    let same = |(one, other): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(one, other) || one == other;
    entries.len() >= with.len() && entries.iter().zip(with).all(same)
}

#[cfg(test)]
mod tests {
    use crate::rules::conversation::Injected;

    use super::*;

    /// One entry for each letter: capitals are the model's.
    fn entries(letters: &str) -> Vec<Arc<Entry>> {
        let entry = |letter: char| match letter.is_uppercase() {
            true => Entry::Assistant(Arc::default()),
            false => Entry::User(Injected::prompt(letter.to_string())),
        };
        letters.chars().map(|letter| Arc::new(entry(letter))).collect()
    }

    #[test]
    fn invariant_6_begins_anew_at_a_compaction_that_keeps_what_it_says() {
        use Purpose::{Summary, Turn};
        for (requests, holds) in [
            (&[(Turn, 0, "a"), (Turn, 0, "aAb")][..], true),
            (&[(Turn, 0, "a"), (Turn, 0, "bAb")], false),
            (&[(Turn, 0, "aAb"), (Turn, 0, "a")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 1, "sbBc")], true),
            (&[(Turn, 0, "a"), (Summary, 0, "aA?"), (Turn, 1, "sb")], true),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 0, "aAbc")], true),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 1, "scBc")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "bA?"), (Turn, 1, "sb")], false),
            (&[(Turn, 0, "aAb"), (Turn, 1, "sb")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 2, "sb")], false),
            (&[(Turn, 0, "aAb"), (Summary, 0, "aA?"), (Turn, 0, "sb")], false),
        ] {
            let mut sent = Sent::default();
            let read = |(purpose, compactions, letters): &(Purpose, u64, &str)| {
                sent.read(*purpose, *compactions, &entries(letters))
            };
            assert_eq!(requests.iter().try_for_each(read).is_ok(), holds, "{requests:?}");
        }
    }
}
