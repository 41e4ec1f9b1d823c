//! The hosts that commands may reach: the list of a person's configuration, read and checked. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::site::{Host, NoHost, Site, split};

/// The word for the registries that common toolchains take packages from.
pub(crate) const REGISTRIES: &str = "registries";

/// What it stands for, on port 443. Hosts to which packages are uploaded are not among them where a registry has
/// others for that.
const OF_REGISTRIES: [&str; 14] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "repo.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "api.nuget.org",
];

/// The ports of a host that is named without one.
const PORTS: [u16; 2] = [443, 80];

/// How many entries a list may have.
const ENTRIES_MAX: usize = 1_000;

/// Words that people write for a switch; as names of hosts they would be taken by mistake.
const SWITCHES: [&str; 8] = ["true", "false", "on", "off", "yes", "no", "all", "none"];

/// A list of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    written: Vec<String>,
    sites: BTreeSet<Site>,
}

/// An entry that is no host, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` can't be reached: {why}; expected HOST (ports 443 and 80), HOST:PORT or \"{REGISTRIES}\"")]
pub struct BadEntry {
    entry: String,
    why: String,
}

impl Hosts {
    /// Reads a list.
    ///
    /// # Errors
    /// The first entry that is no host.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, BadEntry> {
        let mut hosts = Self::default();
        for entry in entries.into_iter().map(str::trim) {
            if hosts.written.len() == ENTRIES_MAX {
                return Err(bad(entry, &format!("more than {ENTRIES_MAX} are too many")));
            }
            hosts.sites.extend(sites(entry)?);
            hosts.written.push(entry.to_owned());
        }
        Ok(hosts)
    }

    /// As it is written.
    pub fn written(&self) -> &[String] {
        &self.written
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// How many different hosts there are, whatever their ports.
    pub fn count(&self) -> usize {
        self.sites.iter().map(|site| &site.host).collect::<BTreeSet<_>>().len()
    }

    /// Whether it may be reached.
    pub(crate) fn has(&self, site: &Site) -> bool {
        self.sites.contains(site)
    }

    /// The loopback addresses that are named.
    pub(crate) fn loopbacks(&self) -> BTreeSet<IpAddr> {
        let addresses = self.sites.iter().filter_map(|site| match site.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        });
        addresses.filter(IpAddr::is_loopback).collect()
    }

    /// What is in both, in the words of `other`: of an entry of which only a part is here, that part.
    #[must_use]
    pub fn in_both(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for entry in &other.written {
            let wanted = sites(entry).unwrap_or_default();
            let had: Vec<Site> = wanted.iter().filter(|site| self.has(site)).cloned().collect();
            if had.len() == wanted.len() {
                both.written.push(entry.clone());
            } else {
                both.written.extend(had.iter().map(Site::to_string));
            }
            both.sites.extend(had);
        }
        both
    }
}

/// One host, on port 443 unless it says another.
///
/// # Errors
/// It is none, or more than one.
pub(super) fn one(text: &str) -> Result<Site, BadEntry> {
    match &sites(text.trim())?[..] {
        [site] => Ok(site.clone()),
        // A host without a port has several sites, too.
        [site, ..] if text.trim() != REGISTRIES => Ok(site.clone()),
        _ => Err(bad(text, "a person allows one host at a time")),
    }
}

fn sites(entry: &str) -> Result<Vec<Site>, BadEntry> {
    let fails = |why: NoHost| bad(entry, &why.to_string());
    if entry == REGISTRIES {
        let of = |name: &&str| Site::parse(&format!("{name}:443")).map_err(fails);
        return OF_REGISTRIES.iter().map(of).collect();
    }
    if entry.contains("://") || entry.contains('/') {
        return Err(bad(entry, "it is a URL, and a host is only the name in it"));
    }
    if entry.contains('*') {
        return Err(bad(entry, "a pattern would let in hosts that nobody has seen: name each"));
    }
    if SWITCHES.contains(&entry.to_ascii_lowercase().as_str()) {
        return Err(bad(entry, "it is no name of a host; for all or nothing write true or false"));
    }
    let (host, port) = split(entry).map_err(fails)?;
    if is_localhost(&host) {
        return Err(bad(
            entry,
            "commands have a loopback of their own; for this machine's write 127.0.0.1:PORT",
        ));
    }
    let ports = port.map_or(PORTS.to_vec(), |port| vec![port]);
    Ok(ports.into_iter().map(|port| Site { host: host.clone(), port }).collect())
}

fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name(name) if **name == *"localhost" || name.ends_with(".localhost"))
}

fn bad(entry: &str, why: &str) -> BadEntry {
    BadEntry { entry: entry.chars().take(100).collect(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Hosts {
        Hosts::parse(entries.iter().copied()).unwrap()
    }

    #[test]
    fn a_host_has_two_ports_unless_one_is_named() {
        let hosts = list(&["Example.org.", "git.example:22", "10.0.0.1:5432", "::1"]);
        for (site, has) in [
            ("example.org:443", true),
            ("example.org:80", true),
            ("example.org:22", false),
            ("www.example.org:443", false),
            ("git.example:22", true),
            ("git.example:443", false),
            ("10.0.0.1:5432", true),
            ("10.0.0.1:443", false),
            ("[::1]:443", true),
        ] {
            assert_eq!(hosts.has(&Site::parse(site).unwrap()), has, "{site}");
        }
        assert_eq!(hosts.count(), 4);
        assert_eq!(hosts.loopbacks(), ["::1".parse().unwrap()].into());
    }

    #[test]
    fn registries_stand_for_hosts_on_port_443() {
        let hosts = list(&["registries"]);
        assert_eq!(hosts.count(), OF_REGISTRIES.len());
        for site in ["registry.npmjs.org:443", "files.pythonhosted.org:443", "static.crates.io:443"] {
            assert!(hosts.has(&Site::parse(site).unwrap()), "{site}");
        }
        for site in ["registry.npmjs.org:80", "upload.pypi.org:443", "crates.io:443"] {
            assert!(!hosts.has(&Site::parse(site).unwrap()), "{site}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_is_expected() {
        for (entry, why) in [
            ("https://example.org/", "it is a URL"),
            ("example.org/path", "it is a URL"),
            ("*.example.org", "name each"),
            ("off", "write true or false"),
            ("localhost:3000", "127.0.0.1:PORT"),
            ("a.localhost", "127.0.0.1:PORT"),
            ("2130706433", "in disguise"),
            ("0x7f.1:443", "in disguise"),
            ("bücher.example", "xn--"),
            ("example.org:0", "its port"),
            ("example.org:https", "its port"),
            ("", "it is no name"),
            ("a b", "it is no name"),
        ] {
            let said = Hosts::parse([entry]).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("expected HOST"), "{entry}: {said}");
        }
        let many: Vec<String> = (0..=ENTRIES_MAX).map(|n| format!("h{n}.example")).collect();
        assert!(Hosts::parse(many.iter().map(String::as_str)).is_err());
    }

    #[test]
    fn of_two_lists_what_is_in_both_holds_in_the_words_of_the_other() {
        for (one, other, both) in [
            (&["a.example", "b.example"][..], &["b.example", "c.example"][..], &["b.example"][..]),
            (&["a.example"], &["a.example:443"], &["a.example:443"]),
            (&["a.example:443"], &["a.example"], &["a.example:443"]),
            (&["registries"], &["pypi.org:443", "evil.example"], &["pypi.org:443"]),
            (&["pypi.org"], &["registries"], &["pypi.org:443"]),
            (&["registries", "a.example"], &["registries"], &["registries"]),
            (&["a.example"], &["b.example"], &[]),
            (&["a.example"], &[], &[]),
        ] {
            let held = list(one).in_both(&list(other));
            assert_eq!(held.written(), both);
            assert_eq!(held, list(both));
        }
    }
}
