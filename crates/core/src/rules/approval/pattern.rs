//! Rules as they are written: `bash(cargo test *)`, `edit(src/**)`, `read`.
//!
//! In a path `*` stays within a folder and `**` crosses folders; in a command `*` is anything, and a command is what
//! the shell makes of its text ([`super::command`]).

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::command::{self, Script, Simple};
use super::like::Like;
use super::{Asked, Effect};

/// How long a rule may be, in bytes.
const RULE_MAX: usize = 4 << 10;

/// One rule: a tool, and what its calls are about.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `None`: every tool.
    tool: Option<Arc<str>>,
    subject: Subject,
    text: Arc<str>,
    origin: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Subject {
    Any,
    /// This text, as it stands: a path, or a command that somebody has read.
    Exactly(Arc<str>),
    Path(GlobMatcher),
    /// Commands of this kind, or this text as it stands.
    Command(Like, Arc<str>),
}

/// A call, with its command read: once for all rules, and only if one asks.
pub(super) struct Case<'a> {
    call: &'a Asked<'a>,
    script: OnceCell<Option<Script>>,
}

impl<'a> Case<'a> {
    pub(super) fn of(call: &'a Asked<'a>) -> Self {
        Self { call, script: OnceCell::new() }
    }

    /// What its command is to a shell. `None`: it is none.
    pub(super) fn script(&self) -> Option<&Script> {
        let read = || self.call.subject.filter(|_| self.call.name == COMMANDS).map(command::read);
        self.script.get_or_init(read).as_ref()
    }

    /// Whether these rules allow it: one of them all of it, or each command in it one of them.
    pub(super) fn is_allowed_by<'r>(&self, rules: impl Iterator<Item = &'r Rule> + Clone) -> bool {
        let each = |commands: &[Simple]| {
            !commands.is_empty() && commands.iter().all(|one| rules.clone().any(|rule| rule.allows_one(one)))
        };
        rules.clone().any(|rule| rule.allows_as_it_stands(self.call))
            || matches!(self.script(), Some(Script::Commands(commands)) if each(commands))
    }
}

/// The tool whose subject is a command.
const COMMANDS: &str = "bash";

