//! Which addresses are closed whatever name leads to them: those of this machine, of networks that are
//! nobody's but the person's, and of services that give out keys. Pure. What is not known to be open is
//! closed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Closed networks of IPv4, and what they are for.
const CLOSED_V4: [(Ipv4Addr, u32, &str); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "one of this machine"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private one"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "one within a provider's network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback one"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "one that gives out a cloud's keys"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, "one that gives out a cloud's keys"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local one"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private one"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a special one"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "one for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a special one"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private one"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "one for measurements"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "one for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "one for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 3, "no one machine's"),
];

/// Closed networks of IPv6. Open is 2000::/3 but for what stands here.
const CLOSED_V6: [(Ipv6Addr, u32, &str); 13] = [
    (Ipv6Addr::LOCALHOST, 128, "a loopback one"),
    (Ipv6Addr::UNSPECIFIED, 128, "one of this machine"),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, "one that gives out a cloud's keys"),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, "one that gives out a cloud's keys"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a private one"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local one"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a private one"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "no one machine's"),
    // Special ones, Teredo's among them: a tunnel to an address that nobody has looked at.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a special one"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "one for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "one that leads to another"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "one for documentation"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "a private one"),
];

/// The prefix behind which a network of IPv6 alone has the addresses of IPv4.
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// Why an address is closed, as in "it is …". `None`: it is open.
pub(crate) fn closed(address: IpAddr) -> Option<&'static str> {
    match plain(address) {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let row = CLOSED_V4.iter().find(|(network, length, _)| {
                let shift = 32 - length;
                bits >> shift == network.to_bits() >> shift
            });
            row.map(|(_, _, what)| *what)
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let row = CLOSED_V6.iter().find(|(network, length, _)| {
                let shift = 128 - length;
                bits >> shift == network.to_bits() >> shift
            });
            let is_global = bits >> 125 == 1;
            row.map(|(_, _, what)| *what).or_else(|| (!is_global).then_some("no public one"))
        }
    }
}

/// The address that is meant: one of IPv4 in the clothes of IPv6 without them.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let bits = six.to_bits();
    let within = || IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits & 0xffff_ffff).unwrap_or_default()));
    match (bits >> 32, six.to_ipv4_mapped()) {
        (_, Some(four)) => four.into(),
        // `::a.b.c.d`, as it was once written; `::` and `::1` are what they are.
        (0, None) if bits > 1 => within(),
        (prefix, None) if prefix == NAT64.to_bits() >> 32 => within(),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_and_networks_of_ones_own_are_closed() {
        for (address, what) in [
            ("0.0.0.0", "this machine"),
            ("0.1.2.3", "this machine"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "provider"),
            ("100.127.255.255", "provider"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "keys"),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "keys"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.170", "special"),
            ("192.0.2.1", "documentation"),
            ("192.168.1.1", "private"),
            ("198.19.255.255", "measurements"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("224.0.0.1", "no one machine's"),
            ("240.0.0.1", "no one machine's"),
            ("255.255.255.255", "no one machine's"),
            ("::", "this machine"),
            ("::1", "loopback"),
            ("::2", "this machine"),
            ("::127.0.0.1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:a9fe:a9fe", "keys"),
            ("::ffff:0:7f00:1", "no public"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::a9fe:a9fe", "keys"),
            ("64:ff9b:1::1", "private"),
            ("100::1", "no public"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "keys"),
            ("fdff::1", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "no one machine's"),
            ("2001::1", "special"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "leads to another"),
            ("3fff::1", "documentation"),
            ("4000::1", "no public"),
            ("5f00::1", "no public"),
        ] {
            let closed = closed(address.parse().unwrap()).unwrap_or("open");
            assert!(closed.contains(what), "{address}: {closed}");
        }
    }

    #[test]
    fn public_addresses_are_open() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert_eq!(closed(address.parse().unwrap()), None, "{address}");
        }
    }
}
