//! What must not be shown, and how it is taken out of a text: `[redacted: NAME]` stands in its
//! place. Whatever comes into a session passes here first, so that what the model reads, what is
//! recorded and what people are told is the same text.
//!
//! It finds values that it was given, and forms of them that tools make (`forms`); it doesn't
//! guess what a secret might look like. It is a net under what keeps secrets away from commands,
//! not instead of it: who has a value and wants to hide it in a text can.

mod forms;
mod names;
mod reply;
mod stream;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::Value;

pub use self::forms::{Common, SHORTEST};
pub use self::names::{has_a_password, is_everyday, is_secret_name, of_environment, passwords_of};
pub use self::stream::Redactor;
use super::capture::CUT;

/// How many bytes all forms of all secrets may have together: several times what the
/// environment of a process can hold.
const TOTAL_MAX: usize = 64 << 20;

/// How many characters of a name are shown.
const NAME_MAX: usize = 64;

/// So much of a secret that a cut has left at its edge is taken out too, in bytes.
const EDGE: usize = 8;

/// Too much to look for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secrets to be redacted are too large ({0}): unset variables that hold whole files")]
pub struct TooMuch(String);

/// The secrets of a session. Cheap to clone; with none, nothing costs anything.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Known>>);

/// What is looked for.
pub(super) struct Known {
    /// Every secret with its name.
    values: Vec<(String, String)>,
    /// Those that would be found everywhere, by name.
    left_out: Vec<(String, Common)>,
    finder: AhoCorasick,
    /// What the finder finds, sorted, each with what stands in its place.
    forms: Vec<(String, Arc<str>)>,
    longest: usize,
    /// Whether a form begins with this byte.
    begins: [bool; 256],
}

impl Secrets {
    /// Nothing is a secret.
    pub const NONE: Self = Self(None);

    /// These values, each under its name; of two names for one value the first is shown. A
    /// value that everybody has ([`Common`]) is left out: its redaction would ruin every text.
    ///
    /// # Errors
    /// They are too large.
    pub fn new<N, V>(values: impl IntoIterator<Item = (N, V)>) -> Result<Self, TooMuch>
    where
        N: Into<String>,
        V: AsRef<str>,
    {
        Self::NONE.with(values)
    }

    /// These too.
    ///
    /// # Errors
    /// They are too large together.
    pub fn with<N, V>(&self, more: impl IntoIterator<Item = (N, V)>) -> Result<Self, TooMuch>
    where
        N: Into<String>,
        V: AsRef<str>,
    {
        let more = more.into_iter().map(|(name, value)| (name.into(), value.as_ref().trim().to_owned()));
        let more = more.filter(|(_, value)| !value.is_empty());
        let mut values: Vec<(String, String)> =
            self.0.iter().flat_map(|known| known.values.iter().cloned()).collect();
        let known = values.len();
        for (name, value) in more {
            if !values.iter().any(|(_, known)| *known == value) {
                values.push((name, value));
            }
        }
        if values.len() == known { Ok(self.clone()) } else { Ok(Self(Some(Arc::new(Known::of(values)?)))) }
    }

    /// The names of the values that everybody has and that are not looked for, with the reason.
    pub fn left_out(&self) -> &[(String, Common)] {
        self.0.as_ref().map_or(&[], |known| &known.left_out)
    }

    /// The text with every secret in it replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(known) if known.finder.is_match(text) => Cow::Owned(known.redact(text)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// As [`Secrets::redact`], for a text that is ours already.
    pub fn redacted(&self, text: String) -> String {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// As [`Secrets::redact`], for output: what a cut of its middle (`[… N bytes left out …]`)
    /// has left of a secret, at least 8 bytes of it, is taken out too.
    pub fn output(&self, text: String) -> String {
        let text = self.redacted(text);
        match &self.0 {
            Some(known) if text.contains(CUT.0) => known.without_edges(text),
            Some(_) | None => text,
        }
    }

    /// The first mark of a secret that is known here, in any text of a value. A mark of another name is only a text.
    pub fn mark_in(&self, value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => self.0.as_ref()?.mark_in(text),
            Value::Array(items) => items.iter().find_map(|item| self.mark_in(item)),
            Value::Object(fields) => fields.values().find_map(|field| self.mark_in(field)),
            Value::Number(_) | Value::Bool(_) | Value::Null => None,
        }
    }

