//! What a picture says of what stands in it, for who points at it or hears it read.

use midturn_core::rules::event::Halt;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::time::{Micros, Span};

use super::parts::{Ahead, Bar, End, Kind, Letter, MarkKind, Moment};
use crate::figures;
use crate::mail::returned;

/// An instant as it is written: seconds in the first minute, then a clock.
pub(super) fn instant(at: Micros) -> String {
    if at.0 >= 60_000_000 {
        return figures::clock(Span(at.0));
    }
    let (seconds, hundredths) = (at.0 / 1_000_000, at.0 / 10_000 % 100);
    match hundredths % 10 {
        0 => format!("{seconds}.{} s", hundredths / 10),
        _ => format!("{seconds}.{hundredths:02} s"),
    }
}

/// What a bar is, how it ended and how long it took.
pub(super) fn bar(bar: &Bar, whose: &str, now: Moment) -> String {
    let about = format!("{} {}", bar.name, bar.what);
    let took = figures::short(bar.to.unwrap_or(now).at.since(bar.from.at));
    let end = match (bar.end, bar.kind) {
        (End::Open, _) => format!("for {took} now"),
        (End::Done, _) => took,
        (End::Failed, Kind::Wait) => format!("denied after {took}"),
        (End::Failed, _) => format!("failed after {took}"),
        (End::Interrupted, _) => format!("interrupted after {took}"),
        (End::Stopped, _) => format!("stopped after {took}"),
        (End::Unknown, _) => format!("nobody knows how it ended, after {took}"),
        (End::Skipped, _) => "skipped: it never ran".to_owned(),
    };
    let beside = match bar.hides {
        0 => String::new(),
        hides => format!(", {hides} more beside it"),
    };
    format!("{whose}: {}, {end}{beside} (run {}, turn {})", about.trim_end(), bar.run, bar.turn)
}

/// A message: from whom to whom, how urgent, its text, what became of it.
pub(super) fn letter(letter: &Letter, to: &str) -> String {
    let urgency = letter.urgency.map(Urgency::as_str).unwrap_or("message");
    let said = if letter.text.is_empty() { String::new() } else { format!(": {}", letter.text) };
    let since = |at: Moment| figures::short(at.at.since(letter.sent.at));
    let ahead = match &letter.ahead {
        Ahead::Waits => "waits".to_owned(),
        Ahead::Injected { at, point } => format!("injected at {} after {}", point.as_str(), since(*at)),
        Ahead::Returned { at, reason } => format!("{} after {}", returned(*reason), since(*at)),
        Ahead::Refused { reason } => format!("refused: {reason}"),
    };
    format!("{} to {to}, {urgency}{said} ({ahead})", letter.from)
}

/// What happened at a moment.
pub(super) fn mark(kind: &MarkKind, whose: &str) -> String {
    match kind {
        MarkKind::Injected { point, messages, skipped, interrupted } => {
            let cost = [(*skipped, "skipped"), (*interrupted, "interrupted")];
            let cost: Vec<String> = cost
                .iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, word)| format!(", {} {word}", many(*n, "call")))
                .collect();
            format!("{whose}: {} injected at {}{}", many(*messages, "message"), point.as_str(), cost.concat())
        }
        MarkKind::Returned { reason } => format!("{whose}: a message came back, {}", returned(*reason)),
        MarkKind::Refused { reason } => format!("{whose}: a message was refused, {reason}"),
        MarkKind::Stop { by, reason } => {
            let word = match reason {
                Halt::Stop => "stopped",
                Halt::Supersede => "superseded",
                Halt::Close => "closed",
                Halt::Shutdown => "stopped by a shutdown",
            };
            format!("{whose}: {word} by {by}")
        }
        MarkKind::RunEnd { outcome } => format!("{whose}: its run ended, {}", outcome.as_str()),
        MarkKind::Closed => format!("{whose}: closed"),
    }
}

fn many(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
