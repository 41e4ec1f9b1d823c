//! Names and ids. They are validated once, where they come in, and then carried as types.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::characters::hides;

/// Names no agent may have, because they are addresses (semantics.md, sections 4 and 9).
pub const RESERVED: [&str; 3] = ["user", "parent", "all"];

/// The longest name, in bytes.
pub const NAME_MAX: usize = 64;

/// The longest id of a message or a session, in bytes.
pub const ID_MAX: usize = 128;

/// What an id is, for whoever gave something else.
pub const ID_FORM: &str = "an id has 1 to 128 bytes, and no control characters or others that can't be seen";

/// Whether a text can be an id. People tell ids apart by looking at them, so nothing in one hides.
pub fn is_id(text: &str) -> bool {
    (1..=ID_MAX).contains(&text.len()) && !text.chars().any(hides)
}

/// An agent's name: `[a-z0-9][a-z0-9_-]{0,63}`, not reserved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct AgentName(Arc<str>);

/// Why a text is not an agent's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is not of the form.
    #[error("`{0}` is not an agent's name: names match [a-z0-9][a-z0-9_-]{{0,63}}")]
    Form(String),
    /// The name is an address.
    #[error("`{0}` is reserved: user, parent and all are addresses")]
    Reserved(String),
}

impl AgentName {
    /// Checks a text and makes a name of it.
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let text = text.as_ref();
        if RESERVED.contains(&text) {
            return Err(NameError::Reserved(text.to_owned()));
        }
        let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(lower);
        let rest = bytes.all(|b| lower(b) || b == b'_' || b == b'-');
        if first && rest && text.len() <= NAME_MAX {
            Ok(Self(text.into()))
        } else {
            Err(NameError::Form(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl std::borrow::Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What every name and id has: its text, which is how it is shown.
macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text!(AgentName);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(with = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes the id of a text.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
        }

        text!($name);
    };
}

text_id! {
    // Models read it in their tools' schemas, so the page (semantics.md, section 8) is cited here alone.
    /// The id of a message, unique per sender.
    MessageId
}
text_id! {
    /// The id of a tool call, as the model gave it; unique in its agent.
    CallId
}
text_id! {
    /// The id of a session.
    SessionId
}

/// The number of a run: 1, 2, 3 … per agent, never repeated; 0 is "before the first".
pub type RunId = u64;

/// The number of a turn within its run: 1, 2, 3 …; 0 is "before the first".
pub type TurnId = u32;

#[cfg(test)]
mod tests {
    use super::*;

    /// C18.
    #[test]
    fn nothing_in_an_id_hides() {
        for good in ["a", "fix-1 ä", "漢", &"x".repeat(128)] {
            assert!(is_id(good), "{good}");
        }
        for bad in
            ["", "a\nb", "a\u{202e}b", "\u{200b}", "a\u{feff}", "\u{85}", "a\u{2066}b", &"x".repeat(129)]
        {
            assert!(!is_id(bad), "{bad:?}");
        }
        assert!(ID_FORM.contains(&format!("1 to {ID_MAX} bytes")));
    }

    #[test]
    fn names_are_of_the_form_and_not_reserved() {
        for good in ["a", "0", "worker-2", "a_b", &"x".repeat(64)] {
            assert!(AgentName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "_a", "a b", "é", "user", "parent", "all", &"x".repeat(65)] {
            assert!(AgentName::new(bad).is_err(), "{bad}");
        }
    }
}
