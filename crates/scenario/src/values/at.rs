//! How a value with its place is read: what [`serde_saphyr::Spanned`] does, with a twentieth of its code.
//!
//! The YAML reader gives a marker, the value and its places as the four fields of a struct, and each field by a
//! deserializer of another type; `Spanned` takes plain values from any other format besides. Each type of a scenario
//! would be compiled for each of those, when only one can hold it. What is asked for here is a newtype struct
//! first: only the reader itself has one, so none of the others gets to the type.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::Location;

use super::At;

/// What the reader understands as the wish for places. It is not its public word for it: should another version
/// have another one, no scenario can be read and no test passes.
const PLACED: &str = "__yaml_spanned";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(PLACED, Fields(PhantomData))
    }
}

/// The four fields.
struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = At<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }
    /// Whatever is asked for, the answer is the fields; `unit` is the question that costs the least code.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<At<T>, D::Error> {
        deserializer.deserialize_unit(self)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<At<T>, A::Error> {
        skip(&mut fields)?;
        fields.next_key::<IgnoredAny>()?;
        let value = fields.next_value_seed(Value(PhantomData))?;
        let place = place(&mut fields)?;
        Ok(At { place: place.into(), value })
    }
}

/// The marker, which comes before the value.
fn skip<'de, A: MapAccess<'de>>(fields: &mut A) -> Result<(), A::Error> {
    fields.next_entry::<IgnoredAny, IgnoredAny>().map(drop)
}

/// Where the value is used, which comes after it; where it is defined is the same in a file without aliases.
fn place<'de, A: MapAccess<'de>>(fields: &mut A) -> Result<Location, A::Error> {
    let place = fields.next_entry::<IgnoredAny, Location>()?;
    Ok(place.ok_or_else(|| A::Error::missing_field("referenced"))?.1)
}

/// The value.
struct Value<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Value<T> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_newtype_struct("", self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Value<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a YAML file")
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}
