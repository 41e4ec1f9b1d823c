//! Both databases are held to the suite of claims, and what is special about each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on fails")]

mod files;
mod formats;
#[path = "../../../../tests/needs.rs"]
mod needs;
mod postgres;
mod proxy;
mod server;
mod syncs;
