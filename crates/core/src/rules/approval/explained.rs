//! Why a command is allowed, denied or asked about, for whoever has written the rules.

use super::command::{Part as Piece, Script, Simple};
use super::pattern::Case;
use super::{Asked, Effect, Policy, Rule, Verdict};

/// What the rules say of a command.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What becomes of it.
    pub verdict: Verdict,
    /// The commands in it, as a shell would run them. `None`: it can't be read, so every rule that denies commands
    /// holds, and none that allows them.
    pub parts: Option<Vec<Part>>,
}

/// A command, and the rules that hold for it.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its words; `…` stands for what nobody knows before it runs.
    pub command: String,
    /// The rule that denies it.
    pub denied_by: Option<Rule>,
    /// The rule that allows it.
    pub allowed_by: Option<Rule>,
}

impl Policy {
    /// Which rules decide about this command, and how.
    pub fn explain(&self, command: &str) -> Explained {
        let call = Asked { name: "bash", subject: Some(command), effect: Effect::Runs };
        let case = Case::of(&call);
        let parts = match case.script() {
            Some(Script::Commands(commands)) => Some(commands.iter().map(|one| self.part(one)).collect()),
            Some(Script::Unreadable) | None => None,
        };
        Explained { verdict: self.judge(&call, &[]), parts }
    }

    fn part(&self, command: &Simple) -> Part {
        let of_commands = |rules: &[Rule], holds: fn(&Rule, &Simple) -> bool| {
            rules.iter().find(|rule| rule.is_for("bash") && holds(rule, command)).cloned()
        };
        Part {
            command: shown(command),
            denied_by: of_commands(&self.deny, Rule::denies_one),
            allowed_by: of_commands(&self.allow, Rule::allows_one),
        }
    }
}

fn shown(command: &Simple) -> String {
    if command.words.is_empty() {
        return "(a variable or a function is set, or a file is written)".to_owned();
    }
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Unknown => "…".to_owned(),
    };
    let words = command.words.iter().map(|word| word.0.iter().map(piece).collect::<String>());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    #[test]
    fn it_says_which_rule_decides_about_which_command() {
        let rules = |texts: &[&str]| texts.iter().map(|text| Rule::parse(text).unwrap()).collect();
        let policy = Policy {
            mode: Mode::Ask,
            allow: rules(&["bash(cargo *)"]),
            deny: rules(&["read(x)", "bash(git push *)"]),
            ..Policy::default()
        };
        let explained = policy.explain("cargo test && git -C x push $y; ls");
        assert!(matches!(explained.verdict, Verdict::Denied(_)));
        let text = |rule: &Option<Rule>| rule.as_ref().map_or("-".to_owned(), |rule| rule.text().to_owned());
        let parts = explained.parts.unwrap();
        let said: Vec<_> = parts
            .iter()
            .map(|part| (part.command.as_str(), text(&part.denied_by), text(&part.allowed_by)))
            .collect();
        let expected = [
            ("cargo test", "-", "bash(cargo *)"),
            ("git -C x push …", "bash(git push *)", "-"),
            ("ls", "-", "-"),
        ];
        assert_eq!(said, expected.map(|(command, deny, allow)| (command, deny.to_owned(), allow.to_owned())));
        assert!(policy.explain("echo 'a").parts.is_none());
    }
}