/// What stands in a command that is more than one, or writes a file.
const CONTROL: [char; 7] = [';', '&', '|', '<', '>', '`', '\n'];

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not of the form.
    #[error(
        "`{0}` is not a rule: write TOOL or TOOL(PATTERN), as in bash(cargo test *), edit(src/**) or read"
    )]
    Form(String),
    /// The pattern is none.
    #[error("`{0}` has a pattern that can't be read: {1}")]
    Pattern(String, String),
    /// The answer's rule would not allow the call that it answers.
    #[error("the rule `{0}` doesn't match the call it is the answer to")]
    OtherCall(String),
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// [`RuleError`]: it is none.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let form = || RuleError::Form(text.chars().take(200).collect());
        let trimmed = text.trim();
        if trimmed.len() > RULE_MAX {
            return Err(form());
        }
        let (name, pattern) = match trimmed.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(form)?)),
            None => (trimmed, None),
        };
        let tool = tool(name).ok_or_else(form)?;
        let subject = match (pattern, &tool) {
            (None | Some("*" | "**"), _) => Subject::Any,
            // What a pattern is held against differs from tool to tool.
            (Some(_), None) => return Err(form()),
            (Some(pattern), Some(tool)) if !pattern.trim().is_empty() => subject(tool, pattern.trim())
                .map_err(|error| RuleError::Pattern(trimmed.to_owned(), error))?,
            (Some(_), Some(_)) => return Err(form()),
        };
        Ok(Self { tool, subject, text: trimmed.into(), origin: None })
    }

    /// The rule that a call's "always" stands for: the same command, or all calls of the tool
    /// that edits.
    pub fn always(call: &Asked<'_>) -> Self {
        let tool: Arc<str> = call.name.into();
        match (call.effect, call.subject) {
            (Effect::Runs, Some(subject)) => Self {
                text: format!("{tool}({subject})").into(),
                subject: Subject::Exactly(subject.into()),
                tool: Some(tool),
                origin: None,
            },
            _ => Self { text: tool.clone(), subject: Subject::Any, tool: Some(tool), origin: None },
        }
    }

    /// With the place it is written at: `midturn.toml:12`.
    #[must_use]
    pub fn from(self, origin: impl Into<Arc<str>>) -> Self {
        Self { origin: Some(origin.into()), ..self }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it alone allows the call.
    pub fn allows(&self, call: &Asked<'_>) -> bool {
        Case::of(call).is_allowed_by([self].into_iter())
    }

    fn allows_as_it_stands(&self, call: &Asked<'_>) -> bool {
        self.is_for(call.name)
            && match (&self.subject, call.subject) {
                (Subject::Any, _) => true,
                (Subject::Exactly(text) | Subject::Command(_, text), Some(subject)) => **text == *subject,
                (Subject::Path(like), Some(subject)) => like.is_match(subject),
                (Subject::Exactly(_) | Subject::Path(_) | Subject::Command(..), None) => false,
            }
    }

    pub(super) fn allows_one(&self, command: &Simple) -> bool {
        self.is_for(COMMANDS) && matches!(&self.subject, Subject::Command(like, _) if like.allows(command))
    }

    /// Whether it denies the call: by all of it, or by any command in it. What can't be read it denies, too.
    pub(super) fn denies(&self, case: &Case<'_>) -> bool {
        self.is_for(case.call.name)
            && match &self.subject {
                Subject::Command(..) => match case.script() {
                    Some(Script::Commands(commands)) => commands.iter().any(|one| self.denies_one(one)),
                    Some(Script::Unreadable) => true,
                    None => false,
                },
                _ => self.allows_as_it_stands(case.call),
            }
    }

    pub(super) fn denies_one(&self, command: &Simple) -> bool {
        let Subject::Command(like, _) = &self.subject else { return matches!(self.subject, Subject::Any) };
        command::spellings(command).iter().any(|words| like.may_be(words))
    }

    /// Whether it is a rule about reading that holds for this file.
    pub(super) fn is_about_reading(&self, path: &str) -> bool {
        match &self.subject {
            _ if !self.is_for("read") || self.tool.is_none() => false,
            Subject::Path(like) => like.is_match(path),
            Subject::Exactly(exactly) => **exactly == *path,
            Subject::Any | Subject::Command(..) => false,
        }
    }

    /// A rule for `read` holds for all that read files, one for `edit` for all that change them.
    pub(super) fn is_for(&self, name: &str) -> bool {
        match self.tool.as_deref() {
            None => true,
            Some("read") => matches!(name, "read" | "grep" | "glob"),
            Some("edit") => matches!(name, "edit" | "write"),
            Some(tool) => tool == name,
        }
    }

    /// Whether it looks like a pattern of several commands, and holds only for this text as it stands.
    pub fn is_no_pattern(&self) -> bool {
        matches!(&self.subject, Subject::Exactly(text) if self.is_for(COMMANDS) && text.contains(CONTROL) && text.contains(['*', '?']))
    }

    /// Whether it is about a tool that there is.
    pub fn names_one_of(&self, tools: &[&str]) -> bool {
        self.tool.as_deref().is_none_or(|tool| tools.contains(&tool))
    }

    /// Whether it plainly says at least what the other one says.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let same_tool = self.tool.is_none() || self.tool == other.tool;
        same_tool
            && match (&self.subject, &other.subject) {
                (Subject::Any, _) => true,
                (Subject::Exactly(a), Subject::Exactly(b)) => a == b,
                (Subject::Path(a), Subject::Path(b)) => a.glob() == b.glob(),
                (Subject::Command(a, _), Subject::Command(b, _)) => a == b,
                (Subject::Exactly(_) | Subject::Path(_) | Subject::Command(..), _) => false,
            }
    }
}

/// `None`: a name that can't be one. `Some(None)`: every tool.
fn tool(name: &str) -> Option<Option<Arc<str>>> {
    let name = name.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    match name {
        "*" => Some(None),
        "" => None,
        name if name.chars().all(allowed) => Some(Some(name.to_ascii_lowercase().into())),
        _ => None,
    }
}

