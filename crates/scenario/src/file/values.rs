//! The small values of the format that serde's derive can't read with their positions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::error::Place;
use crate::scenario::Workspace;

/// A value and where it stands in the file.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, place: spanned.referenced.into() })
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A map whose keys are the file's own, in the file's order.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(with = "BTreeMap<String, V>", inline)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(At<String>, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Read<V> {
            type Value = Pairs<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of keys and values")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<V>, M::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Pairs)
            }
        }
        deserializer.deserialize_map(Read(PhantomData))
    }
}

/// One text, or a list of texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(pub(crate) Vec<String>);

struct ReadTexts;

impl<'de> Visitor<'de> for ReadTexts {
    type Value = Texts;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }
    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Texts, S::Error> {
        std::iter::from_fn(|| seq.next_element().transpose()).collect::<Result<_, _>>().map(Texts)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTexts)
    }
}

impl JsonSchema for Texts {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

/// Which event of a type is meant: the id of its call, tool or message, the number of a
/// model call or a run, or `any`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventId {
    Any,
    Named(String),
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = EventId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id, or `any`")
            }
            fn visit_str<E>(self, text: &str) -> Result<EventId, E> {
                Ok(if text == "any" { EventId::Any } else { EventId::Named(text.to_owned()) })
            }
            fn visit_u64<E>(self, number: u64) -> Result<EventId, E> {
                Ok(EventId::Named(number.to_string()))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<EventId, E> {
                u64::try_from(number).map_err(E::custom).and_then(|number| self.visit_u64(number))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for EventId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "EventId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "the id of the call, tool or message, or `any`", "type": ["string", "integer"]})
    }
}

impl<'de> Deserialize<'de> for Workspace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Workspace;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a folder's path or {clone: PATH}")
            }
            fn visit_str<E>(self, path: &str) -> Result<Workspace, E> {
                Ok(Workspace::Folder(path.into()))
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Workspace, M::Error> {
                let mut clone = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "clone" {
                        return Err(M::Error::unknown_field(&key, &["clone"]));
                    }
                    clone = Some(map.next_value::<String>()?);
                }
                let path = clone.ok_or_else(|| M::Error::missing_field("clone"))?;
                Ok(Workspace::Clone(path.into()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// What a file must not hold: `true`, it must not be there at all; texts, it must not contain them.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, inline)]
pub(crate) enum RawAbsent {
    /// The file is not there.
    File(bool),
    Texts(Texts),
}

impl<'de> Deserialize<'de> for RawAbsent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = RawAbsent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, a text or a list of texts")
            }
            fn visit_bool<E>(self, absent: bool) -> Result<RawAbsent, E> {
                Ok(RawAbsent::File(absent))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawAbsent, E> {
                ReadTexts.visit_str(text).map(RawAbsent::Texts)
            }
            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<RawAbsent, S::Error> {
                ReadTexts.visit_seq(seq).map(RawAbsent::Texts)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
