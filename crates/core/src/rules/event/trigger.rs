//! What starts a run, as events have it: a word, or the ids of messages.

use serde::{Deserialize, Serialize};

use crate::rules::id::MessageId;

/// What started a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The agent's prompt.
    Prompt,
    /// Messages; none when somebody resumed it.
    Mail(Vec<MessageId>),
}

impl Trigger {
    /// What kind of thing it is.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Mail(ids) if ids.is_empty() => "resume",
            Self::Mail(_) => "message",
        }
    }
}

impl Serialize for Trigger {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt => serializer.serialize_str("prompt"),
            Self::Mail(ids) => ids.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Word(String),
            Ids(Vec<MessageId>),
        }
        match Form::deserialize(deserializer)? {
            Form::Word(word) if word == "prompt" => Ok(Self::Prompt),
            Form::Word(word) => Err(serde::de::Error::custom(format!("`{word}` is not a trigger"))),
            Form::Ids(ids) => Ok(Self::Mail(ids)),
        }
    }
}

impl schemars::JsonSchema for Trigger {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Trigger".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let ids = generator.subschema_for::<Vec<MessageId>>();
        schemars::json_schema!({"anyOf": [{"const": "prompt"}, ids]})
    }
}
