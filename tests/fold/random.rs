//! Lists of what may be told of a session, made from a seed: what a session could tell, and then told twice, left out,
//! turned round, told late of a run that is over, mixed with deltas and with what only a newer version knows.

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::{Purpose, Sizes};
use midturn_core::rules::conversation::{InterruptReason, ToolStatus, Usage};
use midturn_core::rules::event::{
    CallRef, Event, EventKind, Halt, LiveEvent, LiveKind, Outcome, Place, PlanStatus, PlanStep, Scope,
    Trigger, VERSION,
};
use midturn_core::rules::id::{AgentName, CallId, MessageId, SessionId};
use midturn_core::rules::mail::{Point, ReturnReason, Role, Urgency};
use midturn_core::rules::time::{Micros, Span};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::page::Told;

/// What somebody or something says: blank in its ways, of long characters, with what acts or hides.
const TEXTS: [&str; 18] = [
    "",
    " \n",
    "\u{85}",
    "\u{feff}",
    "Yes.",
    "I look at it, and then I say what I have found there, in words",
    "\n two\n lines ",
    "é👩\u{200d}👩\u{1f3fb} x",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]0;title\u{7}x\n\u{1b}Pq\u{1b}\\y",
    "10 %\r20 %",
    "a\u{202e}b\u{200b}\tc\u{9b}",
    "max_turns",
    "crate::mod",
    "\u{1b}]0;hidden\nrm -rf x",
    "\u{85}x\u{2028}",
    "क\u{94d}\u{200d}ष",
    "10 %\r\t",
];

/// Ids, of which there are so few that they come again.
const IDS: [&str; 4] = ["a", "a", "b", "toolu_1"];

const TOOLS: [&str; 4] = ["bash", "wait_agents", "write", "a\u{202e}\n"];

/// One agent is called as something that every object of JavaScript has, and one as a number.
const AGENTS: [&str; 4] = ["w", "worker-2", "constructor", "7"];

/// What makes lists.
pub(crate) struct Random {
    dice: Dice,
    seq: u64,
    n: u64,
    t: u64,
    /// Of each agent its run.
    runs: [u64; AGENTS.len()],
}

