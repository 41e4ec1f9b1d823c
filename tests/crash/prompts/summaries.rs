//! Compactions as the model server sees them: somebody asks for a summary of the first part of a
//! conversation, and later a prompt begins with it. What is kept must be what was there.

use super::*;

/// How a prompt begins whose older part was summarised.
fn entry(summary: &str) -> String {
    format!("[Summary of the conversation so far: {summary}]")
}

impl Sent {
    /// A summary is asked for. What it is of was sent before, and is remembered with the summary
    /// that is given.
    pub(super) fn is_to_be_summarised(&mut self, mut asked: Vec<Value>, summary: &str) -> Result<(), String> {
        // The order to summarise is the last block.
        let last = asked.last_mut().and_then(|message| message["content"].as_array_mut());
        if last.and_then(Vec::pop).is_none_or(|order| order["type"] != "text") {
            return Err("nobody says what is to be done".to_owned());
        }
        asked.retain(|message| blocks(message).next().is_some());
        // One that an urgent message cut may arrive after the compaction that came of the next.
        if grows(&asked, &self.before).is_ok() {
            return Ok(());
        }
        grows(&asked, &self.messages)?;
        self.summaries.insert(entry(summary), flat(&asked).count());
        Ok(())
    }

    /// The conversation of a prompt that begins with a summary which was given, with what that
    /// stands for in its place.
    pub(super) fn unfolded(&self, messages: &[Value]) -> Option<Vec<Value>> {
        let (_, first) = flat(messages).next()?;
        let summarised = *self.summaries.get(first["text"].as_str()?)?;
        let old = flat(&self.messages).take(summarised);
        Some(grouped(old.chain(flat(messages).skip(1))))
    }

    /// A prompt begins with a summary from now on: what that stands for was read.
    pub(super) fn is_summarised(&mut self, unfolded: Vec<Value>, messages: &[Value]) {
        let summarised = flat(&unfolded).count() + 1 - flat(messages).count();
        let first = usize::from(self.compactions > 0);
        let old = grouped(flat(&unfolded).take(summarised).skip(first));
        self.past.extend(old);
        self.before = unfolded;
        self.summaries.clear();
        self.compactions += 1;
    }
}

/// Blocks as messages: neighbours of one role are one.
fn grouped<'a>(blocks: impl Iterator<Item = (&'a Value, &'a Value)>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for (role, block) in blocks {
        match messages.last_mut().filter(|last| last["role"] == *role).map(|last| &mut last["content"]) {
            Some(Value::Array(content)) => content.push(block.clone()),
            _ => messages.push(json!({"role": role, "content": [block]})),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn says(role: &str, texts: &[&str]) -> Value {
        json!({"role": role, "content": texts.iter().map(|one| text(one)).collect::<Vec<_>>()})
    }

    fn sent() -> Sent {
        let messages = vec![says("user", &["a", "b"]), says("assistant", &["c"]), says("user", &["d", "e"])];
        Sent { messages, ..Sent::default() }
    }

    #[test]
    fn invariant_6_what_a_compaction_keeps_is_what_was_there() {
        let mut sent = sent();
        let asked =
            vec![says("user", &["a", "b"]), says("assistant", &["c"]), says("user", &["d", "sum it up"])];
        assert_eq!(sent.is_to_be_summarised(asked, "s"), Ok(()));
        let begins = |first: &str, kept: &str| vec![says("user", &[first, kept, "f"])];
        let whole = sent.unfolded(&begins(&entry("s"), "e")).unwrap();
        assert_eq!(grows(&sent.messages, &whole), Ok(()));
        let changed = sent.unfolded(&begins(&entry("s"), "E")).unwrap();
        assert!(grows(&sent.messages, &changed).is_err(), "what was kept has changed");
        assert!(sent.unfolded(&begins(&entry("x"), "e")).is_none(), "nobody gave that summary");
        sent.is_summarised(whole, &begins(&entry("s"), "e"));
        sent.messages = begins(&entry("s"), "e");
        assert_eq!(sent.words().collect::<Vec<_>>(), ["a", "b", "d", "e", "f"]);
    }

    #[test]
    fn a_summary_of_what_was_never_sent_is_found() {
        let asked = vec![says("user", &["a", "x", "sum it up"])];
        assert!(sent().is_to_be_summarised(asked, "s").is_err());
    }
}
