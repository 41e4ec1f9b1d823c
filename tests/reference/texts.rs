//! The texts a model sees (semantics.md section 4).

use super::model::{Call, Micros};
use super::result::{Outcome, Point, Status};

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

/// How many words of a reply are out: the n-th of k at takes · n / k.
pub fn words_out(text: &str, elapsed: Micros, takes: Micros) -> u64 {
    let k = text.split_whitespace().count() as u64;
    if takes == 0 {
        return k;
    }
    (1..=k).filter(|n| takes * n / k <= elapsed).count() as u64
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

/// A subagent's end; `None` where the pages don't give the text.
pub fn report(name: &str, outcome: Outcome, text: &str) -> Option<String> {
    match outcome {
        Outcome::Finished => Some(format!("[{name} finished: {}]", indented(text))),
        _ => None,
    }
}
