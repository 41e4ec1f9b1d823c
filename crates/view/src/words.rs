//! Events as short lines for people, one function from an event to a line. Nothing is
//! printed here. What models and tools say is untrusted: none of it acts on a terminal.

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::mail::Point;
use midturn_core::rules::view::{Ask, View};
use serde_json::Value;

use crate::clean::{clean, visible};

/// How many characters of a text are shown.
const SHOWN: usize = 100;

/// How many bytes of a text are looked at for that: lines are made often, and of large texts.
const SEEN: usize = 8 << 10;

/// How many characters are shown of what a person has to decide on: its head and its tail.
const DECIDED: (usize, usize) = (400, 100);

/// What a line is about, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary.
    Plain,
    /// Beside the point: dim.
    Quiet,
    /// Mail: blue.
    Mail,
    /// A good end: green.
    Good,
    /// Something was cut or skipped: yellow.
    Cut,
    /// An error: red.
    Bad,
    /// A person is asked: bold.
    Asks,
}

/// A line, and its colour.
pub type Line = (Tone, String);

/// The line for an event, if people want one.
pub fn line(event: &Event) -> Option<Line> {
    let (tone, text) = told(&event.kind)?;
    Some(match &event.at.agent {
        Some(agent) if tone == Tone::Asks => (tone, format!("{agent} asks: {text}")),
        Some(agent) => (tone, format!("{agent}: {text}")),
        None => (tone, text),
    })
}

fn told(kind: &EventKind) -> Option<Line> {
    match kind {
        EventKind::AgentSpawned { parent: Some(parent), .. } => {
            Some((Tone::Plain, format!("spawned by {parent}")))
        }
        EventKind::ModelFinished { text, purpose: Purpose::Turn, .. } if !text.trim().is_empty() => {
            Some((Tone::Plain, short(text)))
        }
        EventKind::ModelStarted { purpose: Purpose::Summary, .. } => {
            Some((Tone::Quiet, "the conversation nears the model's limit: asks for a summary".to_owned()))
        }
        EventKind::Compacted { messages, tokens } => Some((
            Tone::Quiet,
            format!(
                "conversation compacted from about {} to {} tokens ({} to {} messages)",
                tokens.before, tokens.after, messages.before, messages.after
            ),
        )),
        EventKind::ToolStarted { name, input, .. } => {
            Some((Tone::Quiet, format!("{name} {}", gist(input)).trim_end().to_owned()))
        }
        EventKind::ToolFinished { name, status, output, .. } => tool_end(name, *status, output),
        EventKind::MessageInjected { point, skipped, interrupted, .. } => {
            injection(*point, skipped.len(), interrupted.len())
        }
        EventKind::StopRequested { by, reason, .. } => {
            Some((Tone::Cut, format!("{} asked for by {by}", reason.as_str())))
        }
        EventKind::LimitRaised { by, limits } => Some((Tone::Plain, format!("{by} set {}", limits.words()))),
        EventKind::ApprovalRequested { name, input, .. } => Some((Tone::Asks, asked(name, input))),
        EventKind::ApprovalResolved { decision, by, reason, .. } => {
            Some(resolved(*decision, by, reason.as_deref()))
        }
        EventKind::RunFinished { outcome, error, turns, .. } => {
            Some(run_end(*outcome, error.as_deref(), *turns))
        }
        // What is none of these is nothing that people wait for.
        _ => model(kind).or_else(|| mail(kind)),
    }
}

/// What was shown of a session.
#[derive(Debug, Default)]
pub struct Shown {
    view: View,
    /// Whether somebody reads it who can type an answer: with what agents ask it is said how.
    answers: bool,
}

impl Shown {
    /// Nothing yet.
    pub fn new(answers: bool) -> Self {
        Self { view: View::default(), answers }
    }

    /// What is asked, as far as whoever reads this knows.
    pub fn asking(&self) -> &[Ask] {
        self.view.open_asks()
    }

