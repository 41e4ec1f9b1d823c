//! What people read of a message: what will become of it, what has, and why it was refused.
//!
//! Before a message is injected its words are those of **what will happen**, not of the key that sent it.

use midturn_core::rules::mail::{Point, Rest, ReturnReason, Standing, Urgency};
use midturn_core::rules::view::Agent;

use crate::clean::one_line;
use crate::figures;
use crate::fold::Injected;
use crate::words::short;

/// What stands in ASCII for each sign that our own words use.
const STAND_INS: [(char, &str); 38] = [
    ('✓', "+"),
    ('⏳', "~"),
    ('⚡', "!"),
    ('‼', "!!"),
    ('→', "->"),
    ('←', "<-"),
    ('↑', "^"),
    ('↓', "v"),
    ('⊘', "x"),
    ('✕', "x"),
    ('■', "#"),
    ('█', "#"),
    ('▸', ">"),
    ('▾', "v"),
    ('•', "*"),
    ('·', "-"),
    ('…', "..."),
    ('⋮', ":"),
    ('⏎', "\\n"),
    ('‹', "<"),
    ('›', ">"),
    ('–', "-"),
    ('—', "--"),
    ('×', "x"),
    ('─', "-"),
    ('━', "-"),
    ('│', "|"),
    ('┄', "."),
    ('═', "="),
    ('┌', "+"),
    ('┐', "+"),
    ('└', "+"),
    ('┘', "+"),
    ('├', "+"),
    ('┤', "+"),
    ('┬', "+"),
    ('┴', "+"),
    ('┼', "+"),
];

/// Our own words for a terminal that shows only ASCII. What others say is left as it is.
pub fn ascii(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match STAND_INS.iter().find(|(sign, _)| *sign == c) {
            Some((_, stand_in)) => shown.push_str(stand_in),
            None => shown.push(c),
        }
    }
    shown
}

/// The sign of an urgency.
pub fn sign(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::FollowUp | Urgency::AfterTools => "⏳",
        Urgency::NextBoundary => "⚡",
        Urgency::Urgent => "‼",
    }
}

/// An urgency in one word, for lists.
pub fn level(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::FollowUp => "later",
        Urgency::AfterTools => "soft",
        Urgency::NextBoundary => "ASAP",
        Urgency::Urgent => "now",
    }
}

/// What will become of a person's message to this agent, as it stands.
pub fn promise(urgency: Urgency, receiver: &Agent) -> &'static str {
    match receiver.standing() {
        Standing::Resting(Rest::Closed) | Standing::Winding { then: Rest::Closed, .. } => {
            "⊘ Will come back: it is closed"
        }
        Standing::Resting(Rest::Idle | Rest::Stopped) => "→ Will wake it now",
        Standing::Winding { .. } => "→ Will start its next run",
        Standing::Running => running(urgency, receiver),
    }
}

/// What becomes of mail that was kept: somebody has to let its agent go on.
pub const WHEN_IT_RUNS: &str = "⏳ Will inject when it runs again";

/// What will become of a message that waits for this agent, as it stands. One that rests was not woken by it: its
/// run failed or came to a limit, and its mail was kept.
pub fn waits(urgency: Urgency, receiver: &Agent) -> &'static str {
    match receiver.standing() {
        Standing::Resting(Rest::Idle | Rest::Stopped) => WHEN_IT_RUNS,
        _ => promise(urgency, receiver),
    }
}

fn running(urgency: Urgency, receiver: &Agent) -> &'static str {
    let cuts = receiver.request.is_some() || !receiver.calls.is_empty();
    match urgency {
        Urgency::FollowUp | Urgency::AfterTools => "⏳ Will inject at next safe point",
        Urgency::Urgent if cuts => "‼ Will inject now (cuts what runs)",
        Urgency::NextBoundary | Urgency::Urgent => "⚡ Will inject ASAP (may skip tools)",
    }
}

/// What became of messages that went in together.
pub fn injected(mail: &Injected) -> String {
    let mut text = match mail.letters.len() {
        0 | 1 => "✓ Message injected".to_owned(),
        many => format!("✓ {many} messages injected together"),
    };
    if let Some(tool) = &mail.after {
        text.push_str(&format!(" after {}", one_line(tool)));
    }
    text.push_str(&format!(" at {}", place(mail.point)));
    for (number, what) in [(mail.interrupted, "cut"), (mail.skipped, "skipped")] {
        match number {
            0 => {}
            1 => text.push_str(&format!(", 1 call {what}")),
            many => text.push_str(&format!(", {many} calls {what}")),
        }
    }
    // Of several it is the one that waited longest.
    if let Some(waited) = mail.letters.iter().filter_map(|letter| letter.waited).max() {
        text.push_str(&format!(", {}", figures::short(waited)));
    }
    if mail.answered {
        text.push_str(" · answered");
    }
    text
}

