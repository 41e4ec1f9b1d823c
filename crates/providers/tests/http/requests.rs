//! Request bodies, as the servers read them.

use std::convert::Infallible;
use std::sync::Arc;

use super::server::{Answer, Server};
use midturn_core::engine::ports::model::Request;
use midturn_core::engine::ports::tool::ToolSpec;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{
    Block, Entry, Injected, InterruptReason, Opaque, Partial, Reply, Thinking, ToolResult, ToolStatus,
    ToolUse,
};
use midturn_core::rules::id::CallId;
use midturn_core::rules::time::Micros;
use midturn_providers::{Config, Endpoint, Providers, Silent};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn user(text: &str) -> Entry {
    Entry::User(Injected::prompt(text))
}

fn call(id: &str, input: Value) -> Block {
    Block::ToolUse(ToolUse { id: CallId::new(id), name: "read".into(), input })
}

fn result(id: &str, text: &str, is_error: bool) -> ToolResult {
    let status = if is_error { ToolStatus::Skipped } else { ToolStatus::Completed };
    ToolResult {
        id: CallId::new(id),
        name: "read".into(),
        status,
        is_error,
        text: text.into(),
        messages: Arc::default(),
        cost: Default::default(),
    }
}

fn raw(json: &str) -> Opaque {
    Opaque(json.into())
}

const THINKING: &str = r#"{"type":"thinking","thinking":"Hm","signature":"Eq=="}"#;
const REASONING: &str = r#"{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"gA"}"#;
const SEARCH: &str = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#;

/// A conversation with everything in it.
fn conversation() -> Vec<Arc<Entry>> {
    let thinking = |text: &str, replay: Option<&str>| {
        Block::Thinking(Thinking { text: text.into(), replay: replay.map(raw) })
    };
    let partial = Partial {
        text: "never sent".into(),
        thinking: String::new(),
        reason: InterruptReason::MessageInterrupt,
        stream_run_id: 1,
        partial_tokens: 2,
        interrupted_at: Micros(0),
    };
    let reply = |blocks: Vec<Block>| Entry::Assistant(Reply { blocks, ..Reply::default() }.into());
    [
        user("Do \"it\".\n"),
        Entry::Interrupted(partial.into()),
        user("[User feedback: other]"),
        reply(vec![
            thinking("Hm", Some(THINKING)),
            thinking("", Some(REASONING)),
            thinking("unsigned", None),
            Block::Text("Calls.".into()),
            Block::Provider(raw(SEARCH)),
            call("t1", json!({"path": "é"})),
            call("t2", json!("{not json}")),
        ]),
        Entry::ToolResults {
            results: vec![
                result("t1", "fn main() {}", false),
                result("t2", "[Skipped: message received from lead before this ran]", true),
            ],
            mail: Some(Injected::prompt("[Message from lead: stop]")),
        },
        user("more"),
        reply(vec![Block::Text(" ".into()), thinking("last", Some(THINKING))]),
        user("go on"),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

fn tools() -> Vec<Arc<ToolSpec>> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: "Reads.".into(),
        input_schema: schema.clone(),
    };
    vec![Arc::new(spec("read")), Arc::new(spec("grep"))]
}

/// What servers are asked for the first `upto` entries of the conversation, for each of `uptos`.
async fn asked(model: &str, system: &str, uptos: &[usize], set: impl Fn(&mut Endpoint)) -> Vec<Value> {
    let all = conversation();
    let asks: Vec<_> = uptos.iter().map(|upto| (Purpose::Turn, all[..*upto].to_vec())).collect();
    asked_for(model, system, &asks, None, set).await
}

/// What servers are asked for these entries, one request after the other.
async fn asked_for(
    model: &str,
    system: &str,
    asks: &[(Purpose, Vec<Arc<Entry>>)],
    max_output: Option<u64>,
    set: impl Fn(&mut Endpoint),
) -> Vec<Value> {
    let refusals = asks.iter().map(|_| Answer::Whole("HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n".into()));
    let mut server = Server::start(refusals.collect::<Vec<_>>()).await;
    let mut config = Config::default();
    config.read_environment(|_| Ok::<_, Infallible>(Some("key".to_owned()))).unwrap();
    for endpoint in config.0.values_mut() {
        server.url.clone_into(&mut endpoint.base_url);
        set(endpoint);
    }
    let mut model = Providers::new(config).make(model).unwrap();
    let (tools, cancel) = (tools(), CancellationToken::new());
    let mut bodies = Vec::new();
    for (purpose, entries) in asks {
        let request = Request {
            messages: 1,
            purpose: *purpose,
            compactions: 0,
            max_output,
            agent_index: 0,
            call: 1,
            system,
            tools: if system.is_empty() { &[] } else { &tools },
            entries,
            cancel: &cancel,
            progress: &Silent,
        };
        assert!(model.call(request).await.is_err());
        bodies.push(server.asked.recv().await.unwrap().json());
    }
    bodies
}