fn subject(tool: &str, pattern: &str) -> Result<Subject, String> {
    if tool == COMMANDS {
        if pattern.contains(CONTROL) {
            return Ok(Subject::Exactly(pattern.into()));
        }
        return Ok(Subject::Command(Like::parse(pattern)?, pattern.into()));
    }
    if pattern.starts_with("//") || pattern.starts_with('~') || pattern.split('/').any(|part| part == "..") {
        return Err(
            "it leads out of the agent's folder, which no file tool leaves: it would never match".to_owned()
        );
    }
    // `/src` is the folder's `src`, as others write it.
    let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
    if !pattern.contains(['*', '?', '[', '{', '\\']) {
        return Ok(Subject::Exactly(pattern.into()));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| Subject::Path(glob.compile_matcher())).map_err(|error| error.kind().to_string())
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "`{}` ({origin})", self.text),
            None => write!(f, "`{}`", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, name: &str, subject: &str) -> bool {
        let effect = if name == "bash" { Effect::Runs } else { Effect::Edits };
        Rule::parse(rule).unwrap().allows(&Asked { name, subject: Some(subject), effect })
    }

    #[test]
    fn a_rule_allows_what_its_pattern_says_and_no_more() {
        for (rule, name, subject, expected) in [
            ("bash", "bash", "anything; at all", true),
            ("*", "bash", "x", true),
            ("Bash(cargo *)", "bash", "cargo test -- a/b", true),
            ("bash(cargo *)", "bash", "cargo", true),
            ("bash(cargo *)", "bash", "cargo fmt && cargo test | cargo x", true),
            ("bash(cargo *)", "bash", "cargo fmt && ls", false),
            ("bash(cargo *)", "bash", "cargo test > /etc/x", false),
            ("bash(cargo *)", "bash", "cargo test $(rm x)", false),
            ("bash(cargo *)", "bash", "cargo test\nrm x", false),
            ("bash(a; b)", "bash", "a; b", true),
            ("edit(src/*)", "edit", "src/a.rs", true),
            ("edit(src/*)", "edit", "src/a/b.rs", false),
            ("edit(src/**)", "edit", "src/a/b.rs", true),
            ("edit(./src/**)", "edit", "src/a/b.rs", true),
            ("edit(/src/**)", "edit", "src/a/b.rs", true),
            ("edit(src/**)", "write", "src/a.rs", true),
            ("write(src/**)", "edit", "src/a.rs", false),
        ] {
            assert_eq!(allows(rule, name, subject), expected, "{rule} {subject}");
        }
    }

    #[test]
    fn what_is_no_rule_is_an_error_that_shows_how_one_is_written() {
        for text in ["", "bash(", "bash(x", "ba sh", "bash()", "*(x)", "(x)", "bash(x) y"] {
            assert!(matches!(Rule::parse(text), Err(RuleError::Form(_))), "{text:?}");
        }
        for text in [
            "edit([)",
            "bash([)",
            "bash({a)",
            "bash(a\\)",
            "read(~/.ssh/**)",
            "read(//etc/passwd)",
            "edit(../x)",
        ] {
            assert!(matches!(Rule::parse(text), Err(RuleError::Pattern(..))), "{text}");
        }
        for (text, is_none) in
            [("bash(curl * | sh)", true), ("bash(a > *)", true), ("bash(a; b)", false), ("bash(a *)", false)]
        {
            assert_eq!(Rule::parse(text).unwrap().is_no_pattern(), is_none, "{text}");
        }
        assert!(Rule::parse(&"x".repeat(RULE_MAX + 1)).is_err());
    }

    #[test]
    fn always_is_the_same_command_or_the_tool_that_edits() {
        let call = Asked { name: "bash", subject: Some("rm [a]; ls *"), effect: Effect::Runs };
        let rule = Rule::always(&call);
        assert_eq!(rule.text(), "bash(rm [a]; ls *)");
        assert!(rule.allows(&call));
        assert!(!rule.allows(&Asked { subject: Some("rm a; ls x"), ..call }));
        let edit = Asked { name: "edit", subject: Some("a"), effect: Effect::Edits };
        assert!(Rule::always(&edit).allows(&Asked { subject: Some("b"), ..edit }));
    }
}