/// A point as people read it behind "at".
fn place(point: Point) -> &'static str {
    match point {
        Point::Start => "the start of a run",
        Point::Stream => "the cut of a reply",
        Point::Wait => "the end of its wait",
        Point::A | Point::B | Point::C | Point::D => point.as_str(),
    }
}

/// Why a message will never be injected.
pub fn returned(reason: ReturnReason) -> &'static str {
    match reason {
        ReturnReason::Closed => "⊘ Came back unread: the agent is closed",
        ReturnReason::Stopped => "⊘ Came back unread: the agent was stopped",
        ReturnReason::Expired => "⊘ Came back unread: its time was up, or its run had ended",
        ReturnReason::Withdrawn => "⊘ Taken back before it was read",
        ReturnReason::Superseded => "⊘ Never read: a newer message took its place",
        ReturnReason::Error => "⊘ Came back unread: the run failed",
    }
}

/// Why nothing was accepted, and what to do: for the code of an answer and its `detail`, which is
/// what is shown where there is nothing better to say.
pub fn refusal(code: &str, detail: &str) -> String {
    let detail = short(detail);
    let what = match code {
        "limit" => return format!("{detail}: raise it"),
        "too_large" => return format!("{detail}: shorten it, or name a file that says it"),
        "too_late" => "Too late: it was read already. Send what has changed as a new message",
        "mailbox_full" => {
            "The mailbox is full: wait until the agent has read its mail, or take a message back"
        }
        "urgent_rate" => "Too many urgent messages within a minute: send it a level softer, or wait",
        "urgent_not_allowed" => "Not allowed to be urgent here: send it a level softer",
        "unknown_agent" => "There is no such agent: choose one from the list",
        "unknown_message" => "That message is not in the mailbox any more",
        "empty" => "There is nothing to send yet",
        "stale_run" => "That run is over: look what the agent does now, then send it again",
        "duplicate_id" => "Sent before, with other words: send it again",
        "shutting_down" => "Midturn is shutting down: send it again after the next start",
        "store" => "It could not be stored, so it was not accepted: send it again",
        "not_live" => "This session is only stored: resume it first",
        "not_asked" => "Nobody asks that any more: it was answered or withdrawn",
        "too_many_requests" => "Too many requests within a second: send it again",
        "not_allowed" => "Not allowed with this token: use a person's",
        _ if detail.is_empty() => return format!("Refused ({}): nothing was accepted", one_line(code)),
        _ => return detail,
    };
    what.to_owned()
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::event::Halt;
    use midturn_core::rules::id::{CallId, MessageId};
    use midturn_core::rules::mail::Refusal;
    use midturn_core::rules::time::{Micros, Span};
    use midturn_core::rules::view::{Call, Request, Stop};
    use serde_json::Value;

    use super::*;
    use crate::fold::Letter;

    const SOFT: &str = "⏳ Will inject at next safe point";
    const SOON: &str = "⚡ Will inject ASAP (may skip tools)";
    const NOW: &str = "‼ Will inject now (cuts what runs)";

    fn working() -> Agent {
        Agent { run: 1, ..Agent::default() }
    }

    fn replying() -> Agent {
        let request = Request { call: 1, messages: 1, purpose: Purpose::Turn, since: Micros(0) };
        Agent { request: Some(request), ..working() }
    }

    fn calling() -> Agent {
        let call = Call { id: CallId::new("c"), name: "bash".into(), input: Value::Null, since: Micros(0) };
        Agent { calls: vec![call], ..working() }
    }

    fn stopping(reason: Halt) -> Agent {
        Agent { stop: Some(Stop { run: 1, by: "user".into(), reason, at: Micros(0) }), ..working() }
    }

    #[test]
    fn what_is_promised_is_what_will_happen() {
        use Urgency::{AfterTools, FollowUp, NextBoundary, Urgent};
        let [wakes, next] = ["→ Will wake it now", "→ Will start its next run"];
        let closed = "⊘ Will come back: it is closed";
        for (what, agent, expected) in [
            ("calls run", calling(), [SOFT, SOFT, SOON, NOW]),
            ("the model replies", replying(), [SOFT, SOFT, SOON, NOW]),
            ("nothing is to be cut", working(), [SOFT, SOFT, SOON, SOON]),
            ("idle", Agent { ended: 1, ..working() }, [wakes; 4]),
            ("not begun", Agent::default(), [wakes; 4]),
            ("stopping", stopping(Halt::Stop), [next; 4]),
            ("superseded", stopping(Halt::Supersede), [next; 4]),
            ("closing", stopping(Halt::Close), [closed; 4]),
            ("closed", Agent { is_closed: true, ..Agent::default() }, [closed; 4]),
        ] {
            let promises = [FollowUp, AfterTools, NextBoundary, Urgent].map(|it| promise(it, &agent));
            assert_eq!(promises, expected, "{what}");
        }
    }

    #[test]
    fn what_waits_for_one_that_rests_wakes_nobody() {
        let failed = Agent { ended: 1, ..working() };
        for (agent, expected) in
            [(failed, WHEN_IT_RUNS), (calling(), SOFT), (stopping(Halt::Stop), "→ Will start its next run")]
        {
            assert_eq!(waits(Urgency::AfterTools, &agent), expected);
        }
    }

    fn letters(waited: &[u64]) -> Vec<Letter> {
        let letter = |ms: &u64| Letter {
            id: MessageId::new("m"),
            from: "user".into(),
            urgency: Some(Urgency::AfterTools),
            text: "x".into(),
            waited: Some(Span::millis(*ms)),
        };
        waited.iter().map(letter).collect()
    }

    #[test]
    fn what_was_injected_says_behind_what_and_where_and_what_that_cost() {
        let mail = |waited: &[u64], point, after: Option<&str>, skipped, interrupted, answered| Injected {
            letters: letters(waited),
            point,
            after: after.map(Into::into),
            skipped,
            interrupted,
            answered,
        };
        let many = "✓ 3 messages injected together after bash at C, 1 call cut, 2 calls skipped, 34 ms";
        for (mail, expected) in [
            (mail(&[34], Point::D, Some("bash"), 0, 0, false), "✓ Message injected after bash at D, 34 ms"),
            (mail(&[1_250], Point::B, None, 0, 0, true), "✓ Message injected at B, 1.2 s · answered"),
            (mail(&[4, 34, 9], Point::C, Some("bash"), 2, 1, false), many),
            (mail(&[0], Point::A, None, 1, 0, false), "✓ Message injected at A, 1 call skipped, 0 ms"),
            (mail(&[0], Point::Start, None, 0, 0, false), "✓ Message injected at the start of a run, 0 ms"),
            (mail(&[], Point::D, None, 0, 0, false), "✓ Message injected at D"),
            (
                mail(&[0], Point::D, Some("a\n\u{202e}b"), 0, 0, false),
                "✓ Message injected after a‹U+202E›b at D, 0 ms",
            ),
        ] {
            assert_eq!(injected(&mail), expected);
        }
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        for code in Refusal::CODES {
            let text = refusal(code, "the engine's own sentence");
            assert!(!text.is_empty() && !text.contains('\n'), "{code}");
        }
        for (code, detail, expected) in [
            ("limit", "`w` has reached its limit max_turns", "`w` has reached its limit max_turns: raise it"),
            (
                "too_late",
                "too late: the message `m` has acted",
                "Too late: it was read already. Send what has changed as a new message",
            ),
            ("new_code", "Do \u{1b}[31mthis.", "Do this."),
            ("new\ncode", "", "Refused (newcode): nothing was accepted"),
        ] {
            assert_eq!(refusal(code, detail), expected);
        }
    }

    #[test]
    fn none_of_our_words_needs_more_than_ascii() {
        let mail = Injected {
            letters: letters(&[34]),
            point: Point::D,
            after: None,
            skipped: 0,
            interrupted: 0,
            answered: true,
        };
        let agents = [calling(), working(), Agent::default(), stopping(Halt::Close), stopping(Halt::Stop)];
        let promises =
            |it| agents.each_ref().map(|to| [promise(it, to), waits(it, to)]).into_iter().flatten();
        let promises = Urgency::ALL.into_iter().flat_map(promises);
        let refusals = Refusal::CODES.iter().map(|code| refusal(code, ""));
        let signs = Urgency::ALL.into_iter().flat_map(|it| [sign(it), level(it)]);
        let all = promises.chain(ReturnReason::ALL.map(returned)).chain(signs).map(str::to_owned);
        for text in all.chain(refusals).chain([injected(&mail)]) {
            assert!(ascii(&text).is_ascii() && !text.is_empty(), "{text}");
        }
        assert_eq!(
            ascii("✓ Message injected at D, 34 ms · answered"),
            "+ Message injected at D, 34 ms - answered"
        );
        assert_eq!(ascii("naïve…"), "naïve...");
    }
}
