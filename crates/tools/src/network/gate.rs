//! One agent's way out: what it may reach, and what it was refused, to be told in its command's result.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;

use super::addresses::plain;
use super::hosts::{self, BadEntry, Hosts};
use super::outside::Outside;
use super::refusal::{Refusal, Why};
use super::site::{Host, Site};

/// How many hosts can be allowed for a session besides those of the list.
const ALLOWED_MAX: usize = 1_000;

/// How many refusals are told in one result.
const TOLD_MAX: usize = 20;

/// What the agents of one session may reach: the list, and what a person has allowed since.
#[derive(Debug)]
pub(crate) struct Reachable {
    hosts: Arc<Hosts>,
    allowed: Mutex<BTreeSet<Site>>,
}

impl Reachable {
    /// What is on the list.
    pub(crate) fn new(hosts: Arc<Hosts>) -> Self {
        Self { hosts, allowed: Mutex::default() }
    }

    /// A person allows it while the session lives. `false`: so many are allowed that nobody knows them any more.
    fn allow(&self, site: Site) -> bool {
        let mut allowed = self.allowed.lock();
        let has_room = allowed.len() < ALLOWED_MAX || allowed.contains(&site);
        if has_room {
            allowed.insert(site);
        }
        has_room
    }

    fn has(&self, site: &Site) -> bool {
        self.hosts.has(site) || self.allowed.lock().contains(site)
    }

    /// Whether the site may be reached at all.
    pub(super) fn admits(&self, site: &Site) -> Result<(), Why> {
        if self.has(site) { Ok(()) } else { Err(Why::NotListed) }
    }

    /// Where to connect to: the addresses of a site that may be reached, none of which may be closed.
    pub(super) fn checked(
        &self,
        site: &Site,
        addresses: &[IpAddr],
        closed: impl Fn(IpAddr) -> Option<&'static str>,
    ) -> Result<Vec<SocketAddr>, Why> {
        let mut checked = Vec::new();
        for address in addresses.iter().map(|address| plain(*address)) {
            let is_named = || self.has(&Site { host: Host::Address(address), port: site.port });
            match closed(address) {
                Some(what) if !is_named() => return Err(Why::Closed { address, what }),
                Some(_) | None => checked.push(SocketAddr::new(address, site.port)),
            }
        }
        if checked.is_empty() { Err(Why::Unknown("it has no address".to_owned())) } else { Ok(checked) }
    }
}

/// One agent's way out.
#[derive(Debug)]
pub struct Gate {
    pub(super) reachable: Arc<Reachable>,
    pub(super) outside: Arc<dyn Outside>,
    asks: bool,
    refusals: Mutex<Refusals>,
}

#[derive(Debug, Default)]
struct Refusals {
    told: Vec<Refusal>,
    more: u64,
}

impl Gate {
    /// The way of one agent; `asks`: it can ask a person for more.
    pub(crate) fn new(reachable: Arc<Reachable>, outside: Arc<dyn Outside>, asks: bool) -> Self {
        Self { reachable, outside, asks, refusals: Mutex::default() }
    }

    /// Whether its agent can ask a person for more.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// What a person would allow with such a host, as `HOST:PORT`. `None`: it can be reached already.
    ///
    /// # Errors
    /// It is no host.
    pub(crate) fn would_allow(&self, host: &str) -> Result<Option<String>, BadEntry> {
        let site = hosts::one(host)?;
        Ok((!self.reachable.has(&site)).then(|| site.to_string()))
    }

    /// A person allows it while the session lives. `false`: it is no host, or so many are allowed that nobody knows
    /// them any more.
    pub(crate) fn allow(&self, host: &str) -> bool {
        hosts::one(host).is_ok_and(|site| self.reachable.allow(site))
    }

    /// Keeps what was refused, each once.
    pub(super) fn refused(&self, refusal: &Refusal) {
        let mut refusals = self.refusals.lock();
        if refusals.told.contains(refusal) {
            return;
        }
        if refusals.told.len() < TOLD_MAX {
            refusals.told.push(refusal.clone());
        } else {
            refusals.more = refusals.more.saturating_add(1);
        }
    }

