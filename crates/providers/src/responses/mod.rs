//! OpenAI's Responses API, without its memory: nothing is stored there, and reasoning goes back
//! encrypted.

mod decode;
mod encode;
mod items;

use midturn_core::engine::ports::model::Request;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::{Assembler, Dialect};
use crate::transcript::{Head, Transcript};

pub(crate) use decode::Reading;

/// One agent's conversation by way of Responses.
pub(crate) struct Responses {
    options: encode::Options,
    head: Head,
    transcript: Transcript<encode::Items>,
}

impl Responses {
    pub(crate) fn new(model: &str, endpoint: &Endpoint) -> Self {
        Self {
            options: encode::Options::new(model, endpoint),
            head: Head::default(),
            transcript: Transcript::default(),
        }
    }
}

impl Dialect for Responses {
    fn body(&mut self, request: &Request<'_>) -> serde_json::Result<Chunks> {
        let options = &self.options;
        let head = self.head.get(request.system, request.tools, |bytes| {
            options.write_head(request.system, request.tools, bytes)
        })?;
        self.transcript.update(request.entries)?;
        Ok(encode::body(head, &self.transcript))
    }

    fn assembler(&self, call: u64) -> Box<dyn Assembler> {
        Box::new(Reading::new(call))
    }
}
