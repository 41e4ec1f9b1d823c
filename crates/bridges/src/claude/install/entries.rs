//! What we write into settings, and how we know it again. It reads and writes no file.

use serde::{Deserialize, Serialize};

/// The events whose hooks look into the mailbox.
pub(super) const EVENTS: [&str; 8] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Stop",
];

/// The events with the hook that waits, which wakes a session that rests: behind its last word, and before its first.
const WAITING: [&str; 2] = ["SessionStart", "Stop"];

/// How long a hook may take, in seconds: one of ours gives itself up after one.
const TIMEOUT: u64 = 5;

/// How long one may wait, in seconds: Claude Code takes more for 2^31 - 1 ms, its greatest.
const WAIT_TIMEOUT: u64 = 2_147_483;

/// The setting, of `env`, with the program that starts commands.
pub(super) const PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// The name of ours.
pub(super) const EXEC: &str = "midturn-exec";

/// An element of an event's list.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Group {
    hooks: Vec<Handler>,
}

/// A hook. Its fields stand in the order in which people write them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handler {
    #[serde(rename = "type")]
    kind: String,
    /// The program.
    pub(super) command: String,
    /// With these no shell reads the command, so that a path may hold anything.
    args: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    async_rewake: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<serde_json::Number>,
}

impl Handler {
    fn of(program: &str, args: &[&str], timeout: u64) -> Self {
        Self {
            kind: "command".to_owned(),
            command: program.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            async_rewake: None,
            timeout: Some(timeout.into()),
        }
    }

    /// Whether it calls a program as ours is called.
    pub(super) fn is_alike(&self) -> bool {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        self.kind == "command" && matches!(args[..], ["hook"] | ["hook", "wait"])
    }
}

/// What we put in for an event.
pub(super) fn group(event: &str, program: &str) -> Group {
    let mut hooks = vec![Handler::of(program, &["hook"], TIMEOUT)];
    if WAITING.contains(&event) {
        let wait = Handler::of(program, &["hook", "wait"], WAIT_TIMEOUT);
        hooks.push(Handler { async_rewake: Some(true), ..wait });
    }
    Group { hooks }
}

/// Which entries are ours.
#[derive(Debug, Clone, Default)]
pub(super) struct Ours {
    /// The program of the last install, whatever it is called.
    pub(super) program: Option<String>,
    /// Its prefix.
    pub(super) prefix: Option<String>,
}

impl Ours {
    /// Whether a hook is ours, of this version or another one.
    pub(super) fn has(&self, handler: &Handler) -> bool {
        let is_known = self.program.as_ref() == Some(&handler.command);
        handler.is_alike() && (is_known || file_name(&handler.command).starts_with("midturn"))
    }

    /// Whether a prefix is ours.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.prefix.as_deref() == Some(prefix) || file_name(prefix) == EXEC
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether Claude Code can start commands by this path: it puts it into a line for the shell as it is.
pub(super) fn can_be_a_prefix(path: &str) -> bool {
    path.chars().all(|letter| letter.is_alphanumeric() || "/._-+@%:,=".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_known_by_their_words_and_their_program() {
        let named = Ours { program: Some("/opt/mt".into()), prefix: Some("/opt/mt-exec".into()) };
        for (program, args, stranger, known) in [
            ("/usr/bin/midturn", &["hook"][..], true, true),
            ("/old/midturn-0.0.9", &["hook", "wait"], true, true),
            ("/opt/mt", &["hook"], false, true),
            ("/usr/bin/midturn", &["hook", "more"], false, false),
            ("/usr/bin/midturn", &[], false, false),
            ("/midturn/other", &["hook"], false, false),
        ] {
            let handler = Handler::of(program, args, 5);
            assert_eq!((Ours::default().has(&handler), named.has(&handler)), (stranger, known), "{program}");
        }
        assert!(Ours::default().has_prefix("/x/midturn-exec") && named.has_prefix("/opt/mt-exec"));
        assert!(!named.has_prefix("/x/nice") && !Ours::default().has_prefix("/opt/mt-exec"));
    }

    #[test]
    fn a_prefix_is_a_path_that_no_shell_changes() {
        assert!(can_be_a_prefix("/home/zoë/.local/state/midturn/bin/midturn-exec"));
        for odd in ["/my home/midturn-exec", "/a'b/x", "/$HOME/x", "/a;b", "/a\nb", "/a*"] {
            assert!(!can_be_a_prefix(odd), "{odd}");
        }
    }
}
