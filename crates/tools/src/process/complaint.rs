//! Tells a sandbox's complaint that it can't be built from what a command says: both come
//! through the same pipe, and a command that was never started has said nothing.

/// How those begin that may complain: bubblewrap, and our supervisor.
const BEGINNINGS: [&[u8]; 2] = [b"bwrap: ", b"midturn: "];

/// A complaint is no longer than this, in bytes.
const LONGEST: usize = 1_024;

/// Passes output on, but for a beginning that may be a complaint: that is kept until it is
/// known whether the command ran.
pub(super) struct Complaint<'a> {
    output: &'a mut (dyn FnMut(&[u8]) + Send),
    kept: Vec<u8>,
    passes: bool,
}

impl<'a> Complaint<'a> {
    /// `expected`: there is a sandbox.
    pub(super) fn new(expected: bool, output: &'a mut (dyn FnMut(&[u8]) + Send)) -> Self {
        Self { output, kept: Vec::new(), passes: !expected }
    }

    pub(super) fn hear(&mut self, bytes: &[u8]) {
        if self.passes {
            return (self.output)(bytes);
        }
        self.kept.extend_from_slice(bytes);
        let may_be = |beginning: &&[u8]| {
            let common = beginning.len().min(self.kept.len());
            beginning[..common] == self.kept[..common]
        };
        if self.kept.len() > LONGEST || !BEGINNINGS.iter().any(may_be) {
            self.it_ran();
        }
    }

    /// It was the command that spoke.
    pub(super) fn it_ran(&mut self) {
        self.passes = true;
        if !self.kept.is_empty() {
            (self.output)(&std::mem::take(&mut self.kept));
        }
    }

    /// It never ran: what was complained of, if anything.
    pub(super) fn words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.kept).trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complaint_is_kept_back_and_only_until_the_command_ran() {
        let rows: [(bool, &[&str], &str, Option<&str>); 6] = [
            (true, &["a", "bwrap: x"], "abwrap: x", None),
            (true, &["bw", "rap: no"], "", Some("bwrap: no")),
            (true, &["bw", "rap"], "", Some("bwrap")),
            (true, &["bw", "x"], "bwx", None),
            (true, &["midturn: no\n"], "", Some("midturn: no")),
            (false, &["bwrap: no"], "bwrap: no", None),
        ];
        for (expected, chunks, passed, words) in rows {
            let mut heard = String::new();
            let mut output = |bytes: &[u8]| heard.push_str(std::str::from_utf8(bytes).unwrap());
            let mut complaint = Complaint::new(expected, &mut output);
            chunks.iter().for_each(|chunk| complaint.hear(chunk.as_bytes()));
            assert_eq!(complaint.words().as_deref(), words, "{chunks:?}");
            assert_eq!(heard, passed, "{chunks:?}");
            let mut heard = String::new();
            let mut output = |bytes: &[u8]| heard.push_str(std::str::from_utf8(bytes).unwrap());
            let mut complaint = Complaint::new(expected, &mut output);
            chunks.iter().for_each(|chunk| complaint.hear(chunk.as_bytes()));
            complaint.it_ran();
            assert_eq!(heard, chunks.concat());
        }
    }
}
