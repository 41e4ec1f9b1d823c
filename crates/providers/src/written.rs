//! What people write below `headers` and `query` of a provider: text, and in it `${NAME}` for the
//! value of an environment variable. A key is never written out: it would be committed, or shown.

use std::collections::BTreeMap;

use midturn_core::rules::secrets::is_secret_name;
use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};

use crate::config::Secret;

/// The headers that belong to the connection or to the body, and so to us.
const OURS: [&str; 9] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
];

/// What begins a value that is a login, whatever its header is called.
const LOGINS: [&str; 2] = ["bearer ", "basic "];

/// The value of a header or of a query's parameter, as it is written: `Bearer ${GATEWAY_KEY}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Written(String);

/// Why something can't be a header or a parameter. The value isn't repeated: it may be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWritten {
    /// No header can have that name.
    #[error("that is not the name of a header")]
    Name,
    /// We set it ourselves.
    #[error("Midturn sets this header itself")]
    Ours,
    /// A `${` that is followed by no name and `}`.
    #[error("`${{` begins the name of an environment variable, as in ${{GATEWAY_KEY}}")]
    Variable,
    /// Nothing that HTTP can carry.
    #[error("only visible ASCII characters and spaces can be sent")]
    Characters,
    /// A key, or what looks like one.
    #[error(
        "keys come from the environment only, so that none is committed or shown by mistake: \
         name a variable that holds it, as in ${{GATEWAY_KEY}}"
    )]
    Key,
}

impl Written {
    /// The value of a header of this name.
    ///
    /// # Errors
    /// See [`BadWritten`].
    pub fn header(name: &str, value: &str) -> Result<Self, BadWritten> {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BadWritten::Name)?;
        if OURS.contains(&header.as_str()) {
            return Err(BadWritten::Ours);
        }
        Self::parameter(name, value)
    }

    /// The value of a query's parameter of this name.
    ///
    /// # Errors
    /// See [`BadWritten`]; any text is a name.
    pub fn parameter(name: &str, value: &str) -> Result<Self, BadWritten> {
        let written = Self::try_from(value.to_owned())?;
        if written.variables().next().is_none() && is_a_key(name, value) {
            return Err(BadWritten::Key);
        }
        Ok(written)
    }

    /// The environment variables that it names.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.named().map(|(name, _)| name)
    }

    /// What is sent; of a variable that isn't there nothing is.
    pub(crate) fn filled(&self, environment: &BTreeMap<String, Secret>) -> String {
        let mut filled = self.0.split("${").next().unwrap_or_default().to_owned();
        for (name, after) in self.named() {
            filled += environment.get(name).map(Secret::expose).unwrap_or_default();
            filled += after;
        }
        filled
    }

    /// Each variable, and the text between it and the next.
    fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split("${").skip(1).filter_map(|rest| rest.split_once('}'))
    }
}

impl TryFrom<String> for Written {
    type Error = BadWritten;

    /// The value of a header or parameter that has been looked at by its name.
    fn try_from(text: String) -> Result<Self, BadWritten> {
        if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(BadWritten::Characters);
        }
        let is_named = |rest: &str| rest.split_once('}').is_some_and(|(name, _)| is_variable(name));
        if text.split("${").skip(1).all(is_named) { Ok(Self(text)) } else { Err(BadWritten::Variable) }
    }
}

impl From<Written> for String {
    fn from(Written(text): Written) -> Self {
        text
    }
}

/// Whether an environment variable can have this name.
pub fn is_variable(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Whether a value is one that nobody is to read, by its name or by how it begins.
fn is_a_key(name: &str, value: &str) -> bool {
    let (name, value) = (name.to_ascii_uppercase().replace('-', "_"), value.trim().to_ascii_lowercase());
    let ends = ["AUTHORIZATION", "COOKIE"];
    name == "KEY"
        || is_secret_name(&name)
        || ends.iter().any(|end| name.ends_with(end))
        || LOGINS.iter().any(|login| value.starts_with(login))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_filled_from_the_environment() {
        let environment =
            [("A".to_owned(), Secret::new("one")), ("B_2".to_owned(), Secret::new("two"))].into();
        for (written, filled) in [
            ("plain", "plain"),
            ("${A}", "one"),
            ("Bearer ${A}", "Bearer one"),
            ("${A}${B_2}!", "onetwo!"),
            ("$A {A} $", "$A {A} $"),
        ] {
            let read = Written::header("x-h", written).unwrap();
            assert_eq!(read.filled(&environment), filled);
            assert_eq!(String::from(read), written);
        }
    }

    #[test]
    fn what_is_no_header_or_holds_a_key_is_refused_and_not_repeated() {
        for (name, value, expected) in [
            ("x y", "v", BadWritten::Name),
            ("", "v", BadWritten::Name),
            ("Content-Type", "text/plain", BadWritten::Ours),
            ("HOST", "elsewhere", BadWritten::Ours),
            ("x-h", "a\nb", BadWritten::Characters),
            ("x-h", "é", BadWritten::Characters),
            ("x-h", "${A", BadWritten::Variable),
            ("x-h", "${}", BadWritten::Variable),
            ("x-h", "${A:-sk-hidden}", BadWritten::Variable),
            ("x-h", "${1A}", BadWritten::Variable),
            ("Authorization", "sk-hidden", BadWritten::Key),
            ("cf-aig-authorization", "sk-hidden", BadWritten::Key),
            ("api-key", "sk-hidden", BadWritten::Key),
            ("Cookie", "sk-hidden", BadWritten::Key),
            ("x-h", "Bearer sk-hidden", BadWritten::Key),
        ] {
            let refused = Written::header(name, value).unwrap_err();
            assert_eq!(refused, expected, "{name}: {value}");
            assert!(!refused.to_string().contains("hidden"));
        }
        assert_eq!(Written::parameter("key", "sk-hidden"), Err(BadWritten::Key));
        assert!(Written::parameter("api-version", "2025-04-01").is_ok());
        assert!(Written::header("anthropic-beta", "context-1m").is_ok());
    }
}
