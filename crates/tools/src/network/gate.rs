//! One agent's way out: what it may reach, and what it was refused, to be told in its command's result.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;

use super::addresses::plain;
use super::hosts::Hosts;
use super::outside::Outside;
use super::refusal::{Refusal, Why};
use super::site::{Host, NoHost, Site};

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

    /// A person allows `HOST:PORT` while the session lives. `false`: so many are allowed that nobody knows them
    /// any more.
    ///
    /// # Errors
    /// It is no host.
    #[cfg_attr(not(test), expect(dead_code, reason = "no request for a person's word leads here yet"))]
    pub(crate) fn allow(&self, site: &str) -> Result<bool, NoHost> {
        let site = Site::parse(site)?;
        let mut allowed = self.allowed.lock();
        let has_room = allowed.len() < ALLOWED_MAX || allowed.contains(&site);
        if has_room {
            allowed.insert(site);
        }
        Ok(has_room)
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
pub(crate) struct Gate {
    pub(super) reachable: Arc<Reachable>,
    pub(super) outside: Arc<dyn Outside>,
    refusals: Mutex<Refusals>,
}

#[derive(Debug, Default)]
struct Refusals {
    told: Vec<Refusal>,
    more: u64,
}

impl Gate {
    /// The way of one agent.
    pub(crate) fn new(reachable: Arc<Reachable>, outside: Arc<dyn Outside>) -> Self {
        Self { reachable, outside, refusals: Mutex::default() }
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
        let notes = told.iter().map(Refusal::sentence).chain(more);
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
        assert_eq!(reachable.allow("b.example:443"), Ok(true));
        assert_eq!(reachable.admits(&site("b.example:443")), Ok(()));
        assert_eq!(reachable.admits(&site("b.example:80")), Err(Why::NotListed));
        assert_eq!(reachable.allow("b.example"), Err(NoHost::Port));
        for n in 1..ALLOWED_MAX {
            assert_eq!(reachable.allow(&format!("h{n}.example:443")), Ok(true));
        }
        assert_eq!(reachable.allow("one.too.many.example:443"), Ok(false));
        assert_eq!(reachable.allow("b.example:443"), Ok(true));
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
        let gate = Gate::new(Arc::new(reachable(&[])), Arc::new(System));
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
    }
}
