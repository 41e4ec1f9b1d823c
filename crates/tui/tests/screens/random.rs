//! Any events, texts, keys, pastes and sizes: nothing panics, nothing but our own sequences reaches the terminal,
//! and what a person needs is on the frame.

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{EventKind, LiveKind, Outcome, PlanStatus, PlanStep, Trigger};
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};
use midturn_core::rules::time::Span;
use midturn_tui::changes::Changes;
use midturn_tui::effect::{Done, Effect};
use midturn_tui::keys::TABLE;
use midturn_tui::look::Look;
use midturn_tui::settings::Settings;
use midturn_tui::state::{Pane, State};
use midturn_tui::update::Input;
use midturn_tui::what_if::Played;
use midturn_view::patch::Patch;
use proptest::prelude::*;
use proptest::sample::select;
use ratatui::layout::Size;
use serde_json::json;

use crate::common::{Play, key, opening};
use crate::seen::Seen;

/// Who is there.
const AGENTS: [&str; 4] = ["lead", "w", "tester", "docs-2"];

/// The calls, of which any may come any number of times.
const CALLS: [&str; 3] = ["c1", "c2", "c3"];

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Begins(&'static str),
    Again(&'static str),
    Says(&'static str, String),
    Thinks(&'static str, String),
    Prints(&'static str, &'static str, String),
    SetsUp(&'static str, String),
    Writes(&'static str, String),
    Replies(&'static str, String, String),
    Starts(&'static str, &'static str, String),
    Ends(&'static str, &'static str, ToolStatus, String),
    Asks(&'static str, &'static str, String),
    Queued(&'static str, Urgency, String),
    Injected(&'static str),
    Returned(&'static str),
    Retries(&'static str, String),
    Plans(&'static str, String),
    Finishes(&'static str, Outcome),
    Closes(&'static str),
    Key(String),
    Types(String),
    Paste(String),
    Wheel(i16),
    Resize(u16, u16),
    Diff(String),
    After(u64),
}

/// Text that is likely to break what draws it.
fn text() -> impl Strategy<Value = String> {
    let odd = "[a-c \n\t\r\u{1b}\u{7}\u{9b}\u{202e}\u{2066}\u{200d}\u{200b}\u{301}\u{fe0f}漢👩🏽é한\u{1100}\u{ff9e}\u{644}\u{627}🇩]{0,60}";
    let acts = select(vec![
        "\u{1b}[31mred",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]52;c;eA==\u{1b}\\",
        "\u{1b}[?1049l",
        "\u{1b}[2J",
        "\u{1b}c",
        "\u{1b}Pq#0\u{1b}\\",
        "\u{9d}0;x\u{9c}",
        "\r\nover\rnew",
        "| a | b |\n|-|-|\n| 1 | 2 |",
        "```rust\nfn a() {}\n```",
        "> > > - 1. x",
        "https://x.example/\u{202e}a",
    ]);
    let long = (0..3_u8, 1_000..10_240_usize)
        .prop_map(|(kind, size)| ["x", "漢", "ab "][usize::from(kind)].repeat(size / 3));
    prop_oneof![
        4 => any::<String>(),
        4 => odd.prop_map(String::from),
        4 => proptest::collection::vec(acts, 1..4).prop_map(|all| all.concat()),
        1 => long,
        4 => "[a-z ]{0,40}".prop_map(String::from),
    ]
}

fn keys() -> impl Strategy<Value = String> {
    let table = TABLE.iter().flat_map(|row| row.keys.iter().map(ToString::to_string));
    let mut all: Vec<String> = table.collect();
    all.extend(
        ["a", "@", "/", "?", "w", "up", "down", "left", "right", "home", "backspace"].map(str::to_owned),
    );
    select(all)
}

fn step() -> impl Strategy<Value = Step> {
    let who = || select(AGENTS.to_vec());
    let call = || select(CALLS.to_vec());
    let urgency =
        select(vec![Urgency::FollowUp, Urgency::AfterTools, Urgency::NextBoundary, Urgency::Urgent]);
    let status = select(vec![
        ToolStatus::Completed,
        ToolStatus::Failed,
        ToolStatus::Interrupted,
        ToolStatus::Skipped,
        ToolStatus::Stopped,
        ToolStatus::Unknown,
    ]);
    let outcome = select(vec![Outcome::Finished, Outcome::Failed, Outcome::Limit, Outcome::Stopped]);
    let events = prop_oneof![
        who().prop_map(Step::Begins),
        who().prop_map(Step::Again),
        (who(), text()).prop_map(|(who, text)| Step::Says(who, text)),
        (who(), text()).prop_map(|(who, text)| Step::Thinks(who, text)),
        (who(), call(), text()).prop_map(|(who, call, text)| Step::Prints(who, call, text)),
        (who(), text()).prop_map(|(who, text)| Step::SetsUp(who, text)),
        (who(), text()).prop_map(|(who, text)| Step::Writes(who, text)),
        (who(), text(), text()).prop_map(|(who, text, call)| Step::Replies(who, text, call)),
        (who(), call(), text()).prop_map(|(who, call, text)| Step::Starts(who, call, text)),
        (who(), call(), status, text())
            .prop_map(|(who, call, status, text)| Step::Ends(who, call, status, text)),
        (who(), call(), text()).prop_map(|(who, call, text)| Step::Asks(who, call, text)),
        (who(), urgency, text()).prop_map(|(who, urgency, text)| Step::Queued(who, urgency, text)),
        who().prop_map(Step::Injected),
        who().prop_map(Step::Returned),
    ];
    let rare = prop_oneof![
        (who(), text()).prop_map(|(who, text)| Step::Retries(who, text)),
        (who(), text()).prop_map(|(who, text)| Step::Plans(who, text)),
        (who(), outcome).prop_map(|(who, outcome)| Step::Finishes(who, outcome)),
        who().prop_map(Step::Closes),
        text().prop_map(Step::Diff),
    ];
    let person = prop_oneof![
        6 => keys().prop_map(Step::Key),
        2 => "[a-z@/? ]{1,12}".prop_map(Step::Types),
        2 => text().prop_map(Step::Paste),
        1 => (-9..9_i16).prop_map(Step::Wheel),
        2 => (1..251_u16, 1..81_u16).prop_map(|(width, height)| Step::Resize(width, height)),
        2 => (1..40_u16, 1..13_u16).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => (1..30_u64).prop_map(Step::After),
    ];
    prop_oneof![6 => events, 1 => rare, 5 => person]
}

impl Step {
    fn takes_place(self, play: &mut Play) {
        match self {
            Self::Begins(who) => play.begins(who, "do it"),
            Self::Again(who) => {
                play.event(who, EventKind::RunStarted { trigger: Trigger::Mail(Vec::new()) }).asks_model(who)
            }
            Self::Says(who, text) => play.live(who, LiveKind::TextDelta { text }),
            Self::Thinks(who, text) => play.live(who, LiveKind::ThinkingDelta { text }),
            Self::Prints(who, call, text) => {
                play.live(who, LiveKind::ToolOutput { tool: CallId::new(call), text })
            }
            Self::SetsUp(who, text) => play.live(who, LiveKind::SetupOutput { text }),
            Self::Writes(who, name) => play
                .live(who, LiveKind::CallDelta { tool: CallId::new("c1"), name: name.into(), bytes: 4_096 }),
            Self::Replies(who, text, call) => {
                let edit = json!({"path": call, "old": text, "new": call});
                let bash = json!({"command": call});
                play.replies(
                    who,
                    &text,
                    &[("c1", "bash", bash), ("c2", "edit", edit), ("c3", &call, json!([text]))],
                )
            }
            Self::Starts(who, call, text) => play.starts(who, call, "bash", json!({"command": text})),
            Self::Ends(who, call, status, text) => play.ends(who, call, "bash", status, &text),
            Self::Asks(who, call, text) => play.asks(who, call, "bash", json!({"command": text}), &text),
            Self::Queued(who, urgency, text) => {
                let from = if text.len() % 2 == 0 { "user" } else { "docs-2" };
                play.queued(who, "q1", from, urgency, &text)
            }
            Self::Injected(who) => play.injected(who, &["q1"], Point::C, &["c2"]),
            Self::Returned(who) => {
                let (message, reason) = (MessageId::new("q1"), ReturnReason::Withdrawn);
                play.event(who, EventKind::MessageReturned { message, reason })
            }
            Self::Retries(who, error) => {
                play.event(who, EventKind::ModelRetry { attempt: 1, error, wait: Span::secs(2) })
            }
            Self::Plans(who, text) => {
                let step = |status| PlanStep { text: text.clone(), status };
                let steps = vec![
                    step(PlanStatus::Completed),
                    step(PlanStatus::InProgress),
                    step(PlanStatus::Pending),
                ];
                play.event(who, EventKind::PlanUpdated { steps })
            }
            Self::Finishes(who, outcome) => play.finishes(who, outcome),
            Self::Closes(who) => play.event(who, EventKind::AgentClosed {}),
            Self::Key(written) => play.press(&[&written]),
            Self::Types(text) => play.types(&text),
            Self::Paste(text) => play.input(Input::Paste(text)),
            Self::Wheel(lines) => play.input(Input::Wheel(lines)),
            Self::Resize(width, height) => play.input(Input::Resize(Size::new(width, height))),
            Self::Diff(text) => {
                let changes = Changes::new(Patch::read(&text), text.len() % 2 == 0);
                play.state.pane = Pane::Diff(Some(Ok(Box::new(changes))));
                play
            }
            Self::After(tenths) => play.after(tenths),
        };
    }
}

/// What a terminal was told to do, but for what we tell it.
#[derive(Default)]
struct Foreign(Vec<String>);

impl vte::Perform for Foreign {
    fn execute(&mut self, byte: u8) {
        self.0.push(format!("control {byte:#x}"));
    }

    fn print(&mut self, c: char) {
        if c.is_control() || midturn_view::clean::hides(c) {
            self.0.push(format!("character {c:?}"));
        }
    }

    fn csi_dispatch(&mut self, _: &vte::Params, marks: &[u8], _: bool, action: char) {
        // The cursor's place, styles, and whether the cursor is seen.
        let is_ours = matches!((marks, action), ([], 'H' | 'm') | (b"?", 'h' | 'l'));
        if !is_ours {
            self.0.push(format!("CSI {marks:?} {action}"));
        }
    }

    fn osc_dispatch(&mut self, what: &[&[u8]], _: bool) {
        self.0.push(format!("OSC {what:?}"));
    }

    fn esc_dispatch(&mut self, marks: &[u8], _: bool, byte: u8) {
        self.0.push(format!("ESC {marks:?} {byte:#x}"));
    }

    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.0.push(format!("DCS {action}"));
    }
}

fn foreign(written: &[u8]) -> Vec<String> {
    let mut foreign = Foreign::default();
    vte::Parser::new().advance(&mut foreign, written);
    foreign.0
}

/// What has to be on the frame, if the terminal isn't too small for anybody.
fn missing(state: &State, text: &str) -> Option<String> {
    if state.size.width < 20 || state.size.height < 5 {
        return None;
    }
    let chosen = state.chosen.as_ref().map(|name| name.to_string());
    if let Some(chosen) = chosen.filter(|name| !text.contains(name.as_str())) {
        return Some(format!("the chosen agent {chosen}"));
    }
    let asks = state.ask().map(|ask| format!("{} asks", ask.agent));
    asks.filter(|asks| !state.bare && !text.contains(asks.as_str()))
}

fn check(seen: &mut Seen, play: &Play) -> Result<(), TestCaseError> {
    let written = seen.draw(&play.state);
    let foreign = foreign(&written);
    prop_assert!(foreign.is_empty(), "{foreign:?}");
    let text = seen.text();
    let missing = missing(&play.state, &text);
    prop_assert!(
        missing.is_none(),
        "{} is missing at {}:\n{text}",
        missing.unwrap_or_default(),
        play.state.size
    );
    Ok(())
}

/// What is typed is seen where it is typed.
fn is_typed(seen: &mut Seen, play: &mut Play) -> Result<(), TestCaseError> {
    if play.state.bare {
        play.press(&["alt+z"]);
    }
    play.press(&["end", "ctrl+j"]).types("Zq");
    check(seen, play)?;
    let Size { width, height } = play.state.size;
    if width >= 20 && height >= 5 && play.state.chosen.is_some() {
        let (row, column) = seen.cursor().ok_or_else(|| TestCaseError::fail("no cursor"))?;
        let line = seen.lines().get(usize::from(row)).cloned().unwrap_or_default();
        let (width, height, text) = (width, height, seen.text());
        prop_assert!(line.contains("Zq"), "no draft at {row},{column} of {width}x{height}:\n{text}");
    }
    Ok(())
}

/// What is asked to be done is done, or refused, as texts say.
fn answered(play: &mut Play) {
    for effect in std::mem::take(&mut play.effects) {
        let done = match effect {
            Effect::Send(message) if message.text.len() % 2 == 0 => {
                Done::Sent(message, Err(midturn_client::Trouble::Slow(5)))
            }
            Effect::Withdraw { to, id, text, edit } => Done::Withdrawn { to, id, text, edit, result: Ok(()) },
            Effect::Stop { agent, ours } => Done::Stopped {
                agent,
                result: Ok(true),
                back: ours.into_iter().map(|(_, text)| text).collect(),
            },
            Effect::Editor(text) => Done::Edited(Ok(text)),
            Effect::Replay(shift) => {
                let timeline = || play.state.session.timeline().clone();
                let (before, after) = (timeline(), timeline());
                let played = Played { before, after, changes: Vec::new(), spared: Vec::new() };
                Done::Replayed(shift, Ok(Box::new(played)))
            }
            _ => continue,
        };
        play.input(Input::Done(done));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_session_keys_and_sizes_leave_a_frame_that_can_be_used(
        steps in proptest::collection::vec(step(), 1..60), width in 1..251_u16, height in 1..81_u16, ascii in any::<bool>()
    ) {
        let settings = Settings { look: Look { colours: !ascii, unicode: !ascii }, ..Settings::default() };
        let mut play = Play::new(opening(), settings, Size::new(width, height));
        let mut seen = Seen::new(play.state.size);
        play.begins("lead", "go");
        for step in steps {
            step.takes_place(&mut play);
            answered(&mut play);
            check(&mut seen, &play)?;
        }
        is_typed(&mut seen, &mut play)?;
    }

    /// However a stream is split, what stands there when it is whole is the same.
    #[test]
    fn splits_of_what_is_said_change_nothing(text in text(), at in any::<prop::sample::Index>()) {
        let whole = |pieces: &[&str]| {
            let mut play = Play::of_size(80, 24);
            play.begins("lead", "go");
            pieces.iter().for_each(|piece| { play.says("lead", piece); });
            crate::seen::seen(&play.state)
        };
        let cut = text.floor_char_boundary(at.index(text.len() + 1));
        prop_assert_eq!(whole(&[&text]), whole(&[&text[..cut], &text[cut..]]));
    }
}

#[test]
fn keys_are_read_as_they_are_written() {
    for row in TABLE {
        for written in row.keys {
            assert_eq!(midturn_tui::keys::Key::of(key(&written.to_string())), Some(*written), "{written}");
        }
    }
}
