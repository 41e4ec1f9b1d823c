//! What the events say was put into a conversation is what its model was sent, word by word.

use super::*;

impl Look<'_> {
    /// The texts of a conversation are its agent's prompt and what the events say was injected, in
    /// that order. Whoever is closed may not have asked its model since.
    pub(super) fn texts_are_those_told(&self) {
        let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for event in &self.ledger.events {
            let text = match event["type"].as_str() {
                Some("agent_spawned") => event["prompt"].as_str(),
                Some("message_injected") if event["point"] != "wait" => event["text"].as_str(),
                _ => None,
            };
            if let (Some(agent), Some(text)) = (event["agent"].as_str(), text) {
                told.entry(agent).or_default().push(text);
            }
        }
        for (name, sent) in self.prompts.all() {
            let told = told.remove(name).unwrap_or_default();
            if let Err((promise, what)) =
                agree(&told, &sent.words().collect::<Vec<_>>(), self.is_closed(name))
            {
                self.breaches.add(promise, format!("{name}: {what}"));
            }
        }
    }

    /// A prompt begins anew after a compaction that was told, and whoever asks its model again does.
    pub(super) fn compactions_are_those_told(&self) {
        for (name, sent) in self.prompts.all() {
            let is_one = |event: &&Value| event["type"] == "compacted" && event["agent"] == name;
            let told = self.ledger.events.iter().filter(is_one).count() as u64;
            let may_be_unsent = u64::from(self.is_closed(name));
            if !(sent.compactions..=sent.compactions + may_be_unsent).contains(&told) {
                let what = format!("{name}: {told} compactions are told and {} are seen", sent.compactions);
                self.breaches.add(OneHistory, what);
            }
        }
    }

    /// What a wait took out of the mailbox is told in its result, in the same step.
    pub(super) fn answers_are_in_their_wait(&self) {
        let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
        for event in &self.ledger.events {
            let Some(agent) = event["agent"].as_str() else { continue };
            if event["type"] == "message_injected" && event["point"] == "wait" {
                let call = last.get(agent).filter(|call| is_its_wait(call, event));
                if let Err((promise, what)) = self.taken(agent, call.copied(), event) {
                    self.breaches.add(promise, format!("{what}: {event}"));
                }
            }
            last.insert(agent, event);
        }
    }

    fn taken(&self, agent: &str, call: Option<&Value>, event: &Value) -> Result<(), (Promise, String)> {
        let call = call.ok_or((TrueReceipts, "no wait has ended that could have taken this".to_owned()))?;
        let results = self.prompts.of(agent).map(|sent| sent.results()).unwrap_or_default();
        let result = results.get(call["tool"].as_str().unwrap_or_default());
        // A call without a result is found elsewhere.
        let Some(said) = result.and_then(|result| result["content"].as_str()) else { return Ok(()) };
        let said: Vec<&str> = said.split("\n\n").collect();
        let taken = event["text"].as_str().unwrap_or_default();
        match taken.split("\n\n").find(|answer| !said.contains(answer)) {
            Some(answer) => {
                Err((NothingLost, format!("a wait took {answer:?} and its model reads {said:?}")))
            }
            None => Ok(()),
        }
    }
}

fn is_its_wait(call: &Value, taken: &Value) -> bool {
    call["type"] == "tool_finished"
        && call["name"] == "wait_agents"
        && call["status"] == "completed"
        && call["seq"].as_u64().map(|seq| seq + 1) == taken["seq"].as_u64()
}

fn agree(told: &[&str], sent: &[&str], is_closed: bool) -> Result<(), (Promise, String)> {
    match told.iter().zip(sent).position(|(told, sent)| told != sent) {
        Some(at) => {
            Err((TrueReceipts, format!("{:?} is said to be read, and {:?} was sent", told[at], sent[at])))
        }
        None if sent.len() > told.len() => {
            Err((NothingDoubled, format!("{:?} was sent and nobody injected it", sent[told.len()])))
        }
        None if sent.len() < told.len() && !is_closed => {
            Err((NothingLost, format!("{:?} was injected and never sent", told[sent.len()])))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_lost_changed_or_doubled_is_found() {
        let found = |told: &[&str], sent: &[&str]| agree(told, sent, false).err().map(|(promise, _)| promise);
        assert_eq!(found(&["a", "b"], &["a", "b"]), None);
        assert_eq!(found(&["a", "b"], &["a"]), Some(NothingLost));
        assert_eq!(found(&["a"], &["a", "a"]), Some(NothingDoubled));
        assert_eq!(found(&["a", "b"], &["b", "a"]), Some(TrueReceipts));
        assert_eq!(agree(&["a", "b"], &["a"], true), Ok(()), "who is closed reads no more");
    }
}
