//! Values on their way to a database.

use std::sync::Arc;

use midturn_core::rules::id::AgentName;
use serde::Serialize;

use crate::nul::{hide, hide_json};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Text,
    Json,
}

/// A value. Texts have no NUL characters any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Cell {
    #[default]
    Null,
    Int(i64),
    Text(Arc<str>),
    Owned(String),
}

impl Cell {
    /// A number that is kept as it is; above 2⁶³ it is negative in the table.
    pub(crate) fn number(number: impl Into<u64>) -> Self {
        Self::Int(number.into().cast_signed())
    }

    /// A number that is compared with others.
    pub(crate) fn bound(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(crate) fn flag(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }

    pub(crate) fn shared(text: &Arc<str>) -> Self {
        match hide(text) {
            std::borrow::Cow::Borrowed(_) => Self::Text(text.clone()),
            std::borrow::Cow::Owned(hidden) => Self::Owned(hidden),
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Owned(hide(text).into_owned())
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::Owned(hide_json(serde_json::to_string(value)?)))
    }

    /// A text of ours, that has no NUL.
    pub(crate) fn word(word: &str) -> Self {
        Self::Owned(word.to_owned())
    }

    /// An agent's name, which has no NUL either.
    pub(crate) fn name(name: &AgentName) -> Self {
        Self::word(name.as_str())
    }

    pub(crate) fn or_null<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }
}
