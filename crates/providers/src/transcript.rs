//! What one agent's requests have in common with the ones before.
//!
//! Entries are encoded when they are first seen and never again: a request is the kept bytes
//! plus what is new, and after a compaction all is new. Which JSON a provider wants is the business of its [`Script`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::conversation::{Block, Entry, Reply, ToolResult};
use parking_lot::Mutex;
use serde_json::Value;

use crate::body::Segments;
use crate::config::Endpoint;

/// How long a reply may be where a budget is limited and nothing was configured.
const UNDER_A_BUDGET: u32 = 32_000;

/// How a provider writes a conversation. It carries what it has to remember from one entry to
/// the next.
pub(crate) trait Script: Default + Send + Sync {
    /// What is put at each of [`Script::marks`].
    const MARK: &'static str = "";

    /// The most tokens that a reply may have, as it was configured.
    fn max_tokens(endpoint: &Endpoint) -> Option<u32> {
        endpoint.max_output_tokens
    }

    /// All that comes before the conversation, up to the bracket that opens its list. `most` is how
    /// many tokens the reply to this request may have.
    fn head(model: &str, endpoint: &Endpoint, most: Option<u32>, request: &Request<'_>) -> String;

    /// Writes a text of the user's side.
    fn user(&mut self, text: &str, out: &mut Out<'_>);

    /// Writes the result of a call.
    fn result(&mut self, result: &ToolResult, out: &mut Out<'_>);

    /// Writes what the model said.
    fn reply(&mut self, reply: &Reply, out: &mut Out<'_>);

    /// Where marks are put between the kept bytes: they are no part of what was sent.
    fn marks(&self) -> [Option<usize>; 2] {
        [None; 2]
    }

    /// Writes one entry.
    fn entry(&mut self, entry: &Entry, out: &mut Out<'_>) {
        match entry {
            Entry::User(injected) => self.user(&injected.text, out),
            Entry::Assistant(reply) => self.reply(reply, out),
            Entry::Interrupted(_) => {}
            Entry::ToolResults { results, mail } => {
                results.iter().for_each(|result| self.result(result, out));
                mail.iter().for_each(|injected| self.user(&injected.text, out));
            }
        }
    }
}

/// A message that further parts can join as long as nothing else follows it.
#[derive(PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) open: &'static str,
    pub(crate) between: &'static str,
    pub(crate) close: &'static str,
}

/// What a list ends with so far.
#[derive(Clone, Copy, Default)]
enum Last {
    #[default]
    Nothing,
    Open(&'static Frame),
    Closed,
}

impl Last {
    fn close(self) -> &'static str {
        if let Self::Open(frame) = self { frame.close } else { "" }
    }
}

/// Where entries are written: the list of a request.
pub(crate) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    base: usize,
    last: &'a mut Last,
}

impl Out<'_> {
    /// Writes a part of a message. Says whether a message was begun for it: it joins the last
    /// one if that is of the same frame.
    pub(crate) fn part(&mut self, frame: &'static Frame, part: impl Display) -> bool {
        let begins = !matches!(self.last, Last::Open(open) if *open == frame);
        if begins {
            self.begin(Last::Open(frame));
        }
        self.raw(if begins { frame.open } else { frame.between });
        self.raw(&part.to_string());
        begins
    }

    /// Writes an item that nothing joins.
    pub(crate) fn item(&mut self, item: impl Display) {
        self.begin(Last::Closed);
        self.raw(&item.to_string());
    }

    /// The position of the next byte in the whole transcript.
    pub(crate) fn position(&self) -> usize {
        self.base + self.bytes.len()
    }

    fn begin(&mut self, next: Last) {
        let before = std::mem::replace(self.last, next);
        self.raw(before.close());
        if !matches!(before, Last::Nothing) {
            self.raw(",");
        }
    }

    fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// What one agent keeps from request to request.
pub(crate) struct Kept<S> {
    model: String,
    pub(crate) endpoint: Arc<Endpoint>,
    head: Head,
    heads: Arc<Heads>,
    pub(crate) transcript: Transcript<S>,
}

impl<S: Script> Kept<S> {
    pub(crate) fn new(model: &str, endpoint: Arc<Endpoint>, heads: Arc<Heads>) -> Self {
        let (head, transcript) = Default::default();
        Self { model: model.to_owned(), endpoint, head, heads, transcript }
    }

    /// The most tokens that a reply has unless a request says less.
    pub(crate) fn max_output(&self) -> u64 {
        S::max_tokens(&self.endpoint).unwrap_or(UNDER_A_BUDGET).into()
    }

    /// The request body, in parts. What was encoded for earlier requests is used again.
    pub(crate) fn body(&mut self, request: &Request<'_>) -> Vec<Bytes> {
        let Self { model, endpoint, head, heads, transcript } = self;
        // What was configured, and no more than the request leaves.
        let left = request.max_output.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        let most = S::max_tokens(endpoint).into_iter().chain(left).min();
        let write = || S::head(model, endpoint, most, request);
        if request.purpose.is_turn() {
            let head = head.get(request, || heads.kept(write()));
            transcript.update(request.entries);
            return transcript.body(head);
        }
        // What is kept is the conversation's and goes on growing.
        let mut apart = Transcript::<S>::default();
        apart.update(request.entries);
        apart.body(write().into())
    }
}

/// The encoded entries of one agent.
#[derive(Default)]
pub(crate) struct Transcript<S> {
    seen: Vec<Arc<Entry>>,
    segments: Segments,
    last: Last,
    script: S,
    /// How many entries were encoded in all.
    #[cfg(test)]
    pub(crate) encoded: usize,
}

impl<S: Script> Transcript<S> {
    /// Encodes what is new. If the entries don't begin with those seen before, all
    /// of them are encoded again.
    pub(crate) fn update(&mut self, entries: &[Arc<Entry>]) {
        if !self.is_continued_by(entries) {
            self.seen.clear();
            (self.segments, self.last, self.script) = Default::default();
        }
        let new = &entries[self.seen.len()..];
        let Self { segments, last, script, .. } = self;
        segments.append(|bytes, base| {
            let mut out = Out { bytes, base, last };
            new.iter().for_each(|entry| script.entry(entry, &mut out));
        });
        self.seen.extend_from_slice(new);
        #[cfg(test)]
        {
            self.encoded += new.len();
        }
    }

    /// The request: what is kept, with the marks in between.
    fn body(&self, head: Bytes) -> Vec<Bytes> {
        let mut parts = vec![head];
        let mut from = 0;
        for place in self.script.marks().into_iter().flatten() {
            parts.extend(self.segments.lend(from..place));
            parts.push(Bytes::from_static(S::MARK.as_bytes()));
            from = place;
        }
        parts.extend(self.segments.lend(from..self.segments.len()));
        parts.extend([self.last.close(), "]}"].map(|end| Bytes::from_static(end.as_bytes())));
        parts
    }

    fn is_continued_by(&self, entries: &[Arc<Entry>]) -> bool {
        self.seen.len() <= entries.len()
            && self.seen.iter().zip(entries).all(|(seen, now)| Arc::ptr_eq(seen, now))
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
    fn get(&mut self, request: &Request<'_>, write: impl FnOnce() -> Bytes) -> Bytes {
        let made_of = Some((fingerprint(request.system), request.max_output, request.tools.to_vec()));
        if self.made_of != made_of {
            self.bytes = write();
            self.made_of = made_of;
        }
        self.bytes.clone()
    }
}

/// How many heads are kept for whoever writes the same.
const HEADS_MAX: usize = 8;

/// The heads that were written last. Agents of one kind are told the same, in one session and in the
/// next: some 12 KB, mostly tools.
#[derive(Default)]
pub(crate) struct Heads(Mutex<VecDeque<Bytes>>);

impl Heads {
    /// What was written, in one piece with whoever wrote the same.
    fn kept(&self, written: String) -> Bytes {
        let mut heads = self.0.lock();
        if let Some(same) = heads.iter().find(|head| ***head == *written.as_bytes()) {
            return same.clone();
        }
        // Without the room that writing left over.
        let head = Bytes::from(written.into_boxed_str().into_boxed_bytes());
        heads.push_back(head.clone());
        if heads.len() > HEADS_MAX {
            heads.pop_front();
        }
        head
    }
}

fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Adds the tools to a request's fields, each as `tool` writes it. In a turn the model decides
/// whether it calls one, which is what an absent choice means; elsewhere it is to call `none`.
pub(crate) fn offer(fields: &mut Value, request: &Request<'_>, tool: fn(&ToolSpec) -> Value, none: Value) {
    if !request.tools.is_empty() {
        fields["tools"] = request.tools.iter().map(|spec| tool(spec)).collect();
        if !request.purpose.is_turn() {
            fields["tool_choice"] = none;
        }
    }
}

/// A request's fields, up to the bracket that opens its list.
pub(crate) fn up_to_list(fields: &Value, list: &str) -> String {
    let fields = fields.to_string();
    format!(r#"{},"{list}":["#, fields.strip_suffix('}').unwrap_or(&fields))
}

/// A reply without the thinking at its end: no API takes back thinking that nothing follows.
pub(crate) fn followed(reply: &Reply) -> &[Block] {
    let end = reply.blocks.iter().rposition(|block| !matches!(block, Block::Thinking(_)));
    &reply.blocks[..end.map_or(0, |last| last + 1)]
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

    static LINE: Frame = Frame { open: "<", between: "+", close: ">" };

    impl Script for Plain {
        fn head(_: &str, _: &Endpoint, _: Option<u32>, _: &Request<'_>) -> String {
            String::new()
        }

        fn user(&mut self, text: &str, out: &mut Out<'_>) {
            out.part(&LINE, text);
        }

        fn result(&mut self, _: &ToolResult, _: &mut Out<'_>) {}

        fn reply(&mut self, reply: &Reply, out: &mut Out<'_>) {
            out.item(reply.text());
        }
    }

    fn user(text: &str) -> Arc<Entry> {
        Arc::new(Entry::User(Injected::prompt(text)))
    }

    fn text(transcript: &Transcript<Plain>) -> String {
        String::from_utf8(transcript.body(Bytes::new()).concat()).unwrap()
    }

    #[test]
    fn agents_who_begin_their_requests_alike_keep_one_beginning() {
        let heads = Heads::default();
        let first = heads.kept("a".repeat(100));
        assert_eq!(heads.kept("a".repeat(100)).as_ptr(), first.as_ptr());
        (0..HEADS_MAX).for_each(|n| assert_eq!(heads.kept(n.to_string()), n.to_string()));
        assert_ne!(heads.kept("a".repeat(100)).as_ptr(), first.as_ptr(), "it was forgotten for the others");
        assert_eq!(heads.0.lock().len(), HEADS_MAX);
    }

    #[test]
    fn an_entry_is_encoded_once_unless_the_past_has_changed() {
        let mut transcript = Transcript::<Plain>::default();
        let mut entries = vec![user("a"), user("b")];
        for (grow, encoded, expected) in [
            (None, 2, "<a+b>]}"),
            (None, 2, "<a+b>]}"),
            (Some("c"), 3, "<a+b+c>]}"),
            (Some("d"), 4, "<a+b+c+d>]}"),
        ] {
            entries.extend(grow.map(user));
            transcript.update(&entries);
            assert_eq!((transcript.encoded, text(&transcript).as_str()), (encoded, expected));
        }
        entries[0] = user("z");
        transcript.update(&entries);
        assert_eq!((transcript.encoded, text(&transcript).as_str()), (8, "<z+b+c+d>]}"));
        transcript.update(&entries[..1]);
        assert_eq!(text(&transcript), "<z>]}");
    }

    #[test]
    fn what_can_be_joined_is_joined_and_closed_before_anything_else() {
        let said = |text: &str| {
            let blocks = vec![Block::Text(text.to_owned())];
            Arc::new(Entry::Assistant(Reply { blocks, ..Reply::default() }.into()))
        };
        let mut transcript = Transcript::<Plain>::default();
        let mut entries = Vec::new();
        for (next, expected) in [
            (said("1"), "1]}"),
            (said("2"), "1,2]}"),
            (user("a"), "1,2,<a>]}"),
            (user("b"), "1,2,<a+b>]}"),
            (said("3"), "1,2,<a+b>,3]}"),
            (user("c"), "1,2,<a+b>,3,<c>]}"),
        ] {
            entries.push(next);
            transcript.update(&entries);
            assert_eq!(text(&transcript), expected);
        }
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
