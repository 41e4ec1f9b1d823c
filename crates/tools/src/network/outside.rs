//! The network of the machine, as the proxy uses it: a look-up, and a connection. What may be looked up and connected
//! to is decided elsewhere.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;

use super::addresses::closed;

/// How many names are looked up at once for all agents: each takes a thread, and the threads are few.
static LOOK_UPS: Semaphore = Semaphore::const_new(16);

/// The network of the machine.
#[async_trait]
pub(crate) trait Outside: Debug + Send + Sync {
    /// The addresses of a name.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address that was checked.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;

    /// Why an address is closed.
    fn closed(&self, address: IpAddr) -> Option<&'static str> {
        closed(address)
    }
}

/// The real one.
#[derive(Debug)]
pub(crate) struct System;

#[async_trait]
impl Outside for System {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let _one_of_them = LOOK_UPS.acquire().await.map_err(io::Error::other)?;
        Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}
