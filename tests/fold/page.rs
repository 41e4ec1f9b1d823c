//! What the page makes of what is told (crates/server/page/fold.js, words.js), in a process of Node, against what this
//! crate's fold makes of it. What differs is shown with the shortest beginning of the list that shows it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use midturn_core::rules::event::{Event, LiveEvent};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::Ask;
use midturn_tests::root;
use midturn_view::agents::{Class, Order, doing};
use midturn_view::fold::{Entry, EntryKind, Session};
use midturn_view::timeline::Timeline;
use midturn_view::{inbox, mail};
use serde_json::{Map, Value, json};

use crate::needs::{self, Need};

/// Something that is told of a session.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Event(Event),
    Live(LiveEvent),
    /// What only a newer version knows: nothing here takes it.
    Other(Value),
    Rejoined,
}

impl Told {
    fn json(&self) -> Value {
        match self {
            Self::Event(event) => json!({ "event": event }),
            Self::Live(event) => json!({ "live": event }),
            Self::Other(other) => json!({ "other": other }),
            Self::Rejoined => json!({}),
        }
    }

    fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::Live(_) | Self::Other(_) | Self::Rejoined => None,
        }
    }

    fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Event(event) => event.at.agent.as_ref(),
            Self::Live(event) => event.at.agent.as_ref(),
            Self::Other(_) | Self::Rejoined => None,
        }
    }

    /// Whether it changed anything.
    fn take(&self, session: &mut Session) -> bool {
        match self {
            Self::Event(event) => session.event(event),
            Self::Live(event) => session.live(event),
            Self::Other(other) => {
                let is_other = serde_json::from_value::<Event>(other.clone()).is_err()
                    && serde_json::from_value::<LiveEvent>(other.clone()).is_err();
                assert!(is_other, "{other} is known");
                false
            }
            Self::Rejoined => {
                session.rejoined();
                true
            }
        }
    }
}

