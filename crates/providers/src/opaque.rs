//! Blocks that only their provider understands: whose they are, and how one that comes in
//! pieces is put together without touching the rest.

use std::borrow::Cow;
use std::fmt;

use midturn_core::rules::conversation::Opaque;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Whose block it is. A conversation may be continued with another provider's model, which
/// would refuse what it doesn't know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Anthropic,
    OpenAi,
}

/// The owner, by the block's type.
pub(crate) fn owner(block: &Opaque) -> Owner {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let kind = serde_json::from_str::<Typed<'_>>(&block.0).map_or(Cow::Borrowed(""), |typed| typed.kind);
    let items = ["reasoning", "compaction_summary", "mcp_list_tools", "item_reference"];
    let calls = ["_call", "_call_output", "_approval_request", "_approval_response"];
    if items.contains(&kind.as_ref()) || calls.iter().any(|end| kind.ends_with(end)) {
        Owner::OpenAi
    } else {
        Owner::Anthropic
    }
}

/// A JSON object whose fields keep their order and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Replaces a field's value, or adds the field.
    pub(crate) fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Takes over the fields of another object, but for its `type`.
    pub(crate) fn lay_over(&mut self, other: Self) {
        for (name, value) in other.0 {
            if name != "type" {
                self.set(&name, value);
            }
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_type() {
        for (block, whose) in [
            (r#"{"type":"thinking"}"#, Owner::Anthropic),
            (r#"{"type":"server_tool_use"}"#, Owner::Anthropic),
            (r#"{"type":"web_search_tool_result"}"#, Owner::Anthropic),
            (r#"{"id":"rs_1","type":"reasoning"}"#, Owner::OpenAi),
            (r#"{"type":"web_search_call"}"#, Owner::OpenAi),
        ] {
            assert_eq!(owner(&Opaque(block.into())), whose, "{block}");
        }
    }

    #[test]
    fn what_is_not_replaced_keeps_its_bytes_and_its_place() {
        let mut fields: Fields =
            serde_json::from_str(r#"{"type":"x","z":1.50,"input":{},"a":"\u00e9"}"#).unwrap();
        fields.lay_over(serde_json::from_str(r#"{"type":"y","input":{"q": 1}}"#).unwrap());
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(json, r#"{"type":"x","z":1.50,"input":{"q": 1},"a":"\u00e9"}"#);
    }
}
