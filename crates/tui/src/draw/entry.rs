//! One entry of a conversation as lines, and what is being said behind the last one.

use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{LiveKind, Outcome};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::time::Micros;
use midturn_view::clean::{clean, one_line};
use midturn_view::fold::{Call, CallState, Entry, EntryKind, Injected, Letter};
use midturn_view::{figures, mail};
use ratatui::text::{Line, Span};

use super::{call, markdown, text};
use crate::look::{Look, Tone};
use crate::state::State;

/// How much of what is being said is laid out anew for each frame, in bytes; the newest.
const LIVE_MAX: usize = 32 * 1024;

/// How many lines of a running call's output are shown before it is opened.
const TAIL: usize = 3;

/// How many of a setup's.
const SETUP_TAIL: usize = 10;

/// How many lines of one call's output are laid out when it is opened.
const OUTPUT_LINES: usize = 2_000;

/// An entry.
pub(super) fn lines(
    state: &State,
    agent: &AgentName,
    entry: &Entry,
    open: bool,
    width: u16,
) -> Vec<Line<'static>> {
    let look = state.settings.look;
    match &entry.kind {
        EntryKind::Prompt { text } => headed(look, Tone::Quiet, "task", &clean(text), width),
        EntryKind::Reply { text, cut } => {
            let mut lines = markdown::markdown(&clean(text), width, look);
            if let Some(reason) = cut {
                lines.push(said(
                    look,
                    Tone::Cut,
                    &format!("[the reply was cut: {}]", reason.as_str()),
                    width,
                ));
            }
            lines
        }
        EntryKind::Call(call) => of_call(state, agent, call, open, width),
        EntryKind::Injected(injected) => of_injected(look, injected, width),
        EntryKind::Returned { letter, reason } => {
            let head = format!("{} · {}", sender(letter), mail::returned(*reason));
            headed(look, Tone::Cut, &head, &clean(&letter.text), width)
        }
        EntryKind::Retry { attempt, error, wait } => {
            let told = format!("call {attempt} failed: {}; again in {} s", one_line(error), wait.tenths());
            vec![said(look, Tone::Bad, &told, width)]
        }
        EntryKind::Stop { by, reason } => {
            vec![said(look, Tone::Cut, &format!("{} asked for by {}", reason.as_str(), one_line(by)), width)]
        }
        EntryKind::Limit { by, limits } => {
            vec![said(look, Tone::Plain, &format!("{} set {}", one_line(by), limits.words()), width)]
        }
        EntryKind::Compacted { tokens, .. } => {
            let sizes = (figures::count(tokens.before), figures::count(tokens.after));
            vec![said(
                look,
                Tone::Quiet,
                &format!("the older part was summarised: {} tokens are {}", sizes.0, sizes.1),
                width,
            )]
        }
        EntryKind::End { outcome, error, turns } => ended(look, *outcome, error.as_deref(), *turns, width),
        EntryKind::Closed => vec![said(look, Tone::Quiet, "closed", width)],
    }
}

/// Said in the place of what is not kept any more, and of the oldest entry that is.
pub(super) fn older(state: &State, agent: &AgentName, count: u64, comes: bool, width: u16) -> Line<'static> {
    let id = &state.opening.id;
    let says = match comes {
        true => format!("… {count} older come"),
        false => format!("… {count} older: `midturn log {id} --agent {agent}` has all of it"),
    };
    said(state.settings.look, Tone::Quiet, &says, width)
}

/// A line of our own words.
fn said(look: Look, tone: Tone, text: &str, width: u16) -> Line<'static> {
    let text = text::cut(&look.words(text), usize::from(width), look);
    Line::styled(text, look.style(tone))
}

/// A heading across the width, and a text below it.
fn headed(look: Look, tone: Tone, head: &str, below: &str, width: u16) -> Vec<Line<'static>> {
    let mut lines = super::heading(look, tone, head, width);
    let style = look.style(Tone::Plain);
    let indented = text::plain(below.trim_end(), width.saturating_sub(3).max(1), style);
    lines.extend(indented.into_iter().map(|line| super::indented(line, 3, width)));
    lines
}

fn ended(look: Look, outcome: Outcome, error: Option<&str>, turns: u32, width: u16) -> Vec<Line<'static>> {
    let tone = match outcome {
        Outcome::Finished => Tone::Good,
        Outcome::Stopped => Tone::Cut,
        Outcome::Failed | Outcome::Limit => Tone::Bad,
    };
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    let why = error.map(|error| format!(": {}", one_line(error))).unwrap_or_default();
    super::heading(look, tone, &format!("{} after {turns}{why}", outcome.as_str()), width)
}

fn sender(letter: &Letter) -> String {
    match &*letter.from {
        "user" => "you".to_owned(),
        "" => "mail".to_owned(),
        other => one_line(other),
    }
}

fn of_injected(look: Look, injected: &Injected, width: u16) -> Vec<Line<'static>> {
    let mut senders: Vec<String> = injected.letters.iter().map(sender).collect();
    senders.dedup();
    let head = format!("{} · {}", senders.join(", "), mail::injected(injected));
    let texts: Vec<String> = injected.letters.iter().map(|letter| clean(&letter.text)).collect();
    headed(look, Tone::Mail, &head, &texts.join("\n\n"), width)
}

