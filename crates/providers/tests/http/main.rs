//! Whole calls over real connections: what is sent, and what comes of the answers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod calls;
mod requests;
mod server;
