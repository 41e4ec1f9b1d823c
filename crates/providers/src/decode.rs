//! Replies from recorded streams, for tests, examples and benchmarks: what a call does with the
//! bytes of a response, without a connection.

use midturn_core::engine::ports::model::{ModelFailure, Progress};
use midturn_core::rules::conversation::Reply;
use midturn_core::sse::Decoder;

use crate::call::take_frame;
use crate::config::Dialect;
use crate::dialect::{Assembler, Broken, Stage, ended_early};
use crate::{anthropic, chat, responses};

/// Puts a reply together from the chunks of a stream of events.
///
/// # Errors
/// An event of more than `max_event_bytes` bytes, an error event, and a stream that ends before
/// the stop reason has come.
pub fn decode<C: AsRef<[u8]>>(
    dialect: Dialect,
    chunks: impl IntoIterator<Item = C>,
    max_event_bytes: usize,
    progress: &dyn Progress,
) -> Result<Reply, ModelFailure> {
    let mut assembler = assembler(dialect, 0);
    let mut decoder = Decoder::new(max_event_bytes);
    let mut stage = Stage::Partial;
    for chunk in chunks {
        let fed =
            decoder.feed(chunk.as_ref(), |frame| take_frame(frame, assembler.as_mut(), progress, &mut stage));
        match fed {
            Err(Broken(failure)) if stage == Stage::Partial => return Err(failure),
            Err(Broken(_)) => break,
            Ok(()) => {}
        }
    }
    if stage == Stage::Partial { Err(ended_early()) } else { Ok(assembler.finish()) }
}

/// What puts together the reply to an agent's `call`-th call.
pub(crate) fn assembler(dialect: Dialect, call: u64) -> Box<dyn Assembler> {
    match dialect {
        Dialect::Anthropic => Box::new(anthropic::Reading::new(call)),
        Dialect::Responses => Box::new(responses::Reading::new(call)),
        Dialect::Chat => Box::new(chat::Reading::new(call)),
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn sent(&self) {}
    fn text(&self, _: &str) {}
    fn thinking(&self, _: &str) {}
    fn thinking_done(&self) {}
    fn tokens(&self, _: u64) {}
}
