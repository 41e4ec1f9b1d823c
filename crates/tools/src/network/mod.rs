//! Network by host: what commands may reach, and the proxy that is their only way there. It accepts in an agent's network
//! namespace, reads the name of the host from CONNECT and from TLS's first message, and leaves TLS whole.
//!
//! What may pass is decided in pure code (`hosts`, `addresses`, `request`, `hello`); the waiting is in `exchange` and
//! `relay`. It makes no namespace: who builds one hands over the listener (`Proxy::serve`).

mod addresses;
mod exchange;
mod gate;
mod hello;
mod hosts;
mod outside;
mod proxy;
mod refusal;
mod relay;
mod request;
mod site;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::gate::Gate;
pub(crate) use self::gate::Reachable;
pub use self::hosts::{BadEntry, Hosts};
pub(crate) use self::outside::System;
pub(crate) use self::proxy::Proxy;

/// The port of the proxy on the loopback of an agent's namespace.
pub(crate) const PORT: u16 = 17_077;

/// What of the network commands may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// All that the machine can.
    On,
    /// These hosts alone.
    Hosts(Arc<Hosts>),
}

impl Network {
    /// These hosts, or nothing if there are none.
    pub fn hosts(hosts: Hosts) -> Self {
        if hosts.is_empty() { Self::Off } else { Self::Hosts(Arc::new(hosts)) }
    }
}

/// `false`, `true`, or a list.
impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Hosts(hosts) => serializer.collect_seq(hosts.written()),
        }
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Network;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a list of hosts, such as [\"registries\", \"api.example.org\", \"git.example.org:22\"]")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Network, E> {
        Ok(if on { Network::On } else { Network::Off })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Network, E> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        Hosts::parse(entries).map(Network::hosts).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Network, A::Error> {
        let entries: Vec<String> = Vec::deserialize(SeqAccessDeserializer::new(items))?;
        Hosts::parse(entries.iter().map(String::as_str)).map(Network::hosts).map_err(A::Error::custom)
    }
}

/// What commands find in their environment, so that programs go by the proxy. Of a program that obeys no such variable
/// the look-up of the first name fails: there is nothing that could answer.
pub(crate) fn environment(hosts: &Hosts) -> Vec<(OsString, OsString)> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let past = past_the_proxy(hosts);
    let both = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name, &proxy)).into_iter();
    let both = both.chain([("NO_PROXY", &past)]);
    let both = both.flat_map(|(name, value)| {
        [name.to_owned(), name.to_ascii_lowercase()].map(|name| (name.into(), value.into()))
    });
    // Git goes by the proxy over https; what it starts for ssh can't.
    let ssh = "echo 'ssh is not among the ways out of this sandbox: use the https address of the repository' >&2; false";
    let alone = [("NODE_USE_ENV_PROXY", "1"), ("GIT_SSH_COMMAND", ssh)];
    both.chain(alone.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The command's own loopback, but for addresses of the machine's that a person has named.
fn past_the_proxy(hosts: &Hosts) -> String {
    let named: Vec<String> = hosts.loopbacks().iter().map(IpAddr::to_string).collect();
    let own = ["localhost", "127.0.0.1", "::1"].into_iter();
    own.filter(|own| !named.iter().any(|named| named == own)).collect::<Vec<_>>().join(",")
}