/// A call: folded to a line, and below that what it prints while it runs, or all of it when it is opened.
fn of_call(state: &State, agent: &AgentName, of: &Call, open: bool, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let is_asked =
        state.session.view().open_asks().iter().any(|ask| ask.agent == *agent && ask.tool == of.id);
    let (tone, how) = standing(of, is_asked, state.t());
    let mark = if open { "v " } else { "> " };
    let what = format!("{mark}{}", call::gist(&of.name, &of.input));
    let mut lines = vec![sided(look, what.trim_end(), tone, &how, width)];
    if open {
        let inner = width.saturating_sub(4).max(1);
        lines.extend(
            call::whole(&of.name, &of.input, inner, look)
                .into_iter()
                .map(|line| super::indented(line, 4, width)),
        );
    }
    let most = if open { OUTPUT_LINES } else { TAIL };
    let output = match &of.state {
        CallState::Ended { output, .. } if open => clean(output),
        // Why it failed is what one wants to know first.
        CallState::Ended { output, status: ToolStatus::Failed, .. } => {
            clean(output).lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
        }
        CallState::Running { .. } => clean(printed(state, agent, &of.id)),
        CallState::Ended { .. } | CallState::Waiting => String::new(),
    };
    let all: Vec<&str> = output.trim_end().lines().collect();
    for line in &all[all.len().saturating_sub(most)..] {
        let lines_of_it = text::plain(line, width.saturating_sub(4).max(1), look.style(Tone::Quiet));
        lines.extend(
            lines_of_it
                .into_iter()
                .take(if open { usize::MAX } else { 1 })
                .map(|line| super::indented(line, 4, width)),
        );
    }
    lines
}

/// What a running call has printed.
fn printed<'a>(state: &'a State, agent: &AgentName, id: &CallId) -> &'a str {
    let said = state.session.view().agent(agent).map(|agent| &agent.said);
    let pieces = said.into_iter().flat_map(|said| said.pieces());
    let mut output = pieces.filter_map(|piece| match &piece.kind {
        LiveKind::ToolOutput { tool, text } if tool == id => Some(text.as_str()),
        _ => None,
    });
    newest(output.next().unwrap_or_default())
}

/// The newest of a text that may be long, from the beginning of a line on.
fn newest(text: &str) -> &str {
    if text.len() <= LIVE_MAX {
        return text;
    }
    let rest = &text[text.ceil_char_boundary(text.len() - LIVE_MAX)..];
    rest.split_once('\n').map_or(rest, |(_, lines)| lines)
}

/// How a call stands, in words that are never cut.
fn standing(call: &Call, is_asked: bool, now: Micros) -> (Tone, String) {
    match &call.state {
        _ if is_asked => (Tone::Asks, "asks you".to_owned()),
        CallState::Waiting => (Tone::Quiet, "waits".to_owned()),
        CallState::Running { since } => {
            (Tone::Plain, format!("running {:>7}", figures::clock(now.since(*since))))
        }
        CallState::Ended { status, took, output, bytes } => {
            let took = took.map(|took| format!("{:>7}", figures::short(took))).unwrap_or_default();
            let is_denied = call.word.as_ref().is_some_and(|(word, ..)| *word == Decision::Denied);
            let (tone, word) = match status {
                ToolStatus::Completed => (Tone::Good, "ok"),
                ToolStatus::Failed if is_denied => (Tone::Cut, "denied"),
                ToolStatus::Failed => (Tone::Bad, "failed"),
                ToolStatus::Interrupted => (Tone::Cut, "cut short"),
                ToolStatus::Skipped => (Tone::Cut, "skipped"),
                ToolStatus::Stopped => (Tone::Cut, "stopped"),
                ToolStatus::Unknown => (Tone::Cut, "unknown"),
            };
            let size = match (status, output.lines().count()) {
                (ToolStatus::Completed, 0) => String::new(),
                (ToolStatus::Completed, _) => format!("  {}", figures::bytes(*bytes)),
                _ => String::new(),
            };
            (tone, format!("{word}{size}{took}"))
        }
    }
}

/// A line with something at its right that is never cut: the left gives way.
fn sided(look: Look, left: &str, tone: Tone, right: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let right = text::cut(&look.words(right), width, look);
    let room = width.saturating_sub(text::width(&right) + 1);
    if room < 4 {
        return Line::styled(right, look.style(tone));
    }
    let left = text::pad(left, room, look);
    Line::from(vec![
        Span::styled(left, look.style(Tone::Plain)),
        Span::raw(" "),
        Span::styled(right, look.style(tone)),
    ])
}

/// What the setup of the agent's folder prints: nothing else is told meanwhile, so there is more room for it
/// than for a call.
fn of_setup(look: Look, text: &str, width: u16) -> Vec<Line<'static>> {
    let text = clean(newest(text));
    let all: Vec<&str> = text.trim_end().lines().collect();
    let last = all[all.len().saturating_sub(SETUP_TAIL)..].join("\n");
    headed(look, Tone::Quiet, "the folder is made ready", &last, width)
}

/// What the agent is saying.
pub(super) fn live(state: &State, name: &AgentName, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let Some(agent) = state.session.view().agent(name) else { return Vec::new() };
    let mut lines = Vec::new();
    for piece in agent.said.pieces() {
        match &piece.kind {
            LiveKind::TextDelta { text } => {
                lines.extend(markdown::markdown(&clean(newest(text)), width, look));
            }
            LiveKind::ThinkingDelta { text } => {
                let last = clean(newest(text));
                let last = last.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                lines.push(said(look, Tone::Quiet, &format!("thinks: {last}"), width));
            }
            LiveKind::CallDelta { name, bytes, .. } => {
                let told = format!("> {} …", one_line(name));
                lines.push(sided(look, &look.words(&told), Tone::Quiet, &figures::bytes(*bytes), width));
            }
            LiveKind::SetupOutput { text } => lines.extend(of_setup(look, text, width)),
            LiveKind::ToolOutput { .. } => {}
        }
    }
    if lines.is_empty() && agent.request.is_some() {
        lines.push(said(look, Tone::Quiet, "…", width));
    }
    lines
}
