//! A front matter that is no YAML, read line by line: people write descriptions with colons in them, and
//! examples below those that begin at the margin. Tried only where the YAML parser has refused.

use super::front_matter::{FrontMatter, KEYS, Placed, ToolList};

/// The keys of other programs' files. Only a known word begins a new key here: a dialogue in a description
/// (`user: "…"`) looks like one, too.
const THEIRS: [&str; 23] = [
    "allowed-tools",
    "author",
    "background",
    "category",
    "color",
    "effort",
    "hooks",
    "initialPrompt",
    "maxTurns",
    "mcpServers",
    "memory",
    "metadata",
    "mode",
    "permissionMode",
    "priority",
    "skills",
    "steps",
    "tags",
    "temperature",
    "thinking",
    "top_p",
    "triggers",
    "version",
];

/// The known keys of a front matter, `yaml` being its text from the first line of dashes on. `None`: there is
/// neither a name nor a description in it.
pub(super) fn read(yaml: &str) -> Option<FrontMatter> {
    let mut front = FrontMatter::default();
    for (line, key, lines) in fields(yaml) {
        match key {
            "name" => front.name = text(line, &lines),
            "description" => front.description = text(line, &lines),
            "model" => front.model = text(line, &lines),
            "isolation" => front.isolation = text(line, &lines),
            "tools" => front.tools = tools(line, &lines),
            "disallowedTools" => front.disallowed = tools(line, &lines),
            key => front.unknown.push((line, key.to_owned())),
        }
    }
    (front.name.is_some() || front.description.is_some()).then_some(front)
}

/// Each key with its line, and the lines of its value.
fn fields(yaml: &str) -> Vec<(usize, &str, Vec<&str>)> {
    let mut fields: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for (number, line) in (1..).zip(yaml.lines()).skip(1) {
        match (beginning(line), fields.last_mut()) {
            (Some((key, value)), _) => fields.push((number, key, vec![value])),
            (None, Some((_, _, lines))) => lines.push(line.trim()),
            (None, None) => {}
        }
    }
    fields
}

fn beginning(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    (KEYS.contains(&key) || THEIRS.contains(&key)).then(|| (key, value.trim()))
}

/// A text, without the sign of a block or the quotes around it.
fn text(line: usize, lines: &[&str]) -> Option<Placed<String>> {
    let is_sign = |line: &&&str| line.starts_with(['>', '|']) && line.len() <= 3;
    let lines = if lines.first().filter(is_sign).is_some() { &lines[1..] } else { lines };
    let whole = lines.join("\n");
    let whole = whole.trim();
    let bare = ['"', '\''].iter().find_map(|quote| whole.strip_prefix(*quote)?.strip_suffix(*quote));
    let value = bare.unwrap_or(whole).to_owned();
    (!value.is_empty()).then_some(Placed { line, value })
}

/// Names in a list of either form, or in one text; `[]` is none, and nothing says nothing.
fn tools(line: usize, lines: &[&str]) -> Option<Placed<ToolList>> {
    let items = lines.iter().map(|line| line.trim_start_matches("- ").trim_matches(['[', ']']));
    let joined = items.collect::<Vec<_>>().join(",").replace(['"', '\''], "");
    let is_said = lines.iter().any(|line| !line.is_empty());
    is_said.then(|| Placed { line, value: ToolList::of_text(&joined) })
}
