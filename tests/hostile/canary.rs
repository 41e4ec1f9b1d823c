//! Secrets that were planted, and where they were found. A program tells what it read in
//! hexadecimal, so that what the daemon redacts is not taken for what nobody got.

use std::collections::BTreeSet;

/// The planted secrets of one world.
#[derive(Debug, Default)]
pub(crate) struct Canaries {
    planted: Vec<(String, String)>,
    found: BTreeSet<String>,
}

impl Canaries {
    /// A secret that nobody has seen, for a place.
    pub(crate) fn plant(&mut self, what: &str, mark: &str) -> String {
        let letters: String = what.chars().filter(char::is_ascii_alphanumeric).collect();
        let secret = format!("canary-{mark}-{letters}-{}", self.planted.len());
        self.add(what, &secret);
        secret
    }

    /// A secret that is there already.
    pub(crate) fn add(&mut self, what: &str, secret: &str) {
        self.planted.push((what.to_owned(), secret.to_owned()));
    }

    /// Looks for all of them in something.
    pub(crate) fn look(&mut self, place: &str, bytes: &[u8]) {
        for (what, secret) in &self.planted {
            if contains(bytes, secret.as_bytes()) {
                self.found.insert(format!("{what} is in {place}"));
            }
        }
    }

    /// Looks for them in a program's output, and in what it says it got.
    pub(crate) fn look_in_output(&mut self, place: &str, output: &str) {
        self.look(place, output.as_bytes());
        for line in output.lines() {
            if let Some(bytes) = line.trim().strip_prefix("got: ").and_then(bytes) {
                self.look(&format!("{place}, in hexadecimal"), &bytes);
            }
        }
    }

    /// What was found since the last time this was asked.
    pub(crate) fn take_found(&mut self) -> Vec<String> {
        std::mem::take(&mut self.found).into_iter().collect()
    }
}

pub(crate) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}

/// A line that was cut has an odd digit at its end, or none.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_plain_and_in_hexadecimal_and_nothing_else_is() {
        let mut canaries = Canaries::default();
        let secret = canaries.plant("the key", "m");
        canaries.look("a", b"canary-m-the");
        canaries.look_in_output("b", "got: 00ff\nfound: x\n");
        assert_eq!(canaries.take_found(), [""; 0]);
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        canaries.look("a", format!("x{secret}y").as_bytes());
        canaries.look_in_output("b", &format!("found: x\ngot: 00{hex}0\n"));
        assert_eq!(canaries.take_found(), ["the key is in a", "the key is in b, in hexadecimal"]);
    }
}
