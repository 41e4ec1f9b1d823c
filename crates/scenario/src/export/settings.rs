//! The settings of a session's agents, as far as they differ from the defaults: the first agent's
//! for the file, and of the others what is not as there.

use midturn_core::rules::settings::{Settings, SettingsPatch};
use serde_json::{Map, Value};

use super::ExportError;

/// The file's settings, which are the first agent's, and those of each agent over them.
pub(super) fn layers<'a>(
    agents: impl Iterator<Item = &'a Settings> + Clone,
) -> Result<(SettingsPatch, Vec<SettingsPatch>), ExportError> {
    let default = Settings::default();
    let base = agents.clone().next().unwrap_or(&default);
    let common = layer(base, &default)?;
    let own: Result<_, _> = agents.map(|own| layer(own, base)).collect();
    Ok((common, own?))
}

/// What of the settings is not as in others.
fn layer(own: &Settings, base: &Settings) -> Result<SettingsPatch, ExportError> {
    let layer = serde_json::from_value(difference(&value(own)?, &value(base)?));
    let layer: Option<SettingsPatch> =
        layer.map_err(|error| ExportError::damaged(format!("the settings can't be written: {error}")))?;
    Ok(layer.unwrap_or_default())
}

fn value(settings: &Settings) -> Result<Value, ExportError> {
    serde_json::to_value(settings)
        .map_err(|error| ExportError::damaged(format!("the settings are no JSON: {error}")))
}

/// What of `own` is not as in `base`; null when nothing is.
fn difference(own: &Value, base: &Value) -> Value {
    let (Value::Object(own), Value::Object(base)) = (own, base) else {
        return if own == base { Value::Null } else { own.clone() };
    };
    let differs = |(key, value): (&String, &Value)| {
        let part = difference(value, base.get(key).unwrap_or(&Value::Null));
        (!part.is_null()).then(|| (key.clone(), part))
    };
    let part: Map<String, Value> = own.iter().filter_map(differs).collect();
    if part.is_empty() { Value::Null } else { Value::Object(part) }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::settings::Patched;
    use midturn_core::rules::time::Span;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_first_has_is_the_files_and_the_rest_is_each_agents() {
        let mut one = Settings { max_turns: 7, ..Settings::default() };
        one.retry.base = Span::millis(40);
        let other = Settings { keep_edits_together: true, ..one.clone() };
        let (file, own) = layers([&one, &other].into_iter()).unwrap();
        let patch = |json: Value| serde_json::from_value::<SettingsPatch>(json).unwrap();
        assert_eq!(file, patch(json!({"max_turns": 7, "retry": {"base": "40ms"}})));
        assert_eq!(own, [SettingsPatch::default(), patch(json!({"keep_edits_together": true}))]);
    }

    #[test]
    fn the_layers_laid_over_the_defaults_are_the_settings() {
        let one = Settings {
            progress_guard: midturn_core::rules::settings::ProgressGuard(0),
            ..Settings::default()
        };
        let (file, own) = layers([&one].into_iter()).unwrap();
        assert_eq!(own[0], SettingsPatch::default());
        let mut read = Settings::default();
        read.patch(&file);
        assert_eq!(read, one);
    }
}
