//! The providers that everybody has, as a table: what another one is written as in a
//! configuration, written here. No code looks at their names.

use crate::config::Dialect;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The word before the slash in a model's name.
    pub name: &'static str,
    /// What its server speaks.
    pub dialect: Dialect,
    /// Where its server is, when nothing else is said.
    pub base_url: &'static str,
    /// The environment variable that says something else, as everybody's programs read it.
    pub base_url_env: &'static str,
    /// The environment variable that holds the key.
    pub key_env: &'static str,
}

/// All of them.
pub const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_env: "ANTHROPIC_BASE_URL",
        key_env: "ANTHROPIC_API_KEY",
    },
    BuiltIn {
        name: "openai",
        dialect: Dialect::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_env: "OPENAI_BASE_URL",
        key_env: "OPENAI_API_KEY",
    },
    BuiltIn {
        name: "openai-chat",
        dialect: Dialect::Chat,
        base_url: "https://api.openai.com/v1",
        base_url_env: "OPENAI_BASE_URL",
        key_env: "OPENAI_API_KEY",
    },
];
