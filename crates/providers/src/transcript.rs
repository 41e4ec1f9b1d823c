//! What one agent's requests have in common with the ones before.
//!
//! Entries are encoded when they are first seen and never again: a request is the kept bytes
//! plus what is new, and after a compaction all is new. Which JSON a provider wants is the business of its [`Script`].

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::Entry;
use serde::Serialize;
use serde_json::Value;

use crate::body::{Chunks, Segments};

/// How a provider writes the entries of a conversation. It carries what it has to remember
/// from one entry to the next (that a message is still open, say).
pub(crate) trait Script: Default + Send {
    /// Writes one entry.
    fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) -> serde_json::Result<()>;

    /// What closes the message that is still open.
    fn close(&self) -> &'static [u8];
}

/// Where entries are written.
pub(crate) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    base: usize,
}

impl Out<'_> {
    pub(crate) fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *self.bytes, value)
    }

    /// The inside of a JSON string, without its quotes.
    pub(crate) fn string_inside(&mut self, text: &str) -> serde_json::Result<()> {
        let quoted = serde_json::to_string(text)?;
        self.raw(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        Ok(())
    }

    /// The position of the next byte in the whole transcript.
    pub(crate) fn position(&self) -> usize {
        self.base + self.bytes.len()
    }
}

/// What one agent keeps from request to request.
#[derive(Default)]
pub(crate) struct Kept<S> {
    head: Head,
    pub(crate) transcript: Transcript<S>,
}

impl<S: Script> Kept<S> {
    /// The body of a request: `write` makes its head, `body` puts it together. The request for a
    /// summary is written afresh, because what is kept is the conversation's and goes on growing.
    pub(crate) fn body(
        &mut self,
        request: &Request<'_>,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
        body: impl FnOnce(Bytes, &Transcript<S>) -> Chunks,
    ) -> serde_json::Result<Chunks> {
        let mut apart = Self::default();
        let kept = if request.purpose.is_turn() { self } else { &mut apart };
        let head = kept.head.get(request, write)?;
        kept.transcript.update(request.entries)?;
        Ok(body(head, &kept.transcript))
    }
}

/// The encoded entries of one agent.
#[derive(Default)]
pub(crate) struct Transcript<S> {
    seen: Vec<Arc<Entry>>,
    segments: Segments,
    script: S,
    /// How many entries were encoded in all.
    #[cfg(test)]
    pub(crate) encoded: usize,
}

impl<S: Script> Transcript<S> {
    /// Encodes what is new. If the entries are not the ones seen before and more, all is
    /// encoded anew.
    pub(crate) fn update(&mut self, entries: &[Arc<Entry>]) -> serde_json::Result<()> {
        if !self.is_continued_by(entries) {
            self.restart();
        }
        let new = &entries[self.seen.len()..];
        let Self { segments, script, .. } = self;
        let written = segments.append(|bytes, base| {
            let mut out = Out { bytes, base };
            new.iter().try_for_each(|entry| script.entry(entry, &mut out))
        });
        if written.is_err() {
            self.restart();
        } else {
            self.seen.extend_from_slice(new);
            #[cfg(test)]
            {
                self.encoded += new.len();
            }
        }
        written
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    pub(crate) fn script(&self) -> &S {
        &self.script
    }

    fn is_continued_by(&self, entries: &[Arc<Entry>]) -> bool {
        self.seen.len() <= entries.len()
            && self.seen.iter().zip(entries).all(|(seen, now)| Arc::ptr_eq(seen, now))
    }

    fn restart(&mut self) {
        self.seen.clear();
        self.segments = Segments::default();
        self.script = S::default();
    }
}

/// The part of a request before its messages, kept as long as it stays the same.
#[derive(Default)]
struct Head {
    made_of: Option<(u64, Option<u64>, Vec<Arc<ToolSpec>>)>,
    bytes: Bytes,
}

impl Head {
    /// The bytes for this request's system prompt, tools and length of reply; `write` makes them
    /// when they differ from the last ones.
    fn get(
        &mut self,
        request: &Request<'_>,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> serde_json::Result<Bytes> {
        let (system, tools) = (fingerprint(request.system), request.tools);
        let same_tools = |kept: &[Arc<ToolSpec>]| {
            kept.len() == tools.len() && kept.iter().zip(tools).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let same = self.made_of.as_ref().is_some_and(|(kept, output, list)| {
            *kept == system && *output == request.max_output && same_tools(list)
        });
        if !same {
            let mut bytes = Vec::new();
            write(&mut bytes)?;
            self.bytes = Bytes::from(bytes);
            self.made_of = Some((system, request.max_output, tools.to_vec()));
        }
        Ok(self.bytes.clone())
    }
}

fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Arguments as they can be sent back: providers want an object there, whatever the model
/// once wrote.
pub(crate) fn sendable(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(Value::Object(serde_json::Map::new())),
        other => Cow::Owned(serde_json::json!({ "invalid_json": other })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midturn_core::rules::conversation::Injected;

    #[derive(Default)]
    struct Plain;

    impl Script for Plain {
        fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) -> serde_json::Result<()> {
            match entry {
                Entry::User(injected) => out.string_inside(&injected.text),
                _ => Ok(()),
            }
        }

        fn close(&self) -> &'static [u8] {
            b""
        }
    }

    fn user(text: &str) -> Arc<Entry> {
        Arc::new(Entry::User(Injected::prompt(text)))
    }

    fn text(transcript: &Transcript<Plain>) -> String {
        let mut chunks = Chunks::default();
        transcript.segments.lend(0, transcript.segments.len(), &mut chunks);
        String::from_utf8(chunks.concat()).unwrap()
    }

    #[test]
    fn an_entry_is_encoded_once_unless_the_past_has_changed() {
        let mut transcript = Transcript::<Plain>::default();
        let mut entries = vec![user("a"), user("\"b\"")];
        for (grow, encoded, expected) in [
            (None, 2, r#"a\"b\""#),
            (None, 2, r#"a\"b\""#),
            (Some("c"), 3, r#"a\"b\"c"#),
            (Some("d"), 4, r#"a\"b\"cd"#),
        ] {
            entries.extend(grow.map(user));
            transcript.update(&entries).unwrap();
            assert_eq!((transcript.encoded, text(&transcript).as_str()), (encoded, expected));
        }
        entries[0] = user("z");
        transcript.update(&entries).unwrap();
        assert_eq!((transcript.encoded, text(&transcript).as_str()), (8, r#"z\"b\"cd"#));
        transcript.update(&entries[..1]).unwrap();
        assert_eq!(text(&transcript), "z");
    }

    #[test]
    fn arguments_are_sent_as_an_object_whatever_they_are() {
        for (input, sent) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("null", "{}"),
            ("[1]", r#"{"invalid_json":[1]}"#),
            (r#""{x""#, r#"{"invalid_json":"{x"}"#),
        ] {
            let input: Value = serde_json::from_str(input).unwrap();
            assert_eq!(sendable(&input).to_string(), sent);
        }
    }
}
