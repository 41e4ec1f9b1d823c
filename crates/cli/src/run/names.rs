//! Names as people and other programs write them, made into ours: models by alias, tools by
//! the names that definition files use. Pure.

use std::collections::BTreeMap;

use midturn_core::engine::tools as coordinators;
use midturn_providers::BUILT_IN;

use crate::agents::About;
use crate::config;

/// The word for "the model of whoever spawned it".
pub(crate) const INHERIT: &str = "inherit";

/// How many aliases may stand for each other.
const CHAIN_MAX: usize = 8;

/// The model that a name stands for, aliases followed.
///
/// # Errors
/// The name is not an alias and has no `/` or `:`; or aliases stand for each other in a circle.
pub(crate) fn model(name: &str, aliases: &BTreeMap<String, String>) -> Result<String, String> {
    let mut at = name.trim();
    for _ in 0..CHAIN_MAX {
        match aliases.get(at).or_else(|| aliases.get(&vendors_word(at))) {
            Some(next) => at = next.trim(),
            None if at.contains(['/', ':']) => return Ok(at.to_owned()),
            None => return vendors_model(at).ok_or_else(|| unknown_model(at, aliases)),
        }
    }
    Err(format!("the alias `{name}` leads to other aliases and never to a model"))
}

/// A short name as other programs write it: in any case, and with the size of its context behind it.
fn vendors_word(name: &str) -> String {
    name.split('[').next().unwrap_or(name).trim().to_ascii_lowercase()
}

/// The model of a vendor whose own id stands alone, as `claude-sonnet-4-5` and `gpt-5` do.
fn vendors_model(name: &str) -> Option<String> {
    let id = vendors_word(name);
    let (family, version) = id.split_once('-').unwrap_or((&id, ""));
    let provider = match (family, version) {
        ("o1" | "o3" | "o4", _) => "openai",
        (_, "") => return None,
        ("claude", _) => "anthropic",
        ("gpt" | "chatgpt" | "codex", _) => "openai",
        _ => return None,
    };
    Some(format!("{provider}/{id}"))
}

/// Whether a definition's model is that of whoever spawns it.
pub(crate) fn is_inherited(name: &str) -> bool {
    [INHERIT, "default"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// How models are named.
pub(crate) fn forms() -> String {
    let built_in = BUILT_IN.map(|one| format!("{}/NAME", one.name));
    format!("{}, PROVIDER/NAME of a provider of yours", built_in.join(", "))
}

fn unknown_model(name: &str, aliases: &BTreeMap<String, String>) -> String {
    let known: Vec<String> = aliases.keys().map(|alias| format!("`{alias}`")).collect();
    format!("unknown model `{name}`: expected {}, scripted:FILE or an alias ({})", forms(), known.join(", "))
}

/// Our tools by the other names that other programs' definition files use for them.
const THEIRS: [(&str, &str); 32] = [
    ("agent", "spawn_agent"),
    ("apply_diff", "edit"),
    ("apply_patch", "edit"),
    ("codebase", "grep"),
    ("editfiles", "edit"),
    ("execute", "bash"),
    ("execute_command", "bash"),
    ("list", "glob"),
    ("list_directory", "glob"),
    ("list_files", "glob"),
    ("local_shell", "bash"),
    ("ls", "glob"),
    ("multiedit", "edit"),
    ("patch", "edit"),
    ("read_file", "read"),
    ("read_many_files", "read"),
    ("replace", "edit"),
    ("replace_in_file", "edit"),
    ("run_shell_command", "bash"),
    ("runcommands", "bash"),
    ("search", "grep"),
    ("search_file_content", "grep"),
    ("search_files", "grep"),
    ("sendmessage", "send_message"),
    ("shell", "bash"),
    ("str_replace_based_edit_tool", "edit"),
    ("task", "spawn_agent"),
    ("terminal", "bash"),
    ("todoread", "update_plan"),
    ("todowrite", "update_plan"),
    ("write_file", "write"),
    ("write_to_file", "write"),
];

/// Which tools an agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// The work tools by our names, each once; `None` is all of them.
    pub(crate) tools: Option<Vec<String>>,
    /// What was asked for and is not there. `Bash(git:*)` is among it: half a permission is
    /// not to be read as a whole one.
    pub(crate) unknown: Vec<String>,
}

impl Allowed {
    /// Reads the names of a definition file or of the configuration.
    pub(crate) fn of(names: &[String]) -> Self {
        if names.iter().any(|name| name == "*") {
            return Self::default();
        }
        let mut allowed = Self::default();
        let tools = allowed.tools.insert(Vec::new());
        for name in names {
            match ours(name) {
                None => allowed.unknown.push(name.clone()),
                // The coordinator's tools are everybody's, so naming them changes nothing.
                Some(tool) if coordinators::is_own(tool) || tools.iter().any(|known| known == tool) => {}
                Some(tool) => tools.push(tool.to_owned()),
            }
        }
        allowed
    }
}

/// What is taken away by names of a definition file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Forbidden {
    /// The work tools by our names.
    tools: Vec<&'static str>,
    /// What a person is told of the names.
    pub(crate) remarks: Vec<(About, String)>,
}

