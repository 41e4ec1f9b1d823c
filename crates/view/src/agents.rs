//! What each agent does, in a few words, and the order in which agents are listed: by need.

use std::collections::BTreeMap;

use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::event::{Halt, LiveKind, Outcome};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Agent, Ask, Call, Request};

use crate::clean::{clean, one_line};
use crate::figures;
use crate::words::{decided, gist, short};

/// The tool with which an agent waits for others.
pub(crate) const WAIT: &str = "wait_agents";

/// How many bytes of what is said are looked at for its last words.
const SAID_SEEN: usize = 1_024;

/// So many characters of last words are shown at least, about, and twice as many at most.
const LAST_WORDS: usize = 20;

/// How much an agent needs a person, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It asks for a person's word.
    Asks,
    /// Its last run failed or came to a limit.
    Failed,
    /// It works.
    Works,
    /// It waits for other agents, and does nothing else.
    Waits,
    /// No run is under way.
    Idle,
    /// It was stopped.
    Stopped,
    /// Nothing of it starts any more.
    Closed,
}

impl Class {
    /// The class of an agent; `asks`: it asks for a person's word.
    pub fn of(agent: &Agent, asks: bool) -> Self {
        match agent.outcome {
            _ if agent.is_closed => Self::Closed,
            _ if asks => Self::Asks,
            _ if agent.is_working() => match is_waiting(agent) {
                true => Self::Waits,
                false => Self::Works,
            },
            Some(Outcome::Failed | Outcome::Limit) => Self::Failed,
            Some(Outcome::Stopped) => Self::Stopped,
            Some(Outcome::Finished) | None => Self::Idle,
        }
    }

    /// The sign before its name.
    pub fn sign(self) -> char {
        match self {
            Self::Asks => '?',
            Self::Failed => '!',
            Self::Works => '*',
            Self::Waits => '=',
            Self::Idle => '-',
            Self::Stopped => 'x',
            Self::Closed => '.',
        }
    }
}

fn is_waiting(agent: &Agent) -> bool {
    !agent.calls.is_empty() && agent.calls.iter().all(|call| &*call.name == WAIT)
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// In words, on one line, as long as they are.
    pub words: String,
    /// Since when, of what goes on.
    pub since: Option<Micros>,
}

impl Doing {
    fn since(since: Micros, words: impl Into<String>) -> Self {
        Self { words: words.into(), since: Some(since) }
    }

    fn still(words: impl Into<String>) -> Self {
        Self { words: words.into(), since: None }
    }
}

/// What an agent does; `ask` is the oldest request that it waits for a person's word on.
pub fn doing(agent: &Agent, ask: Option<&Ask>, now: Micros) -> Doing {
    match ask {
        _ if agent.is_closed => Doing::still("closed"),
        Some(ask) => {
            Doing::since(ask.since, line(&format!("asks: {}", one_line(&ask.name)), &decided(&ask.input)))
        }
        None if agent.is_working() => working(agent, now),
        None => resting(agent),
    }
}

fn working(agent: &Agent, now: Micros) -> Doing {
    if let Some(stop) = agent.stop_of(agent.run) {
        let word = if stop.reason == Halt::Close { "closes" } else { "stops" };
        return Doing::since(stop.at, word);
    }
    if !agent.calls.is_empty() {
        return calling(agent);
    }
    match (&agent.request, agent.asks_again) {
        (Some(request), _) => Doing::since(request.since, replying(agent, request)),
        (None, Some(at)) => Doing::still(tries_again(at, now)),
        (None, None) => Doing::still(if sets_up(agent) { "makes its folder ready" } else { "works" }),
    }
}

/// Whether what makes its folder ready is under way.
fn sets_up(agent: &Agent) -> bool {
    agent.said.pieces().any(|piece| matches!(piece.kind, LiveKind::SetupOutput { .. }))
}

