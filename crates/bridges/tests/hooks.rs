//! What the hooks of Claude Code answer, as the program asks them (docs/bridges.md).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use midturn_bridges::claude::hook::{Around, answer};
use midturn_bridges::claude::{Look, Waiter, is_deaf, known, settle};
use midturn_bridges::spool::{Joined, MAIN, Mailbox, Message, Program, Spool, State, Withdrawn};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{Point, Urgency};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A session with a subagent `fixer`, and the clock.
struct World {
    home: TempDir,
    now: u64,
}

const SESSION: &str = "0e7c0a3c-4a52-4a7a-9d6b-000000000001";
const FIXER: &str = "a0123456789abcdef";

impl World {
    fn new() -> Self {
        let world = Self { home: tempfile::tempdir().unwrap(), now: 1_800_000_000_000_000 };
        let subagents = world.home.path().join(SESSION).join("subagents");
        fs::create_dir_all(&subagents).unwrap();
        let meta = json!({"agentType": "general-purpose", "name": "fixer", "spawnDepth": 1});
        fs::write(subagents.join(format!("agent-{FIXER}.meta.json")), meta.to_string()).unwrap();
        fs::write(world.transcript(), "").unwrap();
        assert_eq!(world.hook("SessionStart", None, &json!({})), None);
        world
    }

    fn transcript(&self) -> PathBuf {
        self.home.path().join(format!("{SESSION}.jsonl"))
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("midturn")
    }

    fn spool(&self) -> Spool {
        Spool::of(&self.state(), self.now)
    }

    fn joined(&self) -> Joined {
        self.spool().session(SESSION).unwrap()
    }

    fn mailbox(&self, agent: &str) -> Mailbox {
        self.joined().mailbox(agent).unwrap()
    }

    fn around(&self) -> Around {
        let program = std::process::id();
        Around { state: self.state(), now: self.now, program, holds_commands: true, ..Around::default() }
    }

    fn hook(&self, event: &str, agent: Option<&str>, more: &Value) -> Option<Value> {
        let mut input = json!({"hook_event_name": event, "session_id": SESSION, "cwd": "/work",
            "transcript_path": self.transcript(), "prompt_id": "p"});
        if let Some(agent) = agent {
            input["agent_id"] = json!(agent);
        }
        for (field, value) in more.as_object().unwrap() {
            input[field] = value.clone();
        }
        let said = answer(&self.around(), input.to_string().as_bytes()).unwrap();
        said.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["hookSpecificOutput"].clone())
    }

    fn before(&self, agent: Option<&str>, tool: &str, input: &Value) -> Option<Value> {
        self.hook(
            "PreToolUse",
            agent,
            &json!({"tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1"}),
        )
    }

    fn send(&mut self, agent: &str, id: &str, urgency: Urgency) -> MessageId {
        self.now += 1_000;
        let message = Message {
            id: MessageId::new(id),
            from: "user".to_owned(),
            text: format!("text of {id}"),
            urgency,
            sent_at: self.now,
            expires_at: None,
            own: false,
        };
        self.mailbox(agent).send(&message, None, false).unwrap();
        message.id
    }

    fn shows(&mut self, line: &Value) {
        let mut text = fs::read_to_string(self.transcript()).unwrap();
        text.push_str(&format!("{line}\n"));
        fs::write(self.transcript(), text).unwrap();
    }

    /// The model has replied, a second later.
    fn replies(&mut self) {
        self.now += 1_000_000;
        let at = jiff::Timestamp::from_microsecond(i64::try_from(self.now).unwrap()).unwrap();
        self.shows(&json!({"type": "assistant", "timestamp": at.to_string(), "message": {"content": []}}));
        self.now += 1_000;
    }

    fn state_of(&self, agent: &str, id: &MessageId) -> State {
        let mailbox = self.mailbox(agent);
        settle(&self.joined(), agent, &mailbox).unwrap();
        mailbox.state("user", id).unwrap().unwrap()
    }
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

#[test]
fn next_boundary_mail_denies_what_has_not_started_and_is_told_behind_the_results() {
    let mut world = World::new();
    assert_eq!(world.before(Some(FIXER), "Bash", &bash("true")), None);
    let id = world.send(FIXER, "m", Urgency::NextBoundary);
    let denied = world.before(Some(FIXER), "Bash", &bash("make")).unwrap();
    assert_eq!(denied["permissionDecision"], "deny");
    assert_eq!(
        denied["permissionDecisionReason"],
        "[Skipped: message received from the user before this ran]"
    );
    assert_eq!(world.mailbox(FIXER).withdraw("user", &id).unwrap(), Withdrawn::TooLate, "it has cost a call");
    assert_eq!(world.before(None, "Bash", &bash("true")), None, "nobody else's calls");
    let told = world.hook("PostToolBatch", Some(FIXER), &json!({"tool_calls": []})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of m]");
    assert_eq!(world.hook("PostToolBatch", Some(FIXER), &json!({"tool_calls": []})), None, "once");
}

