//! The scenario file as it is written: the counterpart of what `file` reads. Keys stand in the
//! order in which they are put; those that would say the default are left out.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A value of the file.
#[derive(Debug)]
pub(super) enum Out {
    One(Value),
    List(Vec<Out>),
    Keys(Keys),
}

/// A map whose keys stand in the order in which they were put.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<(&'static str, Out)>);

impl Keys {
    /// Puts a value, if there is one.
    pub(super) fn put(mut self, key: &'static str, value: Option<impl Serialize>) -> Self {
        let value = value.and_then(|value| serde_json::to_value(value).ok());
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0.push((key, Out::One(value)));
        }
        self
    }

    /// Puts a text, or anything else that is left out when it is as it is by default.
    pub(super) fn unless_default<T: Serialize + Default + PartialEq>(
        self,
        key: &'static str,
        value: &T,
    ) -> Self {
        self.put(key, (*value != T::default()).then_some(value))
    }

    /// Puts a list, if anything is in it.
    pub(super) fn list(mut self, key: &'static str, list: Vec<Out>) -> Self {
        if !list.is_empty() {
            self.0.push((key, Out::List(list)));
        }
        self
    }

    /// Puts a map.
    pub(super) fn map(mut self, key: &'static str, keys: Option<Keys>) -> Self {
        self.0.extend(keys.map(|keys| (key, Out::Keys(keys))));
        self
    }
}

impl From<Keys> for Out {
    fn from(keys: Keys) -> Self {
        Self::Keys(keys)
    }
}

impl Serialize for Out {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(value) => value.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Keys(Keys(keys)) => serializer.collect_map(keys.iter().map(|(key, value)| (key, value))),
        }
    }
}
