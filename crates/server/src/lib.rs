//! The interface of a running Midturn (docs/protocol.md): HTTP with JSON and server-sent
//! events, on a Unix socket and, when asked, on loopback TCP.
//!
//! It decides nothing about agents: it says who asks, hands the question to the
//! [`Coordinator`](midturn_core::engine::Coordinator), and puts the answer into the words of
//! `midturn-wire`. It knows neither stores nor models nor files of a user; what it needs of its
//! process is the [`Host`] port.

mod app;
mod extract;
pub mod feed;
pub mod host;
mod joined;
mod listen;
pub mod metrics;
mod pages;
mod problem;
mod replays;
mod routes;
mod security;
mod serve;

pub use feed::Feed;
pub use host::{Entered, Host, HostError, Joined, Live, NewAgent, Script};
pub use listen::{BindError, Listen};
pub use metrics::Metrics;
pub use routes::openapi;
pub use security::{Rate, Token, TokenError, Tokens};
pub use serve::{Bounds, Interface, Use};
