//! What isn't a command of a model's runs as if we weren't there: MCP servers by their words, hooks by `/bin/sh`.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::process::{Command, Output};

const SHOW: &str = "printf '%s|' \"$0\" \"$@\" $$ $PPID; tr '\\0' '\\n' < /proc/$$/environ";

fn run(words: &[&str], environment: &[(&str, &str)]) -> (u32, Output) {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("AI_AGENT", "claude-code_2-1-331_harness");
    let child = command
        .envs(environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    (child.id(), child.wait_with_output().unwrap())
}

/// Each run's own number is read as `SELF`.
fn seen(words: &[&str], environment: &[(&str, &str)]) -> String {
    let (pid, output) = run(words, environment);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).replace(&format!("|{pid}|"), "|SELF|");
    format!("{} {text}", output.status)
}

#[test]
fn servers_and_hooks_run_as_without_us() {
    let prefix = env!("CARGO_BIN_EXE_midturn-exec");
    let server = [("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS", "s1")];
    let hook = [("CLAUDE_PID", "1")];

    let line = format!("/bin/sh -c '{}' a.sh one 'two three' 'it'\"'\"'s' ''", SHOW.replace('\'', "'\"'\"'"));
    let plain = seen(&["/bin/sh", "-c", SHOW, "a.sh", "one", "two three", "it's", ""], &server);
    assert!(plain.contains("|one|two three|it's||SELF|"), "{plain}");
    assert_eq!(seen(&[prefix, &line], &server), plain);

    for line in [
        SHOW,
        "exit 3",
        "echo out; echo err >&2; false",
        "kill -TERM $$",
        "nosuchprogram || exit 2 && x",
        "a=('",
    ] {
        assert_eq!(seen(&[prefix, line], &hook), seen(&["/bin/sh", "-c", line], &hook), "{line}");
    }
}

#[test]
fn by_another_name_it_is_something_else_and_without_words_it_is_nothing() {
    let (_, output) = run(&[env!("CARGO_BIN_EXE_midturn-exec")], &[]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("midturn");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_midturn-exec"), &other).unwrap();
    let (_, output) = run(&[other.to_str().unwrap(), "echo run"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}