async fn all(model: &str) -> Value {
    asked(model, "Be good.", &[8], |_| {}).await.remove(0)
}

#[tokio::test]
async fn anthropic_gets_results_first_then_text_in_one_user_message() {
    let cached = json!({"type": "ephemeral"});
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let expected = json!({
        "model": "m",
        "max_tokens": 32_000,
        "stream": true,
        "system": [{"type": "text", "text": "Be good.", "cache_control": cached}],
        "tools": [
            {"name": "read", "description": "Reads.", "input_schema": schema},
            {"name": "grep", "description": "Reads.", "input_schema": schema},
        ],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Do \"it\".\n"},
                {"type": "text", "text": "[User feedback: other]", "cache_control": cached},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "Eq=="},
                {"type": "text", "text": "Calls."},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "é"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"invalid_json": "{not json}"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "fn main() {}"},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
                 "content": "[Skipped: message received from lead before this ran]"},
                {"type": "text", "text": "[Message from lead: stop]"},
                {"type": "text", "text": "more"},
                {"type": "text", "text": "go on", "cache_control": cached},
            ]},
        ],
    });
    assert_eq!(all("anthropic/m").await, expected);
}

#[tokio::test]
async fn chat_gets_a_tool_message_for_each_result_then_one_user_message() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let function = |name: &str| json!({"name": name, "description": "Reads.", "parameters": schema});
    let expected = json!({
        "model": "m",
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [
            {"type": "function", "function": function("read")},
            {"type": "function", "function": function("grep")},
        ],
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "Do \"it\".\n\n\n[User feedback: other]"},
            {"role": "assistant", "content": "Calls.", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"é\"}"}},
                {"id": "t2", "type": "function",
                 "function": {"name": "read", "arguments": "{\"invalid_json\":\"{not json}\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "fn main() {}"},
            {"role": "tool", "tool_call_id": "t2",
             "content": "[Skipped: message received from lead before this ran]"},
            {"role": "user", "content": "[Message from lead: stop]\n\nmore"},
            {"role": "assistant", "content": " "},
            {"role": "user", "content": "go on"},
        ],
    });
    assert_eq!(all("openai-chat/m").await, expected);
}

#[tokio::test]
async fn responses_gets_items_and_its_reasoning_back_verbatim() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = |name: &str| json!({"type": "function", "name": name, "description": "Reads.", "parameters": schema, "strict": false});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let expected = json!({
        "model": "m",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be good.",
        "tools": [tool("read"), tool("grep")],
        "input": [
            {"type": "message", "role": "user", "content": [text("Do \"it\".\n"), text("[User feedback: other]")]},
            serde_json::from_str::<Value>(REASONING).unwrap(),
            said("Calls."),
            {"type": "function_call", "call_id": "t1", "name": "read", "arguments": "{\"path\":\"é\"}"},
            {"type": "function_call", "call_id": "t2", "name": "read",
             "arguments": "{\"invalid_json\":\"{not json}\"}"},
            {"type": "function_call_output", "call_id": "t1", "output": "fn main() {}"},
            {"type": "function_call_output", "call_id": "t2",
             "output": "[Skipped: message received from lead before this ran]"},
            {"type": "message", "role": "user", "content": [text("[Message from lead: stop]"), text("more")]},
            said(" "),
            {"type": "message", "role": "user", "content": [text("go on")]},
        ],
    });
    assert_eq!(all("openai/m").await, expected);
}

#[tokio::test]
async fn without_system_and_tools_their_fields_are_left_out() {
    for model in ["anthropic/m", "openai-chat/m", "openai/m"] {
        let body = asked(model, "", &[1], |_| {}).await.remove(0);
        for field in ["system", "tools", "instructions"] {
            assert_eq!(body.get(field), None, "{model}");
        }
        assert!(!body.to_string().contains("\"system\""));
    }
}

#[tokio::test]
async fn limits_and_thinking_are_asked_for_where_they_are_set() {
    let set = |endpoint: &mut Endpoint| {
        endpoint.max_output_tokens = Some(1_000);
        endpoint.thinking_budget = Some(2_000);
        endpoint.reasoning_effort = Some("low".into());
    };
    for (model, fields) in [
        (
            "anthropic/m",
            json!({"max_tokens": 6_096, "thinking": {"type": "enabled", "budget_tokens": 2_000}}),
        ),
        ("openai-chat/m", json!({"max_completion_tokens": 1_000, "reasoning_effort": "low"})),
        ("openai/m", json!({"max_output_tokens": 1_000, "reasoning": {"effort": "low"}})),
    ] {
        let body = asked(model, "", &[1], set).await.remove(0);
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&body[name], value, "{model}");
        }
    }
}

