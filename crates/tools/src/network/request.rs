//! What is asked of the proxy: the head of one request, read by an exact grammar. Pure. What could be
//! read in two ways is refused, since the server behind may read it in the other one.

use std::str::from_utf8;

use super::refusal::{Refusal, Why, inert};
use super::site::{Site, split};

/// The longest head.
pub(crate) const HEAD_MAX: usize = 16 << 10;

/// The port of a URL that names none.
const HTTP: u16 = 80;

/// What concerns this connection alone, and what is between a client and its proxy.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
];

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A connection through which anything goes.
    Tunnel(Site),
    /// One request without TLS, to be passed on.
    Plain(Plain),
}

/// A request to be passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) site: Site,
    /// The head as the server is to read it.
    pub(crate) head: Vec<u8>,
    /// How long its body is.
    pub(crate) body: u64,
}

/// Where a head ends that is whole; what follows is no part of it. In the first `seen` bytes there is no end.
pub(crate) fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(3).min(bytes.len());
    bytes[from..].windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4)
}

/// Reads a head: of a tunnel, or of a request with a whole URL.
///
/// # Errors
/// It is none, it can be read in two ways, or what it asks for is no host.
pub(crate) fn read(head: &[u8]) -> Result<Request, Refusal> {
    let head = Head::parse(head).map_err(|why| Refusal::of_request(Why::Request(why)))?;
    if head.method == "CONNECT" {
        return head.tunnel().map(Request::Tunnel);
    }
    let (authority, path) = head.url()?;
    let site = site_of(authority)?;
    head.plain(site, path).map(Request::Plain)
}

/// Reads the head of a request within a tunnel to this site.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_within(site: &Site, head: &[u8]) -> Result<Plain, Refusal> {
    let fails = |why| Refusal::of(site, Why::Request(why));
    let head = Head::parse(head).map_err(fails)?;
    if !head.target.starts_with('/') {
        return Err(fails("it is not for a path"));
    }
    let target = head.target;
    head.plain(site.clone(), target)
}

struct Head<'a> {
    method: &'a str,
    target: &'a str,
    version: &'a str,
    fields: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let bytes = bytes.strip_suffix(b"\r\n\r\n").ok_or("its head doesn't end")?;
        let mut lines = lines(bytes)?.into_iter();
        let first = lines.next().and_then(|line| from_utf8(line).ok()).ok_or("its first line is no text")?;
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, version] = words[..] else { return Err("its first line has not three words") };
        if !is_token(method) || !target.bytes().all(|byte| byte.is_ascii_graphic()) || target.is_empty() {
            return Err("its first line has letters that don't belong there");
        }
        if !["HTTP/1.1", "HTTP/1.0"].contains(&version) {
            return Err("it is not HTTP/1.1");
        }
        let fields = lines.map(field).collect::<Result<_, _>>()?;
        Ok(Self { method, target, version, fields })
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    fn tunnel(&self) -> Result<Site, Refusal> {
        let site = Site::parse(self.target).map_err(|why| Refusal::of_text(self.target, why.into()))?;
        self.agrees(&site, site.port, false)?;
        let has_body = self.all("transfer-encoding").next().is_some()
            || self.all("content-length").any(|length| length != b"0");
        if has_body {
            return Err(Refusal::of(&site, Why::Request("a tunnel has no body")));
        }
        Ok(site)
    }

    /// The authority and the path of a whole URL.
    fn url(&self) -> Result<(&'a str, &'a str), Refusal> {
        let fails = |why| Refusal::of_request(Why::Request(why));
        let (scheme, rest) = self.target.split_once("://").ok_or_else(|| fails("it has no whole URL"))?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(fails("only http:// is asked without a tunnel"));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        Ok(rest.split_at(end))
    }

    fn plain(&self, site: Site, path: &str) -> Result<Plain, Refusal> {
        let fails = |why| Refusal::of(&site, why);
        if path.contains('#') {
            return Err(fails(Why::Request("its URL has a fragment")));
        }
        self.agrees(&site, HTTP, true)?;
        if self.all("transfer-encoding").next().is_some() {
            return Err(fails(Why::NoLength));
        }
        let lengths: Vec<&[u8]> = self.all("content-length").collect();
        let body = match lengths[..] {
            [] => 0,
            [one] => length(one).ok_or_else(|| fails(Why::Request("its length is no number")))?,
            _ => return Err(fails(Why::Request("it has several lengths"))),
        };
        let head = self.passed_on(&site, path);
        Ok(Plain { site, head, body })
    }

    /// There is one host in it, if any, and it is the one that is asked for.
    fn agrees(&self, site: &Site, default_port: u16, is_needed: bool) -> Result<(), Refusal> {
        let hosts: Vec<&[u8]> = self.all("host").collect();
        let host = match hosts[..] {
            [] if is_needed && self.version == "HTTP/1.1" => {
                return Err(Refusal::of(site, Why::Request("it has no Host")));
            }
            [] => return Ok(()),
            [one] => from_utf8(one).unwrap_or("?"),
            _ => return Err(Refusal::of(site, Why::Request("it has several Hosts"))),
        };
        let other = || Refusal::of(site, Why::OtherHost(inert(host)));
        let (named, port) = split(host).map_err(|_| other())?;
        let is_same = named == site.host && port.unwrap_or(default_port) == site.port;
        if is_same { Ok(()) } else { Err(other()) }
    }

    /// The head for the server: without what is between a client and its proxy, for one request alone.
    fn passed_on(&self, site: &Site, path: &str) -> Vec<u8> {
        let named: Vec<String> = self.all("connection").flat_map(options).collect();
        let is_ours = |name: &str| {
            let name = name.to_ascii_lowercase();
            let is_kept = name == "content-length";
            name == "host" || HOP_BY_HOP.contains(&&*name) || named.contains(&name) && !is_kept
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let host = if site.port == HTTP { site.host.to_string() } else { site.to_string() };
        let (method, version) = (self.method, self.version);
        let mut head = format!("{method} {slash}{path} {version}\r\nHost: {host}\r\n").into_bytes();
        for (name, value) in self.fields.iter().filter(|(name, _)| !is_ours(name)) {
            head.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

/// The lines between `\r\n`; half of one is no end of a line, and nothing else either.
fn lines(bytes: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let all: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    let (last, before) = all.split_last().ok_or("it is empty")?;
    let whole = before.iter().map(|line| line.strip_suffix(b"\r"));
    let lines: Option<Vec<&[u8]>> = whole.chain([Some(*last)]).collect();
    lines.filter(|lines| !lines.concat().contains(&b'\r')).ok_or("its lines don't end as they have to")
}

fn field(line: &[u8]) -> Result<(&str, &[u8]), &'static str> {
    let at = line.iter().position(|&byte| byte == b':').ok_or("a line of its head is no header")?;
    let name = from_utf8(&line[..at]).ok().filter(|name| is_token(name));
    let value = line[at + 1..].trim_ascii();
    let is_text = value.iter().all(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f);
    match name {
        Some(name) if is_text => Ok((name, value)),
        Some(_) | None => Err("a header has letters that don't belong there"),
    }
}

fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_letter)
}

