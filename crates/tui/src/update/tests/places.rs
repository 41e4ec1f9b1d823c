//! Where one looks.

use std::rc::Rc;

use midturn_core::rules::mail::Urgency;

use super::*;
use crate::draw;
use crate::layouts::Lines;
use crate::state::{Pane, Scroll};

/// Many lines to look at.
fn talks(tried: &mut Tried, agent: &str, turns: u64) {
    for turn in 0..turns {
        let call = format!("{agent}{turn}");
        let tools = json!([{"id": call, "name": "bash", "input": {"command": "ls"}}]);
        let usage = json!({"input": 1, "output": 1, "cached": 0});
        let text = format!("line one\n\nline two of {turn}");
        tried.told(agent, json!({"type": "model_finished", "stop_reason": "tool_use", "usage": usage, "text": text, "thinking": [], "tools": tools}));
        tried.told(
            agent,
            json!({"type": "tool_started", "tool": call, "name": "bash", "input": {}, "batch": 1}),
        );
        let output = "out\n".repeat(3);
        tried.told(agent, json!({"type": "tool_finished", "tool": call, "name": "bash", "status": "completed", "is_error": false, "bytes": 12, "output": output}));
    }
}

fn shown(tried: &Tried) -> Vec<String> {
    let area = crate::draw::areas(&tried.state).pane;
    let (lines, _) = crate::draw::talk::page(&tried.state, area.width, area.height);
    lines.iter().map(ToString::to_string).collect()
}

#[test]
fn who_scrolled_back_sees_the_same_lines_whatever_comes_below() {
    let mut tried = Tried::new();
    talks(&mut tried, "lead", 30);
    let end = shown(&tried);
    tried.press("pgup pgup");
    let before = shown(&tried);
    assert_ne!(before, end);
    talks(&mut tried, "lead", 3);
    assert_eq!(shown(&tried), before);
    tried.press("end");
    assert_eq!(tried.state.looking().scroll, Scroll::End);
    let end = shown(&tried);
    talks(&mut tried, "lead", 1);
    assert_ne!(shown(&tried), end, "at the end it follows");
}

#[test]
fn a_page_back_and_a_page_on_is_where_one_was() {
    let mut tried = Tried::new();
    talks(&mut tried, "lead", 30);
    tried.press("pgup");
    let before = shown(&tried);
    tried.press("pgup pgdn");
    assert_eq!(shown(&tried), before);
    tried.press("pgdn");
    assert_eq!(tried.state.looking().scroll, Scroll::End);
    tried.input(Input::Wheel(-3)).input(Input::Wheel(3));
    assert_eq!(tried.state.looking().scroll, Scroll::End);
    tried.press("ctrl+home pgup pgup");
    let top = shown(&tried);
    tried.press("ctrl+home");
    assert_eq!(shown(&tried), top, "there is nothing above the first line");
}

#[test]
fn a_timeline_is_laid_out_once_for_an_event_and_once_a_second() {
    type Lays = fn(&State) -> Lines;
    let all: [Lays; 2] =
        [|state| draw::timeline::beside(state, 60), |state| draw::timeline::whole(state, 80)];
    for lays in all {
        let mut tried = Tried::new();
        let mut laid: Vec<Lines> = Vec::new();
        let mut frames = |tried: &mut Tried, count: usize| {
            for _ in 0..count {
                let lines = lays(&tried.later(Span::millis(20)).state);
                if !laid.iter().any(|known| Rc::ptr_eq(known, &lines)) {
                    laid.push(lines);
                }
            }
            laid.len()
        };
        assert_eq!(frames(&mut tried, 40), 1);
        tried
            .told("w", json!({"type": "tool_started", "tool": "c", "name": "bash", "input": {}, "batch": 1}));
        assert_eq!(frames(&mut tried, 5), 2);
        assert_eq!(frames(&mut tried, 150), 5);
    }
}

#[test]
fn each_agent_keeps_where_one_looks() {
    let mut tried = Tried::new();
    talks(&mut tried, "lead", 30);
    talks(&mut tried, "w", 30);
    tried.press("pgup");
    let before = shown(&tried);
    tried.press("tab end tab");
    assert_eq!((tried.chosen(), shown(&tried)), ("lead", before));
}

#[test]
fn a_call_that_one_sees_is_opened_and_closed() {
    let mut tried = Tried::new();
    talks(&mut tried, "lead", 2);
    let closed = shown(&tried);
    tried.press("ctrl+o");
    assert_eq!(tried.state.looking().open.len(), 1);
    assert!(shown(&tried).iter().any(|line| line.contains("out")), "{:?}", shown(&tried));
    tried.press("ctrl+o");
    assert_eq!(shown(&tried), closed);
}

#[test]
fn agents_are_chosen_by_key_by_place_and_by_name() {
    let rows = [
        ("tab", "w"),
        ("tab tab", "lead"),
        ("shift+tab", "w"),
        ("alt+1", "lead"),
        ("alt+2", "w"),
        ("alt+9", "lead"),
    ];
    for (keys, chosen) in rows {
        assert_eq!(Tried::new().press(keys).nothing().chosen(), chosen, "{keys}");
    }
    let mut tried = Tried::new();
    assert_eq!(tried.types("/agent w").press("enter").nothing().chosen(), "w");
    tried.types("/agent nobody").press("enter").nothing();
    assert_eq!(tried.says(), "there is no agent `nobody`");
}

#[test]
fn esc_closes_what_is_open_and_stops_only_then() {
    for (open, pane) in [("ctrl+p", Pane::Plan), ("f1", Pane::Help), ("?", Pane::Help)] {
        let mut tried = Tried::new();
        tried.press(open);
        assert_eq!(tried.state.pane, pane, "{open}");
        tried.press("esc").nothing();
        assert_eq!(tried.state.pane, Pane::Talk);
        assert!(matches!(tried.press("esc").effects(), [Effect::Stop { .. }]));
    }
    let mut tried = Tried::new();
    tried.press("alt+z");
    assert!(tried.state.bare);
    tried.press("esc").nothing();
    assert!(!tried.state.bare);
}

#[test]
fn a_diff_is_asked_for_when_it_is_opened_and_shown_to_who_still_looks() {
    let mut tried = Tried::new();
    assert_eq!(tried.press("alt+d").effects(), [Effect::Diff(name("lead"))]);
    tried.done(Done::Diff(name("w"), Err(refusal("no_branch"))));
    assert_eq!(tried.state.pane, Pane::Diff(None), "it is another agent's");
    tried.done(Done::Diff(name("lead"), Err(refusal("no_branch"))));
    assert_eq!(tried.state.pane, Pane::Diff(Some(Err("the words of no_branch".into()))));
    tried.press("alt+d").nothing();
    assert_eq!(tried.state.pane, Pane::Talk);
    tried.done(Done::Diff(name("lead"), Err(refusal("no_branch"))));
    assert_eq!(tried.state.pane, Pane::Talk);
}

#[test]
fn end_is_the_drafts_where_the_conversation_is_at_its_end() {
    let mut tried = Tried::new();
    talks(&mut tried, "lead", 30);
    tried.types("ac").press("home").types("x").press("end").types("z");
    assert_eq!(tried.draft(), "xacz");
    tried.press("home pgup end").types("y");
    assert_eq!(tried.draft(), "yxacz", "it first goes to the end");
}

#[test]
fn the_switch_of_how_soon_is_no_agents_own() {
    let mut tried = Tried::new();
    tried.press("alt+u alt+u tab").types("x").press("enter");
    assert_eq!(tried.sent().urgency, Some(Urgency::NextBoundary));
}