/// What of its calls matters: those that work come before those that wait.
fn calling(agent: &Agent) -> Doing {
    let works: Vec<&Call> = agent.calls.iter().filter(|call| &*call.name != WAIT).collect();
    let is_older = |call: &&&Call| call.since;
    match works.iter().min_by_key(is_older) {
        Some(oldest) if works.len() == 1 => Doing::since(oldest.since, call(oldest)),
        Some(oldest) => Doing::since(oldest.since, format!("{} calls: {}", works.len(), call(oldest))),
        None => waiting(&agent.calls),
    }
}

fn call(call: &Call) -> String {
    line(&one_line(&call.name), &gist(&call.input))
}

fn waiting(calls: &[Call]) -> Doing {
    let mut names: Vec<String> = Vec::new();
    for name in calls.iter().filter_map(|call| call.input.get("names")?.as_array()).flatten() {
        let name = name.as_str().map(one_line).unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let words = if names.is_empty() { "waits".to_owned() } else { format!("waits for {}", names.join(", ")) };
    Doing { words, since: calls.iter().map(|call| call.since).min() }
}

/// When a model call that failed is tried again.
pub fn tries_again(at: Micros, now: Micros) -> String {
    match at.since(now) {
        left if left.0 == 0 => "tries again".to_owned(),
        left if left.0 > 60_000_000 => format!("tries again in {}", figures::short(left)),
        left => format!("tries again in {} s", left.0.div_ceil(1_000_000)),
    }
}

/// What it does with its model: what was said last.
fn replying(agent: &Agent, request: &Request) -> String {
    if request.purpose == Purpose::Summary {
        return "summarises what was said so far".to_owned();
    }
    let is_reply =
        |kind: &&LiveKind| !matches!(kind, LiveKind::ToolOutput { .. } | LiveKind::SetupOutput { .. });
    let said = agent.said.pieces().max_by_key(|piece| match is_reply(&&piece.kind) {
        true => piece.n,
        false => 0,
    });
    match said.map(|piece| &piece.kind).filter(is_reply) {
        Some(LiveKind::TextDelta { text }) => says(text),
        Some(LiveKind::CallDelta { name, bytes, .. }) => {
            format!("writes a call of {} ({})", one_line(name), figures::bytes(*bytes))
        }
        Some(LiveKind::ThinkingDelta { .. } | LiveKind::ToolOutput { .. } | LiveKind::SetupOutput { .. })
        | None => "thinks".to_owned(),
    }
}

/// The last words of what is being said, which may be long and is looked at often. They begin at a place that moves
/// in steps: a row that began elsewhere with each word would be drawn whole with each word, and nobody could read it.
fn says(text: &str) -> String {
    let start = text.floor_char_boundary((text.len() / SAID_SEEN).saturating_sub(1) * SAID_SEEN);
    let cleaned = clean(&text[start..]);
    let Some(last) = cleaned.lines().map(str::trim).rfind(|line| !line.is_empty()) else {
        return "replies".to_owned();
    };
    let left_out = (last.chars().count() / LAST_WORDS).saturating_sub(1) * LAST_WORDS;
    if left_out == 0 {
        return format!("says: {last}");
    }
    let tail = &last[last.char_indices().nth(left_out).map_or(0, |(from, _)| from)..];
    let words = tail.split_once(' ').map_or(tail, |(_, words)| words);
    format!("says: … {words}")
}

fn resting(agent: &Agent) -> Doing {
    let error = agent.error.as_deref().unwrap_or_default();
    let (word, more) = match agent.outcome {
        Some(Outcome::Finished) => ("finished", &*agent.text),
        Some(Outcome::Failed) => ("failed", error),
        Some(Outcome::Limit) => ("limit", error),
        Some(Outcome::Stopped) => ("stopped", ""),
        None => ("idle", ""),
    };
    match short(more) {
        more if more.is_empty() => Doing::still(word),
        more => Doing::still(format!("{word}: {more}")),
    }
}

fn line(what: &str, about: &str) -> String {
    format!("{what} {about}").trim_end().to_owned()
}

/// The order in which agents are listed: by class, and in a class as they became known. A row
/// moves only when its class does, or that of another.
#[derive(Debug, Default)]
pub struct Order {
    /// The place of each agent that was ever told of.
    known: BTreeMap<AgentName, usize>,
    rows: Vec<(Class, usize, AgentName)>,
}

impl Order {
    /// Which agents there are now, and their classes; those that are new in the order in which they
    /// were spawned. Whether a row has moved.
    pub fn told<'a>(&mut self, classes: impl IntoIterator<Item = (&'a AgentName, Class)>) -> bool {
        let mut rows: Vec<_> = classes.into_iter().map(|(name, class)| self.row(name, class)).collect();
        rows.sort_unstable();
        let names =
            |rows: &[(Class, usize, AgentName)]| -> Vec<usize> { rows.iter().map(|row| row.1).collect() };
        let moved = names(&rows) != names(&self.rows);
        self.rows = rows;
        moved
    }

    fn row(&mut self, name: &AgentName, class: Class) -> (Class, usize, AgentName) {
        let next = self.known.len();
        let place = self.known.get(name).copied().unwrap_or_else(|| {
            self.known.insert(name.clone(), next);
            next
        });
        (class, place, name.clone())
    }

    /// The rows, from the top.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = (&AgentName, Class)> + ExactSizeIterator {
        self.rows.iter().map(|(class, _, name)| (name, *class))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use midturn_core::rules::event::{Event, EventKind, LiveEvent, Place, Trigger, VERSION};
    use midturn_core::rules::id::CallId;
    use midturn_core::rules::time::Span;
    use midturn_core::rules::view::{Stop, View};
    use serde_json::{Value, json};

    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).unwrap()
    }

    fn calls(calls: &[(&str, Value, u64)]) -> Agent {
        let call = |(name, input, since): &(&str, Value, u64)| Call {
            id: CallId::new("c"),
            name: (*name).into(),
            input: input.clone(),
            since: Micros(*since),
        };
        Agent { run: 1, calls: calls.iter().map(call).collect(), ..Agent::default() }
    }

    fn ended(outcome: Outcome, text: &str, error: Option<&str>) -> Agent {
        let (outcome, text, error) = (Some(outcome), text.into(), error.map(Arc::from));
        Agent { run: 1, ended: 1, outcome, text, error, ..Agent::default() }
    }

    fn stopping(reason: Halt) -> Agent {
        let stop = Some(Stop { run: 1, by: "user".into(), reason, at: Micros(5) });
        Agent { stop, ..calls(&[("bash", json!({"command": "ls"}), 1)]) }
    }

    /// An agent whose model is asked since 2, and what came of its reply.
    fn replies(purpose: Purpose, said: &[LiveKind]) -> Agent {
        let mut view = View::default();
        let at = || Place::of(&name("w"), 1, 1);
        let kinds = [
            EventKind::RunStarted { trigger: Trigger::Prompt },
            EventKind::ModelStarted { call: 1, messages: 1, purpose },
        ];
        for (seq, kind) in (1..).zip(kinds) {
            view.event(&Event { v: VERSION, seq, t: Micros(seq), at: at(), kind });
        }
        for (n, kind) in (1..).zip(said.iter().cloned()) {
            view.live(&LiveEvent { v: VERSION, seq: 2, n, t: Micros(3), at: at(), kind });
        }
        view.agent(&name("w")).unwrap().clone()
    }

    fn text(text: &str) -> LiveKind {
        LiveKind::TextDelta { text: text.to_owned() }
    }

    fn waits(names: &[&str]) -> (&'static str, Value, u64) {
        ("wait_agents", json!({"names": names}), 3)
    }

    fn bash(command: &str, since: u64) -> (&'static str, Value, u64) {
        ("bash", json!({"command": command}), since)
    }

    #[test]
    fn an_agents_class_is_how_much_it_needs_a_person() {
        use Class::{Closed, Failed, Idle, Stopped, Waits, Works};
        let again = Agent { run: 2, outcome: None, ..ended(Outcome::Failed, "", None) };
        for (agent, expected, sign) in [
            (Agent::default(), Idle, '-'),
            (calls(&[]), Works, '*'),
            (calls(&[waits(&["a"])]), Waits, '='),
            (calls(&[waits(&["a"]), bash("ls", 4)]), Works, '*'),
            (ended(Outcome::Finished, "", None), Idle, '-'),
            (ended(Outcome::Failed, "", None), Failed, '!'),
            (ended(Outcome::Limit, "", None), Failed, '!'),
            (ended(Outcome::Stopped, "", None), Stopped, 'x'),
            (again, Works, '*'),
            (Agent { is_closed: true, ..ended(Outcome::Failed, "", None) }, Closed, '.'),
        ] {
            assert_eq!((Class::of(&agent, false), expected.sign()), (expected, sign), "{agent:?}");
        }
        assert_eq!((Class::of(&calls(&[waits(&["a"])]), true), Class::Asks.sign()), (Class::Asks, '?'));
    }

    #[test]
    fn what_an_agent_does_is_one_line_with_its_beginning() {
        let thinks = LiveKind::ThinkingDelta { text: "hm".into() };
        let writes = LiveKind::CallDelta { tool: CallId::new("c"), name: "write".into(), bytes: 3_100 };
        let prints = LiveKind::ToolOutput { tool: CallId::new("b"), text: "x".into() };
        let turn = |said: &[LiveKind]| replies(Purpose::Turn, said);
        let mut ready = View::default();
        let (v, at) = (VERSION, || Place::of(&name("w"), 1, 0));
        let begins = EventKind::RunStarted { trigger: Trigger::Prompt };
        ready.event(&Event { v, seq: 1, t: Micros(1), at: at(), kind: begins });
        let kind = LiveKind::SetupOutput { text: "+ make\n".into() };
        ready.live(&LiveEvent { v, seq: 1, n: 1, t: Micros(2), at: at(), kind });
        let retries = |at| Agent { run: 1, asks_again: Some(Micros(at)), ..Agent::default() };
        for (agent, words, since) in [
            (calls(&[]), "works", None),
            (ready.agent(&name("w")).unwrap().clone(), "makes its folder ready", None),
            (calls(&[bash("cargo test -p core", 4)]), "bash cargo test -p core", Some(4)),
            (calls(&[bash("b", 4), bash("a", 3)]), "2 calls: bash a", Some(3)),
            (calls(&[waits(&["worker", "tester"])]), "waits for worker, tester", Some(3)),
            (calls(&[waits(&["a", "b"]), waits(&["b"])]), "waits for a, b", Some(3)),
            (calls(&[waits(&["a"]), bash("ls", 4)]), "bash ls", Some(4)),
            (calls(&[("wait_agents", json!("?"), 3)]), "waits", Some(3)),
            (calls(&[("a\u{202e}\n", json!({}), 3)]), "a‹U+202E›", Some(3)),
            (turn(&[]), "thinks", Some(2)),
            (turn(std::slice::from_ref(&thinks)), "thinks", Some(2)),
            (turn(&[thinks.clone(), text("I look.\n\u{1b}[31mThen \u{7}that")]), "says: Then that", Some(2)),
            (turn(&[text(" \n")]), "replies", Some(2)),
            (turn(&[text("I write."), writes]), "writes a call of write (3.1 kB)", Some(2)),
            (turn(&[thinks, prints]), "thinks", Some(2)),
            (replies(Purpose::Summary, &[text("So far")]), "summarises what was said so far", Some(2)),
            (retries(4_000_001), "tries again in 4 s", None),
            (retries(90_000_010), "tries again in 1 min", None),
            (retries(3), "tries again", None),
            (stopping(Halt::Stop), "stops", Some(5)),
            (stopping(Halt::Close), "closes", Some(5)),
            (Agent::default(), "idle", None),
            (ended(Outcome::Finished, "\n3 files on a branch", None), "finished: 3 files on a branch", None),
            (ended(Outcome::Finished, "", None), "finished", None),
            (ended(Outcome::Failed, "x", Some("overloaded\u{1b}[2J")), "failed: overloaded", None),
            (ended(Outcome::Limit, "x", Some("max_turns")), "limit: max_turns", None),
            (ended(Outcome::Stopped, "x", None), "stopped", None),
            (Agent { is_closed: true, ..Agent::default() }, "closed", None),
        ] {
            let expected = Doing { words: words.to_owned(), since: since.map(Micros) };
            assert_eq!(doing(&agent, None, Micros(10)), expected, "{agent:?}");
        }
    }

    #[test]
    fn what_is_asked_shows_what_hides_in_it_and_comes_before_all_else() {
        let ask = Ask {
            agent: name("w"),
            tool: CallId::new("c"),
            name: "bash".into(),
            input: json!({"command": "rm -r \u{202e}build\nls"}),
            always: "bash".into(),
            since: Micros(7),
        };
        let expected =
            Doing { words: "asks: bash rm -r ‹U+202E›build⏎ls".into(), since: Some(Micros(7)) };
        assert_eq!(doing(&calls(&[bash("ls", 4)]), Some(&ask), Micros(10)), expected);
    }

    #[test]
    fn of_long_words_the_last_ones_are_shown_however_many_there_are() {
        let long = "é".repeat(3_000) + &" word".repeat(400);
        let agent = replies(Purpose::Turn, &[text(&long)]);
        let Doing { words, .. } = doing(&agent, None, Micros(10));
        assert_eq!(words, format!("says: …{}", " word".repeat(7)));
        let unbroken = doing(&replies(Purpose::Turn, &[text(&"é".repeat(700))]), None, Micros(10)).words;
        assert_eq!(unbroken, format!("says: … {}", "é".repeat(20)));
    }

    #[test]
    fn a_row_moves_only_when_a_class_does() {
        use Class::{Asks, Idle, Works};
        let mut order = Order::default();
        let [a, b, c] = ["z", "b", "a"].map(name);
        for (told, moved, expected) in [
            (vec![(&a, Works), (&b, Works)], true, ["z", "b"].as_slice()),
            (vec![(&b, Works), (&a, Works)], false, &["z", "b"]),
            (vec![(&a, Works), (&b, Works), (&c, Works)], true, &["z", "b", "a"]),
            (vec![(&a, Idle), (&b, Works), (&c, Works)], true, &["b", "a", "z"]),
            (vec![(&a, Idle), (&b, Works), (&c, Asks)], true, &["a", "b", "z"]),
            (vec![(&a, Idle), (&b, Works), (&c, Works)], true, &["b", "a", "z"]),
            (vec![(&a, Works), (&b, Works), (&c, Works)], true, &["z", "b", "a"]),
            (vec![(&a, Idle), (&b, Idle), (&c, Idle)], false, &["z", "b", "a"]),
        ] {
            assert_eq!(order.told(told), moved);
            let rows: Vec<_> = order.rows().map(|(name, _)| name.as_str()).collect();
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn the_time_until_a_retry_is_never_said_to_be_over_before_it_is() {
        let at = |left| Micros(1).after(left);
        for (left, expected) in [
            (Span(1), "tries again in 1 s"),
            (Span::secs(1), "tries again in 1 s"),
            (Span::millis(1_001), "tries again in 2 s"),
            (Span::secs(60), "tries again in 60 s"),
        ] {
            assert_eq!(tries_again(at(left), Micros(1)), expected);
        }
    }
}