#[tokio::test]
async fn a_reply_has_no_more_tokens_than_a_budget_leaves() {
    let entries = conversation()[..1].to_vec();
    let set = |configured| {
        move |endpoint: &mut Endpoint| {
            endpoint.max_output_tokens = configured;
            endpoint.thinking_budget = Some(2_000);
        }
    };
    for (model, field, configured, left, expected) in [
        ("anthropic/m", "max_tokens", Some(8_000), Some(7_000), json!(7_000)),
        ("anthropic/m", "max_tokens", Some(8_000), Some(9_000), json!(8_000)),
        ("openai-chat/m", "max_completion_tokens", Some(8_000), Some(1_024), json!(1_024)),
        ("openai-chat/m", "max_completion_tokens", None, Some(1_024), json!(1_024)),
        ("openai/m", "max_output_tokens", None, Some(1_024), json!(1_024)),
        ("openai/m", "max_output_tokens", None, None, Value::Null),
    ] {
        let asks = [(Purpose::Turn, entries.clone())];
        let body = asked_for(model, "", &asks, left, set(configured)).await.remove(0);
        assert_eq!(body[field], expected, "{model} {configured:?} {left:?}");
    }
    // There is no room for thinking and an answer both.
    let asks = [(Purpose::Turn, entries)];
    let body = asked_for("anthropic/m", "", &asks, Some(3_000), set(None)).await.remove(0);
    assert_eq!((&body["max_tokens"], body.get("thinking")), (&json!(3_000), None));
}

/// The blocks of all messages, without cache markers; strings of a chat are blocks, too.
fn blocks(body: &Value) -> Vec<String> {
    let messages = body.get("messages").or_else(|| body.get("input")).unwrap().as_array().unwrap();
    let mut blocks = Vec::new();
    for message in messages {
        match message["content"].as_array() {
            Some(parts) => blocks.extend(parts.iter().cloned().map(|mut part| {
                part.as_object_mut().unwrap().remove("cache_control");
                part.to_string()
            })),
            None => blocks.push(message.to_string()),
        }
    }
    blocks
}

#[tokio::test]
async fn the_blocks_of_a_request_are_a_prefix_of_the_next_one_s() {
    for model in ["anthropic/m", "openai/m", "openai-chat/m"] {
        let bodies = asked(model, "Be good.", &[1, 3, 5, 6, 8], |_| {}).await;
        for pair in bodies.windows(2) {
            let (before, after) = (blocks(&pair[0]), blocks(&pair[1]));
            assert!(after.len() >= before.len());
            for (n, (old, new)) in before.iter().zip(&after).enumerate() {
                // A chat's last string grows when its neighbour joins it.
                let grown = n + 1 == before.len() && new.starts_with(old.trim_end_matches(['"', '}', ',']));
                let joined = model == "openai-chat/m" && (grown || new.contains(r"\n\n"));
                assert!(old == new || joined, "{model}: {old} became {new}");
            }
        }
    }
}

#[tokio::test]
async fn after_a_compaction_all_is_encoded_anew_and_grows_from_there() {
    let all = conversation();
    let with = |first: &str, rest: &[Arc<Entry>]| [&[Arc::new(user(first))], rest].concat();
    let summary = [&all[..5], &[Arc::new(user("[Write a summary]"))]].concat();
    let compacted = with("[Summary: read it]", &all[5..]);
    let grown = [compacted.as_slice(), &[Arc::new(user("and on"))]].concat();
    let turn = |entries: &[Arc<Entry>]| (Purpose::Turn, entries.to_vec());
    let asks = [turn(&all[..5]), (Purpose::Summary, summary), turn(&all), turn(&compacted), turn(&grown)];
    for model in ["anthropic/m", "openai/m", "openai-chat/m"] {
        let bodies = asked_for(model, "Be good.", &asks, None, |_| {}).await;
        for (ask, body) in asks.iter().zip(&bodies) {
            let alone = asked_for(model, "Be good.", std::slice::from_ref(ask), None, |_| {}).await.remove(0);
            assert_eq!(*body, alone, "{model}: what was sent before shows");
            let choice = body.get("tool_choice");
            let none = match model {
                "anthropic/m" => json!({"type": "none"}),
                _ => json!("none"),
            };
            assert_eq!(choice, (ask.0 == Purpose::Summary).then_some(&none), "{model}");
            assert!(body.get("tools").is_some(), "{model}: calls in the conversation need their tools");
        }
        assert!(!bodies[3].to_string().contains("fn main"), "{model}");
        let (before, after) = (blocks(&bodies[3]), blocks(&bodies[4]));
        assert_eq!(before[..before.len() - 1], after[..before.len() - 1], "{model}");
    }
}

#[tokio::test]
async fn at_most_four_cache_markers_the_youngest_on_the_last_user_messages() {
    for body in asked("anthropic/m", "Be good.", &[1, 3, 5, 8], |_| {}).await {
        assert!(body.to_string().matches("cache_control").count() <= 4);
        let last = body["messages"].as_array().unwrap().last().unwrap();
        assert!(last["content"].as_array().unwrap().last().unwrap().get("cache_control").is_some());
    }
}