    /// Replaces every secret in all texts, names of fields and numbers of a value.
    pub fn redact_value(&self, value: &mut Value) {
        if self.0.is_none() {
            return;
        }
        match value {
            Value::String(text) => *text = self.redacted(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => {
                let redacted = std::mem::take(fields).into_iter().map(|(name, mut field)| {
                    self.redact_value(&mut field);
                    (self.redacted(name), field)
                });
                *fields = redacted.collect();
            }
            Value::Number(number) => {
                let text = number.to_string();
                if let Cow::Owned(redacted) = self.redact(&text) {
                    *value = Value::String(redacted);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().flat_map(|known| known.values.iter().map(|(name, _)| name));
        f.debug_list().entries(names).finish()
    }
}

/// How a mark begins.
const MARK: &str = "[redacted: ";

/// What stands in a secret's place.
fn mark(name: &str) -> Arc<str> {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "_-.: ".contains(c) { c } else { '_' };
    let name: String = name.chars().map(fits).take(NAME_MAX).collect();
    format!("{MARK}{name}]").into()
}

impl Known {
    fn of(values: Vec<(String, String)>) -> Result<Self, TooMuch> {
        let marks: Vec<Arc<str>> = values.iter().map(|(name, _)| mark(name)).collect();
        let (mut forms, mut left_out) = (BTreeMap::new(), Vec::new());
        let mut total = 0;
        // A mark in which something is found would grow each time it is looked at.
        let in_a_mark = |text: &str| marks.iter().any(|mark| mark.contains(text));
        for ((name, value), mark) in values.iter().zip(&marks) {
            let common = forms::common(value).or_else(|| in_a_mark(value).then_some(Common::Mark));
            if let Some(why) = common {
                left_out.push((name.clone(), why));
                continue;
            }
            for form in forms::forms(value).into_iter().filter(|form| !in_a_mark(form)) {
                total += form.len();
                forms.entry(form).or_insert_with(|| mark.clone());
            }
        }
        if total > TOTAL_MAX {
            return Err(TooMuch(format!("{} MiB", total >> 20)));
        }
        Self::finding(values, left_out, forms.into_iter().collect())
    }

    fn finding(
        values: Vec<(String, String)>,
        left_out: Vec<(String, Common)>,
        forms: Vec<(String, Arc<str>)>,
    ) -> Result<Self, TooMuch> {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|(form, _)| form))
            .map_err(|error| TooMuch(error.to_string()))?;
        let longest = forms.iter().map(|(form, _)| form.len()).max().unwrap_or(0);
        let mut begins = [false; 256];
        forms.iter().filter_map(|(form, _)| form.bytes().next()).for_each(|b| begins[usize::from(b)] = true);
        Ok(Self { values, left_out, finder, forms, longest, begins })
    }

    fn mark_in(&self, text: &str) -> Option<&str> {
        let is_there = text.contains(MARK);
        self.forms.iter().map(|(_, mark)| &**mark).find(|mark| is_there && text.contains(mark))
    }

    fn redact(&self, text: &str) -> String {
        let mut told = String::new();
        let mut at = 0;
        for found in self.finder.find_iter(text) {
            told.push_str(&text[at..found.start()]);
            told.push_str(&self.forms[found.pattern().as_usize()].1);
            at = found.end();
        }
        told.push_str(&text[at..]);
        told
    }

    /// Whether no secret is in the text and none begins at its end.
    pub(super) fn is_harmless(&self, text: &str) -> bool {
        self.doubt(text, 0) == text.len() && !self.finder.is_match(text)
    }

    /// Redacts a text that goes on, as far as that can't change by what comes; returns where
    /// it stopped: what begins there may begin a secret.
    ///
    /// No secret that begins before the doubt can turn out to be a longer one: then the doubt
    /// would begin with it.
    pub(super) fn redact_until_doubt(&self, text: &str, told: &mut String) -> usize {
        let (mut at, mut doubt) = (0, self.doubt(text, 0));
        loop {
            match self.finder.find(Input::new(text).range(at..)) {
                Some(found) if found.start() < doubt => {
                    told.push_str(&text[at..found.start()]);
                    told.push_str(&self.forms[found.pattern().as_usize()].1);
                    at = found.end();
                    if at > doubt {
                        doubt = self.doubt(text, at);
                    }
                }
                Some(_) | None => {
                    told.push_str(&text[at..doubt]);
                    return doubt;
                }
            }
        }
    }

    /// Where the longest end of the text begins that may begin a secret.
    fn doubt(&self, text: &str, from: usize) -> usize {
        let bytes = text.as_bytes();
        let from = from.max(bytes.len().saturating_sub(self.longest.saturating_sub(1)));
        let begins = |at: &usize| self.begins[usize::from(bytes[*at])] && self.begins_with(&bytes[*at..]);
        (from..bytes.len()).find(begins).unwrap_or(bytes.len())
    }

    /// Whether a form is longer than this and begins so.
    fn begins_with(&self, begin: &[u8]) -> bool {
        let at = self.forms.partition_point(|(form, _)| form.as_bytes() <= begin);
        self.forms.get(at).is_some_and(|(form, _)| form.as_bytes().starts_with(begin))
    }

    /// Without what is left of secrets where a text was cut.
    fn without_edges(&self, text: String) -> String {
        let mut told = String::new();
        let mut rest = text.as_str();
        while let Some((head, tail)) = rest.split_once(CUT.0) {
            told.push_str(&self.without_begun(head));
            told.push_str(CUT.0);
            rest = tail;
            let Some((number, after)) = tail.split_once(CUT.1) else { continue };
            if number.bytes().all(|byte| byte.is_ascii_digit()) {
                told.push_str(number);
                told.push_str(CUT.1);
                let (mark, kept) = self.ended(after);
                told.push_str(mark);
                rest = kept;
            }
        }
        told.push_str(rest);
        told
    }

    /// A text's head without a secret's begin at its end.
    fn without_begun<'a>(&self, head: &'a str) -> Cow<'a, str> {
        let doubt = self.doubt(head, 0);
        let begun = &head.as_bytes()[doubt..];
        if begun.len() < EDGE {
            return Cow::Borrowed(head);
        }
        let at = self.forms.partition_point(|(form, _)| form.as_bytes() <= begun);
        let mark = self.forms.get(at).map_or("", |(_, mark)| mark);
        Cow::Owned(format!("{}{mark}", &head[..doubt]))
    }

    /// What stands for a secret's end at a text's begin, and the text after it.
    fn ended<'a>(&self, text: &'a str) -> (&str, &'a str) {
        let longest = |form: &str| {
            let ends = (1..form.len().saturating_sub(EDGE - 1)).filter(|at| form.is_char_boundary(*at));
            ends.map(|at| &form[at..]).find(|end| text.starts_with(end)).map(str::len)
        };
        let found = self.forms.iter().filter_map(|(form, mark)| Some((longest(form)?, mark)));
        match found.max_by_key(|(bytes, _)| *bytes) {
            Some((bytes, mark)) => (mark, &text[bytes..]),
            None => ("", text),
        }
    }
}
