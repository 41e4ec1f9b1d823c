//! Writes a scenario as the text of a scenario file (scenarios.md section 1).
//!
//! Every string is written double-quoted with JSON's escapes, which YAML 1.2 reads as they are, and every `input`
//! as JSON, which is YAML's flow form: nothing depends on a reader's guess about plain scalars.

use super::model::*;
use serde_json::Value;
use std::fmt::Write as _;

/// The YAML text of a scenario.
pub fn write(sc: &Scenario) -> String {
    let mut out = String::from("midturn: 1\n");
    line(&mut out, &format!("name: {}", quote(&sc.name)));
    let settings = settings_fields(&sc.settings);
    if !settings.is_empty() {
        line(&mut out, &format!("settings: {{{}}}", settings.join(", ")));
    }
    line(&mut out, "agents:");
    for agent in &sc.agents {
        write_agent(&mut out, sc, agent);
    }
    if !sc.items.is_empty() {
        line(&mut out, "messages:");
        for item in &sc.items {
            line(&mut out, &format!("  - {{{}}}", item_fields(sc, item).join(", ")));
        }
    }
    out
}

fn line(out: &mut String, text: &str) {
    // Writing to a String can't fail.
    let _ = writeln!(out, "{text}");
}

/// A string, quoted so that YAML reads exactly it.
pub fn quote(text: &str) -> String {
    Value::String(text.to_string()).to_string()
}

/// A duration in the file's spelling.
pub fn duration(us: Micros) -> String {
    if us == 0 {
        "0".to_string()
    } else if us.is_multiple_of(1_000_000) {
        format!("{}s", us / 1_000_000)
    } else if us.is_multiple_of(1_000) {
        format!("{}ms", us / 1_000)
    } else {
        format!("{us}us")
    }
}

fn write_agent(out: &mut String, sc: &Scenario, agent: &Agent) {
    line(out, &format!("  - name: {}", agent.name));
    if agent.lead {
        line(out, "    role: lead");
    }
    if let Some(parent) = agent.parent {
        line(out, &format!("    parent: {}", sc.agents[parent].name));
    }
    if agent.spawned {
        line(out, "    start: spawned");
    }
    if let Some(prompt) = &agent.prompt {
        line(out, &format!("    prompt: {}", quote(prompt)));
    }
    let settings = settings_fields(&agent.settings);
    if !settings.is_empty() {
        line(out, &format!("    settings: {{{}}}", settings.join(", ")));
    }
    let Some(model) = &agent.model else { return };
    if model.is_empty() {
        line(out, "    model: []");
        return;
    }
    line(out, "    model:");
    for entry in model {
        let mut fields = entry_fields(sc, entry);
        if fields.is_empty() {
            // An entry needs at least one key to be a mapping.
            fields.push("takes: 0".to_string());
        }
        line(out, &format!("      - {}", fields.remove(0)));
        for field in fields {
            line(out, &format!("        {field}"));
        }
        if !entry.tools.is_empty() {
            line(out, "        tools:");
            for call in &entry.tools {
                line(out, &format!("          - {{{}}}", call_fields(sc, call).join(", ")));
            }
        }
    }
}

fn entry_fields(sc: &Scenario, entry: &Entry) -> Vec<String> {
    let mut f = Vec::new();
    if let Some(text) = &entry.text {
        f.push(format!("text: {}", quote(text)));
    }
    if let Some(thinking) = &entry.thinking {
        f.push(format!("thinking: {}", quote(thinking)));
    }
    match &entry.ends_after {
        Some(anchor) => f.push(format!("ends_after: {}", anchor_field(sc, anchor))),
        None if entry.takes > 0 || f.is_empty() => f.push(format!("takes: {}", duration(entry.takes))),
        None => {}
    }
    if let Some(error) = entry.error {
        f.push(format!("error: {}", error.word()));
    }
    if let Some(after) = entry.retry_after {
        f.push(format!("retry_after: {}", duration(after)));
    }
    if let Some(reason) = &entry.stop_reason {
        f.push(format!("stop_reason: {reason}"));
    }
    if let Some((input, output)) = entry.usage {
        f.push(format!("usage: {{input: {input}, output: {output}}}"));
    }
    f
}

