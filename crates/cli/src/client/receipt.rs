//! A receipt in words: where a message landed, what that cost, and how long it took. Pure.

use midturn_core::rules::time::Span;
use midturn_wire::message::{Point, Receipt, ReceiptWord as State, ReturnReason};

use super::table::duration;

/// The lines for a receipt. `took` is how long ago it was sent, if that was waited for.
pub(super) fn told(receipt: &Receipt, took: Option<Span>) -> String {
    let mut lines = vec![head(receipt, took)];
    if let Some(point) = receipt.point {
        // Other programs' agents have no runs that we count.
        let turn = receipt.run.map(|run| format!(": run {run}, turn {}", receipt.turn.unwrap_or_default()));
        lines.push(format!("  {}{}", place(point), turn.unwrap_or_default()));
    }
    for (what, calls) in [("interrupted", &receipt.interrupted), ("skipped", &receipt.skipped)] {
        if let Some(calls) = calls.as_ref().filter(|calls| !calls.is_empty()) {
            lines.push(format!("  {what}: {}", calls.join(", ")));
        }
    }
    if receipt.too_late_to_supersede == Some(true) {
        lines.push("  too late to replace the earlier message: it was read, or had acted, before".to_owned());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn head(receipt: &Receipt, took: Option<Span>) -> String {
    let Receipt { id, to, .. } = receipt;
    let call = receipt.call.map(|call| format!(" (call {call})")).unwrap_or_default();
    let after = took.map(|took| format!(" after {}", duration(took))).unwrap_or_default();
    match receipt.state {
        State::Queued => format!("{id}: queued for {to}"),
        State::Injected => format!("{id}: in the conversation of {to}{after}"),
        State::Sent => format!("{id}: sent to the model of {to}{call}{after}"),
        State::Answered => format!("{id}: answered by {to}{call}{after}"),
        State::Returned => format!("{id}: returned{after}, {to} never reads it: {}", why(receipt.reason)),
    }
}

/// What is said when the time for waiting is over.
pub(super) fn late(receipt: &Receipt, wanted: &str, waited: Span) -> String {
    let still = match receipt.state {
        State::Queued => "still queued",
        State::Injected => "in the conversation",
        State::Sent => "sent to the model",
        State::Answered => "answered",
        State::Returned => "returned",
    };
    let Receipt { id, to, .. } = receipt;
    format!(
        "{id} is not {wanted} after {}: it is {still} ({to}); `midturn ps` tells what {to} does",
        duration(waited)
    )
}

/// The point where it landed (semantics.md, section 3).
fn place(point: Point) -> &'static str {
    match point {
        Point::Start => "at the start of a run",
        Point::Stream => "in the middle of a reply, which was cut",
        Point::A => "at A, before any tool of the turn",
        Point::B => "at B, when it would have been done",
        Point::C => "at C, in the middle of the turn's tools",
        Point::D => "at D, when the turn's tools had ended",
        Point::Wait => "as the result of its waiting",
    }
}

fn why(reason: Option<ReturnReason>) -> &'static str {
    match reason {
        Some(ReturnReason::Closed) => "the agent is closed",
        Some(ReturnReason::Stopped) => "the agent was stopped",
        Some(ReturnReason::Expired) => "its time was up, or its run had ended",
        Some(ReturnReason::Withdrawn) => "it was taken back",
        Some(ReturnReason::Superseded) => "another message took its place",
        Some(ReturnReason::Error) => "the agent's run failed",
        None => "no reason is given",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn receipt(more: serde_json::Value) -> Receipt {
        let mut whole = json!({"id": "fix", "to": "worker", "state": "queued"});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_receipt_says_where_the_message_landed_what_it_cost_and_how_long_it_took() {
        let at_c = json!({"state": "injected", "point": "C", "run": 1, "turn": 3, "skipped": ["e2", "r1"], "interrupted": ["b1"]});
        for (more, took, expected) in [
            (json!({}), None, "fix: queued for worker\n"),
            (
                json!({"too_late_to_supersede": true}),
                None,
                "fix: queued for worker\n  too late to replace the earlier message: it was read, or had acted, before\n",
            ),
            (
                at_c,
                Some(Span(249_000)),
                "fix: in the conversation of worker after 249 ms\n  at C, in the middle of the turn's tools: run 1, turn 3\n  \
                 interrupted: b1\n  skipped: e2, r1\n",
            ),
            (
                json!({"state": "answered", "point": "D", "run": 2, "turn": 1, "call": 4}),
                Some(Span::secs(75)),
                "fix: answered by worker (call 4) after 1 min 15 s\n  at D, when the turn's tools had ended: run 2, turn 1\n",
            ),
            (
                json!({"state": "returned", "reason": "closed"}),
                None,
                "fix: returned, worker never reads it: the agent is closed\n",
            ),
        ] {
            assert_eq!(told(&receipt(more), took), expected);
        }
    }

    #[test]
    fn waiting_in_vain_says_where_the_message_stands() {
        assert_eq!(
            late(&receipt(json!({})), "injected", Span::secs(30)),
            "fix is not injected after 30 s: it is still queued (worker); `midturn ps` tells what worker does"
        );
    }
}
