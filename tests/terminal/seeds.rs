//! What seeds 000 and 001 promise a person at the terminal, seen on the screen. What happened behind it is read from
//! the events.

use std::fs;

use serde_json::Value;

use crate::ground::Ground;
use crate::tmux::{Terminal, USUAL, has, is_here, runs};

const SOFT: &str = "⏳ Will inject at next safe point";
const SOON: &str = "⚡ Will inject ASAP (may skip tools)";

/// A session with scripted agents, on a screen.
struct Session {
    // It ends before its ground goes.
    terminal: Terminal,
    ground: Ground,
}

impl Session {
    /// Begins it, and waits until this is on the screen. `None`: there is no terminal here.
    async fn begun(script: &str, shows: &str) -> Option<Self> {
        if !is_here() {
            return None;
        }
        Some(Self::on(Ground::new(), script, shows).await)
    }

    async fn on(ground: Ground, script: &str, shows: &str) -> Self {
        let terminal = ground.midturn(USUAL, &["run", "--model", &ground.scripted(script), "Go."]);
        terminal.sees(shows).await;
        Self { ground, terminal }
    }

    /// Types a message and presses a key.
    fn sends(&self, text: &str, key: &str) {
        self.terminal.types(text);
        self.terminal.send(&[key]);
    }

    async fn sees(&self, text: &str) -> Vec<String> {
        self.terminal.sees(text).await
    }

    /// Waits for the line below the composer that begins so.
    async fn is_told(&self, words: &str) -> Vec<String> {
        let is_there = |screen: &[String]| screen.iter().any(|line| line.starts_with(words));
        self.terminal.wait_until(&format!("{words}, below the composer"), is_there).await
    }

    /// Waits until it says below the composer what became of a message, that it was answered, and that the run is over.
    async fn is_answered(&self, words: &str) -> Vec<String> {
        let is_it = |line: &String| line.starts_with(words) && line.ends_with(" · answered");
        let is_there = |screen: &[String]| screen.iter().any(is_it) && has(screen, "── finished after");
        self.terminal.wait_until(&format!("{words}…, answered"), is_there).await
    }

    /// Waits until the conversation has what became of a message, that it was answered, and that the run is over.
    async fn is_heard(&self, words: &str) -> Vec<String> {
        let is_it = |line: &String| line.contains(words) && line.contains(" · answered ─");
        let is_there = |screen: &[String]| screen.iter().any(is_it) && has(screen, "── finished after");
        self.terminal.wait_until(&format!("{words}…, answered, in the conversation"), is_there).await
    }

    /// Waits until the call with this in its command runs.
    async fn runs(&self, text: &str) -> Vec<String> {
        self.terminal.wait_until(&format!("{text} runs"), |screen| runs(screen, text)).await
    }

    /// Each injection: its point, what the model was given, the calls that were skipped for it.
    fn injections(&self) -> Vec<(String, String, usize)> {
        let all = self.ground.events("message_injected").into_iter();
        all.map(|event| {
            let skipped = event["skipped"].as_array().unwrap().len();
            (text(&event["point"]), text(&event["text"]), skipped)
        })
        .collect()
    }

    /// How each call ended, and what the model was told of it.
    fn results(&self) -> Vec<(String, String)> {
        let all = self.ground.events("tool_finished").into_iter();
        all.map(|event| (text(&event["status"]), text(&event["output"]).trim().to_owned())).collect()
    }

    /// What happened right before and right after each injection.
    fn around(&self) -> Vec<[String; 2]> {
        let kinds: Vec<String> = self.ground.log().iter().map(|event| text(&event["type"])).collect();
        let around = kinds.windows(3).filter(|three| three[1] == "message_injected");
        around.map(|three| [three[0].clone(), three[2].clone()]).collect()
    }

