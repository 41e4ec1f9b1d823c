//! `after` and `ends_after`: `{agent, EVENT: ID, plus}`. The types of event are the engine's
//! own (see [`super::vocabulary`]), so no new one can be forgotten here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use midturn_core::rules::time::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::vocabulary;
use crate::values::{At, EventId};

/// The event that something follows, as it is written.
#[derive(Debug, Default)]
pub(crate) struct RawAfter {
    /// Whose event.
    pub(crate) agent: Option<At<String>>,
    /// How long after it.
    pub(crate) plus: Span,
    /// All other keys: types of event with their ids.
    pub(crate) named: Vec<(At<String>, At<EventId>)>,
}

impl<'de> Deserialize<'de> for RawAfter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = RawAfter;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("{agent, EVENT: ID, plus}")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawAfter, M::Error> {
                let mut after = RawAfter::default();
                while let Some(key) = map.next_key::<At<String>>()? {
                    match key.value.as_str() {
                        "agent" => after.agent = Some(map.next_value()?),
                        "plus" => after.plus = map.next_value()?,
                        _ => after.named.push((key, map.next_value()?)),
                    }
                }
                Ok(after)
            }
        }
        deserializer.deserialize_map(Read)
    }
}

impl JsonSchema for RawAfter {
    fn schema_name() -> Cow<'static, str> {
        "After".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let id = generator.subschema_for::<EventId>();
        let types = vocabulary::type_names().map(|name| (name.to_owned(), id.clone()));
        let mut properties: BTreeMap<String, Schema> = types.collect();
        properties.insert("agent".to_owned(), generator.subschema_for::<String>());
        properties.insert("plus".to_owned(), generator.subschema_for::<Span>());
        json_schema!({
            "description": "An event: the agent, one type of event with an id (or `any`), and how long after it.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false
        })
    }
}