    /// The line of a request that was open before the first event, as its event's line has it.
    pub fn asked(&mut self, ask: &Ask) -> Line {
        self.view.asked(ask.clone());
        let asked = format!("{} asks: {}", ask.agent, asked(&ask.name, &ask.input));
        (Tone::Asks, asked + &self.hint(ask))
    }

    /// The line of an event, if it has one.
    pub fn event(&mut self, event: &Event) -> Option<Line> {
        self.view.event(event);
        let (tone, text) = line(event)?;
        let EventKind::ApprovalRequested { tool, .. } = &event.kind else { return Some((tone, text)) };
        let is_it = |ask: &&Ask| ask.tool == *tool && event.at.agent.as_ref() == Some(&ask.agent);
        let hint = self.asking().iter().find(is_it).map(|ask| self.hint(ask)).unwrap_or_default();
        Some((tone, text + &hint))
    }

    /// What a person can type to answer it: without a name the oldest request is answered, so beside
    /// others it says its agent's.
    fn hint(&self, ask: &Ask) -> String {
        let agent = &ask.agent;
        match self.asking().iter().all(|other| other.agent == *agent && other.tool == ask.tool) {
            _ if !self.answers => String::new(),
            true => "    [/yes, /always, /no REASON]".to_owned(),
            false => format!("    [/yes {agent}, /always {agent}, /no {agent} REASON]"),
        }
    }
}

/// What went wrong with a reply.
fn model(kind: &EventKind) -> Option<Line> {
    match kind {
        EventKind::ModelInterrupted { reason, partial_tokens, .. } => {
            Some((Tone::Cut, format!("reply cut after {partial_tokens} tokens ({})", reason.as_str())))
        }
        EventKind::ModelRetry { attempt, error, wait } => Some((
            Tone::Bad,
            format!("call {attempt} failed: {}; again in {} s", reason(error), wait.tenths()),
        )),
        _ => None,
    }
}

/// What becomes of a message.
fn mail(kind: &EventKind) -> Option<Line> {
    match kind {
        EventKind::MessageQueued { from, urgency, text, .. } => {
            Some((Tone::Mail, format!("message from {from} ({}): {}", urgency.as_str(), short(text))))
        }
        EventKind::MessageRefused { from, reason, .. } => {
            Some((Tone::Bad, format!("message from {from} refused: {}", short(reason))))
        }
        EventKind::MessageReturned { message, reason } => {
            Some((Tone::Cut, format!("message {message} returned ({})", reason.as_str())))
        }
        _ => None,
    }
}

fn tool_end(name: &str, status: ToolStatus, output: &str) -> Option<Line> {
    let tone = match status {
        ToolStatus::Completed => return None,
        ToolStatus::Failed => Tone::Bad,
        ToolStatus::Interrupted | ToolStatus::Skipped | ToolStatus::Stopped | ToolStatus::Unknown => {
            Tone::Cut
        }
    };
    Some((tone, format!("{name} {}: {}", status.as_str(), short(output))))
}

fn injection(point: Point, skipped: usize, interrupted: usize) -> Option<Line> {
    if point == Point::Start {
        return None;
    }
    let mut text = format!("mail read at {}", point.as_str());
    for (count, what) in [(interrupted, "interrupted"), (skipped, "skipped")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    Some((Tone::Mail, text))
}

/// What became of a request for a person's word.
fn resolved(decision: Decision, by: &str, reason: Option<&str>) -> Line {
    let with = |what: String| match reason.map(whole).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    };
    match decision {
        Decision::Once => (Tone::Good, format!("allowed by {by}")),
        Decision::Session => (Tone::Good, with(format!("allowed by {by}, from now on"))),
        Decision::Denied => (Tone::Cut, with(format!("denied by {by}"))),
        Decision::NotAnswered if by == "coordinator" => (Tone::Cut, "nobody answered in time".to_owned()),
        Decision::NotAnswered => (Tone::Cut, format!("no longer asks: withdrawn by {by}")),
    }
}

