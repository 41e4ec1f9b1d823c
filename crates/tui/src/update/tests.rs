//! What keys do, and what came of it: a terminal without a screen, told events as they come over the wire.

mod asks;
mod drafts;
mod inbox;
mod mail;
mod places;
mod review;
mod what_if;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use midturn_client::Trouble;
use midturn_client::events::{Told, read};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::time::{Micros, Span};
use ratatui::layout::Size;
use serde_json::{Value, json};

use super::{Input, update};
use crate::composer::drafts::Saved;
use crate::effect::{Done, Effect, Outgoing};
use crate::settings::Settings;
use crate::state::{Opening, Standing, State};

/// When the session began.
const BEGAN: u64 = 1_000_000_000;

/// A terminal, what it was told, and what it wants done.
struct Tried {
    state: State,
    now: Micros,
    seq: u64,
    effects: Vec<Effect>,
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// A key as people write it: `ctrl+s`, `alt+up`, `x`.
fn key(text: &str) -> KeyEvent {
    let (mut held, mut last) = (KeyModifiers::NONE, text);
    while let Some((modifier, rest)) = last.split_once('+').filter(|(_, rest)| !rest.is_empty()) {
        held |= match modifier {
            "ctrl" => KeyModifiers::CONTROL,
            "alt" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            other => panic!("{other}"),
        };
        last = rest;
    }
    let code = match last {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "f1" => KeyCode::F(1),
        "tab" if held == KeyModifiers::SHIFT => KeyCode::BackTab,
        "tab" => KeyCode::Tab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "backspace" => KeyCode::Backspace,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, held)
}

fn refusal(code: &str) -> Trouble {
    let detail = format!("the words of {code}");
    let problem =
        json!({"type": "about:blank", "title": "No", "status": 409, "code": code, "detail": detail});
    Trouble::Refused(serde_json::from_value(problem).unwrap())
}

impl Tried {
    /// A session of another process, with the agents `lead` and `w`, who are at work.
    fn new() -> Self {
        Self::with(Standing::Theirs, Settings::default())
    }

    fn with(standing: Standing, settings: Settings) -> Self {
        let (began, lead) = (Micros(BEGAN), name("lead"));
        let (id, title, seed) = ("s1".into(), "a task".into(), "x".into());
        let opening = Opening {
            id,
            title,
            lead,
            began_at: began,
            last_seq: 0,
            standing,
            seed,
            can_ask: true,
            notes: Vec::new(),
        };
        let size = Size::new(80, 24);
        let state = State::new(opening, settings, Saved::default(), size, began);
        let mut tried = Self { state, now: began, seq: 0, effects: Vec::new() };
        for (agent, parent, role) in [("lead", None, "lead"), ("w", Some("lead"), "subagent")] {
            let spawned = json!({"type": "agent_spawned", "parent": parent, "role": role, "prompt": "do it"});
            tried.told(agent, spawned);
            tried.told(agent, json!({"type": "run_started", "trigger": "prompt"}));
            tried.told(agent, json!({"type": "model_started", "call": 1, "messages": 1}));
        }
        tried.effects.clear();
        tried
    }

    fn input(&mut self, input: Input) -> &mut Self {
        let effects = update(&mut self.state, input, self.now);
        // What is kept and asked for in passing is not what these tests are about.
        self.effects.extend(
            effects.into_iter().filter(|e| !matches!(e, Effect::Agents | Effect::Save(_) | Effect::Title(_))),
        );
        self
    }

    /// Something happens to an agent.
    fn told(&mut self, agent: &str, mut event: Value) -> &mut Self {
        self.seq += 1;
        let t: Value = serde_json::from_str(&Micros(self.now.since(Micros(BEGAN)).0).to_string()).unwrap();
        let place = json!({"v": 1, "seq": self.seq, "t": t, "agent": agent, "run": 1, "turn": 1});
        let place = place.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(place);
        let told = read(event.to_string());
        assert!(matches!(told, Told::Event(..)), "{told:?}");
        self.input(Input::Told(told))
    }

    /// Presses keys, written with spaces between.
    fn press(&mut self, keys: &str) -> &mut Self {
        for text in keys.split(' ') {
            self.input(Input::Key(key(text)));
        }
        self
    }

    /// Types a text, letter by letter.
    fn types(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            self.input(Input::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)));
        }
        self
    }

    fn later(&mut self, span: Span) -> &mut Self {
        self.now = self.now.after(span);
        self.input(Input::Tick)
    }

    fn done(&mut self, done: Done) -> &mut Self {
        self.input(Input::Done(done))
    }

    /// A message waits in a mailbox.
    fn queued(&mut self, agent: &str, id: &str, from: &str, urgency: &str, text: &str) -> &mut Self {
        let event =
            json!({"type": "message_queued", "message": id, "from": from, "urgency": urgency, "text": text});
        self.told(agent, event)
    }

    /// A message is sent and waits: its id.
    fn waits(&mut self, text: &str) -> MessageId {
        self.types(text).press("enter");
        let Outgoing { to, id, text, urgency, .. } = self.sent();
        self.queued(to.as_str(), id.as_str(), "user", urgency.map_or("after_tools", |u| u.as_str()), &text);
        id
    }

    /// The one message that was sent since this was last asked.
    fn sent(&mut self) -> Outgoing {
        match self.effects() {
            [Effect::Send(message)] => message,
            other => panic!("{other:?}"),
        }
    }

    /// What was to be done since this was last asked.
    fn effects(&mut self) -> [Effect; 1] {
        let effects = std::mem::take(&mut self.effects);
        effects.try_into().unwrap_or_else(|all| panic!("not one thing to do, but {all:?}: {:?}", self.says()))
    }

    /// That nothing was to be done.
    fn nothing(&mut self) -> &mut Self {
        assert_eq!(self.effects, [], "{}", self.says());
        self
    }

    fn says(&self) -> &str {
        self.state.notice.as_ref().map_or("", |notice| &notice.text)
    }

    fn draft(&self) -> String {
        self.state.composer.text()
    }

    fn chosen(&self) -> &str {
        self.state.chosen.as_ref().map_or("", AgentName::as_str)
    }
}
