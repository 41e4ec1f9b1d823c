//! A joined session as events (docs/bridges.md): what its transcripts say, and where its mail stands.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use midturn_bridges::claude::Mirror;
use midturn_bridges::claude::hook::{Around, answer};
use midturn_bridges::spool::{MAIN, Message, Spool};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::view::View;
use serde_json::{Value, json};
use tempfile::TempDir;

const SESSION: &str = "0e7c0a3c-4a52-4a7a-9d6b-000000000002";
const FIXER: &str = "a0123456789abcdef";
const BEGAN: u64 = 1_800_000_000_000_000;
const SECOND: u64 = 1_000_000;

/// A session in this very process, its mirror, and the clock.
struct World {
    home: TempDir,
    now: u64,
    mirror: Mirror,
    view: View,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(SESSION).join("subagents")).unwrap();
        let spool = Spool::of(&home.path().join("midturn"), BEGAN);
        let mirror = Mirror::of(&spool.session(SESSION).unwrap());
        let world = Self { home, now: BEGAN, mirror, view: View::default() };
        world.hook("SessionStart", None, &json!({}));
        world
    }

    fn transcript(&self, agent: &str) -> PathBuf {
        let main = self.home.path().join(format!("{SESSION}.jsonl"));
        if agent == MAIN {
            main
        } else {
            main.with_extension("").join(format!("subagents/agent-{agent}.jsonl"))
        }
    }

    fn spool(&self) -> Spool {
        Spool::of(&self.home.path().join("midturn"), self.now)
    }

    fn hook(&self, event: &str, agent: Option<&str>, more: &Value) -> Option<Value> {
        let state = self.home.path().join("midturn");
        let around = Around {
            state,
            now: self.now,
            program: std::process::id(),
            holds_commands: true,
            ..Around::default()
        };
        let mut input = json!({"hook_event_name": event, "session_id": SESSION, "agent_id": agent,
            "transcript_path": self.transcript(MAIN), "cwd": "/somewhere"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answered = answer(&around, input.to_string().as_bytes()).unwrap();
        answered.map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    fn begins_fixer(&self) {
        let meta = self.transcript(FIXER).with_extension("meta.json");
        fs::write(meta, json!({"agentType": "general-purpose", "name": "fixer"}).to_string()).unwrap();
        self.hook("SubagentStart", Some(FIXER), &json!({}));
    }

    /// A line of a transcript, of now.
    fn line(&self, agent: &str, kind: &str, more: &Value) {
        let at = jiff::Timestamp::from_microsecond(i64::try_from(self.now).unwrap()).unwrap();
        let mut line = json!({"type": kind, "timestamp": at.to_string()});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut file = OpenOptions::new().create(true).append(true).open(self.transcript(agent)).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn asked(&self, agent: &str, text: &str) {
        self.line(agent, "user", &json!({"message": {"role": "user", "content": text}}));
    }

    fn replied(&self, agent: &str, id: &str, block: &Value) {
        let message = json!({"id": id, "role": "assistant", "content": [block], "stop_reason": "tool_use",
            "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 2}});
        self.line(agent, "assistant", &json!({"message": message}));
    }

    fn calls(&self, agent: &str, id: &str, call: &str, name: &str) {
        self.replied(
            agent,
            id,
            &json!({"type": "tool_use", "id": call, "name": name, "input": {"command": "true"}}),
        );
    }

    fn ended(&self, agent: &str, call: &str, text: &str) {
        let is_error = text.starts_with("PreToolUse");
        let block =
            json!({"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error});
        self.line(agent, "user", &json!({"message": {"role": "user", "content": [block]}}));
    }

    fn sends(&self, agent: &str, id: &str, text: &str, urgency: Urgency) {
        let (id, from, text) = (MessageId::new(id), "user".to_owned(), text.to_owned());
        let message = Message { id, from, text, urgency, sent_at: self.now, expires_at: None, own: false };
        let mailbox = self.spool().session(SESSION).unwrap().mailbox(agent).unwrap();
        mailbox.send(&message, None, false).unwrap();
    }

    /// What has happened since the last look, a line each; the faces' fold takes every event.
    fn look(&mut self) -> String {
        let events = self.mirror.look(&self.spool()).unwrap();
        let mut told = String::new();
        for event in &events {
            assert!(self.view.event(event) || event.at.agent.is_none(), "it is stale: {event:?}");
            writeln!(told, "{}", shown(event)).unwrap();
        }
        told
    }
}

fn shown(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap();
    let agent = event.at.agent.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let fields = [
        "trigger", "prompt", "tool", "status", "message", "reason", "messages", "point", "skipped",
        "outcome", "text",
    ];
    let shown = |field: &&str| {
        value.get(field).filter(|value| !value.is_null()).map(|value| format!(" {field}={value}"))
    };
    let fields: String = match &event.kind {
        EventKind::ModelStarted { .. } => String::new(),
        _ => fields.iter().filter_map(shown).collect(),
    };
    let place = format!("{}.{}", event.at.run.unwrap_or_default(), event.at.turn.unwrap_or_default());
    format!("{} {:.1} {agent} {place} {}{fields}", event.seq, event.t.0 as f64 / 1e6, event.kind.type_name())
}

fn assert_told(told: &str, wanted: &str) {
    let lines = |text: &str| {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(lines(told), lines(wanted), "told:\n{told}");
}

/// The whole of the first promise: a message into the first of three calls, seen by whoever watches.
#[test]
fn a_correction_in_the_middle_of_a_turn_is_told_as_midturn_tells_its_own() {
    let mut world = World::new();
    world.asked(MAIN, "Fix the names.");
    world.now += SECOND;
    for call in ["t1", "t2", "t3"] {
        world.calls(MAIN, "m1", call, "Bash");
    }
    assert_told(
        &world.look(),
        r#"1 0.0 - 0.0 session_started
           2 0.0 main 0.0 agent_spawned
           3 0.0 main 0.0 message_queued message="typed-main-6651728988000" text="Fix the names."
           4 0.0 main 1.0 run_started trigger=["typed-main-6651728988000"]
           5 0.0 main 1.0 message_injected messages=["typed-main-6651728988000"] point="start" skipped=[] text="Fix the names."
           6 0.0 main 1.1 model_started"#,
    );
    world.now += SECOND;
    assert_told(
        &world.look(),
        r#"7 1.0 main 1.1 model_finished text=""
           8 1.0 main 1.1 tool_started tool="t1""#,
    );
    world.sends(MAIN, "w1", "It is load_from.", Urgency::NextBoundary);
    assert_told(&world.look(), r#"9 2.0 main 1.1 message_queued message="w1" text="It is load_from.""#);
    world.now += SECOND;
    world.ended(MAIN, "t1", "done");
    for call in ["t2", "t3"] {
        let denied =
            world.hook("PreToolUse", None, &json!({"tool_name": "Bash", "tool_use_id": call})).unwrap();
        let reason = denied["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
        world.ended(MAIN, call, &format!("PreToolUse:Bash hook error: {reason}"));
    }
    let calls = json!([{"tool_use_id": "t1", "tool_response": "done"},
        {"tool_use_id": "t2", "tool_response": "PreToolUse:Bash hook error: [Skipped: message received from the user before this ran]"},
        {"tool_use_id": "t3", "tool_response": "PreToolUse:Bash hook error: [Skipped: message received from the user before this ran]"}]);
    let given = world.hook("PostToolBatch", None, &json!({"tool_calls": calls})).unwrap();
    world.now += SECOND / 10;
    let content = [&given["hookSpecificOutput"]["additionalContext"]];
    let attachment =
        json!({"type": "hook_additional_context", "content": content, "hookEvent": "PostToolBatch"});
    world.line(MAIN, "attachment", &json!({"attachment": attachment}));
    assert_told(
        &world.look(),
        r#"10 3.0 main 1.1 tool_finished tool="t1" status="completed"
           11 3.0 main 1.1 tool_finished tool="t2" status="skipped"
           12 3.0 main 1.1 tool_finished tool="t3" status="skipped"
           13 3.1 main 1.1 message_injected messages=["w1"] point="C" skipped=["t2","t3"] text="[User feedback: It is load_from.]""#,
    );
    world.now += SECOND;
    world.replied(MAIN, "m2", &json!({"type": "text", "text": "As corrected."}));
    assert_eq!(world.hook("Stop", None, &json!({})), None);
    world.look();
    world.now += SECOND;
    assert_told(
        &world.look(),
        r#"15 4.1 main 1.2 model_finished text="As corrected."
           16 4.1 main 1.2 run_finished outcome="finished""#,
    );
    assert_told(&world.look(), "");
}

/// Whoever comes late is told the same story.
#[test]
fn a_first_look_tells_what_looks_on_the_way_have_told() {
    let mut world = World::new();
    world.asked(MAIN, "Go.");
    world.now += SECOND;
    world.calls(MAIN, "m1", "t1", "Read");
    world.calls(MAIN, "m1", "t2", "Bash");
    world.now += SECOND;
    world.ended(MAIN, "t1", "text");
    world.now += SECOND;
    world.ended(
        MAIN,
        "t2",
        "[Interrupted after 1.0 s: message received from the user. It may have taken effect in part.]",
    );
    world.now += SECOND;
    world.replied(MAIN, "m2", &json!({"type": "text", "text": "Well."}));
    world.hook("Stop", None, &json!({}));
    world.now += SECOND;
    let told = world.look();
    assert_told(
        &told,
        r#"1 0.0 - 0.0 session_started
           2 0.0 main 0.0 agent_spawned
           3 0.0 main 0.0 message_queued message="typed-main-6651728988000" text="Go."
           4 0.0 main 1.0 run_started trigger=["typed-main-6651728988000"]
           5 0.0 main 1.0 message_injected messages=["typed-main-6651728988000"] point="start" skipped=[] text="Go."
           6 0.0 main 1.1 model_started
           7 1.0 main 1.1 model_finished text=""
           8 1.0 main 1.1 tool_started tool="t1"
           9 2.0 main 1.1 tool_finished tool="t1" status="completed"
           10 2.0 main 1.1 tool_started tool="t2"
           11 3.0 main 1.1 tool_finished tool="t2" status="interrupted"
           12 3.0 main 1.2 model_started
           13 4.0 main 1.2 model_finished text="Well."
           14 4.0 main 1.2 run_finished outcome="finished""#,
    );
}

/// It was woken in the moment in which somebody had typed a prompt: the program delivers that behind the tools.
#[test]
fn what_was_to_wake_an_agent_at_work_is_told_once() {
    let mut world = World::new();
    world.asked(MAIN, "Go.");
    world.calls(MAIN, "m1", "t1", "Bash");
    world.sends(MAIN, "w1", "Wake up.", Urgency::FollowUp);
    world.now += SECOND;
    world.look();
    world.ended(MAIN, "t1", "done");
    let prompt = "<task-notification>Stop hook: [User feedback: Wake up.]</task-notification>";
    let attachment =
        json!({"type": "queued_command", "prompt": prompt, "origin": {"kind": "task-notification"}});
    world.line(MAIN, "attachment", &json!({"attachment": attachment}));
    let told = world.look();
    let injected: Vec<&str> = told.lines().filter(|line| line.contains("message_injected")).collect();
    assert_eq!(injected.len(), 1, "{told}");
    assert!(injected[0].contains(r#"messages=["w1"] point="D""#), "{told}");
    assert!(!told.contains("message_queued"), "{told}");
}

/// A coordinator's own message, which the program delivers in its own way.
#[test]
fn a_subagent_has_its_name_its_prompt_and_its_coordinators_words() {
    let mut world = World::new();
    world.asked(MAIN, "Go.");
    world.now += SECOND;
    world.begins_fixer();
    world.asked(FIXER, "Fix it.");
    world.calls(FIXER, "f1", "t1", "Bash");
    world.now += SECOND;
    let input = json!({"to": "fixer", "message": "Use the other name."});
    world.hook(
        "PreToolUse",
        None,
        &json!({"tool_name": "SendMessage", "tool_use_id": "s1", "tool_input": input}),
    );
    world.now += SECOND;
    world.ended(FIXER, "t1", "done");
    let attachment =
        json!({"type": "queued_command", "prompt": "Use the other name.", "origin": {"kind": "coordinator"}});
    world.line(FIXER, "attachment", &json!({"attachment": attachment}));
    let told = world.look();
    assert_eq!(told.matches(" main 1.1 model_started").count(), 1, "{told}");
    let of_fixer: String = told
        .lines()
        .filter(|line| line.contains(" fixer "))
        .fold(String::new(), |all, line| all + line + "\n");
    assert_told(
        &of_fixer,
        r#"7 1.0 fixer 0.0 agent_spawned prompt="Fix it."
           8 1.0 fixer 1.0 run_started trigger="prompt"
           9 1.0 fixer 1.1 model_started
           10 1.0 fixer 1.1 model_finished text=""
           11 1.0 fixer 1.1 tool_started tool="t1"
           12 2.0 fixer 0.0 message_queued message="s1" text="Use the other name."
           13 3.0 fixer 1.1 tool_finished tool="t1" status="completed"
           14 3.0 fixer 1.1 message_injected messages=["s1"] point="D" skipped=[] text="[Message from main: Use the other name.]""#,
    );
    assert!(world.mirror.agents().any(|(name, id)| name.as_str() == "fixer" && id == FIXER));
}