#[test]
fn after_tools_costs_nothing_and_follow_up_waits_for_the_end() {
    let mut world = World::new();
    world.send(MAIN, "later", Urgency::FollowUp);
    world.send(MAIN, "soon", Urgency::AfterTools);
    assert_eq!(world.before(None, "Bash", &bash("true")), None);
    let told = world.hook("PostToolBatch", None, &json!({"tool_calls": []})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of soon]");
    let told = world.hook("Stop", None, &json!({})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of later]");
    // The same hook, installed twice, told nothing: the agent goes on with what the other one told.
    assert_eq!(world.hook("Stop", None, &json!({})), None);
    assert!(!world.joined().is_resting(MAIN));
    world.now += 2_000_000;
    assert_eq!(world.hook("Stop", None, &json!({})), None);
    assert!(world.joined().is_resting(MAIN));
}

#[test]
fn what_the_transcript_shows_has_arrived_and_what_a_later_reply_lacks_waits_again() {
    let mut world = World::new();
    let id = world.send(MAIN, "m", Urgency::AfterTools);
    let skipped = "PreToolUse:Bash hook error: [Skipped: message received from the user before this ran]";
    let calls = json!({"tool_calls": [{"tool_use_id": "one", "tool_response": "done"},
        {"tool_use_id": "two", "tool_response": skipped}]});
    let told = world.hook("PostToolBatch", None, &calls).unwrap();
    assert_eq!(world.state_of(MAIN, &id), State::Queued, "nothing shows yet");
    assert_eq!(world.mailbox(MAIN).landed("user", &id).unwrap(), None, "nor where");
    let attachment = json!({"type": "hook_additional_context", "content": [told["additionalContext"]]});
    world
        .shows(&json!({"type": "attachment", "timestamp": "2027-01-15T08:00:00Z", "attachment": attachment}));
    world.replies();
    assert_eq!(world.state_of(MAIN, &id), State::Injected);
    let landed = world.mailbox(MAIN).landed("user", &id).unwrap().unwrap();
    assert_eq!(
        (landed.point, landed.skipped, landed.interrupted),
        (Point::C, vec!["two".to_owned()], vec![])
    );
    // The hook is killed before the program hears it.
    let lost = world.send(MAIN, "n", Urgency::AfterTools);
    world.hook("PostToolBatch", None, &json!({"tool_calls": []})).unwrap();
    world.replies();
    let told = world.hook("PostToolBatch", None, &json!({"tool_calls": []})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of n]");
    assert_eq!(world.state_of(MAIN, &lost), State::Queued);
}

#[test]
fn a_coordinators_message_skips_what_is_left_and_is_never_told_by_us() {
    let world = World::new();
    assert_eq!(known(&world.joined()).len(), 2);
    let message = json!({"to": "fixer", "summary": "s", "message": "use load"});
    assert_eq!(world.before(None, "SendMessage", &message), None);
    let denied = world.before(Some(FIXER), "Bash", &bash("make")).unwrap();
    assert_eq!(denied["permissionDecisionReason"], "[Skipped: message received from main before this ran]");
    assert_eq!(world.hook("PostToolBatch", Some(FIXER), &json!({"tool_calls": []})), None);
    assert_eq!(world.before(Some(FIXER), "Bash", &bash("make")), None, "it has been delivered");
    // To one that rests it is the first thing it reads: it skips nothing.
    assert_eq!(world.hook("SubagentStop", Some(FIXER), &json!({})), None);
    assert_eq!(world.before(None, "SendMessage", &message), None);
    assert_eq!(world.before(Some(FIXER), "Bash", &bash("make")), None);
    // A subagent's to its coordinator waits for its tools.
    let up = json!({"to": "main", "message": "done"});
    assert_eq!(world.before(Some(FIXER), "SendMessage", &up), None);
    assert_eq!(world.before(None, "Bash", &bash("make")), None);
}

