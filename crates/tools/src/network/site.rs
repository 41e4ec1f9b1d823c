//! What a command asks for: a host and a port. Pure. An address is one only in the spelling that
//! everybody has for it; every other spelling of a number is no host at all, since the look-up would
//! make an address of it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The longest name that the look-up of names knows.
const NAME_MAX: usize = 253;

/// The longest part of one.
const LABEL_MAX: usize = 63;

/// A name, or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    /// In small letters, without a dot at its end.
    Name(Arc<str>),
    /// Not one of IPv4 in the clothes of IPv6.
    Address(IpAddr),
}

/// Why a text is no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoHost {
    /// Nothing that a name or an address is made of.
    #[error("it is no name of a host and no address")]
    Grammar,
    /// It has letters that names on the wire don't have.
    #[error("a name has only letters of ASCII: write it as the wire has it, such as xn--bcher-kva.example")]
    Unicode,
    /// A number that somebody could take for a name.
    #[error("it is an address in disguise: write it as 192.0.2.1 or 2001:db8::1")]
    Disguise,
    /// A port that is none.
    #[error("its port is no number from 1 to 65535")]
    Port,
}

impl Host {
    /// Reads a name or an address; one of IPv6 with or without its brackets.
    ///
    /// # Errors
    /// It is neither.
    pub(crate) fn parse(text: &str) -> Result<Self, NoHost> {
        if !text.is_ascii() {
            return Err(NoHost::Unicode);
        }
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if inner.is_some() || text.contains(':') {
            let address: Ipv6Addr = inner.unwrap_or(text).parse().map_err(|_| NoHost::Grammar)?;
            return match address.to_canonical() {
                IpAddr::V6(address) => Ok(Self::Address(address.into())),
                IpAddr::V4(_) => Err(NoHost::Disguise),
            };
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        match name.parse::<IpAddr>() {
            Ok(address) if !text.ends_with('.') => Ok(Self::Address(address)),
            Ok(_) => Err(NoHost::Disguise),
            Err(_) => named(name),
        }
    }
}

fn named(name: String) -> Result<Host, NoHost> {
    let labels = || name.split('.');
    if name.len() > NAME_MAX || !labels().all(is_label) {
        return Err(NoHost::Grammar);
    }
    // What ends in a number is read as an address by the look-up: `2130706433`, `0x7f.1`, `127.1`.
    if labels().next_back().is_some_and(is_number) {
        return Err(NoHost::Disguise);
    }
    Ok(Host::Name(name.into()))
}

fn is_label(label: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_MAX).contains(&label.len())
        && label.bytes().all(is_letter)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x");
    hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || label.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Site {
    /// Reads `HOST:PORT`, an address of IPv6 in brackets.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn parse(text: &str) -> Result<Self, NoHost> {
        match split(text)? {
            (host, Some(port)) => Ok(Self { host, port }),
            (_, None) => Err(NoHost::Port),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A host, and its port if the text has one. Of an address of IPv6 without brackets all is the address.
pub(crate) fn split(text: &str) -> Result<(Host, Option<u16>), NoHost> {
    let is_bare = text.matches(':').count() > 1 && !text.starts_with('[');
    match text.rsplit_once(':').filter(|(before, _)| !is_bare && !before.is_empty()) {
        Some((host, port)) if !host.starts_with('[') || host.ends_with(']') => {
            Ok((Host::parse(host)?, Some(a_port(port)?)))
        }
        _ => Ok((Host::parse(text)?, None)),
    }
}

fn a_port(text: &str) -> Result<u16, NoHost> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or(NoHost::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_in_small_letters_or_an_address_as_everybody_writes_it() {
        for (text, shown) in [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("gitserver", "gitserver"),
            ("my_bucket.s3.example", "my_bucket.s3.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1e100.net", "1e100.net"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8:0:0::1", "[2001:db8::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(Host::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_address_in_disguise_is_no_host() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0X7F.1",
            "017700000001",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.01",
            "127.0.0.1.",
            "1.2.3.4.5",
            "a.0x",
            "example.1",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
        ] {
            assert_eq!(Host::parse(text), Err(NoHost::Disguise), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_said() {
        let long = "a".repeat(64);
        let longer = "abc.".repeat(64) + "d";
        for (text, why) in [
            ("", NoHost::Grammar),
            (".", NoHost::Grammar),
            ("..", NoHost::Grammar),
            ("a..b", NoHost::Grammar),
            ("-a.example", NoHost::Grammar),
            ("a-.example", NoHost::Grammar),
            ("*.example.org", NoHost::Grammar),
            ("a b", NoHost::Grammar),
            ("a%2eb", NoHost::Grammar),
            ("a\0b", NoHost::Grammar),
            ("user@example.org", NoHost::Grammar),
            ("fe80::1%eth0", NoHost::Grammar),
            ("[example.org]", NoHost::Grammar),
            (long.as_str(), NoHost::Grammar),
            (longer.as_str(), NoHost::Grammar),
            ("bücher.example", NoHost::Unicode),
            ("127。0。0。1", NoHost::Unicode),
            ("１２７.0.0.1", NoHost::Unicode),
        ] {
            assert_eq!(Host::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_port_is_a_plain_number() {
        for (text, shown) in
            [("a.example:443", "a.example:443"), ("[::1]:80", "[::1]:80"), ("10.0.0.1:1", "10.0.0.1:1")]
        {
            assert_eq!(Site::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "a.example",
            "a.example:",
            "a.example:0",
            "a.example:0443",
            "a.example:+443",
            "a.example:65536",
            "a.example:443:80",
            "::1",
            ":443",
            "[::1",
            "[::1]443",
        ] {
            assert!(Site::parse(text).is_err(), "{text}");
        }
    }
}