/// A process of Node that folds as the page does; one for all that a test asks.
pub(crate) struct Page {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Page {
    /// `None`: there is no Node.
    pub(crate) fn begin() -> Option<Self> {
        let script: &Path = &root().join("tests/fold/page.mjs");
        let pipes = Command::new("node").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        if !needs::has(Need::Node, pipes.is_ok()) {
            return None;
        }
        let mut child = pipes.unwrap();
        let (asks, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Self { child, asks, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, asked: &Value) -> Value {
        writeln!(self.asks, "{asked}").unwrap();
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer).unwrap();
        assert!(length > 0, "Node has ended; what it said stands above");
        serde_json::from_str(&answer).unwrap()
    }

    /// How the page says all of these: the function's name, and what it is given.
    pub(crate) fn say(&mut self, all: &[Value]) -> Vec<Value> {
        let Value::Array(said) = self.ask(&json!({ "all": all })) else { panic!("it is a list") };
        said
    }

    /// Fails where the page makes something else of what is told, or has other words for it at some moment.
    pub(crate) fn agrees(&mut self, name: &str, told: &[Told]) {
        if self.difference(told, true).is_none() {
            return;
        }
        let shortest = (1..=told.len()).find_map(|n| Some((n, self.difference(&told[..n], true)?)));
        let (length, difference) = shortest.unwrap();
        let shown: Vec<String> = told[..length].iter().map(|one| one.json().to_string()).collect();
        panic!("{name}: {difference}, after\n{}", shown.join("\n"));
    }

    /// What the page makes something else of, if it does; `says`: in words, too, at every moment.
    pub(crate) fn difference(&mut self, told: &[Told], says: bool) -> Option<String> {
        let list: Vec<Value> = told.iter().map(Told::json).collect();
        let from = instants(told);
        let there = self.ask(&json!({ "told": list, "says": says, "from": from }));
        difference("", &folded(told, says, from), &there)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From when on the timeline is drawn: its beginning, its middle, its end.
fn instants(told: &[Told]) -> [u64; 3] {
    let events = told.iter().filter_map(Told::event);
    let last = events.map(|event| event.t.0).max().unwrap_or_default();
    [0, last / 2, last]
}

/// The timeline from these instants on.
fn pictures(told: &[Told], from: [u64; 3]) -> Value {
    let timeline = Timeline::of(told.iter().filter_map(Told::event));
    json!(from.map(|from| timeline.picture(Micros(from), Micros::default())))
}

/// What is made of it here, as `page.mjs` has it.
fn folded(told: &[Told], says: bool, from: [u64; 3]) -> Value {
    let (mut session, mut order) = (Session::default(), Order::default());
    let moment = |one: &Told| {
        let changed = one.take(&mut session);
        if !says {
            return json!(changed);
        }
        let classes = session.view().agents().map(|(name, _)| (name, class(&session, name)));
        let moved = order.told(classes);
        json!([changed, moved, one.agent().and_then(|name| agent_says(&session, name))])
    };
    let moments: Vec<Value> = told.iter().map(moment).collect();
    let rows: Vec<Value> = order.rows().map(|(name, class)| json!([name, word(class)])).collect();
    let usage = session.view().usage();
    // Times are written as they are read: they are no value of their own.
    let plain: Value = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    let said = if says { entries_say(&session) } else { Map::new() };
    let waiting = if says { inbox::needs(session.view()) } else { Vec::new() };
    let needs: Vec<Value> = waiting.iter().map(need).collect();
    let pictures = pictures(told, from);
    json!({
        "needs": needs, "moments": moments, "session": plain, "usage": usage, "rows": rows, "says": said, "pictures": pictures
    })
}

fn need(need: &inbox::Need) -> Value {
    let since = need.since.map(|since| since.0 as f64 / 1e6);
    json!([need.id, need.agent, need.what.as_str(), since, need.line()])
}

fn ask<'a>(session: &'a Session, name: &AgentName) -> Option<&'a Ask> {
    session.view().open_asks().iter().find(|ask| ask.agent == *name)
}

fn class(session: &Session, name: &AgentName) -> Class {
    let asks = ask(session, name).is_some();
    Class::of(session.view().agent(name).unwrap(), asks)
}

fn word(class: Class) -> String {
    format!("{class:?}").to_lowercase()
}

fn agent_says(session: &Session, name: &AgentName) -> Option<Value> {
    let agent = session.view().agent(name)?;
    let doing = doing(agent, ask(session, name), session.view().t());
    let mail = Urgency::ALL.map(|urgency| [mail::promise(urgency, agent), mail::waits(urgency, agent)]);
    let since = doing.since.map(|since| since.0 as f64 / 1e6);
    Some(json!([class(session, name).sign(), doing.words, since, mail]))
}

fn entries_say(session: &Session) -> Map<String, Value> {
    let conversations = session.view().agents().filter_map(|(name, _)| {
        let entries = session.conversation(name)?.entries();
        Some((name.to_string(), entries.map(|(_, entry)| entry_says(entry)).collect()))
    });
    conversations.collect()
}

fn entry_says(entry: &Entry) -> Value {
    match &entry.kind {
        EntryKind::Injected(injected) => json!(mail::injected(injected)),
        EntryKind::Returned { reason, .. } => json!(mail::returned(*reason)),
        _ => Value::Null,
    }
}

/// Where two values first differ, if they do. In JavaScript there is one kind of number.
fn difference(place: &str, here: &Value, there: &Value) -> Option<String> {
    match (here, there) {
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut all = a.iter().zip(b).enumerate();
            all.find_map(|(at, (a, b))| difference(&format!("{place}[{at}]"), a, b))
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(name, a)| difference(&format!("{place}.{name}"), a, &b[name]))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{place} is {} here and {} in the page", start(a), start(b))),
    }
}

fn start(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(1_000).collect()
}