fn options(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    text.split(',').map(|option| option.trim().to_owned()).collect()
}

fn length(value: &[u8]) -> Option<u64> {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    from_utf8(value).ok().filter(|_| is_plain)?.parse().ok()
}

fn site_of(authority: &str) -> Result<Site, Refusal> {
    let (host, port) = split(authority).map_err(|why| Refusal::of_text(authority, why.into()))?;
    Ok(Site { host, port: port.unwrap_or(HTTP) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(head: &str) -> String {
        match read(head.as_bytes()) {
            Ok(Request::Tunnel(site)) => format!("tunnel {site}"),
            Ok(Request::Plain(Plain { site, body, .. })) => format!("plain {site} {body}"),
            Err(refusal) => refusal.sentence(),
        }
    }

    #[test]
    fn a_tunnel_is_to_a_host_and_a_port_and_its_host_agrees() {
        for (head, expected) in [
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "tunnel a.example:443"),
            ("CONNECT A.example.:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "tunnel a.example:443"),
            ("CONNECT a.example:443 HTTP/1.0\r\n\r\n", "tunnel a.example:443"),
            ("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "tunnel a.example:443"),
            ("CONNECT [2606::1]:443 HTTP/1.1\r\n\r\n", "tunnel [2606::1]:443"),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", "another host, b.example:443"),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "another host, a.example:80"),
            ("CONNECT a.example HTTP/1.1\r\n\r\n", "its port is no number"),
            ("CONNECT http://a.example:443 HTTP/1.1\r\n\r\n", "was refused: it is no name"),
            ("CONNECT u@a.example:443 HTTP/1.1\r\n\r\n", "was refused: it is no name"),
            (
                "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
                "2130706433:443 was refused: it is an address in disguise",
            ),
            ("CONNECT 0x7f.0.0.1:443 HTTP/1.1\r\n\r\n", "in disguise"),
            ("CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n", "in disguise"),
            ("CONNECT [::ffff:7f00:1]:443 HTTP/1.1\r\n\r\n", "in disguise"),
            ("CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "a tunnel has no body"),
            ("CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "a tunnel has no body"),
        ] {
            let got = words(head);
            assert!(got.contains(expected), "{head}: {got}");
        }
    }

    #[test]
    fn a_request_without_tls_is_for_one_host_and_says_how_long_it_is() {
        let plain = |first: &str, rest: &str| format!("{first} HTTP/1.1\r\n{rest}\r\n");
        let host = "Host: a.example\r\n";
        for (first, rest, expected) in [
            ("GET http://a.example/x", host, "plain a.example:80 0"),
            ("GET HTTP://A.example", host, "plain a.example:80 0"),
            ("GET http://a.example:8080/x", "Host: a.example:8080\r\n", "plain a.example:8080 0"),
            ("PUT http://a.example/x", &format!("{host}Content-Length: 12\r\n"), "plain a.example:80 12"),
            ("GET http://a.example/x", "", "it has no Host"),
            ("GET http://a.example/x", "Host: b.example\r\n", "another host, b.example"),
            ("GET http://a.example/x", "Host: a.example:81\r\n", "another host, a.example:81"),
            ("GET http://a.example/x", "Host: a.example\r\nhOST: b.example\r\n", "several Hosts"),
            ("GET http://a.example/x", "Host: a.example, b.example\r\n", "another host"),
            ("GET http://u:p@a.example/x", host, "a.example was refused: its port is no number"),
            ("GET http://a.example\\@b.example/x", host, "it is no name"),
            ("GET http://127.1/x", "Host: 127.1\r\n", "in disguise"),
            ("GET http://a.example/x#y", host, "a fragment"),
            ("GET https://a.example/x", host, "only http://"),
            ("GET /x", host, "no whole URL"),
            ("GET a.example:80", host, "no whole URL"),
            ("PUT http://a.example/", &format!("{host}Transfer-Encoding: chunked\r\n"), "Content-Length"),
            (
                "PUT http://a.example/",
                &format!("{host}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
                "Content-Length",
            ),
            (
                "PUT http://a.example/",
                &format!("{host}Content-Length: 3\r\nContent-Length: 3\r\n"),
                "several lengths",
            ),
            ("PUT http://a.example/", &format!("{host}Content-Length: 3, 3\r\n"), "no number"),
            ("PUT http://a.example/", &format!("{host}Content-Length: +3\r\n"), "no number"),
            (
                "PUT http://a.example/",
                &format!("{host}Content-Length: 99999999999999999999\r\n"),
                "no number",
            ),
        ] {
            let got = words(&plain(first, rest));
            assert!(got.contains(expected), "{first} {rest}: {got}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for head in [
            "GET http://a.example/ HTTP/1.1\nHost: a.example\n\n\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\nX: y\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\rX: y\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n X: folded\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost : a.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nno header\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: \0\r\n\r\n",
            "GET  http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http://a.example/ x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET\thttp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1 \r\nHost: a.example\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "SSH-2.0-OpenSSH_9.6\r\n\r\n",
            "\x05\x01\x00\r\n\r\n",
            "\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n",
        ] {
            let got = words(head);
            assert!(got.contains("can't be read"), "{head:?}: {got}");
        }
    }

    #[test]
    fn a_server_reads_what_is_for_it_and_that_nothing_more_comes() {
        let head = "POST http://a.example:8080?q HTTP/1.1\r\nHost: a.example:8080\r\nProxy-Authorization: Basic x\r\n\
                    Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop, content-length\r\nx-hop: 1\r\nUpgrade: \
                    websocket\r\nTE: trailers\r\nContent-Length: 2\r\nAccept: */*\r\n\r\n";
        let Ok(Request::Plain(plain)) = read(head.as_bytes()) else { panic!("{head}") };
        assert_eq!(
            String::from_utf8(plain.head).unwrap(),
            "POST /?q HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 2\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_request_within_a_tunnel_is_for_the_host_of_the_tunnel() {
        let site = Site::parse("a.example:80").unwrap();
        for (head, expected) in [
            (
                "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Ok("GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"),
            ),
            ("GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n", Err("another host")),
            ("GET http://b.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", Err("not for a path")),
            ("SSH-2.0-x\r\n\r\n", Err("can't be read")),
        ] {
            match (read_within(&site, head.as_bytes()), expected) {
                (Ok(plain), Ok(expected)) => assert_eq!(plain.head, expected.as_bytes()),
                (Err(refusal), Err(expected)) => assert!(refusal.sentence().contains(expected), "{head}"),
                (got, _) => panic!("{head}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_head_ends_at_its_first_empty_line() {
        assert_eq!(end_of_head(b"a\r\n\r\nb\r\n\r\n", 0), Some(5));
        assert_eq!(end_of_head(b"a\r\n\r", 0), None);
        for seen in 0..5 {
            assert_eq!(end_of_head(b"a\r\n\r\n", seen), Some(5), "{seen}");
        }
    }
}
