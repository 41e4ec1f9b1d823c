//! The first words of a tunnel to port 443: TLS's, and for the host that was asked for. They are read on a copy and
//! passed on as they came, so that TLS stays between the command and its server. Pure.

use std::io::Read as _;

use rustls::server::Acceptor;

use super::refusal::{Why, inert};
use super::site::Host;

/// The longest first message.
pub(crate) const HELLO_MAX: usize = 16 << 10;

/// Reads the first message as it comes.
#[derive(Default)]
pub(crate) struct Hello {
    acceptor: Acceptor,
    read: usize,
}

impl Hello {
    /// Takes what came. Says whether the message is whole, and for `host`.
    ///
    /// # Errors
    /// It is none, or for another host.
    pub(crate) fn hear(&mut self, mut bytes: &[u8], host: &Host) -> Result<bool, Why> {
        self.read += bytes.len();
        while !bytes.is_empty() {
            // A slice can always be read.
            let taken = self.acceptor.read_tls(&mut bytes.by_ref()).map_err(|_| Why::NotTls)?;
            match self.acceptor.accept() {
                Ok(Some(accepted)) => return is_for(host, accepted.client_hello().server_name()),
                Ok(None) if taken > 0 => {}
                Ok(None) | Err(_) => return Err(Why::NotTls),
            }
        }
        if self.read < HELLO_MAX { Ok(false) } else { Err(Why::NotTls) }
    }
}

/// TLS has no names that are addresses.
fn is_for(host: &Host, said: Option<&str>) -> Result<bool, Why> {
    match (host, said) {
        (Host::Name(name), Some(said)) if said.eq_ignore_ascii_case(name) => Ok(true),
        (Host::Address(_), None) => Ok(true),
        (_, Some(said)) => Err(Why::OtherName(inert(said))),
        (Host::Name(_), None) => Err(Why::Nameless),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// What a client says first to a server that it knows by this name; an address is not said.
    pub(crate) fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut said = Vec::new();
        client.write_tls(&mut said).unwrap();
        said
    }

    fn heard(bytes: &[u8], host: &str) -> Result<bool, Why> {
        Hello::default().hear(bytes, &Host::parse(host).unwrap())
    }

    #[test]
    fn tls_for_the_host_that_was_asked_for_goes_on() {
        assert_eq!(heard(&hello("a.example"), "A.example"), Ok(true));
        assert_eq!(heard(&hello("192.0.2.1"), "192.0.2.1"), Ok(true));
        // In any pieces, and with more behind it.
        let (mut reader, host) = (Hello::default(), Host::parse("a.example").unwrap());
        let bytes = hello("a.example");
        let (last, before) = bytes.split_last().unwrap();
        for byte in before {
            assert_eq!(reader.hear(&[*byte], &host), Ok(false));
        }
        assert_eq!(reader.hear(&[*last, 22, 3, 1], &host), Ok(true));
    }

    #[test]
    fn tls_for_another_host_and_what_is_no_tls_is_cut() {
        assert_eq!(heard(&hello("b.example"), "a.example"), Err(Why::OtherName("b.example".to_owned())));
        assert_eq!(heard(&hello("192.0.2.1"), "a.example"), Err(Why::Nameless));
        assert_eq!(heard(&hello("a.example"), "192.0.2.1"), Err(Why::OtherName("a.example".to_owned())));
        for bytes in [
            &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            &[0; 64],
            &[0xff; 64],
            // A record of TLS that is no handshake, one that is a server's, and one that is empty.
            &[23, 3, 3, 0, 1, 0],
            &[22, 3, 3, 0, 4, 2, 0, 0, 0],
            &[22, 3, 3, 0, 4, 1, 0, 0, 0],
            &[0x80, 0x2e, 1, 0, 2],
        ] {
            assert_eq!(heard(bytes, "a.example"), Err(Why::NotTls), "{bytes:?}");
        }
    }

    #[test]
    fn a_first_message_that_never_ends_is_cut() {
        let (mut reader, host) = (Hello::default(), Host::parse("a.example").unwrap());
        // A handshake that says it has 65,000 bytes, in records as long as they may be.
        let mut record = vec![22, 3, 1, 0x40, 0];
        record.extend([1, 0, 0xfd, 0xe8]);
        record.resize(5 + 0x4000, 0);
        assert_eq!(reader.hear(&record, &host), Err(Why::NotTls));
    }

    /// An encrypted name doesn't hide the one that is said openly.
    #[test]
    fn with_an_encrypted_hello_the_open_name_is_the_one_that_counts() {
        let mut bytes = hello("front.example");
        // An extension `encrypted_client_hello` at the end; the three lengths around it grow.
        let extension = [0xfe, 0x0d, 0, 12, 0, 0, 1, 0, 1, 5, 0, 1, 7, 0, 1, 9];
        let grow = |bytes: &mut Vec<u8>, at: usize| {
            let length = u16::from_be_bytes([bytes[at], bytes[at + 1]]) + 16;
            bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
        };
        let session = usize::from(bytes[43]);
        let suites = 44 + session;
        let ciphers = usize::from(u16::from_be_bytes([bytes[suites], bytes[suites + 1]]));
        let compressions = suites + 2 + ciphers;
        let extensions = compressions + 1 + usize::from(bytes[compressions]);
        for at in [3, 7, extensions] {
            grow(&mut bytes, at);
        }
        bytes.extend(extension);
        assert_eq!(heard(&bytes, "hidden.example"), Err(Why::OtherName("front.example".to_owned())));
    }
}
