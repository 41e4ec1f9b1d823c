//! A session that is played into the terminal: events, what is said between them, keys and time.

#![allow(dead_code, unreachable_pub, reason = "each test binary and the bench use a part of it")]

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use midturn_client::events::Told;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::{
    CallRef, Event, EventKind, LiveEvent, LiveKind, Outcome, Place, Trigger, VERSION,
};
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{Point, Role, Urgency};
use midturn_core::rules::time::{Micros, Span};
use midturn_tui::composer::drafts::Saved;
use midturn_tui::effect::Effect;
use midturn_tui::settings::Settings;
use midturn_tui::state::{Opening, Standing, State};
use midturn_tui::update::{Input, update};
use ratatui::layout::Size;
use serde_json::{Value, json};

/// When the session began.
pub const BEGAN: Micros = Micros(1_700_000_000_000_000);

/// A terminal, and what it was told.
pub struct Play {
    pub state: State,
    /// What was to be done.
    pub effects: Vec<Effect>,
    seq: u64,
    said: u64,
    t: Micros,
    runs: BTreeMap<AgentName, (u64, u32)>,
}

pub fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

pub fn opening() -> Opening {
    Opening {
        id: "s-1".to_owned(),
        title: "rename open() to load()".to_owned(),
        lead: name("lead"),
        began_at: BEGAN,
        last_seq: 0,
        standing: Standing::Ours,
        can_ask: true,
        seed: "t".to_owned(),
        notes: Vec::new(),
    }
}

/// A key as it is written in the configuration: `ctrl+s`, `alt+enter`, `pgup`.
pub fn key(written: &str) -> KeyEvent {
    let mut held = KeyModifiers::NONE;
    let mut rest = written;
    for (word, one) in
        [("ctrl+", KeyModifiers::CONTROL), ("alt+", KeyModifiers::ALT), ("shift+", KeyModifiers::SHIFT)]
    {
        if let Some(after) = rest.strip_prefix(word) {
            (held, rest) = (held | one, after);
        }
    }
    let mut chars = rest.chars();
    let code = match (rest, chars.next(), chars.next()) {
        ("enter", ..) => KeyCode::Enter,
        ("esc", ..) => KeyCode::Esc,
        ("tab", ..) => KeyCode::Tab,
        ("backspace", ..) => KeyCode::Backspace,
        ("space", ..) => KeyCode::Char(' '),
        ("up", ..) => KeyCode::Up,
        ("down", ..) => KeyCode::Down,
        ("left", ..) => KeyCode::Left,
        ("right", ..) => KeyCode::Right,
        ("home", ..) => KeyCode::Home,
        ("end", ..) => KeyCode::End,
        ("pgup", ..) => KeyCode::PageUp,
        ("pgdn", ..) => KeyCode::PageDown,
        ("f1", ..) => KeyCode::F(1),
        (_, Some(character), None) => KeyCode::Char(character),
        _ => panic!("{written} is no key"),
    };
    KeyEvent::new(code, held)
}

impl Play {
    pub fn new(opening: Opening, settings: Settings, size: Size) -> Self {
        let state = State::new(opening, settings, Saved::default(), size, BEGAN);
        let (effects, runs) = (Vec::new(), BTreeMap::new());
        Self { state, effects, seq: 0, said: 0, t: Micros::default(), runs }
    }

    /// A session of its own process, on a terminal of this size.
    pub fn of_size(width: u16, height: u16) -> Self {
        Self::new(opening(), Settings::default(), Size::new(width, height))
    }

    /// Time goes by, so many tenths of a second.
    pub fn after(&mut self, tenths: u64) -> &mut Self {
        self.t = self.t.after(Span::millis(100 * tenths));
        self.input(Input::Tick)
    }

    pub fn input(&mut self, input: Input) -> &mut Self {
        let effects = update(&mut self.state, input, Micros(BEGAN.0 + self.t.0));
        self.effects.extend(effects);
        self
    }

    pub fn press(&mut self, keys: &[&str]) -> &mut Self {
        keys.iter().for_each(|written| {
            self.input(Input::Key(key(written)));
        });
        self
    }

