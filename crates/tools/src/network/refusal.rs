//! Why a command didn't get to a host: which rule, in a sentence for people, and as an answer on the wire. Pure.

use std::net::IpAddr;
use std::time::Duration;

use super::site::{NoHost, Site};

/// How much of what a command wrote is repeated.
const SAID_MAX: usize = 100;

/// The rule by which a host was refused, or what kept us from reaching it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Why {
    /// The host is on no list.
    #[error("it is not in sandbox.network, where a person can allow it")]
    NotListed,
    /// What was asked for is no host.
    #[error("{0}")]
    NoHost(#[from] NoHost),
    /// The name leads where no name may lead.
    #[error(
        "its address {address} is {what}, and such are closed unless sandbox.network names the address itself"
    )]
    Closed {
        /// The address.
        address: IpAddr,
        /// What kind of address it is.
        what: &'static str,
    },
    /// What came through a tunnel to port 443 is no TLS.
    #[error("what was sent is not TLS, and nothing else goes through port 443")]
    NotTls,
    /// TLS without a name.
    #[error("TLS was begun without the name of the host (SNI), so nobody can say that it is this one")]
    Nameless,
    /// TLS with another name.
    #[error("TLS was begun for another host, {0}")]
    OtherName(String),
    /// A request whose own header names another host.
    #[error("the request in it is for another host, {0}")]
    OtherHost(String),
    /// A request that can be read in more than one way, or not at all.
    #[error("the request can't be read: {0}")]
    Request(&'static str),
    /// A body of which nobody says how long it is.
    #[error("a request without TLS has to say how long its body is (Content-Length)")]
    NoLength,
    /// It took too long to say what it wants.
    #[error("nothing that could be judged came within {} s", .0.as_secs())]
    Slow(Duration),
    /// So many connections are open that there is no room for one more.
    #[error("too many connections are open at once")]
    Full,
    /// The look-up found nothing.
    #[error("its name can't be looked up: {0}")]
    Unknown(String),
    /// No address took the connection.
    #[error("it can't be connected to: {0}")]
    Unreachable(String),
    /// The look-up, or the connection, took too long.
    #[error("it didn't answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl Why {
    /// The status of the answer.
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Self::NotListed
            | Self::NoHost(_)
            | Self::Closed { .. }
            | Self::NotTls
            | Self::Nameless
            | Self::OtherName(_)
            | Self::OtherHost(_) => "403 Forbidden",
            Self::Request(_) => "400 Bad Request",
            Self::NoLength => "411 Length Required",
            Self::Slow(_) => "408 Request Timeout",
            Self::Full => "503 Service Unavailable",
            Self::Unknown(_) | Self::Unreachable(_) => "502 Bad Gateway",
            Self::Late(_) => "504 Gateway Timeout",
        }
    }

    /// Whether a rule of ours is behind it, and not the network.
    fn is_rule(&self) -> bool {
        !matches!(self, Self::Full | Self::Unknown(_) | Self::Unreachable(_) | Self::Late(_))
    }
}

/// A host that a command didn't get to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What it asked for, in letters that can be seen; empty where nobody knows.
    about: String,
    pub(crate) why: Why,
}

impl Refusal {
    /// Of a host that could be read.
    pub(crate) fn of(site: &Site, why: Why) -> Self {
        Self { about: site.to_string(), why }
    }

    /// Of what a command wrote in the place of a host, without a user and a password that stand before one.
    pub(crate) fn of_text(text: &str, why: Why) -> Self {
        let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
        Self { about: inert(host), why }
    }

    /// Of a request that names nobody.
    pub(crate) fn of_request(why: Why) -> Self {
        Self { about: String::new(), why }
    }

    /// One sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { about, why } = self;
        match (about.is_empty(), why.is_rule()) {
            (true, true) => format!("a request to the proxy was refused: {why}"),
            (true, false) => format!("a request to the proxy failed: {why}"),
            (false, true) => format!("{about} was refused: {why}"),
            (false, false) => format!("{about} was not reached: {why}"),
        }
    }

    /// The answer to a request.
    pub(crate) fn answer(&self) -> String {
        let (status, words) = (self.why.status(), self.sentence());
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: \
             close\r\n\r\nMidturn: {words}.\n",
            words.len() + "Midturn: .\n".len()
        )
    }
}

/// What a command wrote, without what could pass for something else.
pub(crate) fn inert(text: &str) -> String {
    let seen = |letter: char| if letter.is_ascii_graphic() { letter } else { '?' };
    text.chars().take(SAID_MAX).map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_host_and_the_rule_and_its_answer_is_as_long_as_it_says() {
        let site = Site::parse("a.example:443").unwrap();
        let late = Duration::from_secs(10);
        for (refusal, status, words) in [
            (
                Refusal::of(&site, Why::NotListed),
                "403 ",
                "a.example:443 was refused: it is not in sandbox.network",
            ),
            (
                Refusal::of(
                    &site,
                    Why::Closed { address: "10.0.0.1".parse().unwrap(), what: "a private one" },
                ),
                "403 ",
                "its address 10.0.0.1 is a private one",
            ),
            (Refusal::of(&site, Why::OtherName("b.example".to_owned())), "403 ", "another host, b.example"),
            (Refusal::of_text("21\r\n3\u{202e}", NoHost::Disguise.into()), "403 ", "21??3? was refused"),
            (Refusal::of_text("u:secret@b", NoHost::Grammar.into()), "403 ", "Midturn: b was refused"),
            (Refusal::of_request(Why::Request("x")), "400 ", "a request to the proxy was refused"),
            (Refusal::of(&site, Why::Unreachable("refused".to_owned())), "502 ", "was not reached"),
            (Refusal::of(&site, Why::Late(late)), "504 ", "within 10 s"),
            (Refusal::of_request(Why::Full), "503 ", "a request to the proxy failed"),
        ] {
            let answer = refusal.answer();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
            assert!(body.contains(words), "{answer}");
        }
        assert_eq!(inert(&"x".repeat(1_000)).len(), SAID_MAX);
    }
}