/// As Claude Code 2.1.331 notes it: in its queue at once, and behind the tools of the turn that began meanwhile.
#[test]
fn what_wakes_a_session_that_was_given_a_prompt_in_this_moment_is_told_once() {
    let mut world = World::new();
    let begin = json!({"hook_event_name": "SessionStart", "session_id": SESSION}).to_string();
    let waiter = Waiter::begins(&world.around(), begin.as_bytes(), 1).unwrap().unwrap();
    let id = world.send(MAIN, "m", Urgency::FollowUp);
    let Look::Wakes(words) = waiter.looks(world.now).unwrap() else { panic!("it rests") };
    assert_eq!(world.hook("UserPromptSubmit", None, &json!({"prompt": "go"})), None);
    let notice = format!("<summary>Stop hook feedback</summary> Stop hook blocking error: {words}");
    world.shows(&json!({"type": "queue-operation", "operation": "enqueue", "content": notice}));
    for _ in 0..12 {
        world.replies();
    }
    let behind = json!({"tool_calls": [{"tool_use_id": "one", "tool_response": "done"}]});
    assert_eq!(world.hook("PostToolBatch", None, &behind), None, "the program has it");
    assert_eq!(world.state_of(MAIN, &id), State::Queued);
    world.shows(&json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": notice,
        "commandMode": "task-notification", "origin": {"kind": "task-notification", "producer": "session-task"}}}));
    world.replies();
    assert_eq!(world.state_of(MAIN, &id), State::Injected);
    assert_eq!(world.hook("Stop", None, &json!({})), None);
}

/// The program's transcript can lag behind a turn that is over in a moment.
#[test]
fn who_is_woken_and_done_at_once_rests_and_is_woken_again() {
    let mut world = World::new();
    let begin = json!({"hook_event_name": "SessionStart", "session_id": SESSION}).to_string();
    for (process, message) in [(1, "first"), (2, "second")] {
        let waiter = Waiter::begins(&world.around(), begin.as_bytes(), process).unwrap().unwrap();
        world.send(MAIN, message, Urgency::FollowUp);
        assert!(matches!(waiter.looks(world.now).unwrap(), Look::Wakes(_)));
        assert!(!world.joined().is_resting(MAIN));
        assert_eq!(world.hook("Stop", None, &json!({})), None);
        assert!(world.joined().is_resting(MAIN));
    }
}

/// A waiter that is killed has said nothing to the program, and neither has a program that is dead.
#[test]
fn what_nobody_was_given_waits_again() {
    let mut world = World::new();
    let begin = json!({"hook_event_name": "SessionStart", "session_id": SESSION}).to_string();
    let waiter = Waiter::begins(&world.around(), begin.as_bytes(), 1).unwrap().unwrap();
    let id = world.send(MAIN, "m", Urgency::AfterTools);
    assert!(matches!(waiter.looks(world.now).unwrap(), Look::Wakes(_)));
    world.hook("UserPromptSubmit", None, &json!({"prompt": "go"}));
    world.replies();
    assert_eq!(world.hook("PostToolBatch", None, &json!({"tool_calls": []})), None, "it may be on its way");
    world.now += 10_000_000;
    world.replies();
    let told = world.hook("PostToolBatch", None, &json!({"tool_calls": []})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of m]");
    // The program dies before its transcript shows it, and another process takes the session up.
    let dead = Program { pid: u32::MAX, started: 1, ..Program::default() };
    let handed = world.state().join("joined").join(SESSION).join(MAIN).join("handed");
    let file = fs::read_dir(&handed).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    let (of_us, _) = file.split_once("-h-").unwrap();
    fs::rename(handed.join(&file), handed.join(format!("{of_us}-h-{}-{}", dead.pid, dead.started))).unwrap();
    world.joined().joins(&dead).unwrap();
    assert_eq!(world.hook("SessionStart", None, &json!({"source": "resume"})), None);
    assert_eq!(world.state_of(MAIN, &id), State::Queued);
    let told = world.hook("UserPromptSubmit", None, &json!({"prompt": "go on"})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of m]");
}

