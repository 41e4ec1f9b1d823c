//! A message of the timeline is chosen, moved, and the session played again with it.

use midturn_wire::replay;

use super::*;
use crate::state::Pane;
use crate::what_if::{Played, Shift};

/// Two messages went to the agent `w`, and nobody works any more.
fn rests(standing: Standing) -> Tried {
    let mut tried = Tried::with(standing, Settings::default());
    tried.queued("w", "m1", "user", "after_tools", "Use tabs.");
    tried.queued("w", "m2", "lead", "follow_up", "Report.");
    for agent in ["w", "lead"] {
        let usage = json!({"input": 0, "output": 0, "cached": 0});
        tried.told(agent, json!({"type": "run_finished", "outcome": "finished", "turns": 1, "usage": usage}));
    }
    tried.press("ctrl+t");
    tried
}

fn shift(message: &str, by: i64) -> Shift {
    Shift { message: MessageId::new(message), by }
}

fn nothing_spared() -> Box<Played> {
    let events = || replay::Events { events: Vec::new() };
    let spared = replay::Spared { calls: 1, files: vec!["a.rs".to_owned()], tokens: -3 };
    let (before, after, changes) = (events(), events(), vec!["w: call c1: x".to_owned()]);
    Box::new(Played::of(&replay::Played { name: None, before, after, changes, spared }))
}

fn chosen(tried: &Tried) -> Option<&str> {
    tried.state.what_if.chosen.as_ref().map(MessageId::as_str)
}

#[test]
fn the_arrows_go_from_message_to_message_where_nothing_is_typed() {
    let mut tried = rests(Standing::Theirs);
    tried.press("up");
    assert_eq!(chosen(&tried), Some("m2"), "what happened last is what one looks at");
    tried.press("up up");
    assert_eq!((chosen(&tried), tried.says()), (Some("m1"), "this is the first message"));
    tried.press("down");
    assert_eq!(chosen(&tried), Some("m2"));
    tried.types("x").press("up");
    assert_eq!(chosen(&tried), Some("m2"), "the draft has the arrows");
    tried.press("backspace esc esc");
    assert_eq!((chosen(&tried), &tried.state.pane), (None, &Pane::Talk));
}

#[test]
fn keys_move_a_message_and_enter_plays_it() {
    let mut tried = rests(Standing::Theirs);
    tried.press("down right right + left enter");
    assert_eq!(tried.effects(), [Effect::Replay(shift("m1", 1_100_000))]);
    tried.press("enter").nothing();
    assert_eq!(tried.says(), "one moment: it is being played");
    tried.done(Done::Replayed(shift("m1", 1_100_000), Ok(nothing_spared()))).nothing();
    let (shift, played) = tried.state.what_if.played.as_ref().unwrap();
    assert_eq!(
        (shift.to_string().as_str(), played.spared[0].as_str()),
        ("m1=+1.1s", "1 call spared, 3 tokens more")
    );
}

#[test]
fn a_command_says_how_far_and_plays_at_once() {
    let mut tried = rests(Standing::Stored("it is over".to_owned()));
    tried.types("/shift 1.2s").press("enter").nothing();
    assert!(tried.says().starts_with("choose a message first: Down goes to it"), "{}", tried.says());
    assert_eq!(tried.draft(), "/shift 1.2s", "what could not be done is still typed");
    tried.press("ctrl+c down").types("/shift -500ms").press("enter");
    assert_eq!(tried.effects(), [Effect::Replay(shift("m1", -500_000))]);
    tried.done(Done::Replayed(shift("m1", -500_000), Err("--shift m1=-500ms: too soon".to_owned())));
    assert_eq!(tried.says(), "not played with the message -500ms: --shift m1=-500ms: too soon");
    assert!(tried.state.what_if.played.is_none());
    tried.types("/shift far").press("enter").nothing();
    assert!(tried.says().contains("/shift 1.2s"), "{}", tried.says());
}

#[test]
fn esc_goes_back_to_the_session_then_from_the_message_and_then_closes() {
    let mut tried = rests(Standing::Theirs);
    tried.press("down right enter").effects();
    tried.done(Done::Replayed(shift("m1", 100_000), Ok(nothing_spared())));
    tried.press("esc");
    assert_eq!((tried.state.what_if.played.is_none(), chosen(&tried)), (true, Some("m1")));
    tried.press("esc");
    assert_eq!((chosen(&tried), &tried.state.pane), (None, &Pane::Timeline));
    tried.press("esc");
    assert_eq!(tried.state.pane, Pane::Talk);
    tried.nothing();
}

#[test]
fn an_answer_that_nobody_waits_for_any_more_is_dropped() {
    for keys in ["esc", "down"] {
        let mut tried = rests(Standing::Theirs);
        tried.press("down right enter").effects();
        tried.press(keys).press("down right enter").nothing();
        assert_eq!(tried.says(), "one moment: it is being played", "one at a time");
        tried.done(Done::Replayed(shift("m1", 100_000), Ok(nothing_spared())));
        assert!(tried.state.what_if.played.is_none() && tried.state.what_if.asked.is_none(), "{keys}");
    }
}

#[test]
fn while_somebody_works_nothing_is_moved_and_unmoved_nothing_is_played() {
    let mut tried = rests(Standing::Theirs);
    tried.press("down enter").nothing();
    assert!(tried.says().starts_with("it is where it was: move it first (Right"), "{}", tried.says());
    tried.told("x", json!({"type": "agent_spawned", "parent": "lead", "role": "subagent", "prompt": "Go."}));
    tried.told("x", json!({"type": "run_started", "trigger": "prompt"}));
    tried.press("right").nothing();
    assert!(tried.says().starts_with("messages can be moved once nobody works"), "{}", tried.says());
    tried.types("/shift 1s").press("enter").nothing();
    assert!(tried.says().starts_with("messages can be moved once nobody works"), "{}", tried.says());
}

#[test]
fn a_space_is_typed_where_nothing_is_played_back() {
    let mut tried = rests(Standing::Theirs);
    tried.press("down").types(" a");
    assert_eq!(tried.draft(), " a");
}

#[test]
fn a_page_back_from_the_end_of_a_timeline_is_a_page_back() {
    let mut tried = rests(Standing::Theirs);
    for n in 0..400 {
        tried.later(Span::secs(1));
        tried.queued("w", &format!("x{n}"), "user", "after_tools", "More.");
    }
    let last = crate::draw::last_top(&tried.state);
    tried.press("pgup");
    assert!(last > 40 && tried.state.pane_top < last, "{last} {}", tried.state.pane_top);
    tried.press("pgdn pgdn pgup");
    assert!(tried.state.pane_top < crate::draw::last_top(&tried.state));
}
