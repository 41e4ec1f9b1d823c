//! Anthropic's Messages API.

mod decode;
mod encode;

pub(crate) use decode::Reading;
pub use encode::ANTHROPIC_MAX_TOKENS;
pub(crate) use encode::Messages;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Dialect, Endpoint};
    use crate::decode::Silent;
    use crate::transcript::Kept;
    use bytes::Bytes;
    use midturn_core::engine::ports::model::Request;
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::conversation::{Block, Entry, Injected, Reply};
    use std::sync::Arc;
    use tokio_util::sync::CancellationToken;

    fn turn(n: usize) -> [Arc<Entry>; 2] {
        let reply = Reply { blocks: vec![Block::Text(format!("reply {n}"))], ..Reply::default() };
        let user = Entry::User(Injected::prompt(format!("prompt {n} {}", "x".repeat(500))));
        [Arc::new(user), Arc::new(Entry::Assistant(reply.into()))]
    }

    fn body(model: &mut Kept<Messages>, entries: &[Arc<Entry>]) -> Vec<Bytes> {
        let cancel = CancellationToken::new();
        let request = Request {
            messages: 1,
            purpose: Purpose::Turn,
            compactions: 0,
            agent_index: 0,
            call: 1,
            system: "system",
            tools: &[],
            entries,
            max_output: None,
            cancel: &cancel,
            progress: &Silent,
        };
        model.body(&request)
    }

    /// The body as the server reads it, without cache markers.
    fn unmarked(chunks: &[Bytes]) -> String {
        let text = String::from_utf8(chunks.concat()).unwrap();
        text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    }

    #[test]
    fn a_request_begins_with_the_bytes_of_the_one_before_and_encodes_only_what_is_new() {
        let mut model = Kept::<Messages>::new(
            "m",
            Arc::new(Endpoint::new(Dialect::Anthropic, "http://h")),
            Arc::default(),
        );
        let mut entries = Vec::new();
        let mut before = String::new();
        for n in 0..150 {
            entries.extend(turn(n));
            let chunks = body(&mut model, &entries[..entries.len() - 1]);
            let now = unmarked(&chunks);
            assert!(now.starts_with(before.trim_end_matches("]}]}")), "request {n}");
            assert!(chunks.concat().windows(13).filter(|w| w == b"cache_control").count() <= 4);
            assert_eq!(model.transcript.encoded, entries.len() - 1);
            before = now;
        }
    }

    #[test]
    fn what_was_closed_is_lent_from_where_it_lies_however_often_it_is_sent() {
        let mut model = Kept::<Messages>::new(
            "m",
            Arc::new(Endpoint::new(Dialect::Anthropic, "http://h")),
            Arc::default(),
        );
        let mut entries: Vec<_> = (0..400).flat_map(turn).collect();
        let places = |parts: Vec<Bytes>| parts.iter().map(|part| part.as_ptr()).collect::<Vec<_>>();
        let first = places(body(&mut model, &entries));
        entries.extend(turn(400));
        let second = places(body(&mut model, &entries));
        // The head and the first segment.
        assert_eq!(first[..2], second[..2]);
        assert!(second.len() < 20, "{}", second.len());
    }
}