impl Random {
    /// A list of this seed.
    pub(crate) fn list(seed: u64) -> Vec<Told> {
        let mut random = Self::new(seed);
        let first = random.plain();
        let list = match random.dice.one_in(4) {
            true => random.cut(first),
            false => first,
        };
        random.disturbed(list)
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), seq: 0, n: 0, t: 0, runs: [0; AGENTS.len()] }
    }

    /// A part of a list and a part of another one.
    fn cut(&mut self, first: Vec<Told>) -> Vec<Told> {
        (self.seq, self.runs) = (self.dice.below(20), [0; AGENTS.len()]);
        let second = self.plain();
        let (end, start) = (self.place(&first), self.place(&second));
        [&first[..end], &second[start..]].concat()
    }

    fn plain(&mut self) -> Vec<Told> {
        let length = 1 + self.dice.below(80);
        (0..length).map(|_| self.told()).collect()
    }

    fn disturbed(&mut self, mut list: Vec<Told>) -> Vec<Told> {
        for _ in 0..self.dice.below(8) {
            let (from, to) = (self.place(&list), self.place(&list));
            let (from, to) = (from.min(to), from.max(to));
            match self.dice.below(4) {
                0 => list[from..(from + 5).min(to)].reverse(),
                1 => drop(list.drain(from..(from + 2).min(to))),
                2 => list.insert(to, list[from].clone()),
                _ => {
                    let late = self.late(list[from].clone());
                    list.insert(to, late);
                }
            }
        }
        list
    }

    fn place(&mut self, list: &[Told]) -> usize {
        self.dice.below(list.len() as u64) as usize
    }

    /// The same under a number that is not told yet.
    fn late(&mut self, mut told: Told) -> Told {
        if let Told::Event(event) = &mut told {
            self.seq += 1;
            event.seq = self.seq;
        }
        told
    }

    fn told(&mut self) -> Told {
        self.t += self.dice.below(3) * self.dice.below(90_000_001);
        let who = self.dice.pick(&[0, 0, 0, 0, 0, 1, 2, 3]);
        match self.dice.below(12) {
            0 => self.other(),
            1 => Told::Rejoined,
            2..5 => Told::Live(self.live(who)),
            _ => {
                let kind = self.kind();
                Told::Event(self.event(who, kind))
            }
        }
    }

    fn event(&mut self, who: usize, kind: EventKind) -> Event {
        // A number may be left out.
        self.seq += 1 + u64::from(self.dice.one_in(10));
        if matches!(kind, EventKind::RunStarted { .. }) && !self.dice.one_in(8) {
            self.runs[who] += 1;
        }
        let is_sessions = matches!(
            kind,
            EventKind::SessionStarted { .. } | EventKind::SessionResumed { .. } | EventKind::AgentClosed {}
        );
        let at = match is_sessions && self.dice.one_in(2) {
            true => Place::default(),
            false => self.at(who),
        };
        Event { v: VERSION, seq: self.seq, t: Micros(self.t), at, kind }
    }

    /// Mostly in the run that is under way.
    fn at(&mut self, who: usize) -> Place {
        let name = AgentName::new(AGENTS[who]).unwrap();
        let run = match self.dice.below(10) {
            0 => self.runs[who] + 1,
            1 => self.runs[who].saturating_sub(1),
            2 => return Place { agent: Some(name), run: None, turn: None },
            _ => self.runs[who],
        };
        let turn = self.dice.below(3) as u32;
        Place::of(&name, run, turn)
    }

    fn live(&mut self, who: usize) -> LiveEvent {
        self.n += self.dice.below(3);
        let (tool, text) = (self.call(), self.text().to_string());
        let kind = match self.dice.below(6) {
            0 => LiveKind::ThinkingDelta { text },
            1 => LiveKind::CallDelta { tool, name: self.tool(), bytes: self.dice.below(5_000_000) },
            2 => LiveKind::ToolOutput { tool, text },
            3 => LiveKind::SetupOutput { text },
            _ => LiveKind::TextDelta { text },
        };
        LiveEvent { v: VERSION, seq: self.seq, n: self.n, t: Micros(self.t), at: self.at(who), kind }
    }

    /// What only a newer version knows: it takes a number, and has what others have.
    fn other(&mut self) -> Told {
        self.seq += 1;
        let mut other = json!({ "v": 2, "seq": self.seq, "t": 1.5, "agent": "w", "run": 1, "turn": 1 });
        other["type"] = self.dice.pick(&["something_new", "constructor", "toString"]).into();
        if self.dice.one_in(2) {
            other["n"] = self.n.into();
        }
        other["text"] = "new".into();
        Told::Other(other)
    }

    fn kind(&mut self) -> EventKind {
        match self.dice.below(40) {
            0..5 => EventKind::RunStarted { trigger: Trigger::Prompt },
            5..12 => self.model(),
            12..20 => self.tools(),
            20..28 => self.mail(),
            28..32 => self.asks(),
            32..35 => self.run_finished(),
            35 => EventKind::SessionResumed { version: "1".into() },
            36 if self.dice.one_in(3) => EventKind::AgentClosed {},
            _ => self.others(),
        }
    }

    fn model(&mut self) -> EventKind {
        let purpose = self.dice.pick(&[Purpose::Turn, Purpose::Turn, Purpose::Summary]);
        let text = self.text().to_string();
        match self.dice.below(7) {
            0..3 => {
                EventKind::ModelStarted { call: self.dice.below(9), messages: self.dice.below(9), purpose }
            }
            3 => EventKind::ModelRetry { attempt: 1, error: text, wait: self.span() },
            4 => EventKind::ModelInterrupted {
                reason: self.dice.pick(&InterruptReason::ALL),
                text,
                thinking: vec![],
                partial_tokens: 3,
            },
            _ => EventKind::ModelFinished {
                stop_reason: "end_turn".into(),
                usage: Usage { input: self.dice.below(1 << 40), output: self.dice.below(900), cached: 1 },
                text,
                thinking: vec![],
                tools: (0..self.dice.below(3)).map(|_| self.call_ref()).collect(),
                purpose,
            },
        }
    }

    fn call_ref(&mut self) -> CallRef {
        CallRef { id: self.call(), name: self.tool(), input: self.input() }
    }

    fn tools(&mut self) -> EventKind {
        let CallRef { id: tool, name, input } = self.call_ref();
        let bytes = self.dice.below(1 << 50);
        match self.dice.one_in(2) {
            true => EventKind::ToolStarted { tool, name, input, batch: 1 },
            false => EventKind::ToolFinished {
                tool,
                name,
                status: self.dice.pick(&ToolStatus::ALL),
                is_error: false,
                bytes,
                output: self.text().to_string(),
            },
        }
    }

    fn mail(&mut self) -> EventKind {
        let (message, text) = (self.message(), self.text().into());
        let from = self.dice.pick(&["user", "w"]).to_owned();
        match self.dice.below(8) {
            0..4 => EventKind::MessageQueued { message, from, urgency: self.dice.pick(&Urgency::ALL), text },
            4 => EventKind::MessageReturned { message, reason: self.dice.pick(&ReturnReason::ALL) },
            5 => EventKind::MessageRefused { message, from, reason: text },
            _ => EventKind::MessageInjected {
                messages: (0..self.dice.below(4)).map(|_| self.message()).collect(),
                point: self.dice.pick(&Point::ALL),
                text,
                skipped: (0..self.dice.below(3)).map(|_| self.call()).collect(),
                interrupted: (0..self.dice.below(3)).map(|_| self.call()).collect(),
            },
        }
    }

    fn asks(&mut self) -> EventKind {
        let CallRef { id: tool, name, input } = self.call_ref();
        let reason = self.dice.one_in(2).then(|| self.text().to_string());
        match self.dice.below(3) {
            0 => EventKind::ApprovalResolved {
                tool,
                decision: self.dice.pick(&Decision::ALL),
                by: "user".into(),
                reason,
            },
            _ => EventKind::ApprovalRequested { tool, name, input, always: "bash(x)".into() },
        }
    }

    fn run_finished(&mut self) -> EventKind {
        let error = self.dice.one_in(2).then(|| self.text().into());
        let (outcome, usage) = (self.dice.pick(&Outcome::ALL), Usage::default());
        EventKind::RunFinished { outcome, error, turns: 2, usage }
    }

    fn others(&mut self) -> EventKind {
        let parent = self.dice.one_in(2).then(|| AgentName::new("w").unwrap());
        let prompt = self.dice.one_in(2).then(|| self.text().into());
        let reason = self.dice.pick(&Halt::ALL);
        let sizes = Sizes { before: 9, after: 3 };
        let limits = serde_json::from_value(json!({"max_cost": "2.50", "max_time": "1m"})).unwrap();
        let step = PlanStep { text: "Look".into(), status: PlanStatus::InProgress };
        match self.dice.below(6) {
            0 => EventKind::AgentSpawned { parent, role: Role::Lead, model: prompt.clone(), prompt },
            1 => EventKind::PlanUpdated { steps: vec![step] },
            2 => EventKind::LimitRaised { by: "user".into(), limits },
            3 => EventKind::Compacted { messages: sizes, tokens: sizes },
            4 => EventKind::SessionStarted {
                session: SessionId::new("s"),
                version: "1".into(),
                virtual_time: true,
                scenario: None,
            },
            _ => EventKind::StopRequested {
                by: "user".into(),
                scope: Scope::Agent,
                reason,
                still_queued: vec![],
            },
        }
    }

    /// One of the texts, several of them, or a long one.
    pub(crate) fn text(&mut self) -> String {
        let times = self.dice.pick(&[1, 1, 1, 2, 30, 90]);
        let one = self.dice.pick(&TEXTS);
        let other = self.dice.pick(&TEXTS);
        format!("{}{other}", one.repeat(times))
    }

    /// A call's arguments.
    pub(crate) fn input(&mut self) -> Value {
        let text = self.text();
        match self.dice.below(8) {
            0 => Value::Null,
            1 => json!(text),
            2 => json!({ "command": text, "description": self.text() }),
            3 => {
                json!({ "z": text, "é": 1.5, "a": [null, -3, true, {"x": "y"}], "\u{1f600}": 1, "\u{ff01}": "" })
            }
            4 => json!({ "names": ["w", text, 3] }),
            5 => json!([text]),
            6 => json!({ "path": 3, "file_path": text }),
            _ => json!({ "2": text, "10": "ten" }),
        }
    }

    fn tool(&mut self) -> std::sync::Arc<str> {
        self.dice.pick(&TOOLS).into()
    }

    fn call(&mut self) -> CallId {
        CallId::new(self.dice.pick(&IDS))
    }

    fn message(&mut self) -> MessageId {
        MessageId::new(self.dice.pick(&IDS))
    }

    fn span(&mut self) -> Span {
        // Whether that is a minute or more is told apart.
        if self.dice.one_in(4) {
            return Span::secs(60);
        }
        let unit = self.dice.pick(&[1, 1_000, 500_000, 1_000_000, 60_000_000, 3_600_000_000]);
        Span(self.dice.below(100) * unit)
    }
}
