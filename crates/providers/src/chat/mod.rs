//! OpenAI's Chat Completions API, which most compatible servers speak.

mod decode;
mod encode;

use midturn_core::engine::ports::model::Request;

use crate::body::Chunks;
use crate::config::Endpoint;
use crate::dialect::{Assembler, Dialect};
use crate::transcript::{Head, Transcript};

pub(crate) use decode::Reading;

/// One agent's conversation by way of Chat Completions.
pub(crate) struct Chat {
    options: encode::Options,
    head: Head,
    transcript: Transcript<encode::Messages>,
}

impl Chat {
    pub(crate) fn new(model: &str, endpoint: &Endpoint) -> Self {
        Self {
            options: encode::Options::new(model, endpoint),
            head: Head::default(),
            transcript: Transcript::default(),
        }
    }
}

impl Dialect for Chat {
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