impl Forbidden {
    /// Reads the names. What is forbidden in part is taken away whole: more than was asked, and never less.
    pub(crate) fn of(names: &[String]) -> Self {
        let mut forbidden = Self::default();
        for written in names {
            let (name, is_part) =
                written.split_once('(').map_or((written.as_str(), false), |(name, _)| (name, true));
            let remark = match ours(name) {
                // What isn't there is taken away already.
                None => continue,
                Some(tool) if coordinators::is_own(tool) => Some(About::Everybodys),
                Some(tool) => {
                    forbidden.tools.push(tool);
                    is_part.then_some(About::Whole)
                }
            };
            forbidden.remarks.extend(remark.map(|about| (about, format!("`{written}`"))));
        }
        forbidden
    }

    /// The tools that are left of these; `None` is all.
    pub(crate) fn leaves(&self, tools: Option<Vec<String>>) -> Option<Vec<String>> {
        if self.tools.is_empty() {
            return tools;
        }
        let all = || {
            config::tools()
                .into_iter()
                .filter(|tool| !coordinators::is_own(tool))
                .map(str::to_owned)
                .collect()
        };
        let mut left: Vec<String> = tools.unwrap_or_else(all);
        left.retain(|tool| !self.tools.contains(&tool.as_str()));
        Some(left)
    }
}

fn ours(name: &str) -> Option<&'static str> {
    let plain = name.trim().to_ascii_lowercase();
    let theirs = THEIRS.iter().find(|(theirs, _)| *theirs == plain).map(|(_, ours)| *ours);
    theirs.or_else(|| config::tools().into_iter().find(|ours| *ours == plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_lead_to_models() {
        let aliases: BTreeMap<String, String> = [
            ("fast", "haiku"),
            ("haiku", "anthropic/h"),
            ("a", "b"),
            ("b", "a"),
            ("demo", "scripted:x.yaml"),
        ]
        .map(|(name, model)| (name.to_owned(), model.to_owned()))
        .into();
        for (name, expected) in [
            ("openai/x", Ok("openai/x")),
            (" fast ", Ok("anthropic/h")),
            ("demo", Ok("scripted:x.yaml")),
            ("a", Err("the alias `a` leads to other aliases")),
            ("gpt", Err("unknown model `gpt`: expected anthropic/NAME")),
            ("", Err("unknown model ``")),
        ] {
            match (model(name, &aliases), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (found, expected) => panic!("{name}: {found:?}, {expected:?}"),
            }
        }
    }

    #[test]
    fn tools_are_known_by_their_names_elsewhere() {
        for (names, tools, unknown) in [
            (&["Read", "grep"][..], Some(&["read", "grep"][..]), &[][..]),
            (&["MultiEdit", "Edit", "Task"], Some(&["edit"]), &[]),
            (&["WebFetch", "Bash(git:*)", "Read"], Some(&["read"]), &["WebFetch", "Bash(git:*)"]),
            (&["Read", "*"], None, &[]),
            (&[], Some(&[]), &[]),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let allowed = Allowed::of(&names);
            let expected = tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>());
            let unknown: Vec<String> = unknown.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(allowed, Allowed { tools: expected, unknown });
        }
    }
}
