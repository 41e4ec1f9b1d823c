//! Schemas out, arguments in: one struct per tool is both.

use std::sync::Arc;

use midturn_core::engine::ports::{Output, ToolSpec};
use midturn_core::rules::conversation::ToolUse;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// What the model is told of a tool whose arguments are an `A`.
pub(crate) fn spec<A: JsonSchema>(name: &str, description: &str) -> Arc<ToolSpec> {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<A>();
    // Of no use to a model, and each byte is paid for in every request.
    schema.remove("$schema");
    schema.remove("title");
    schema.remove("description");
    Arc::new(ToolSpec { name: name.into(), description: description.into(), input_schema: schema.to_value() })
}

/// The arguments of a call, or a result that says what was wrong and where.
pub(crate) fn parse<A: DeserializeOwned>(call: &ToolUse) -> Result<A, Output> {
    serde_path_to_error::deserialize(&call.input).map_err(|error| {
        let place = error.path().to_string();
        let what = error.into_inner();
        Output::error(if place == "." {
            format!("The arguments of {} don't fit: {what}.", call.name)
        } else {
            format!("The arguments of {} don't fit: `{place}`: {what}.", call.name)
        })
    })
}
