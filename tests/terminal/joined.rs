//! A session in somebody's own Claude Code, on the screen of a daemon (docs/bridges.md). The program is this test: it
//! starts the hooks, and writes a transcript as the program does.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::ground::Ground;
use crate::tmux::{USUAL, is_here};

const SESSION: &str = "0e7c0a3c-4a52-4a7a-9d6b-000000000003";

/// What the program does.
struct Program<'a>(&'a Ground);

impl Program<'_> {
    fn transcript(&self) -> PathBuf {
        self.0.path(&format!("{SESSION}.jsonl"))
    }

    /// What a hook answers.
    fn hook(&self, event: &str, more: &Value) -> Option<Value> {
        let mut input = json!({"hook_event_name": event, "session_id": SESSION, "cwd": self.0.path("main"),
            "transcript_path": self.transcript()});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut hook = self.0.command(midturn_tests::binary());
        hook.arg("hook")
            .env("CLAUDE_PID", std::process::id().to_string())
            .env("AI_AGENT", "claude-code_2-1-331_harness");
        let mut running = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = running.wait_with_output().unwrap();
        let answer: Option<Value> =
            (!output.stdout.is_empty()).then(|| serde_json::from_slice(&output.stdout).unwrap());
        answer.map(|answer| answer["hookSpecificOutput"].clone())
    }

    fn writes(&self, kind: &str, more: &Value) {
        let mut line = json!({"type": kind, "timestamp": now()});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.transcript()).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn says(&self, id: &str, block: &Value) {
        let message = json!({"id": id, "role": "assistant", "content": [block], "stop_reason": "tool_use"});
        self.writes("assistant", &json!({"message": message}));
    }

    fn calls(&self, call: &str, command: &str) {
        self.says(
            "m1",
            &json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}),
        );
    }

    fn ended(&self, call: &str, text: &str) {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": text, "is_error": text.starts_with("Pre")});
        self.writes("user", &json!({"message": {"role": "user", "content": [block]}}));
    }
}

/// As the program writes it.
fn now() -> String {
    let mut date = std::process::Command::new("date");
    let said = date.args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_joined_session_is_seen_and_corrected_on_the_screen() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let program = Program(&ground);
    program.hook("SessionStart", &json!({"source": "startup"}));
    program.hook("UserPromptSubmit", &json!({"prompt": "Rename it."}));
    program.writes("user", &json!({"message": {"role": "user", "content": "Rename it."}}));
    program.calls("t1", "make first");
    program.calls("t2", "make second");
    let _daemon = ground.daemon(&[]).await;

    let terminal = ground.midturn(USUAL, &["attach", &SESSION[..8]]);
    terminal.sees("make first").await;
    terminal.sees("Claude Code in main").await;
    terminal.types("The name is load_from.");
    terminal.send(&["C-s"]);
    terminal.sees("queued  1").await;

    // The first call ends, the second is skipped, and the words are told with the results.
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "make second"}, "tool_use_id": "t2"});
    let denied = program.hook("PreToolUse", &call).unwrap();
    let skipped =
        format!("PreToolUse:Bash hook error: {}", denied["permissionDecisionReason"].as_str().unwrap());
    program.ended("t1", "made");
    program.ended("t2", &skipped);
    let calls = json!([{"tool_use_id": "t1", "tool_response": "made"}, {"tool_use_id": "t2", "tool_response": skipped}]);
    let given = program.hook("PostToolBatch", &json!({"tool_calls": calls})).unwrap();
    let content = [&given["additionalContext"]];
    assert_eq!(content, [&json!("[User feedback: The name is load_from.]")]);
    let attachment =
        json!({"type": "hook_additional_context", "content": content, "hookEvent": "PostToolBatch"});
    program.writes("attachment", &json!({"attachment": attachment}));
    terminal.sees("injected after Bash at C, 1 call skipped").await;

    // What is its program's to do is refused with a sentence.
    terminal.send(&["Escape"]);
    terminal.sees("runs in Claude Code 2.1.331").await;

    program.says("m2", &json!({"type": "text", "text": "As corrected."}));
    program.hook("Stop", &json!({}));
    terminal.sees("As corrected.").await;
    // Nothing of it is the daemon's own.
    assert!(!ground.says(&["sessions"]).contains(SESSION));
}
