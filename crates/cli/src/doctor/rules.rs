//! `midturn doctor --rules COMMAND`: which rule decides about a command, and why.

use midturn_core::rules::approval::{Explained, Mode, Part, Policy, Rule, Verdict};
use serde_json::{Value, json};

/// What the rules say of the command, in lines or as JSON.
pub(super) fn explained(policy: &Policy, command: &str, as_json: bool) -> String {
    let explained = policy.explain(command);
    if as_json { format!("{:#}\n", value(&explained)) } else { lines(policy.mode, &explained) }
}

fn lines(mode: Mode, explained: &Explained) -> String {
    let mut lines: Vec<String> = match &explained.parts {
        Some(parts) => parts.iter().map(line).collect(),
        None => vec![
            "it can't be read as a shell would read it: every `deny` rule for commands holds, and no `allow`"
                .to_owned(),
        ],
    };
    let mode = mode.as_str();
    lines.push(match &explained.verdict {
        Verdict::Allowed => format!("so in the mode `{mode}` it runs unasked"),
        Verdict::Ask => format!("so in the mode `{mode}` you are asked"),
        Verdict::Denied(why) => format!("so it never runs: {why}"),
    });
    lines.join("\n") + "\n"
}

fn line(Part { command, denied_by, allowed_by }: &Part) -> String {
    match (denied_by, allowed_by) {
        (Some(rule), _) => format!("{command}\n        denied by the rule {rule}"),
        (None, Some(rule)) => format!("{command}\n        allowed by the rule {rule}"),
        (None, None) => format!("{command}\n        no rule holds for it"),
    }
}

fn value(explained: &Explained) -> Value {
    let rule = |rule: &Option<Rule>| rule.as_ref().map(ToString::to_string);
    let part = |part: &Part| {
        json!({
            "command": part.command,
            "denied_by": rule(&part.denied_by),
            "allowed_by": rule(&part.allowed_by),
        })
    };
    let (verdict, why) = match &explained.verdict {
        Verdict::Allowed => ("allowed", None),
        Verdict::Ask => ("asked", None),
        Verdict::Denied(why) => ("denied", Some(why)),
    };
    let commands: Option<Vec<Value>> = explained.parts.as_ref().map(|parts| parts.iter().map(part).collect());
    json!({"verdict": verdict, "why": why, "commands": commands})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_the_rule_of_each_command_and_what_becomes_of_all() {
        let rule = |text| Rule::parse(text).unwrap().from("midturn.toml:3");
        let policy = Policy {
            mode: Mode::Ask,
            allow: vec![rule("bash(cargo:*)")],
            deny: vec![rule("bash(git push *)")],
            ..Policy::default()
        };
        for (command, expected) in [
            (
                "cargo test && git push",
                "cargo test\n        allowed by the rule `bash(cargo:*)` (midturn.toml:3)\n\
                git push\n        denied by the rule `bash(git push *)` (midturn.toml:3)\n\
                so it never runs: the rule `bash(git push *)` (midturn.toml:3) forbids it\n",
            ),
            ("ls", "ls\n        no rule holds for it\nso in the mode `ask` you are asked\n"),
        ] {
            assert_eq!(explained(&policy, command, false), expected);
        }
        assert!(explained(&policy, "echo 'a", false).starts_with("it can't be read"));
        assert!(explained(&policy, "ls", true).contains("\"verdict\": \"asked\""));
    }
}