fn call_fields(sc: &Scenario, call: &Call) -> Vec<String> {
    let mut f = vec![format!("id: {}", call.id), format!("name: {}", call.name)];
    if let Some(input) = &call.input {
        f.push(format!("input: {}", flow(input)));
    }
    match &call.ends_after {
        Some(anchor) => f.push(format!("ends_after: {}", anchor_field(sc, anchor))),
        None if call.takes > 0 => f.push(format!("takes: {}", duration(call.takes))),
        None => {}
    }
    if !call.result.is_empty() {
        f.push(format!("result: {}", quote(&call.result)));
    }
    if let Some(error) = &call.error {
        f.push(format!("error: {}", quote(error)));
    }
    if !call.output.is_empty() {
        let lines: Vec<String> =
            call.output.iter().map(|(at, l)| format!("[{}, {}]", duration(*at), quote(l))).collect();
        f.push(format!("output: [{}]", lines.join(", ")));
    }
    if let Some(safe) = call.safe {
        f.push(format!("safe: {safe}"));
    }
    if !call.abortable {
        f.push("abortable: false".to_string());
    }
    if call.abort_takes > 0 {
        f.push(format!("abort_takes: {}", duration(call.abort_takes)));
    }
    if let Some(continues) = call.continues {
        f.push(format!("continues: {}", duration(continues)));
    }
    if call.provider {
        f.push("provider: true".to_string());
    }
    f
}

/// A JSON value in YAML's flow form, with the space after each colon and comma that every reader accepts.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let f: Vec<String> = map.iter().map(|(k, v)| format!("{k}: {}", flow(v))).collect();
            format!("{{{}}}", f.join(", "))
        }
        Value::Array(list) => {
            let f: Vec<String> = list.iter().map(flow).collect();
            format!("[{}]", f.join(", "))
        }
        other => other.to_string(),
    }
}

fn item_fields(sc: &Scenario, item: &Item) -> Vec<String> {
    let name = |i: usize| sc.agents[i].name.clone();
    let who = |i: Option<usize>| i.map_or("user".to_string(), &name);
    let mut f = vec![format!("id: {}", item.id), when_field(sc, &item.when)];
    match &item.act {
        Act::Message(m) => f.extend(message_fields(sc, m)),
        Act::Stop { agent, by, subtree } => {
            f.push(format!("by: {}", who(*by)));
            f.push(format!("stop: {}", name(*agent)));
            if *subtree {
                f.push("scope: subtree".to_string());
            }
        }
        Act::Supersede { agent, text } => {
            f.push(format!("supersede: {}", name(*agent)));
            f.push(format!("text: {}", quote(text)));
        }
        Act::Resume { agent } => f.push(format!("resume: {}", agent.map_or("all".to_string(), name))),
        Act::Raise { agent, limits } => {
            f.push(format!("raise: {}", agent.map_or("session".to_string(), name)));
            f.push(format!("limits: {{{}}}", written(&limits_fields(limits)).join(", ")));
        }
        Act::Crash { down } => f.push(format!("crash: {}", duration(*down))),
        Act::Shutdown { down } => f.push(format!("shutdown: {}", duration(*down))),
        Act::Close { agent, by } => {
            f.push(format!("by: {}", who(*by)));
            f.push(format!("close: {}", name(*agent)));
        }
        Act::Withdraw { message, by } => {
            f.push(format!("by: {}", who(*by)));
            f.push(format!("withdraw: {message}"));
        }
    }
    f
}

fn when_field(sc: &Scenario, when: &When) -> String {
    match when {
        When::At(at) => format!("at: {}", duration(*at)),
        When::After { agent, event, of, plus } => {
            let plus = plus.map_or(String::new(), |p| format!(", plus: {}", duration(p)));
            format!("after: {{agent: {}, {event}: {of}{plus}}}", sc.agents[*agent].name)
        }
    }
}