fn run_end(outcome: Outcome, error: Option<&str>, turns: u32) -> Line {
    let tone = match outcome {
        Outcome::Finished => Tone::Good,
        Outcome::Stopped => Tone::Cut,
        Outcome::Failed | Outcome::Limit => Tone::Bad,
    };
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    let why = error.map(|error| format!(": {}", reason(error))).unwrap_or_default();
    (tone, format!("{} after {turns}{why}", outcome.as_str()))
}

/// What a call is about: its command, its file, or else the first text in its arguments.
pub fn gist(input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let main = ["command", "path", "file_path", "pattern", "to", "host", "name"].into_iter().find_map(field);
    let text = main.or_else(|| input.as_object()?.values().find_map(Value::as_str));
    let gist = text.map(named).unwrap_or_default();
    // What the model says it is for stands behind what it is, never in its place.
    match field("description").map(short).filter(|purpose| main.is_some() && !purpose.is_empty()) {
        Some(purpose) => format!("{gist} ({purpose})"),
        None => gist,
    }
}

/// A call that a person decides on: the tool, and all that it is about.
pub fn asked(name: &str, input: &Value) -> String {
    format!("{}: {}", short(name), decided(input))
}

/// All that a person decides on of a call's arguments, on one line.
pub fn decided(input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let named = ["command", "path", "file_path"].into_iter().find_map(field);
    named.map_or_else(|| whole(&input.to_string()), whole)
}

/// A text on one line, its line ends visible. Of a long one the middle is left out, and how
/// much that is: what a command does may stand at its end.
pub fn whole(text: &str) -> String {
    let (head, tail) = DECIDED;
    let shown: Vec<char> = visible(text.trim()).chars().map(|c| if c == '\n' { '⏎' } else { c }).collect();
    if shown.len() <= head + tail {
        return shown.into_iter().collect();
    }
    let (first, last): (String, String) =
        (shown[..head].iter().collect(), shown[shown.len() - tail..].iter().collect());
    format!("{first} [… {} characters: `midturn approvals` shows them …] {last}", shown.len() - head - tail)
}

/// Why something failed, on one line: whole, since what a person can do about it stands at its end.
fn reason(error: &str) -> String {
    let seen = clean(&error[..error.floor_char_boundary(SEEN)]);
    let line = seen.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    if error.len() > SEEN { line + "…" } else { line }
}

/// The first line that says something, at most 100 characters, nothing in it that acts on a terminal.
pub fn short(text: &str) -> String {
    first(text, clean)
}

/// The same of what an agent asks for: what hides in it is named, so that it can't look like another call.
fn named(text: &str) -> String {
    first(text, visible)
}