    /// What was refused since the last time this was asked, a sentence each.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let Refusals { told, more } = std::mem::take(&mut *self.refusals.lock());
        let more = (more > 0).then(|| format!("{more} more requests were refused"));
        let can_ask = self.asks && told.iter().any(|refusal| refusal.why == Why::NotListed);
        let ask = can_ask.then(|| "to ask a person for such a host, call the tool `network`".to_owned());
        let notes = told.iter().map(Refusal::sentence).chain(more).chain(ask);
        notes.map(|note| format!("Network: {note}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::addresses::closed;
    use super::super::outside::System;
    use super::*;

    fn reachable(entries: &[&str]) -> Reachable {
        Reachable::new(Arc::new(Hosts::parse(entries.iter().copied()).unwrap()))
    }

    fn site(text: &str) -> Site {
        Site::parse(text).unwrap()
    }

    #[test]
    fn what_is_listed_or_allowed_since_is_admitted() {
        let reachable = reachable(&["a.example"]);
        assert_eq!(reachable.admits(&site("a.example:443")), Ok(()));
        assert_eq!(reachable.admits(&site("b.example:443")), Err(Why::NotListed));
        assert!(reachable.allow(site("b.example:443")));
        assert_eq!(reachable.admits(&site("b.example:443")), Ok(()));
        assert_eq!(reachable.admits(&site("b.example:80")), Err(Why::NotListed));
        for n in 1..ALLOWED_MAX {
            assert!(reachable.allow(site(&format!("h{n}.example:443"))));
        }
        assert!(!reachable.allow(site("one.too.many.example:443")));
        assert!(reachable.allow(site("b.example:443")));
    }

    #[test]
    fn a_host_that_a_person_allows_is_one_host_in_one_spelling() {
        let gate = Gate::new(Arc::new(reachable(&["a.example"])), Arc::new(System), true);
        for (host, expected) in [
            ("a.example", Ok(None)),
            ("a.example:443", Ok(None)),
            ("A.example.:22", Ok(Some("a.example:22"))),
            ("b.example", Ok(Some("b.example:443"))),
            ("10.0.0.1:5432", Ok(Some("10.0.0.1:5432"))),
            ("registries", Err("one host")),
            ("*.example", Err("name each")),
            ("https://b.example/", Err("it is a URL")),
            ("localhost:80", Err("a loopback of their own")),
            ("0x7f.1:443", Err("in disguise")),
            ("", Err("no name")),
        ] {
            match (gate.would_allow(host), expected) {
                (Ok(got), Ok(expected)) => assert_eq!(got.as_deref(), expected, "{host}"),
                (Err(got), Err(expected)) => assert!(got.to_string().contains(expected), "{host}: {got}"),
                (got, _) => panic!("{host}: {got:?}"),
            }
        }
        assert!(gate.allow("B.example") && !gate.allow("registries"));
        assert_eq!(gate.would_allow("b.example"), Ok(None));
    }

    #[test]
    fn every_address_is_checked_and_one_that_is_closed_closes_the_name() {
        let reachable = reachable(&["a.example", "c.example:5432", "10.0.0.2:5432"]);
        let addresses =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        for (name, found, expected) in [
            ("a.example:443", &["1.1.1.1", "2606::1"][..], Ok(&["1.1.1.1:443", "[2606::1]:443"][..])),
            ("a.example:443", &["::ffff:1.1.1.1"], Ok(&["1.1.1.1:443"])),
            ("a.example:443", &["1.1.1.1", "127.0.0.1"], Err("127.0.0.1")),
            ("a.example:443", &["::ffff:169.254.169.254"], Err("169.254.169.254")),
            ("a.example:443", &["64:ff9b::7f00:1"], Err("127.0.0.1")),
            ("a.example:443", &["10.0.0.2"], Err("10.0.0.2")),
            ("c.example:5432", &["10.0.0.2"], Ok(&["10.0.0.2:5432"])),
            ("c.example:5432", &["10.0.0.3"], Err("10.0.0.3")),
            ("10.0.0.2:5432", &["10.0.0.2"], Ok(&["10.0.0.2:5432"])),
            ("a.example:443", &[], Err("it has no address")),
        ] {
            match (reachable.checked(&site(name), &addresses(found), closed), expected) {
                (Ok(got), Ok(expected)) => {
                    assert_eq!(got.iter().map(SocketAddr::to_string).collect::<Vec<_>>(), expected);
                }
                (Err(why), Err(expected)) => assert!(why.to_string().contains(expected), "{name}: {why}"),
                (got, _) => panic!("{name} {found:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn each_refusal_is_told_once_and_many_are_counted() {
        let gate = Gate::new(Arc::new(reachable(&[])), Arc::new(System), false);
        for _ in 0..3 {
            gate.refused(&Refusal::of(&site("a.example:443"), Why::NotListed));
        }
        let notes = gate.take_notes();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("Network: a.example:443 was refused: it is not in sandbox.network"));
        assert!(gate.take_notes().is_empty());
        for n in 0..TOLD_MAX + 5 {
            gate.refused(&Refusal::of(&site(&format!("h{n}.example:443")), Why::NotListed));
        }
        let notes = gate.take_notes();
        assert_eq!((notes.len(), &*notes[TOLD_MAX]), (TOLD_MAX + 1, "Network: 5 more requests were refused"));
        let gate = Gate::new(Arc::new(reachable(&[])), Arc::new(System), true);
        gate.refused(&Refusal::of(&site("a.example:443"), Why::NotTls));
        assert_eq!(gate.take_notes().len(), 1, "nobody can allow that");
        gate.refused(&Refusal::of(&site("a.example:443"), Why::NotListed));
        assert!(gate.take_notes()[1].contains("call the tool `network`"));
    }
}
