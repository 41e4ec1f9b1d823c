//! What is typed, completed, searched and cleared.

use super::*;
use crate::keys::Action;

fn words(tried: &Tried) -> Vec<String> {
    tried.state.completion().map_or(Vec::new(), |open| open.items.into_iter().map(|item| item.word).collect())
}

#[test]
fn above_the_first_row_is_what_was_sent_and_below_it_the_draft() {
    let mut tried = Tried::new();
    for text in ["one", "/level", "two"] {
        tried.types(text).press("enter");
    }
    tried.types("draft");
    for (key, shown) in [
        ("up", "two"),
        ("up", "/level"),
        ("up", "one"),
        ("up", "one"),
        ("down", "/level"),
        ("down", "two"),
        ("down", "draft"),
        ("down", "draft"),
    ] {
        assert_eq!(tried.press(key).draft(), shown, "{key}");
    }
}

#[test]
fn in_a_draft_of_rows_the_arrows_go_through_them_first() {
    let mut tried = Tried::new();
    tried.types("sent").press("enter").types("a").press("ctrl+j").types("b");
    assert_eq!(tried.press("up").draft(), "a\nb");
    assert_eq!(tried.press("up").draft(), "sent");
    assert_eq!(tried.press("down").draft(), "a\nb");
}

#[test]
fn what_was_sent_is_found_by_what_is_typed() {
    let mut tried = Tried::new();
    for text in ["run the tests", "read it", "test again"] {
        tried.types(text).press("enter");
    }
    tried.effects.clear();
    tried.types("TE").press("ctrl+r");
    assert_eq!(words(&tried), ["test again", "run the tests"]);
    tried.types("s");
    assert_eq!(words(&tried).len(), 2, "it is searched on while one types");
    tried.press("ctrl+r enter").nothing();
    assert_eq!(tried.draft(), "run the tests");
    assert!(words(&tried).is_empty());
    assert_eq!(tried.press("enter").sent().text, "run the tests");
    assert_eq!(tried.draft(), "");
    tried.types("nowhere").press("ctrl+r").nothing();
    assert_eq!(tried.says(), "nothing that was sent before has this in it");
}

#[test]
fn a_search_that_is_left_changes_nothing() {
    let mut tried = Tried::new();
    tried.types("run the tests").press("enter").effects();
    tried.types("te").press("ctrl+r esc").nothing();
    assert_eq!((tried.draft().as_str(), words(&tried).len()), ("te", 0));
    tried.press("ctrl+r ctrl+s");
    assert_eq!(tried.sent().text, "te", "another key does what it does");
}

#[test]
fn tab_takes_what_is_offered_and_else_goes_to_the_next_agent() {
    let mut tried = Tried::new();
    tried.types("ask @").press("down tab");
    assert_eq!((tried.draft().as_str(), tried.chosen()), ("ask @w ", "lead"));
    tried.press("tab");
    assert_eq!((tried.draft().as_str(), tried.chosen()), ("", "w"));
    tried.press("shift+tab");
    assert_eq!((tried.draft().as_str(), tried.chosen()), ("ask @w ", "lead"));
}

#[test]
fn enter_takes_what_somebody_went_to_and_sends_nothing_then() {
    let mut tried = Tried::new();
    tried.press("/ down up down enter").nothing();
    assert_eq!(tried.draft(), "/soon ");
    let mut tried = Tried::new();
    tried.types("/stop").press("enter");
    assert!(matches!(tried.effects(), [Effect::Stop { .. }]), "what is whole is done, list or not");
}

#[test]
fn esc_closes_the_list_and_stops_nobody() {
    let mut tried = Tried::new();
    tried.types("/st").press("esc").nothing();
    assert!(words(&tried).is_empty());
    assert!(!words(tried.types("o")).is_empty(), "the next letter opens it again");
    tried.press("esc esc");
    assert!(matches!(tried.effects(), [Effect::Stop { .. }]));
    assert_eq!(tried.draft(), "/sto");
}

#[test]
fn a_slash_and_a_question_mark_are_letters_in_a_draft() {
    let mut tried = Tried::new();
    tried.types("why? a/b");
    assert_eq!(tried.draft(), "why? a/b");
    assert_eq!(tried.state.pane, crate::state::Pane::Talk);
}

#[test]
fn the_list_of_actions_has_them_all() {
    let mut tried = Tried::new();
    tried.press("/");
    let shown = words(&tried);
    for row in crate::keys::TABLE.iter().filter(|row| !matches!(row.action, Action::AgentAt(_))) {
        assert!(shown.contains(&format!("/{}", row.name)), "{}", row.name);
    }
}

#[test]
fn ctrl_c_clears_first_and_leaves_when_it_comes_twice() {
    let mut tried = Tried::new();
    tried.types("draft").press("ctrl+c");
    assert_eq!((tried.draft().as_str(), tried.state.leaves), ("", false));
    tried.press("ctrl+c");
    assert!(!tried.state.leaves);
    assert_eq!(tried.says(), "Ctrl+C again leaves; the agents go on");
    tried.types("x").press("ctrl+c ctrl+c");
    assert!(!tried.state.leaves, "a key between makes it another first");
    tried.later(super::super::TWICE).press("ctrl+c");
    assert!(!tried.state.leaves, "so does time");
    tried.press("ctrl+c");
    assert!(tried.state.leaves);
}

#[test]
fn ctrl_d_is_the_end_of_input_where_there_is_none() {
    let mut tried = Tried::new();
    tried.types("draft").press("home ctrl+d ctrl+d");
    assert_eq!((tried.draft().as_str(), tried.state.leaves), ("aft", false));
    tried.press("ctrl+c ctrl+d");
    assert_eq!((tried.says(), tried.state.leaves), ("Ctrl+D again leaves; the agents go on", false));
    tried.press("ctrl+d");
    assert!(tried.state.leaves);
}

#[test]
fn leaving_a_run_says_whom_it_stops() {
    let mut tried = Tried::with(Standing::Ours, Settings::default());
    assert_eq!(tried.press("ctrl+c").says(), "Ctrl+C again leaves, and stops 2 agents that are at work");
}

#[test]
fn only_what_lives_elsewhere_can_be_suspended() {
    let mut ours = Tried::with(Standing::Ours, Settings::default());
    ours.press("ctrl+z").nothing();
    assert!(ours.says().starts_with("not suspended"));
    assert_eq!(Tried::new().press("ctrl+z").effects(), [Effect::Suspend]);
}

#[test]
fn what_is_typed_is_kept_on_disk_soon_and_once() {
    let mut tried = Tried::new();
    tried.types("ab");
    let due = tried.state.save_at.unwrap();
    assert_eq!(super::super::wakes_at(&tried.state), Some(due));
    let saved = update(&mut tried.state, Input::Tick, due);
    assert!(matches!(&saved[..], [Effect::Save(saved)] if saved.drafts[0].texts == ["ab"]), "{saved:?}");
    assert_eq!(update(&mut tried.state, Input::Tick, due), []);
}

#[test]
fn what_the_editor_gave_takes_the_drafts_place_and_its_failure_nothing() {
    let mut tried = Tried::new();
    assert_eq!(tried.types("a").press("ctrl+g").effects(), [Effect::Editor("a".into())]);
    tried.done(Done::Edited(Err("it failed".into())));
    assert_eq!((tried.draft().as_str(), tried.says()), ("a", "it failed"));
    assert_eq!(tried.done(Done::Edited(Ok("b\nc\n".into()))).draft(), "b\nc");
}
