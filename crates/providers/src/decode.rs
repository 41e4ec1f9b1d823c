//! Replies from streams of events: what a call does with the bytes of a response, and, for tests,
//! examples and benchmarks, the same without a connection.

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure, Progress};
use midturn_core::rules::conversation::{Reply, Usage};
use midturn_core::sse::{Decoder, Frame};

use crate::config::Dialect;
use crate::dialect::{Account, Assembler, ended_early, stop_with_calls};
use crate::{anthropic, chat, responses};

/// How many times the bytes of the largest event a whole reply may have.
const EVENTS_PER_REPLY: usize = 4;

/// A reply while its stream is read.
pub(crate) struct Stream<'a> {
    decoder: Decoder,
    assembler: Box<dyn Assembler>,
    account: Account<'a>,
    /// Whether nothing more will come.
    pub(crate) is_done: bool,
    room: usize,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        max_event_bytes: usize,
        call: u64,
        progress: &'a dyn Progress,
    ) -> Self {
        let decoder = Decoder::new(max_event_bytes);
        let room = max_event_bytes.saturating_mul(EVENTS_PER_REPLY);
        let account = Account { progress, call, stop_reason: None, usage: Usage::default() };
        Self { decoder, assembler: assembler(dialect), account, is_done: false, room }
    }

    /// Takes bytes as they come. Whatever is wrong with those that follow a whole reply, it stands.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), ModelFailure> {
        let fed = self.fed(bytes);
        if fed.is_err() && self.is_whole() {
            self.is_done = true;
            return Ok(());
        }
        fed
    }

    fn fed(&mut self, bytes: &[u8]) -> Result<(), ModelFailure> {
        self.room = self.room.checked_sub(bytes.len()).ok_or_else(|| {
            let message = "the reply has more bytes than four times `max_event_bytes`";
            ModelFailure::new(ErrorKind::InvalidRequest, message)
        })?;
        let Self { decoder, assembler, account, is_done, .. } = self;
        decoder.feed(bytes, |frame: Frame<'_>| {
            if !*is_done {
                // Bytes that are not UTF-8 are replaced, as the format demands.
                *is_done = assembler.frame(&String::from_utf8_lossy(frame.data), account)?;
            }
            Ok(())
        })
    }

    /// Whether the reply is whole; figures may follow.
    pub(crate) fn is_whole(&self) -> bool {
        self.account.stop_reason.is_some()
    }

    /// The reply, if it is whole.
    pub(crate) fn finish(self) -> Result<Reply, ModelFailure> {
        let Account { stop_reason, usage, call, .. } = self.account;
        let reason = stop_reason.ok_or_else(ended_early)?;
        let blocks = self.assembler.finish(call);
        Ok(Reply { stop_reason: stop_with_calls(reason, &blocks), blocks, usage })
    }
}

/// Puts a reply together from the chunks of a stream of events.
///
/// # Errors
/// An event of more than `max_event_bytes` bytes, a reply of more than four times that, an error
/// event, and a stream that ends before the stop reason has come.
pub fn decode<C: AsRef<[u8]>>(
    dialect: Dialect,
    chunks: impl IntoIterator<Item = C>,
    max_event_bytes: usize,
    progress: &dyn Progress,
) -> Result<Reply, ModelFailure> {
    let mut stream = Stream::new(dialect, max_event_bytes, 0, progress);
    for chunk in chunks {
        stream.take(chunk.as_ref())?;
    }
    stream.finish()
}

fn assembler(dialect: Dialect) -> Box<dyn Assembler> {
    match dialect {
        Dialect::Anthropic => Box::<anthropic::Reading>::default(),
        Dialect::Responses => Box::<responses::Reading>::default(),
        Dialect::Chat => Box::<chat::Reading>::default(),
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
