//! The small values of the format that serde's derive can't read with their positions.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::error::Place;

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
#[derive(Clone, Debug)]
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
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Read(PhantomData))
    }
}

impl<V: JsonSchema> JsonSchema for Pairs<V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("MapOf{}", V::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<V>();
        json_schema!({"type": "object", "additionalProperties": values})
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
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element()? {
            texts.push(text);
        }
        Ok(Texts(texts))
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

/// The folder that a replay with real tools works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RawWorkspace {
    /// A folder beside the file, copied to a temporary git repository.
    Folder(String),
    /// A git repository to clone.
    Clone(String),
}

impl<'de> Deserialize<'de> for RawWorkspace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = RawWorkspace;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a folder's path or {clone: PATH}")
            }
            fn visit_str<E>(self, path: &str) -> Result<RawWorkspace, E> {
                Ok(RawWorkspace::Folder(path.to_owned()))
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawWorkspace, M::Error> {
                let mut clone = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "clone" {
                        return Err(M::Error::unknown_field(&key, &["clone"]));
                    }
                    clone = Some(map.next_value()?);
                }
                clone.map(RawWorkspace::Clone).ok_or_else(|| M::Error::missing_field("clone"))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for RawWorkspace {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Workspace".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string", "description": "a folder beside the file; it is copied to a temporary git repository"},
            {"type": "object", "properties": {"clone": {"type": "string"}}, "required": ["clone"], "additionalProperties": false}
        ]})
    }
}

/// What a file must not hold: `true`, it must not be there at all; texts, it must not contain them.
#[derive(Clone, Debug)]
pub(crate) enum RawAbsent {
    File(bool),
    Texts(Vec<String>),
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
                ReadTexts.visit_str(text).map(|texts: Texts| RawAbsent::Texts(texts.0))
            }
            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<RawAbsent, S::Error> {
                ReadTexts.visit_seq(seq).map(|texts| RawAbsent::Texts(texts.0))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for RawAbsent {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Absent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "boolean", "description": "the file is not there"},
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}}
        ]})
    }
}
