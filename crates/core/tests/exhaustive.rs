//! The pure rules against a table, exhaustively: every batch layout up to five calls × every
//! place where each kind of message or a stop can come × every way a call can end × the
//! progress guard and `keep_edits_together` (semantics.md, sections 3 to 6; invariants 1 and 4).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;

use midturn_core::rules::batch::PlannedCall;
use midturn_core::rules::boundary::{Committed, Inbox};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::{Point, Sender, Urgency};
use midturn_core::rules::settings::Settings;
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::turn::{Given, Turn};
use midturn_core::rules::wording::Cause;

/// What comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    Nothing,
    Mail(Urgency),
    Stop,
}

/// How the calls behave.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Calls {
    Succeed,
    Fail,
    Unabortable,
    IgnoreTheirToken,
}

/// A message that comes before the look at A (`at` 0) or while the `at`-th segment runs.
#[derive(Clone, Copy, Debug)]
struct Case {
    comes: Comes,
    at: usize,
    calls: Calls,
    guarded: bool,
    keep_edits: bool,
}

struct OneMessage {
    urgency: Cell<Option<Urgency>>,
    commits: Cell<u32>,
}

fn lead() -> Sender {
    Sender::Agent(AgentName::new("lead").unwrap())
}

impl Inbox for OneMessage {
    fn pending(&self) -> Option<Urgency> {
        self.urgency.get()
    }

    fn commit(&self, at_least: Urgency) -> Option<Committed> {
        let highest = self.urgency.get().filter(|urgency| *urgency >= at_least)?;
        self.commits.set(self.commits.get() + 1);
        Some(Committed { sender: lead(), highest })
    }
}

/// All layouts of up to five calls: `r` is safe, `e` an edit, `b` a command.
fn layouts() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut longest = all.clone();
    for _ in 0..5 {
        longest = longest.iter().flat_map(|l| ["r", "e", "b"].map(|c| format!("{l}{c}"))).collect();
        all.extend(longest.iter().cloned());
    }
    all.retain(|layout| !layout.is_empty());
    all
}

/// The oracle's own idea of segments: maximal runs of `r`, every other call alone.
fn segments_of(layout: &str) -> Vec<Vec<usize>> {
    let mut segments: Vec<Vec<usize>> = Vec::new();
    let kinds: Vec<char> = layout.chars().collect();
    for (i, kind) in kinds.iter().enumerate() {
        match segments.last_mut() {
            Some(last) if *kind == 'r' && kinds[i - 1] == 'r' => last.push(i),
            _ => segments.push(vec![i]),
        }
    }
    segments
}

fn plan(layout: &str, calls: Calls) -> Vec<PlannedCall> {
    let call = |(i, kind): (usize, char)| PlannedCall {
        id: CallId::new(format!("c{i}")),
        name: match kind {
            'r' => "read",
            'e' => "edit",
            _ => "bash",
        }
        .into(),
        safe: kind == 'r',
        abortable: calls != Calls::Unabortable,
        edits: None,
    };
    layout.chars().enumerate().map(call).collect()
}

/// What must come of each call, said without the engine's words.
fn expected(layout: &str, case: Case) -> Vec<ToolStatus> {
    let own = if case.calls == Calls::Fail { ToolStatus::Failed } else { ToolStatus::Completed };
    let kinds: Vec<char> = layout.chars().collect();
    let mut statuses = vec![own; kinds.len()];
    for (number, segment) in segments_of(layout).iter().enumerate() {
        for call in segment {
            let glued = case.keep_edits && *call > 0 && kinds[*call] == 'e' && kinds[call - 1] == 'e';
            statuses[*call] = one_call(case, number + 1, own, forbids(layout, case, number + 1, glued));
        }
    }
    statuses
}

fn one_call(case: Case, segment: usize, own: ToolStatus, forbidden: bool) -> ToolStatus {
    if forbidden {
        return ToolStatus::Skipped;
    }
    let cut = match case.comes {
        Comes::Mail(Urgency::Urgent) => ToolStatus::Interrupted,
        Comes::Stop => ToolStatus::Stopped,
        Comes::Mail(_) | Comes::Nothing => return own,
    };
    match (segment == case.at, case.calls) {
        (false, _) | (true, Calls::Unabortable) => own,
        (true, Calls::IgnoreTheirToken) => ToolStatus::Unknown,
        (true, Calls::Succeed | Calls::Fail) => cut,
    }
}

/// Whether the segment may not start any more when its turn comes.
fn forbids(layout: &str, case: Case, segment: usize, glued: bool) -> bool {
    if segment <= case.at {
        return false;
    }
    match case.comes {
        Comes::Nothing | Comes::Mail(Urgency::FollowUp | Urgency::AfterTools) => false,
        Comes::Mail(Urgency::Urgent) | Comes::Stop => true,
        Comes::Mail(Urgency::NextBoundary) if case.guarded => false,
        Comes::Mail(Urgency::NextBoundary) => !glued || earlier_forbidden(layout, case, segment),
    }
}

/// A glued segment is skipped only if a boundary before it has torn the turn already.
fn earlier_forbidden(layout: &str, case: Case, segment: usize) -> bool {
    let kinds: Vec<char> = layout.chars().collect();
    let segments = segments_of(layout);
    (case.at + 1..segment).any(|earlier| {
        let call = segments[earlier - 1][0];
        !(call > 0 && kinds[call] == 'e' && kinds[call - 1] == 'e')
    })
}

