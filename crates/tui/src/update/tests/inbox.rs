//! What waits for the person, and whether they are told.

use midturn_view::inbox::Need;

use super::*;
use crate::settings::Notify;
use crate::state::Pane;

fn asks(tried: &mut Tried, agent: &str, call: &str) {
    let input = json!({"command": format!("make {call}")});
    let event =
        json!({"type": "approval_requested", "tool": call, "name": "bash", "input": input, "always": "bash"});
    tried.told(agent, event);
}

/// What was told since this was last asked, one text for each time.
fn told(tried: &mut Tried) -> Vec<Vec<String>> {
    let told = std::mem::take(&mut tried.effects).into_iter().map(|effect| match effect {
        Effect::Tell(needs) => needs.iter().map(Need::line).collect(),
        other => panic!("{other:?}"),
    });
    told.collect()
}

const NOTHING: [Vec<String>; 0] = [];

#[test]
fn who_looks_is_told_nothing_and_who_does_not_is_told_each_once() {
    let mut tried = Tried::new();
    tried.input(Input::Looked(true));
    asks(&mut tried, "w", "a");
    assert_eq!(told(&mut tried), NOTHING);
    tried.input(Input::Looked(false));
    assert_eq!(told(&mut tried), NOTHING, "it was seen");
    asks(&mut tried, "lead", "b");
    tried.told("lead", json!({"type": "plan_updated", "steps": []}));
    assert_eq!(told(&mut tried), [["lead asks: bash: make b"]]);
    let failed =
        json!({"type": "run_finished", "outcome": "failed", "error": "overloaded", "turns": 1, "usage": {}});
    tried.told("w", failed);
    assert_eq!(told(&mut tried), [["w failed: overloaded"]]);
    tried.input(Input::Looked(true)).input(Input::Looked(false)).later(Span::secs(60));
    assert_eq!(told(&mut tried), NOTHING);
}

#[test]
fn nothing_is_told_twice_after_the_way_was_lost_and_found_again() {
    let mut tried = Tried::new();
    tried.input(Input::Looked(false));
    asks(&mut tried, "w", "a");
    assert_eq!(told(&mut tried).len(), 1);
    let lost = midturn_client::events::Ended::Lost(Trouble::Nobody);
    tried.input(Input::Told(Told::Ended(lost)));
    tried.state.found_again(Standing::Theirs);
    // What was told before comes once more, then something new.
    tried.seq -= 1;
    asks(&mut tried, "w", "a");
    assert_eq!(told(&mut tried), NOTHING);
    asks(&mut tried, "lead", "b");
    assert_eq!(told(&mut tried), [["lead asks: bash: make b"]]);
}

#[test]
fn what_was_there_before_the_terminal_was_opened_is_on_the_screen_and_not_told() {
    let mut tried = Tried::new();
    tried.state.inbox_seq = 0;
    tried.state.opening.last_seq = tried.seq + 2;
    tried.input(Input::Looked(false));
    asks(&mut tried, "w", "a");
    asks(&mut tried, "lead", "b");
    assert_eq!((told(&mut tried), tried.state.inbox.len()), (NOTHING.to_vec(), 2));
    asks(&mut tried, "lead", "c");
    assert_eq!(told(&mut tried), [["lead asks: bash: make c"]]);
}

#[test]
fn a_terminal_that_never_says_whether_anybody_looks_tells_only_who_asked_for_that() {
    for (notify_unsure, expected) in [(false, 0), (true, 1)] {
        let mut tried = Tried::with(Standing::Theirs, Settings { notify_unsure, ..Settings::default() });
        asks(&mut tried, "w", "a");
        assert_eq!(told(&mut tried).len(), expected);
        tried.input(Input::Looked(true));
        asks(&mut tried, "w", "b");
        assert_eq!(told(&mut tried), NOTHING, "it has said so now");
    }
}

#[test]
fn the_title_says_how_many_wait_and_stays_as_it_is_where_nothing_is_to_be_told() {
    for (notify, titles) in
        [(Notify::Title, [Some("midturn: a task"), Some("(2) midturn: a task")]), (Notify::Off, [None; 2])]
    {
        let mut tried = Tried::with(Standing::Theirs, Settings { notify, ..Settings::default() });
        let before = tried.state.title.clone();
        asks(&mut tried, "w", "a");
        asks(&mut tried, "lead", "b");
        assert_eq!([before.as_deref(), tried.state.title.as_deref()], titles);
    }
}

#[test]
fn the_inbox_leads_to_who_waits_and_typing_goes_to_the_composer_meanwhile() {
    let mut tried = Tried::new();
    asks(&mut tried, "w", "a");
    asks(&mut tried, "lead", "b");
    tried.press("alt+i down");
    assert_eq!((&tried.state.pane, tried.state.inbox_at()), (&Pane::Inbox, 1));
    // A newer one comes above it: what is chosen stays chosen.
    asks(&mut tried, "lead", "c");
    assert_eq!(tried.state.inbox_at(), 2);
    tried.press("enter").nothing();
    assert_eq!((&tried.state.pane, tried.chosen()), (&Pane::Talk, "w"));
    tried.press("alt+i").types("x").press("down up");
    assert_eq!((tried.draft().as_str(), &tried.state.pane), ("x", &Pane::Inbox));
    tried.press("esc");
    assert_eq!(tried.state.pane, Pane::Talk);
    tried.press("backspace").types("/inbox 1").press("enter").nothing();
    assert_eq!(tried.chosen(), "lead");
    tried.types("/inbox 7").press("enter").nothing();
    assert_eq!(tried.says(), "nothing in the inbox has the number `7`");
}