/// Between two replies a hook has always run.
#[test]
fn who_replies_twice_and_runs_no_hook_does_not_look_any_more() {
    let mut world = World::new();
    let says = |world: &mut World, id: &str, model: &str| {
        world.now += 5_000_000;
        let at = jiff::Timestamp::from_microsecond(i64::try_from(world.now).unwrap()).unwrap();
        let message = json!({"id": id, "model": model, "content": []});
        world.shows(&json!({"type": "assistant", "timestamp": at.to_string(), "message": message}));
    };
    world.hook("UserPromptSubmit", None, &json!({"prompt": "go"}));
    assert!(!is_deaf(&world.joined(), MAIN), "nothing has been said yet");
    // Two lines of one reply, and one that is the program's own.
    says(&mut world, "one", "m");
    says(&mut world, "one", "m");
    says(&mut world, "x", "<synthetic>");
    assert!(!is_deaf(&world.joined(), MAIN));
    world.hook("PostToolBatch", None, &json!({"tool_calls": []}));
    says(&mut world, "two", "m");
    assert!(!is_deaf(&world.joined(), MAIN), "a hook has run between the two");
    says(&mut world, "three", "m");
    assert!(is_deaf(&world.joined(), MAIN));
    assert!(!is_deaf(&world.joined(), FIXER), "of which nothing is known");
    world.hook("Stop", None, &json!({}));
    assert!(!is_deaf(&world.joined(), MAIN), "it looks again");
}

/// The progress guard (semantics.md, section 3).
#[test]
fn two_turns_that_mail_has_emptied_are_followed_by_one_that_runs() {
    let mut world = World::new();
    let skipped = "PreToolUse:Bash hook error: [Skipped: message received from the user before this ran]";
    let emptied = json!({"tool_calls": [{"tool_name": "Bash", "tool_response": skipped}]});
    for turn in 0..2 {
        world.send(MAIN, &format!("m{turn}"), Urgency::NextBoundary);
        assert!(world.before(None, "Bash", &bash("make")).is_some());
        assert!(world.hook("PostToolBatch", None, &emptied).is_some());
    }
    world.send(MAIN, "m3", Urgency::NextBoundary);
    assert_eq!(world.before(None, "Bash", &bash("make")), None);
    let ran = json!({"tool_calls": [{"tool_name": "Bash", "tool_response": "done"}]});
    assert!(world.hook("PostToolBatch", None, &ran).is_some());
    world.send(MAIN, "m4", Urgency::NextBoundary);
    assert!(world.before(None, "Bash", &bash("make")).is_some(), "the count is 0");
}

/// The program sends no ninth text of this kind in a row, though its transcript has it.
#[test]
fn the_ninth_message_that_would_put_an_end_off_waits_for_the_next_prompt() {
    let mut world = World::new();
    for round in 0..8 {
        world.send(MAIN, &format!("m{round}"), Urgency::FollowUp);
        assert!(world.hook("Stop", None, &json!({})).is_some(), "{round}");
    }
    let ninth = world.send(MAIN, "ninth", Urgency::FollowUp);
    assert_eq!(world.hook("Stop", None, &json!({})), None);
    assert_eq!(world.state_of(MAIN, &ninth), State::Queued);
    let told = world.hook("UserPromptSubmit", None, &json!({"prompt": "go on"})).unwrap();
    assert_eq!(told["additionalContext"], "[User feedback: text of ninth]");
}

/// > A3: What is no input, half of one, of an event that nobody knows: nothing is said, and the session goes on
#[test]
fn a_hook_never_holds_a_session_up() {
    let world = World::new();
    let around = world.around();
    for bytes in [&b""[..], b"{", b"[]", b"{\"hook_event_name\":1}", b"\xff\xfe", b"null"] {
        assert_eq!(answer(&around, bytes).unwrap(), None);
    }
    assert_eq!(world.hook("SomethingNew", None, &json!({})), None);
    let elsewhere = json!({"session_id": "../../etc"});
    assert_eq!(world.hook("PreToolUse", None, &elsewhere), None);
    assert_eq!(world.hook("PreToolUse", Some("../x"), &json!({})), None);
    // A spool that is a link: nothing is written through it.
    let outside = tempfile::tempdir().unwrap();
    let linked = tempfile::tempdir().unwrap();
    fs::create_dir(linked.path().join("midturn")).unwrap();
    std::os::unix::fs::symlink(outside.path(), linked.path().join("midturn/joined")).unwrap();
    let around = Around { state: linked.path().join("midturn"), ..around };
    let start = json!({"hook_event_name": "SessionStart", "session_id": SESSION});
    assert!(answer(&around, start.to_string().as_bytes()).is_err());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn two_agents_that_begin_the_same_command_at_once_are_never_cut() {
    let world = World::new();
    world.before(None, "Bash", &bash("sleep 9"));
    world.before(Some(FIXER), "Bash", &bash("sleep 9"));
    for agent in [MAIN, FIXER] {
        let call = world.state().join("joined").join(SESSION).join(agent).join("calls/toolu_1");
        let call: Value = serde_json::from_slice(&fs::read(call).unwrap()).unwrap();
        assert_eq!(call["ambiguous"], true, "{agent}");
    }
}