    /// Nothing was cut, nothing was refused, and whenever the model was asked, each call had its one result.
    fn went_well(&self) {
        let mut open = Vec::new();
        for event in self.ground.log() {
            match event["type"].as_str().unwrap() {
                "model_finished" => open.extend(calls(&event)),
                "tool_finished" => {
                    let at = open.iter().position(|id| *id == event["tool"]);
                    open.remove(at.unwrap_or_else(|| panic!("a result of no call: {event}")));
                }
                "message_injected" | "model_started" => assert_eq!(open, [""; 0], "{event}"),
                "run_finished" => assert_eq!(event["outcome"], "finished", "{event}"),
                "model_retry" | "model_interrupted" => panic!("{event}"),
                _ => {}
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The calls of a reply that are run here.
fn calls(reply: &Value) -> Vec<String> {
    reply["tools"].as_array().unwrap().iter().map(|call| text(&call["id"])).collect()
}

/// As the model reads behind the results of its calls what a person says.
fn said(words: &str) -> String {
    format!("[User feedback: {words}]")
}

/// > 000, 001: No cancellation, no lost work
/// > 000, 001: No delay
/// > 000, 001: AI naturally incorporates user input
/// > 000, 001: User presses Enter during processing:
/// > 000, 001: → Message queued for soft interrupt
/// > 000, 001: → Status shows: "⏳ Will inject at next safe point"
/// > 000, 001: → AI continues working...
/// > 000, 001: → [ToolDone] → Message injected
/// > 000, 001: → Status shows: "✓ Message injected"
/// > 000, 001: → AI naturally incorporates it
/// > 000, 001: This allows the TUI to show feedback like "Message injected after tool X".
/// > 000: Send message while AI is executing tools → should inject at Point D (after all tools)
/// > 001: Send message while AI is executing tools → should inject at Point C or D
/// > 000: Verify no API errors about tool_use/tool_result pairing
#[tokio::test]
async fn enter_while_tools_run_goes_in_behind_the_last_result() {
    let Some(session) = Session::begun("tools", "go-1").await else { return };
    session.sends("Only the parser, please.", "Enter");
    session.sees("queued  1  ⏳ soft  Only the parser, please.").await;
    session.is_told(SOFT).await;
    for (done, next) in [("1", "go-2"), ("2", "go-3")] {
        session.ground.go("lead", done);
        // The work goes on, and the message waits.
        assert!(has(&session.runs(next).await, "queued  1"));
    }
    session.ground.go("lead", "3");
    let screen = session.is_answered("✓ Message injected after bash at D, ").await;
    assert!(has(&screen, "Heard after the commands.") && !has(&screen, "queued"), "{screen:#?}");
    assert_eq!(session.injections(), [("D".into(), said("Only the parser, please."), 0)]);
    let all_out = ["1", "2", "3"].map(|number| ("completed".to_owned(), format!("out {number}")));
    assert_eq!(session.results(), all_out);
    assert_eq!(session.around(), [["tool_finished", "model_started"]]);
    session.went_well();
}

/// > 000, 001: → Message queued as urgent soft interrupt
/// > 000, 001: → Status shows: "⚡ Will inject ASAP (may skip tools)"
/// > 000, 001: → AI continues current tool...
/// > 000, 001: → [ToolDone] → Remaining tools skipped, message injected
/// > 000, 001: → AI sees: tool 1 result + "user interrupted, skipped tools 2-3" + user message
/// > 000: Send urgent message while multiple tools queued → should skip remaining tools at Point C
/// > 001: Send urgent message while multiple tools queued → should skip remaining tools
/// > 000: Verify no API errors about tool_use/tool_result pairing
#[tokio::test]
async fn a_sooner_message_lets_the_call_that_runs_end_and_skips_the_rest() {
    let Some(session) = Session::begun("tools", "go-1").await else { return };
    session.sends("Wrong branch!", "C-s");
    session.sees("queued  1  ⚡ ASAP  Wrong branch!").await;
    session.is_told(SOON).await;
    session.runs("go-1").await;
    session.ground.go("lead", "1");
    let screen = session.is_answered("✓ Message injected after bash at C, 2 calls skipped, ").await;
    let skipped = screen.iter().filter(|line| line.contains("> bash") && line.ends_with(" skipped"));
    assert_eq!(skipped.count(), 2, "{screen:#?}");
    let why =
        || ("skipped".to_owned(), "[Skipped: message received from the user before this ran]".to_owned());
    assert_eq!(session.results(), [("completed".into(), "out 1".into()), why(), why()]);
    assert_eq!(session.injections(), [("C".into(), said("Wrong branch!"), 2)]);
    assert_eq!(session.around(), [["tool_finished", "model_started"]]);
    session.went_well();
}

/// The first press sends nothing: elsewhere it is a newline.
///
/// > 000, 001: User presses Shift+Enter during processing:
/// > 000, 001: → Message queued as urgent soft interrupt
/// > 000, 001: → Status shows: "⚡ Will inject ASAP (may skip tools)"
#[tokio::test]
async fn shift_enter_asks_once_and_then_sends_sooner() {
    let Some(session) = Session::begun("tools", "go-1").await else { return };
    session.sends("Wrong branch!", "S-Enter");
    let screen = session.is_told("nothing was sent: Shift+Enter sends sooner").await;
    assert!(has(&screen, "Wrong branch!") && !has(&screen, "queued"), "{screen:#?}");
    session.terminal.send(&["S-Enter"]);
    session.sees("queued  1  ⚡ ASAP  Wrong branch!").await;
    session.is_told(SOON).await;
    session.sends("And this.", "S-Enter");
    session.sees("        2  ⚡ ASAP  And this.").await;
}

/// > 000, 001: Smooth user experience
/// > 000, 001: No cancellation, no lost work
/// > 000, 001: Soft interrupt during text-only response: Inject at Point B, continue loop
/// > 000: Send message while AI is streaming text (no tools) → should inject at Point B
/// > 001: Send message while AI is streaming text → should inject at Point B or D
/// > 001: Verify no provider errors from mid-stream injection (there shouldn't be any)
#[tokio::test]
async fn enter_while_text_streams_goes_in_behind_it_and_the_run_goes_on() {
    let Some(session) = Session::begun("streaming", "The parser reads").await else { return };
    session.sends("And the printer?", "Enter");
    let screen = session.is_told(SOFT).await;
    assert!(!has(&screen, "as it is today"), "the reply was over before: {screen:#?}");
    // The reply goes on above while somebody types below, and neither touches the other.
    session.terminal.types("a thought of my own");
    let screen = session.is_heard("── you · ✓ Message injected at B, ").await;
    for kept in ["The parser reads", "as it is today", "   And the printer?", "Heard after the text."] {
        assert!(has(&screen, kept), "{kept} is gone: {screen:#?}");
    }
    assert!(screen.iter().any(|line| line == "a thought of my own"), "{screen:#?}");
    assert_eq!(session.injections(), [("B".into(), "And the printer?".into(), 0)]);
    assert_eq!(session.around(), [["model_finished", "model_started"]]);
    session.went_well();
}

/// > 000, 001: Multiple soft interrupts: Combine into single message with \n\n separator
/// > 000: Send multiple messages rapidly → should combine into one injection
/// > 001: Send multiple messages rapidly → should combine into one injection
#[tokio::test]
async fn messages_in_quick_succession_are_one_injection() {
    let Some(session) = Session::begun("tools", "go-1").await else { return };
    for text in ["One.", "Two.", "Three."] {
        session.sends(text, "Enter");
    }
    session.sees("        3  ⏳ soft  Three.").await;
    for command in ["1", "2", "3"] {
        session.ground.go("lead", command);
    }
    let screen = session.is_answered("✓ 3 messages injected together after bash at D, ").await;
    let shown: Vec<&str> =
        screen.iter().filter_map(|line| line.split_once('│')).map(|(_, told)| told.trim()).collect();
    assert!(shown.windows(5).any(|five| five == ["One.", "", "Two.", "", "Three."]), "{screen:#?}");
    let text = ["One.", "Two.", "Three."].map(said).join("\n\n");
    assert_eq!(session.injections(), [("D".into(), text, 0)]);
    session.went_well();
}

/// > 000, 001: Provider handles tools internally (Claude CLI): Still works, injection happens in our loop
#[tokio::test]
async fn a_provider_that_runs_its_tools_itself_is_spoken_to_behind_its_reply() {
    let Some(session) = Session::begun("provider", "The provider looked").await else { return };
    session.sends("Look for lexers, too.", "C-s");
    session.sees("queued  1  ⚡ ASAP  Look for lexers, too.").await;
    session.is_answered("✓ Message injected at B, ").await;
    assert_eq!(session.injections(), [("B".into(), "Look for lexers, too.".into(), 0)]);
    // What the provider ran is nothing that could be skipped here.
    assert_eq!(session.results(), []);
    assert_eq!(session.around(), [["model_finished", "model_started"]]);
}

/// > 000, 001: Urgent interrupt with no tools: Treated as normal (nothing to skip)
#[tokio::test]
async fn a_sooner_message_with_no_call_to_skip_goes_in_like_any_other() {
    let Some(session) = Session::begun("streaming", "The parser reads").await else { return };
    session.sends("And the printer?", "C-s");
    session.is_told(SOON).await;
    let screen = session.is_answered("✓ Message injected at B, ").await;
    assert!(has(&screen, "as it is today") && !has(&screen, "skipped"), "{screen:#?}");
    assert_eq!(session.injections(), [("B".into(), "And the printer?".into(), 0)]);
    session.went_well();
}

/// > 000, 001: Stream error: Clear soft interrupt queue, report error normally
#[tokio::test]
async fn a_stream_error_is_reported_and_the_queue_stays() {
    let Some(session) = Session::begun("error", "It begins well").await else { return };
    session.sends("Kept.", "Enter");
    session.is_told(SOFT).await;
    let screen = session.sees("failed after 1 turn: invalid_request").await;
    assert!(has(&screen, "queued  1  ⏳ soft  Kept."), "{screen:#?}");
    // Nothing wakes it by itself, and that is what is said.
    session.is_told("⏳ Will inject when it runs again (/resume)").await;
    session.sends("And more.", "Enter");
    session.is_answered("✓ 2 messages injected together at the start of a run, ").await;
    assert_eq!(session.injections(), [("start".into(), "Kept.\n\nAnd more.".into(), 0)]);
}

#[tokio::test]
async fn in_queue_mode_enter_waits_until_all_work_is_done() {
    if !is_here() {
        return;
    }
    let ground = Ground::new();
    let folder = ground.path("home/.config/midturn");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("midturn.toml"), "[terminal]\nqueue_mode = true\n").unwrap();
    let session = Session::on(ground, "tools", "── to lead · follow_up (").await;
    session.runs("go-1").await;
    session.sends("One more thing.", "Enter");
    session.sees("queued  1  ⏳ later  One more thing.").await;
    session.is_told(SOFT).await;
    for command in ["1", "2", "3"] {
        session.ground.go("lead", command);
    }
    session.is_answered("✓ Message injected at B, ").await;
    assert_eq!(session.injections(), [("B".into(), "One more thing.".into(), 0)]);
    session.went_well();
}

#[tokio::test]
async fn a_subagent_is_spoken_to_sooner_unless_somebody_says_otherwise() {
    let Some(session) = Session::begun("subagents", "* one   bash until").await else { return };
    session.sends("/agent one", "Enter");
    session.sees("── to one · next_boundary (").await;
    session.sends("Leave the rest.", "Enter");
    session.sees("queued  1  ⚡ ASAP  Leave the rest.").await;
    session.is_told(SOON).await;
    session.ground.go("one", "one");
    session.is_answered("✓ Message injected after bash at C, 1 call skipped, ").await;
    let [(point, _, skipped)] = &session.injections()[..] else { panic!("{:?}", session.injections()) };
    assert_eq!((point.as_str(), *skipped), ("C", 1));
}