fn anchor_field(sc: &Scenario, anchor: &Anchor) -> String {
    let plus = if anchor.plus > 0 { format!(", plus: {}", duration(anchor.plus)) } else { String::new() };
    format!("{{agent: {}, {}: {}{plus}}}", sc.agents[anchor.agent].name, anchor.event, anchor.of)
}

fn message_fields(sc: &Scenario, m: &Message) -> Vec<String> {
    let name = |i: usize| sc.agents[i].name.clone();
    let to = match m.to {
        To::Agent(i) => name(i),
        To::Parent => "parent".to_string(),
        To::All => "all".to_string(),
    };
    let mut f = vec![
        format!("from: {}", m.from.map_or("user".to_string(), name)),
        format!("to: {to}"),
        format!("text: {}", quote(&m.text)),
    ];
    match m.wish {
        Wish::Default => {}
        Wish::Plain(urgent) => f.push(format!("urgent: {urgent}")),
        Wish::Full(u) => f.push(format!("urgency: {}", u.word())),
    }
    if let Some(after) = m.expires_after {
        f.push(format!("expires_after: {}", duration(after)));
    }
    if let Some(old) = &m.supersedes {
        f.push(format!("supersedes: {old}"));
    }
    if m.if_queued {
        f.push("if_queued: true".to_string());
    }
    if let Some(run) = m.only_run {
        f.push(format!("only_run: {run}"));
    }
    f
}

fn settings_fields(s: &Settings) -> Vec<String> {
    let mut f = Vec::new();
    let urgencies = [("to_lead", s.to_lead), ("from_above", s.from_above), ("from_others", s.from_others)];
    let named: Vec<String> =
        urgencies.iter().filter_map(|(k, u)| u.map(|u| format!("{k}: {}", u.word()))).collect();
    if !named.is_empty() {
        f.push(format!("default_urgency: {{{}}}", named.join(", ")));
    }
    let concurrency = s.concurrency_all.map(|all| if all { "all" } else { "safe" });
    let on_error = s.return_on_error.map(|gives_back| if gives_back { "return" } else { "keep" });
    let values = [
        ("urgent_cuts_stream", shown(s.urgent_cuts_stream)),
        ("keep_edits_together", shown(s.keep_edits_together)),
        ("concurrency", shown(concurrency)),
        ("max_parallel_tools", shown(s.max_parallel_tools)),
        ("on_error", shown(on_error)),
        ("mailbox_messages", shown(s.mailbox_messages)),
        ("abort_deadline", s.abort_deadline.map(duration)),
        ("urgent_from_peers", shown(s.urgent_from_peers)),
        ("urgent_per_minute", shown(s.urgent_per_minute)),
        ("max_depth", shown(s.max_depth)),
        ("max_agents", shown(s.max_agents)),
    ];
    f.extend(written(&values));
    f.extend(written(&limits_fields(&s.limits)));
    let session = written(&limits_fields(&s.session));
    if !session.is_empty() {
        f.push(format!("session: {{{}}}", session.join(", ")));
    }
    let retry = [
        ("attempts", shown(s.retry_attempts)),
        ("time", s.retry_time.map(duration)),
        ("base", s.retry_base.map(duration)),
        ("cap", s.retry_cap.map(duration)),
    ];
    let retry = written(&retry);
    if !retry.is_empty() {
        f.push(format!("retry: {{{}}}", retry.join(", ")));
    }
    f
}

fn limits_fields(limits: &Limits) -> [(&'static str, Option<String>); 3] {
    [
        ("max_turns", shown(limits.turns)),
        ("max_tokens", shown(limits.tokens)),
        ("max_time", limits.time.map(duration)),
    ]
}

fn shown(value: Option<impl ToString>) -> Option<String> {
    value.map(|v| v.to_string())
}

/// The keys that have a value.
fn written(values: &[(&str, Option<String>)]) -> Vec<String> {
    values.iter().filter_map(|(key, value)| value.as_ref().map(|v| format!("{key}: {v}"))).collect()
}
