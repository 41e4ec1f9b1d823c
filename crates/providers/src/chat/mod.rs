//! OpenAI's Chat Completions API, which most compatible servers speak.

mod decode;
mod encode;

pub(crate) use decode::Reading;
pub(crate) use encode::Messages;
