//! A person's word on what agents ask.

use midturn_client::Said;
use midturn_core::rules::id::CallId;

use super::*;
use crate::state::{Pane, REST};

fn asks(tried: &mut Tried, agent: &str, call: &str) {
    let input = json!({"command": "rm -r build"});
    let event =
        json!({"type": "approval_requested", "tool": call, "name": "bash", "input": input, "always": "bash"});
    tried.told(agent, event);
}

fn asked() -> Tried {
    let mut tried = Tried::new();
    asks(&mut tried, "w", "c1");
    tried
}

fn answer(tried: &mut Tried) -> (AgentName, CallId, Said) {
    let [Effect::Answer { agent, call, said, .. }] = tried.effects() else { panic!() };
    (agent, call, said)
}

#[test]
fn keys_and_words_answer_the_request_that_is_drawn() {
    let rows = [
        ("ctrl+y", "", Said::Once),
        ("alt+a", "", Said::Always(None)),
        ("ctrl+n", "", Said::No(None)),
        ("enter", "/yes", Said::Once),
        ("enter", "/always", Said::Always(None)),
        ("enter", "/no", Said::No(None)),
        ("enter", "/no use the cache", Said::No(Some("use the cache".into()))),
    ];
    for (key, draft, said) in rows {
        let mut tried = asked();
        tried.later(REST).types(draft).press(key);
        assert_eq!(answer(&mut tried), (name("w"), CallId::new("c1"), said), "{draft} {key}");
    }
}

#[test]
fn a_request_that_has_only_just_come_is_not_answered() {
    for key in ["ctrl+y", "alt+a", "ctrl+n"] {
        let mut tried = asked();
        tried.later(Span(REST.0 - 1)).press(key).nothing();
        assert!(tried.says().starts_with("not answered: the request has only just come"), "{key}");
        tried.later(Span(1)).press(key);
        assert_eq!(answer(&mut tried).0, name("w"));
        assert_eq!(tried.says(), "", "{key}: it still says so");
    }
}

#[test]
fn a_reason_for_a_request_that_changed_meanwhile_is_kept() {
    let mut tried = asked();
    tried.later(REST).types("/no not that one");
    asks(&mut tried, "lead", "c2");
    tried.press("enter").nothing();
    assert_eq!(tried.draft(), "/no not that one");
}

#[test]
fn another_request_in_its_place_rests_first() {
    let mut tried = asked();
    tried.later(REST);
    let resolved = json!({"type": "approval_resolved", "tool": "c1", "decision": "once", "by": "user"});
    tried.told("w", resolved);
    asks(&mut tried, "w", "c2");
    tried.press("ctrl+y").nothing();
    tried.later(REST).press("ctrl+y");
    assert_eq!(answer(&mut tried).1, CallId::new("c2"));
}

#[test]
fn the_same_call_asked_for_again_is_another_request() {
    let mut tried = asked();
    let first = tried.state.drawn.clone().unwrap();
    tried.later(REST);
    asks(&mut tried, "w", "c1");
    let again = tried.state.drawn.clone().unwrap();
    assert!(first.since != again.since, "{again:?}");
    tried.press("ctrl+y").nothing();
}

#[test]
fn the_chosen_agents_request_is_drawn_first_and_choosing_lets_it_rest() {
    let mut tried = asked();
    asks(&mut tried, "lead", "c2");
    assert_eq!(tried.state.drawn.as_ref().unwrap().agent, name("lead"));
    tried.later(REST);
    let w = name("w");
    tried.state.choose(&w);
    tried.input(Input::Tick).press("ctrl+y").nothing();
    tried.later(REST).press("ctrl+y");
    assert_eq!(answer(&mut tried).0, w);
}

#[test]
fn another_terminals_answer_takes_the_request_away() {
    let mut tried = asked();
    tried.later(REST).press("ctrl+o");
    assert_eq!(tried.state.pane, Pane::Ask);
    tried.told("w", json!({"type": "approval_resolved", "tool": "c1", "decision": "denied", "by": "user"}));
    assert_eq!(tried.state.pane, Pane::Talk);
    assert_eq!(tried.press("ctrl+y").nothing().says(), "nobody asks for anything now");
    tried.done(Done::Answered(Err(refusal("not_asked"))));
    assert!(tried.says().starts_with("not answered: Nobody asks that any more"), "{}", tried.says());
}

#[test]
fn nothing_that_is_typed_answers() {
    let mut tried = asked();
    tried.later(REST).types("yes, y n a Y N A 1 2 3?");
    for key in ["y", "n", "a", "enter", "shift+y", "tab", "up", "down", "end", "pgup"] {
        tried.press(key);
    }
    assert!(
        !tried.effects.iter().any(|effect| matches!(effect, Effect::Answer { .. })),
        "{:?}",
        tried.effects
    );
}

#[test]
fn a_pasted_text_answers_nothing() {
    let mut tried = asked();
    tried.later(REST).input(Input::Paste("/yes\r\u{19}\u{1b}a\r".into())).nothing();
    assert!(!tried.draft().contains(['\u{19}', '\u{1b}']), "{:?}", tried.draft());
}
