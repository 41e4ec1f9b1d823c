//! OpenAI's Responses API, without its memory: nothing is stored there, and reasoning goes back
//! encrypted.

mod decode;
mod encode;
mod items;

pub(crate) use decode::Reading;
pub(crate) use encode::Items;
