//! Names as people mistype them: the nearest known one, environment names for keys, and
//! which names are those of secrets.

/// The prefix of all our environment variables.
pub(super) const PREFIX: &str = "MIDTURN_";

/// The environment variable for a key: `retry.attempts` is `MIDTURN_RETRY_ATTEMPTS`.
pub(super) fn variable(key: &str) -> String {
    let upper = key.to_ascii_uppercase();
    format!("{PREFIX}{}", upper.replace(['.', '-'], "_"))
}

/// The known name that is most like this one, if any is like it at all.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        // The last segment is what people remember; the table before it is what they leave out.
        let last = candidate.rsplit('.').next().unwrap_or(candidate);
        let own_last = name.rsplit('.').next().unwrap_or(name);
        strsim::jaro_winkler(name, candidate).max(strsim::jaro_winkler(own_last, last) * 0.98)
    };
    known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The end of an error about an unknown name.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(candidate) => format!("; the nearest known name is `{candidate}`"),
        None => "; `midturn config` lists the known names".to_owned(),
    }
}

/// If the name is one that people give to secrets: why it is refused, and what to do.
pub(super) fn secret(key: &str) -> Option<String> {
    let plain = key.to_ascii_lowercase().replace('-', "_");
    let last = plain.rsplit('.').next().unwrap_or(&plain);
    let ends = ["api_key", "apikey", "_key", "token", "secret", "password", "credential", "credentials"];
    if last != "key" && !ends.iter().any(|end| last.ends_with(end)) {
        return None;
    }
    let variables = match (plain.contains("anthropic"), plain.contains("openai")) {
        (true, false) => "ANTHROPIC_API_KEY there",
        (false, true) => "OPENAI_API_KEY there",
        _ if plain.starts_with("providers") => "a variable there and name it as the provider's `key_env`",
        _ => "ANTHROPIC_API_KEY or OPENAI_API_KEY there",
    };
    Some(format!(
        "keys come from the environment only, so that none is committed or shown by mistake: set {variables}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let known =
            ["max_turns", "max_tokens", "retry.attempts", "retry.cap", "providers.openai.base_url", "model"];
        for (typed, meant) in [
            ("max_turn", Some("max_turns")),
            ("maxtokens", Some("max_tokens")),
            ("retry.attempt", Some("retry.attempts")),
            ("attempts", Some("retry.attempts")),
            ("providers.openai.base_ulr", Some("providers.openai.base_url")),
            ("modle", Some("model")),
            ("zzz", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn names_of_secrets_are_told_from_those_of_limits() {
        for name in
            ["api_key", "providers.anthropic.api-key", "OPENAI_API_KEY", "auth_token", "apiKey", "key"]
        {
            assert!(secret(name).is_some(), "{name}");
        }
        for name in ["max_tokens", "max_token_count", "model", "keep_edits", "aliases.monkey"] {
            assert!(secret(name).is_none(), "{name}");
        }
    }
}
