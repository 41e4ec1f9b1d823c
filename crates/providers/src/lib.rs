//! Real models: Anthropic's Messages, OpenAI's Responses and Chat Completions, and all servers
//! that speak one of them, behind the engine's `Model` port.
//!
//! This is the only crate that knows a vendor's JSON. It decides nothing about a conversation:
//! it retries nothing, drops no call that closed, and keeps no state but the bytes it encoded
//! and the connections it can use again. No key leaves it but in a request's header.
//!
//! A provider is data: a name and an [`Endpoint`]. Code knows its [`Dialect`] only, and one more
//! compatible server is no line of it.
//!
//! A call goes through [`Providers`] (names), an encoder per dialect (`anthropic`, `chat`,
//! `responses`), `link` and `call` (the connection), `midturn_core::sse` (frames) and the dialect's
//! decoder (the reply).

mod anthropic;
mod body;
mod builtin;
mod call;
mod chat;
mod config;
mod decode;
mod dialect;
mod factory;
mod failure;
mod limiter;
mod link;
mod list;
mod opaque;
mod responses;
mod text;
mod transcript;
mod written;

pub use anthropic::ANTHROPIC_MAX_TOKENS;
pub use builtin::{BUILT_IN, BuiltIn};
pub use config::{Config, Dialect, Endpoint, ForeignKey, MAX_CONCURRENT, Missing, Secret};
pub use decode::{Silent, decode};
pub use factory::Providers;
pub use link::{proxy, tls};
pub use list::Listed;
pub use written::{BadWritten, Written, is_variable};