/// Plays a case as the driver would, and gives the turn and the order of starts.
fn play(layout: &str, case: Case) -> (Turn, Vec<usize>) {
    let settings = Settings { keep_edits_together: case.keep_edits, ..Settings::default() };
    let inbox = OneMessage { urgency: Cell::new(None), commits: Cell::new(0) };
    let mut turn = Turn::new(plan(layout, case.calls), &settings, case.guarded);
    let mut started = Vec::new();
    let mut segment = 0;
    arrives(case, segment, &inbox, &mut turn);
    while !turn.is_complete() {
        let start = turn.step(&inbox, &settings);
        if start.is_empty() {
            break;
        }
        segment += 1;
        for call in &start {
            turn.started(*call, Micros(0));
        }
        started.extend(&start);
        let aborted = arrives(case, segment, &inbox, &mut turn);
        if case.calls == Calls::IgnoreTheirToken {
            assert_eq!(
                turn.give_up(Span::secs(2), false),
                aborted,
                "only what was told to abort is given up"
            );
        }
        for call in start {
            let is_error = case.calls == Calls::Fail;
            turn.ended(call, Given { text: "own".into(), is_error, ..Given::default() });
        }
    }
    (turn, started)
}

fn arrives(case: Case, segment: usize, inbox: &OneMessage, turn: &mut Turn) -> Vec<usize> {
    let now = Micros(1_290_000);
    match case.comes {
        _ if segment != case.at => Vec::new(),
        Comes::Nothing => Vec::new(),
        Comes::Stop => turn.cut(&Cause::Stop(Sender::User), now),
        Comes::Mail(urgency) => {
            inbox.urgency.set(Some(urgency));
            let cuts = urgency == Urgency::Urgent && segment > 0;
            if cuts { turn.cut(&Cause::Mail(lead()), now) } else { Vec::new() }
        }
    }
}

fn check(layout: &str, case: Case) {
    let (turn, started) = play(layout, case);
    let place = format!("{layout} {case:?}");
    assert!(turn.is_complete(), "every call has its result: {place}");
    let results = turn.results();
    let statuses: Vec<ToolStatus> = results.iter().map(|result| result.status).collect();
    assert_eq!(statuses, expected(layout, case), "{place}");
    let ids: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
    let in_order: Vec<String> = (0..layout.len()).map(|i| format!("c{i}")).collect();
    assert_eq!(ids, in_order, "results stand in call order: {place}");
    let skipped = |i: &usize| statuses[*i] == ToolStatus::Skipped;
    assert!(!started.iter().any(skipped), "what was skipped never started: {place}");
    assert!(started.is_sorted(), "calls start in call order: {place}");
    for result in &results {
        assert_eq!(result.is_error, result.status != ToolStatus::Completed, "{place}");
        assert_eq!(&*result.text, text_of(result.status, case), "{place}");
    }
    assert_eq!(turn.point(), point_of(&statuses, case), "{place}");
    assert_eq!(turn.starved_after(1), starved_after_one(case, started.is_empty()), "{place}");
}

fn text_of(status: ToolStatus, case: Case) -> &'static str {
    match (status, case.comes) {
        (ToolStatus::Completed | ToolStatus::Failed, _) => "own",
        (ToolStatus::Skipped, Comes::Stop) => "[Skipped: stopped by the user]",
        (ToolStatus::Skipped, _) => "[Skipped: message received from lead before this ran]",
        (ToolStatus::Interrupted, _) => {
            "[Interrupted after 1.2 s: message received from lead. It may have taken effect in part.]\nOutput so far:\nown"
        }
        (ToolStatus::Stopped, _) => {
            "[Stopped by the user after 1.2 s. It may have taken effect in part.]\nOutput so far:\nown"
        }
        (ToolStatus::Unknown, _) => "[Unknown: it did not stop within 2 s. It may still be running.]",
    }
}

fn point_of(statuses: &[ToolStatus], case: Case) -> Point {
    let by_mail = matches!(case.comes, Comes::Mail(_));
    let own = |status: &ToolStatus| matches!(status, ToolStatus::Completed | ToolStatus::Failed);
    if !by_mail || statuses.iter().all(own) {
        Point::D
    } else if statuses.iter().all(|status| *status == ToolStatus::Skipped) {
        Point::A
    } else {
        Point::C
    }
}

fn starved_after_one(case: Case, nothing_started: bool) -> u32 {
    match (nothing_started, case.comes) {
        (false, _) => 0,
        (true, Comes::Mail(Urgency::NextBoundary)) => 2,
        (true, _) => 1,
    }
}

#[test]
fn every_layout_place_and_outcome_obeys_invariants_1_and_4() {
    let comes: Vec<Comes> =
        Urgency::ALL.map(Comes::Mail).into_iter().chain([Comes::Nothing, Comes::Stop]).collect();
    let calls = [Calls::Succeed, Calls::Fail, Calls::Unabortable, Calls::IgnoreTheirToken];
    let mut played = 0;
    for layout in layouts() {
        for at in 0..=segments_of(&layout).len() {
            for (comes, calls) in comes.iter().flat_map(|c| calls.map(|k| (*c, k))) {
                for (guarded, keep_edits) in [(false, false), (true, false), (false, true)] {
                    check(&layout, Case { comes, at, calls, guarded, keep_edits });
                    played += 1;
                }
            }
        }
    }
    assert_eq!(layouts().len(), 3 + 9 + 27 + 81 + 243);
    assert!(played > 100_000, "{played} cases were played");
}
