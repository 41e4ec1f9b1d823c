//! The small values of the format: with their places, or written in one way or another.

mod at;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::error::Place;

// A value and where it stands in the file: values are in the order of the file. A doc comment would be told
// by the schema of every key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "T")]
pub struct At<T> {
    /// Where it stands.
    pub place: Place,
    /// What stands there.
    pub value: T,
}

/// A map whose keys are the file's own, in the file's order.
pub(crate) type Pairs<V> = BTreeMap<At<String>, V>;

/// One text, or a list of texts.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, inline)]
pub enum Texts {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// By hand, so that what is wrong in a list is told at its own place.
struct ReadTexts;

impl<'de> Visitor<'de> for ReadTexts {
    type Value = Texts;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }
    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts::One(text.to_owned()))
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Texts, S::Error> {
        std::iter::from_fn(|| seq.next_element().transpose()).collect::<Result<_, _>>().map(Texts::Many)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTexts)
    }
}

impl Texts {
    /// All of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// The id of the call, tool or message, the number of a model call or a run, or `any`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected an id, or `any`")]
#[schemars(inline)]
pub(crate) enum EventId {
    /// An id, or `any`.
    Named(String),
    /// A number.
    Number(u64),
}

impl EventId {
    /// As an event has it; `None` is any.
    pub(crate) fn named(&self) -> Option<String> {
        match self {
            Self::Named(any) if any == "any" => None,
            Self::Named(id) => Some(id.clone()),
            Self::Number(number) => Some(number.to_string()),
        }
    }
}

/// What a file must not hold: `true`, it must not be there at all; texts, it must not contain them.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, inline)]
pub enum Absent {
    /// The file is not there.
    File(bool),
    /// It doesn't contain them.
    Texts(Texts),
}

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Absent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, a text or a list of texts")
            }
            fn visit_bool<E>(self, absent: bool) -> Result<Absent, E> {
                Ok(Absent::File(absent))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Absent, E> {
                ReadTexts.visit_str(text).map(Absent::Texts)
            }
            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<Absent, S::Error> {
                ReadTexts.visit_seq(seq).map(Absent::Texts)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
