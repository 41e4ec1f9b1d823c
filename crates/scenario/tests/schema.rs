//! The shipped JSON Schema accepts what the reader accepts, and refuses what it refuses.

#![allow(clippy::unwrap_used, reason = "a test's own helpers may panic")]

mod misfit;

use std::path::{Path, PathBuf};

use misfit::misfit;
use serde_json::Value;

/// YAML 1.2, as the reader has it.
fn yaml(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap()
}

fn scenarios(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

#[test]
fn every_scenario_of_the_house_fits_the_schema() {
    let schema = midturn_scenario::schema();
    let mut files = Vec::new();
    scenarios(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
    assert!(files.len() >= 40);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let value = yaml(&text);
        assert_eq!(misfit(&schema, &schema, &value), None, "{}", file.display());
    }
}

#[test]
fn what_the_reader_refuses_by_shape_the_schema_refuses_too() {
    let schema = midturn_scenario::schema();
    for wrong in [
        "{}",
        "{midturn: 2, agents: []}",
        "{midturn: 1, agents: [{nam: x}]}",
        "{midturn: 1, agents: [{name: x, role: boss}]}",
        "{midturn: 1, agents: [{name: x, model: [{takes: 5}]}]}",
        "{midturn: 1, agents: [{name: x, model: [{tools: [{id: a}]}]}]}",
        "{midturn: 1, agents: [], messages: [{at: 1s, urgency: soon}]}",
        "{midturn: 1, agents: [], settings: {retry: {tries: 1}}}",
        "{midturn: 1, agents: [], settings: {compact_at: 500}}",
        "{midturn: 1, agents: [], settings: {retry: {attempts: 0}}}",
        "{midturn: 1, agents: [], messages: [{at: 1s, crash: 5}]}",
        "{midturn: 1, agents: [], messages: [{after: {agent: x, text_delta: any}, stop: x}]}",
        "{midturn: 1, agents: [], expect: [{agent: x, tools: {a: done}}]}",
    ] {
        let value = yaml(wrong);
        assert!(misfit(&schema, &schema, &value).is_some(), "{wrong}");
    }
}

#[test]
fn every_event_of_every_simulated_scenario_fits_the_schema_of_events() {
    let schema = midturn_core::rules::event::schema();
    let (mut files, mut types) = (Vec::new(), std::collections::BTreeSet::new());
    scenarios(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
    for file in files.iter().filter(|file| !file.components().any(|part| part.as_os_str() == "real")) {
        for event in midturn_scenario::replay_text(&std::fs::read_to_string(file).unwrap()).unwrap() {
            assert_eq!(misfit(&schema, &schema, &event), None, "{}: {event}", file.display());
            types.insert(event["type"].as_str().unwrap().to_owned());
        }
    }
    assert!(types.len() >= 20, "{types:?}");
}

#[test]
fn what_is_no_event_does_not_fit_the_schema_of_events() {
    let schema = midturn_core::rules::event::schema();
    for (event, fits) in [
        (r#"{"v": 1, "seq": 3, "t": 1.5, "agent": "a", "run": 1, "turn": 1, "type": "agent_closed"}"#, true),
        (r#"{"v": 1, "seq": 3, "n": 1, "t": 1.5, "agent": "a", "type": "text_delta", "text": "x"}"#, true),
        (r#"{"v": 1, "seq": 3, "t": 1.5, "agent": "a", "type": "text_delta", "text": "x"}"#, false),
        (r#"{"v": 1, "t": 1.5, "type": "agent_closed"}"#, false),
        (r#"{"v": 1, "seq": 3, "t": "soon", "type": "agent_closed"}"#, false),
        (
            r#"{"v": 1, "seq": 3, "t": 1.5, "type": "run_finished", "outcome": "well", "turns": 1, "usage": {}}"#,
            false,
        ),
        (r#"{"v": 1, "seq": 3, "t": 1.5, "type": "something_else"}"#, false),
    ] {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(misfit(&schema, &schema, &event).is_none(), fits, "{event}");
    }
}
