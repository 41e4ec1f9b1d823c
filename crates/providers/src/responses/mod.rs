//! OpenAI's Responses API, without its memory: nothing is stored there, and reasoning goes back
//! encrypted.

mod decode;
mod encode;
mod items;

use midturn_core::engine::ports::model::Request;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::{Assembler, Conversation};
use crate::transcript::Kept;

pub(crate) use decode::Reading;

/// One agent's conversation by way of Responses.
pub(crate) struct Responses {
    options: encode::Options,
    kept: Kept<encode::Items>,
}

impl Responses {
    pub(crate) fn new(model: &str, endpoint: &Endpoint) -> Self {
        Self { options: encode::Options::new(model, endpoint), kept: Kept::default() }
    }
}

impl Conversation for Responses {
    fn body(&mut self, request: &Request<'_>) -> serde_json::Result<Chunks> {
        let options = &self.options;
        let head = |bytes: &mut Vec<u8>| options.write_head(request, bytes);
        self.kept.body(request, head, encode::body)
    }

    fn max_output(&self) -> u64 {
        self.options.max_output()
    }

    fn assembler(&self, call: u64) -> Box<dyn Assembler> {
        Box::new(Reading::new(call))
    }
}
