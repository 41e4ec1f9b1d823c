//! The texts a model sees (semantics.md section 4).

use super::model::{Call, Micros};
use super::result::{Outcome, Point, Status, UNSAID};
use super::state::Then;

/// Seconds with one decimal, cut off.
pub fn seconds(us: Micros) -> String {
    format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000)
}

/// The words of a call that never started because of mail.
pub fn skipped_by_mail(name: &str) -> String {
    format!("[Skipped: message received from {name} before this ran]")
}

/// The words of a call that never started because of a stop.
pub fn skipped_by_stop(name: &str) -> String {
    format!("[Skipped: stopped by {name}]")
}

/// A tool result's text; `by` is who cut it, or for a skipped call its whole text.
pub fn tool_result(
    call: &Call,
    status: Status,
    by: &str,
    elapsed: Micros,
    deadline: Micros,
) -> Option<String> {
    let after = seconds(elapsed);
    match status {
        Status::Completed | Status::Failed if call.is_coordinators() => None,
        Status::Completed => Some(call.result.clone()),
        Status::Failed => call.error.clone(),
        Status::Skipped => Some(by.to_string()),
        Status::Interrupted => Some(with_output(
            format!(
                "[Interrupted after {after}: message received from {by}. It may have taken effect in part.]"
            ),
            call,
            elapsed,
        )),
        Status::Stopped => Some(with_output(
            format!("[Stopped by {by} after {after}. It may have taken effect in part.]"),
            call,
            elapsed,
        )),
        // The page writes "2 s" and means the default deadline; with another one it gives no text.
        Status::Unknown if deadline == 2_000_000 => {
            Some("[Unknown: it did not stop within 2 s. It may still be running.]".to_string())
        }
        Status::Unknown => None,
    }
}

fn with_output(head: String, call: &Call, elapsed: Micros) -> String {
    let lines: Vec<&str> =
        call.output.iter().filter(|(at, _)| *at <= elapsed).map(|(_, l)| l.as_str()).collect();
    if lines.is_empty() { head } else { format!("{head}\nOutput so far:\n{}", lines.join("\n")) }
}

/// How many words of a reply are out, the n-th of k at takes · n / k, and its text up to the end of the last of
/// them, white space kept. The words of its thinking come before those of its text.
pub fn said(thinking: &str, text: &str, elapsed: Micros, takes: Micros) -> (u64, String) {
    let thought = thinking.split_whitespace().count() as u64;
    let k = thought + text.split_whitespace().count() as u64;
    let out = if takes == 0 { k } else { (1..=k).filter(|n| takes * n <= elapsed * k).count() as u64 };
    (out, up_to_word(text, out.saturating_sub(thought)))
}

/// A text up to the end of its n-th word.
pub fn up_to_word(text: &str, n: u64) -> String {
    let (mut words, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        if inside && c.is_whitespace() && words == n {
            return text[..at].to_string();
        }
        if !inside && !c.is_whitespace() {
            if words == n {
                return String::new();
            }
            words += 1;
        }
        inside = !c.is_whitespace();
    }
    text.trim_end().to_string()
}

/// The result of a call that a crash took.
pub fn lost(started: bool) -> String {
    if started {
        "[Unknown: the process ended while this ran. It may have taken effect in part or in full.]"
            .to_string()
    } else {
        "[Skipped: the process ended before this ran]".to_string()
    }
}

/// Every line after the first indented, so that an unindented bracket is always the coordinator's.
fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}

/// A person's message at an injection point.
pub fn persons(text: &str, point: Point) -> String {
    match point {
        Point::Start | Point::B => text.to_string(),
        _ => format!("[User feedback: {text}]"),
    }
}

/// An agent's message.
pub fn agents(name: &str, text: &str, urgent: bool) -> String {
    let kind = if urgent { "Urgent message" } else { "Message" };
    format!("[{kind} from {name}: {}]", indented(text))
}

/// A subagent's end, with `UNSAID` for what the pages don't give.
pub fn report(name: &str, outcome: Outcome, then: Then, text: &str) -> String {
    match (outcome, then) {
        (Outcome::Finished, _) => format!("[{name} finished: {}]", indented(text)),
        (Outcome::Stopped, Then::Rests) => format!("[{name} was stopped: {UNSAID}]"),
        (Outcome::Stopped, Then::GoesOn) => format!("[{name} was stopped and goes on: {UNSAID}]"),
        (Outcome::Stopped, Then::Superseded) => {
            format!("[{name} was superseded by the user and goes on: {UNSAID}]")
        }
        _ => format!("[{name} failed: {UNSAID}]"),
    }
}
