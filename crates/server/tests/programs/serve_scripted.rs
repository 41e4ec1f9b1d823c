//! An interface in front of scripted agents, for tools that test interfaces:
//! `cargo run -p midturn-server --example serve_scripted`. It prints one line of JSON, with
//! the address and the token, and serves until its standard input ends.

use std::num::NonZeroU32;
use std::sync::Arc;

use midturn_conformance::memory::Memory;
use midturn_core::engine::{AgentSpec, Message};
use midturn_core::rules::approval::{Mode, Policy};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::Span;
use midturn_server::{Interface, Listen, Metrics, Rate, Token, Tokens};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

#[path = "../support/mod.rs"]
mod support;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let archive = Arc::new(Memory::default());
    let host = Arc::new(support::host::TestHost::new(archive, support::scripts()));
    let live = host.start_session("s1").await;
    let message = Message::new(Sender::User, "lead", "Something to answer.");
    live.coordinator.send(Message { id: Some(MessageId::new("m1")), ..message }).await?;
    live.coordinator.send_message("worker", "Something to do.", false).await?;
    // `s2` is where agents ask: its `asker` waits for a word on the call `c1`.
    let policy = Policy { mode: Mode::Ask, patience: Span::secs(36_000), ..Policy::default() };
    let asking = host.start_with("s2", policy).await;
    let _attached = asking.coordinator.attach();
    let prompt = Some("Something to ask about.".to_owned());
    let parent = Some(support::name("lead"));
    let asker = AgentSpec { parent, prompt, ..AgentSpec::new(support::name("asker"), "scripted") };
    asking.coordinator.spawn_agent(asker).await?;
    let token = Token::random()?;
    // Whoever tries all there is asks more often than a person's tools.
    let often = NonZeroU32::new(100_000).unwrap_or(NonZeroU32::MIN);
    let rate = Rate { per_second: often, burst: often };
    let tokens = Tokens::new([(token.clone(), Sender::User)], rate);
    let interface = Interface::bind([Listen::Tcp("127.0.0.1:0".parse()?)]).await?;
    let address = interface.address().ok_or("it has no address")?;
    println!(r#"{{"url": "http://{address}", "token": "{}"}}"#, token.secret());
    let shutdown = CancellationToken::new();
    let metrics = Arc::new(Metrics::default());
    let served = tokio::spawn(interface.serve(host, Arc::new(tokens), metrics, shutdown.clone()));
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    shutdown.cancel();
    served.await?;
    Ok(())
}