    pub fn types(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            self.input(Input::Key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE)));
        }
        self
    }

    /// The next event of the session, of an agent's run and turn as they are.
    pub fn event(&mut self, agent: &str, kind: EventKind) -> &mut Self {
        let event = self.next_event(agent, kind);
        self.input(Input::Told(Told::Event(String::new(), Box::new(event))))
    }

    pub fn next_event(&mut self, agent: &str, kind: EventKind) -> Event {
        let agent = name(agent);
        let place = self.runs.entry(agent.clone()).or_default();
        match &kind {
            EventKind::RunStarted { .. } => *place = (place.0 + 1, 0),
            EventKind::ModelStarted { .. } => place.1 += 1,
            _ => {}
        }
        self.seq += 1;
        Event { v: VERSION, seq: self.seq, t: self.t, at: Place::of(&agent, place.0, place.1), kind }
    }

    /// Something that is said and recorded later.
    pub fn live(&mut self, agent: &str, kind: LiveKind) -> &mut Self {
        let event = self.next_live(agent, kind);
        self.input(Input::Told(Told::Live(event)))
    }

    pub fn next_live(&mut self, agent: &str, kind: LiveKind) -> LiveEvent {
        let agent = name(agent);
        let (run, turn) = self.runs.get(&agent).copied().unwrap_or_default();
        self.said += 1;
        let (v, seq, n, t) = (VERSION, self.seq, self.said, self.t);
        LiveEvent { v, seq, n, t, at: Place::of(&agent, run, turn), kind }
    }

    pub fn says(&mut self, agent: &str, text: &str) -> &mut Self {
        self.live(agent, LiveKind::TextDelta { text: text.to_owned() })
    }

    /// An agent comes, and asks its model.
    pub fn begins(&mut self, agent: &str, prompt: &str) -> &mut Self {
        let role = if agent == "lead" { Role::Lead } else { Role::Subagent };
        let parent = (role == Role::Subagent).then(|| name("lead"));
        let prompt = Some(prompt.into());
        self.event(agent, EventKind::AgentSpawned { parent, role, model: None, prompt });
        self.event(agent, EventKind::RunStarted { trigger: Trigger::Prompt }).asks_model(agent)
    }

    pub fn asks_model(&mut self, agent: &str) -> &mut Self {
        self.event(agent, EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Turn })
    }

    /// The model's reply, whole, and the calls in it.
    pub fn replies(&mut self, agent: &str, text: &str, calls: &[(&str, &str, Value)]) -> &mut Self {
        let call = |(id, name, input): &(&str, &str, Value)| CallRef {
            id: CallId::new(*id),
            name: (*name).into(),
            input: input.clone(),
        };
        let kind = EventKind::ModelFinished {
            stop_reason: "end_turn".into(),
            usage: Usage { input: 1_800, output: 240, cached: 0 },
            text: text.to_owned(),
            thinking: Vec::new(),
            tools: calls.iter().map(call).collect(),
            purpose: Purpose::Turn,
        };
        self.event(agent, kind)
    }

    pub fn starts(&mut self, agent: &str, id: &str, tool: &str, input: Value) -> &mut Self {
        let (tool, name) = (CallId::new(id), tool.into());
        self.event(agent, EventKind::ToolStarted { tool, name, input, batch: 1 })
    }

    pub fn ends(&mut self, agent: &str, id: &str, tool: &str, status: ToolStatus, output: &str) -> &mut Self {
        let kind = EventKind::ToolFinished {
            tool: CallId::new(id),
            name: tool.into(),
            status,
            is_error: status != ToolStatus::Completed,
            bytes: output.len() as u64,
            output: output.to_owned(),
        };
        self.event(agent, kind)
    }

    pub fn asks(&mut self, agent: &str, id: &str, tool: &str, input: Value, always: &str) -> &mut Self {
        let (tool, name, always) = (CallId::new(id), tool.into(), always.into());
        self.event(agent, EventKind::ApprovalRequested { tool, name, input, always })
    }

    pub fn queued(&mut self, to: &str, id: &str, from: &str, urgency: Urgency, text: &str) -> &mut Self {
        let (message, from, text) = (MessageId::new(id), from.to_owned(), text.into());
        self.event(to, EventKind::MessageQueued { message, from, urgency, text })
    }

    pub fn injected(&mut self, to: &str, ids: &[&str], point: Point, skipped: &[&str]) -> &mut Self {
        let kind = EventKind::MessageInjected {
            messages: ids.iter().copied().map(MessageId::new).collect(),
            point,
            text: "all of it".into(),
            skipped: skipped.iter().copied().map(CallId::new).collect(),
            interrupted: std::sync::Arc::default(),
        };
        self.event(to, kind)
    }

    pub fn finishes(&mut self, agent: &str, outcome: Outcome) -> &mut Self {
        let (error, usage) = (None, Usage::default());
        self.event(agent, EventKind::RunFinished { outcome, error, turns: 3, usage })
    }
}

impl Play {
    /// What [`begins`](Self::begins) tells, to be told later.
    pub fn beginning(&mut self, agent: &str) -> [Event; 3] {
        let (parent, role) = (None, Role::Subagent);
        let spawned = EventKind::AgentSpawned { parent, role, model: None, prompt: Some("Go.".into()) };
        let asks = EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Turn };
        [spawned, EventKind::RunStarted { trigger: Trigger::Prompt }, asks]
            .map(|kind| self.next_event(agent, kind))
    }

    /// A turn with a call, to be told later.
    pub fn turn(&mut self, agent: &str, n: usize) -> [Event; 4] {
        let (tool, input) = (CallId::new(format!("c{n}")), command(&format!("cargo test -p part_{n}")));
        let call = CallRef { id: tool.clone(), name: "bash".into(), input: input.clone() };
        let replies = EventKind::ModelFinished {
            stop_reason: "tool_use".into(),
            usage: Usage { input: 1_800, output: 240, cached: 0 },
            text: "The next part has three callers, all in the tests; I change them first.".to_owned(),
            thinking: Vec::new(),
            tools: vec![call],
            purpose: Purpose::Turn,
        };
        let starts = EventKind::ToolStarted { tool: tool.clone(), name: "bash".into(), input, batch: 1 };
        let ends = EventKind::ToolFinished {
            tool,
            name: "bash".into(),
            status: ToolStatus::Completed,
            is_error: false,
            bytes: 500,
            output: "test parse::nested ... ok\n".repeat(20),
        };
        let asks = EventKind::ModelStarted { call: n as u64, messages: 1, purpose: Purpose::Turn };
        [replies, starts, ends, asks].map(|kind| self.next_event(agent, kind))
    }
}

/// A shell command as a call's input.
pub fn command(text: &str) -> Value {
    json!({"command": text})
}
