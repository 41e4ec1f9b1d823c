//! The file that `midturn init` writes: every key with what it means and its default, all of it commented out.

use serde_json::{Value, json};

use super::authority::{self, Whose};
use super::keys;
use super::meaning::meaning;
use super::show::assignment;

/// How long a line of a comment may be.
const WIDTH: usize = 100;

/// What a key without a default may be, and keys with a name that somebody chooses.
fn examples() -> Vec<(String, Value)> {
    let of = |key: &str, value: Value| (key.to_owned(), value);
    vec![
        of("agents.tools", json!(["read", "grep", "glob", "edit", "bash"])),
        of("aliases.qwen", json!("local/qwen3")),
        of("folder.base", json!("~/agents")),
        of("folder.setup", json!("npm ci")),
        of("model", json!("sonnet")),
        of("models.anthropic/claude-sonnet-4-5.cached", json!(0.3)),
        of("models.anthropic/claude-sonnet-4-5.context_tokens", json!(200_000)),
        of("models.anthropic/claude-sonnet-4-5.input", json!(3.0)),
        of("models.anthropic/claude-sonnet-4-5.output", json!(15.0)),
        of("notify.command", json!("notify-send \"$NEED_LINE\"")),
        of("providers.local.base_url", json!("http://127.0.0.1:8080/v1")),
        of("providers.local.dialect", json!("chat")),
        of("providers.local.headers.x-team", json!("blue")),
        of("providers.local.key_env", json!("LOCAL_API_KEY")),
        of("providers.local.max_concurrent", json!(8)),
        of("providers.local.max_output_tokens", json!(8_000)),
        of("providers.local.query.api-version", json!("preview")),
        of("providers.local.reasoning_effort", json!("low")),
        of("providers.anthropic.thinking_budget", json!(4_000)),
        of("sandbox.commands", json!(16)),
        of("sandbox.tier", json!("bubblewrap")),
    ]
}

/// Every key with its default, or else with what it may be; of the keys that somebody names, examples.
pub(super) fn keys() -> Vec<(String, Value)> {
    let mut all = keys::defaults();
    all.retain(|key, _| !key.starts_with("providers."));
    all.extend(examples());
    all.into_iter().collect()
}

/// The whole file. One for a project has no key that only a person's own may say.
pub(crate) fn template(whose: Whose) -> String {
    let mut text = head(whose);
    let mut before = None;
    for (key, value) in keys() {
        // A project's file can only lower what a person's own providers have.
        if whose == Whose::Project && (authority::is_a_persons(&key) || key.starts_with("providers.")) {
            continue;
        }
        let means = meaning(&key).unwrap_or_default();
        // Of keys that mean the same it is said once.
        if before != Some(means) {
            text.push('\n');
            text.push_str(&comment(means));
        }
        text.push_str(&format!("# {}\n", assignment(&key, &value)));
        before = Some(means);
    }
    text
}

fn head(whose: Whose) -> String {
    let rest = match whose {
        Whose::Person => "It is yours, and holds in all projects.",
        Whose::Project => {
            "It holds in this project, for whoever works in it, and can only tighten what a person's own file says \
             (`midturn init --user` writes that one, with the keys that are missing here)."
        }
    };
    comment(&format!(
        "Midturn's configuration. {rest} Everything is commented out and shows the default, or an example where there \
         is none: take the `# ` before a key away to set it. `midturn config` shows what holds, and where it came from."
    ))
}

/// A text as lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].chars().count() + word.chars().count() >= WIDTH {
            lines.push(format!("# {word}"));
        } else {
            lines[last].push(' ');
            lines[last].push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_meaning_on_the_page_and_a_value_that_it_takes() {
        for (key, value) in keys() {
            assert!(meaning(&key).is_some_and(|meaning| !meaning.is_empty()), "{key}");
            assert_eq!(keys::check(&key, &value), Ok(()), "{key}");
        }
    }
}