fn first(text: &str, inert: impl Fn(&str) -> String) -> String {
    let seen = inert(&text[..text.floor_char_boundary(SEEN)]);
    let mut lines = seen.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default();
    let is_whole = line.chars().nth(SHOWN).is_none() && lines.next().is_none() && text.len() <= SEEN;
    let cut = if is_whole { "" } else { "…" };
    line.chars().take(SHOWN).chain(cut.chars()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use midturn_core::rules::conversation::{InterruptReason, Usage};
    use midturn_core::rules::event::{Place, Sizes, Trigger, VERSION};
    use midturn_core::rules::id::{AgentName, CallId, MessageId};
    use midturn_core::rules::mail::{ReturnReason, Urgency};
    use midturn_core::rules::time::{Micros, Span};
    use serde_json::json;

    use super::*;

    fn shown(kind: EventKind) -> Option<Line> {
        let at = Place::of(&AgentName::new("w").unwrap(), 1, 1);
        line(&Event { v: VERSION, seq: 1, t: Micros(0), at, kind })
    }

    fn tool_finished(status: ToolStatus, output: &str) -> EventKind {
        let (tool, name) = (CallId::new("c"), Arc::from("bash"));
        EventKind::ToolFinished { tool, name, status, is_error: true, bytes: 0, output: output.into() }
    }

    fn run_finished(outcome: Outcome, error: Option<&str>, turns: u32) -> EventKind {
        EventKind::RunFinished { outcome, error: error.map(Into::into), turns, usage: Usage::default() }
    }

    fn check(rows: impl IntoIterator<Item = (EventKind, Tone, &'static str)>) {
        for (kind, tone, expected) in rows {
            assert_eq!(shown(kind), Some((tone, expected.to_owned())));
        }
    }

    #[test]
    fn calls_and_runs_are_one_short_line() {
        let started =
            |input| EventKind::ToolStarted { tool: CallId::new("c"), name: "bash".into(), input, batch: 1 };
        check([
            (started(json!({"timeout": 1, "command": "cargo test\n"})), Tone::Quiet, "w: bash cargo test"),
            (
                started(json!({"command": "make -k", "description": "Build it\nall"})),
                Tone::Quiet,
                "w: bash make -k (Build it…)",
            ),
            (started(json!({})), Tone::Quiet, "w: bash"),
            (tool_finished(ToolStatus::Skipped, "[Skipped: x]"), Tone::Cut, "w: bash skipped: [Skipped: x]"),
            (tool_finished(ToolStatus::Failed, "\n no\n more"), Tone::Bad, "w: bash failed: no…"),
            (run_finished(Outcome::Finished, None, 1), Tone::Good, "w: finished after 1 turn"),
            (
                run_finished(Outcome::Limit, Some("max_turns"), 3),
                Tone::Bad,
                "w: limit after 3 turns: max_turns",
            ),
        ]);
    }

    #[test]
    fn mail_is_one_short_line() {
        let injected = |point, skipped: &[&str]| EventKind::MessageInjected {
            messages: vec![],
            point,
            text: "".into(),
            skipped: skipped.iter().map(|id| CallId::new(*id)).collect(),
            interrupted: Arc::new([]),
        };
        let message = MessageId::new("m1");
        let queued = EventKind::MessageQueued {
            message: message.clone(),
            from: "user".into(),
            urgency: Urgency::Urgent,
            text: "a\nb".into(),
        };
        let returned = EventKind::MessageReturned { message, reason: ReturnReason::Stopped };
        check([
            (queued, Tone::Mail, "w: message from user (urgent): a…"),
            (injected(Point::C, &["a", "b"]), Tone::Mail, "w: mail read at C, 2 skipped"),
            (injected(Point::D, &[]), Tone::Mail, "w: mail read at D"),
            (returned, Tone::Cut, "w: message m1 returned (stopped)"),
        ]);
    }

    #[test]
    fn what_goes_wrong_with_a_reply_is_one_short_line() {
        let retry =
            EventKind::ModelRetry { attempt: 2, error: "overloaded".into(), wait: Span::millis(1_500) };
        let cut = EventKind::ModelInterrupted {
            reason: InterruptReason::MessageInterrupt,
            text: "".into(),
            thinking: vec![],
            partial_tokens: 4,
        };
        check([
            (retry, Tone::Bad, "w: call 2 failed: overloaded; again in 1.5 s"),
            (cut, Tone::Cut, "w: reply cut after 4 tokens (message_interrupt)"),
        ]);
    }

    #[test]
    fn a_compaction_is_told_and_its_summary_is_nobodys_reply() {
        let purpose = Purpose::Summary;
        let compacted = EventKind::Compacted {
            messages: Sizes { before: 12, after: 5 },
            tokens: Sizes { before: 161_000, after: 30_000 },
        };
        check([
            (
                EventKind::ModelStarted { call: 1, messages: 1, purpose },
                Tone::Quiet,
                "w: the conversation nears the model's limit: asks for a summary",
            ),
            (
                compacted,
                Tone::Quiet,
                "w: conversation compacted from about 161000 to 30000 tokens (12 to 5 messages)",
            ),
        ]);
        let summary = EventKind::ModelFinished {
            stop_reason: "end_turn".into(),
            usage: Usage::default(),
            text: "So far.".into(),
            thinking: vec![],
            tools: vec![],
            purpose,
        };
        assert_eq!(shown(summary), None);
    }

    #[test]
    fn what_a_person_decides_on_is_shown_whole_or_says_what_is_left_out() {
        let asks = |input| EventKind::ApprovalRequested {
            tool: CallId::new("c"),
            name: "bash".into(),
            input,
            always: "bash".into(),
        };
        let hidden = format!("echo hi{}; rm -rf x", " ".repeat(10_000));
        for (input, expected) in [
            (json!({"command": "cargo test -p core"}), "w asks: bash: cargo test -p core".to_owned()),
            (
                json!({"command": "a\n\u{1b}[8m\rb", "timeout": 3}),
                "w asks: bash: a⏎‹U+001B›[8m‹U+000D›b".to_owned(),
            ),
            (json!({"path": "a/b", "content": "x"}), "w asks: bash: a/b".to_owned()),
            (json!({"url": "x", "n": 1}), "w asks: bash: {\"n\":1,\"url\":\"x\"}".to_owned()),
            (
                json!({"command": hidden}),
                format!(
                    "w asks: bash: echo hi{} [… 9517 characters: `midturn approvals` shows them …] {}; rm -rf x",
                    " ".repeat(393),
                    " ".repeat(90)
                ),
            ),
        ] {
            assert_eq!(shown(asks(input)), Some((Tone::Asks, expected)));
        }
    }

    #[test]
    fn a_persons_word_is_one_short_line() {
        let resolved = |decision, by: &str, reason: Option<&str>| EventKind::ApprovalResolved {
            tool: CallId::new("c"),
            decision,
            by: by.into(),
            reason: reason.map(Into::into),
        };
        check([
            (resolved(Decision::Once, "user", None), Tone::Good, "w: allowed by user"),
            (
                resolved(Decision::Session, "user", Some("bash(ls)")),
                Tone::Good,
                "w: allowed by user, from now on: bash(ls)",
            ),
            (resolved(Decision::Denied, "user", None), Tone::Cut, "w: denied by user"),
            (resolved(Decision::Denied, "user", Some("use\ntabs")), Tone::Cut, "w: denied by user: use⏎tabs"),
            (resolved(Decision::NotAnswered, "coordinator", None), Tone::Cut, "w: nobody answered in time"),
            (
                resolved(Decision::NotAnswered, "lead", None),
                Tone::Cut,
                "w: no longer asks: withdrawn by lead",
            ),
        ]);
    }

    #[test]
    fn a_request_beside_others_is_answered_by_name() {
        let ask = |agent: &str| Ask {
            agent: AgentName::new(agent).unwrap(),
            tool: CallId::new("c"),
            name: "bash".into(),
            input: json!("x"),
            always: "bash(x)".into(),
            since: Micros(0),
        };
        let (a, b) = (ask("a"), ask("b"));
        let mut shown = Shown::new(true);
        assert_eq!(shown.asked(&a).1, "a asks: bash: \"x\"    [/yes, /always, /no REASON]");
        // What was asked before the first event counts among the others.
        let at = Place::of(&b.agent, 1, 1);
        let kind =
            EventKind::ApprovalRequested { tool: b.tool, name: b.name, input: b.input, always: b.always };
        let event = Event { v: VERSION, seq: 1, t: Micros(1), at, kind };
        let expected = "b asks: bash: \"x\"    [/yes b, /always b, /no b REASON]";
        assert_eq!(shown.event(&event).unwrap().1, expected);
        assert_eq!(Shown::new(false).event(&event).unwrap().1, "b asks: bash: \"x\"");
    }

    #[test]
    fn what_does_not_matter_is_no_line() {
        for kind in [
            tool_finished(ToolStatus::Completed, "fine"),
            EventKind::RunStarted { trigger: Trigger::Prompt },
            EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Turn },
            EventKind::AgentClosed {},
        ] {
            assert_eq!(shown(kind), None);
        }
    }

    #[test]
    fn nothing_that_acts_on_a_terminal_is_shown() {
        for (text, expected) in [("\u{1b}[2Jx\u{7}", "x"), ("a\u{202e}b\r", "ab"), ("\u{9b}31m", "31m")] {
            assert_eq!(short(text), expected);
        }
        assert_eq!(short(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
        assert_eq!(short(&"é".repeat(100)), "é".repeat(100));
    }
}
