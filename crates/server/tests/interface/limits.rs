//! Limits are raised and lowered over the wire.

use std::num::NonZeroU32;

use midturn_core::rules::mail::Sender;
use midturn_server::{Bounds, Host, Rate, Token, Tokens};
use serde_json::{Value, json};

use crate::support::{Rig, name, scripts};

const LEAD: &str = "/v1/sessions/s1/agents/lead";
const OF_LEAD: &str = "/v1/sessions/s1/agents/lead/limits";
const OF_ALL: &str = "/v1/sessions/s1/limits";

/// One more turn of the lead.
async fn turn(rig: &Rig, id: &str) {
    let body = json!({"text": "go on", "id": id}).to_string();
    assert_eq!(rig.post(&format!("{LEAD}/messages"), &body).await.status, 202, "{id}");
    let waited = rig.get(&format!("/v1/sessions/s1/messages/{id}/wait?timeout=1m")).await.json();
    assert_eq!(waited["reached"], true, "{waited}");
    rig.host.find("s1").unwrap().coordinator.quiet().await;
}

async fn limit_of(rig: &Rig, agent: &str) -> Value {
    rig.get(&format!("/v1/sessions/s1/agents/{agent}")).await.json()["limit"].clone()
}

#[tokio::test]
async fn an_agent_at_its_limit_is_raised_and_takes_mail_again() {
    let rig = Rig::start().await;
    let set = rig.post(OF_LEAD, r#"{"max_turns": 2}"#).await;
    assert_eq!((set.status, &set.json()["name"]), (200, &json!("lead")));
    turn(&rig, "one").await;
    assert_eq!(limit_of(&rig, "lead").await, Value::Null);
    turn(&rig, "two").await;
    assert_eq!(limit_of(&rig, "lead").await, "max_turns");
    let refused = rig.post(&format!("{LEAD}/messages"), r#"{"text": "more"}"#).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "limit"));
    let below = rig.post(OF_LEAD, r#"{"max_turns": 1, "max_tokens": 0}"#).await;
    assert_eq!((below.status, below.code().as_str()), (409, "below_spent"));
    assert!(below.json()["detail"].as_str().unwrap().contains("spent: 2"), "{}", below.json());
    assert_eq!(rig.post(OF_LEAD, r#"{"max_cost": "2.50"}"#).await.json()["limit"], "max_turns");
    let raised = rig.post(OF_LEAD, r#"{"max_turns": 3, "max_time": "1h", "max_tokens": 0}"#).await;
    assert_eq!((raised.status, raised.json().get("limit")), (200, None));
    turn(&rig, "three").await;
    assert_eq!(limit_of(&rig, "lead").await, "max_turns");
}

#[tokio::test]
async fn a_sessions_limit_is_every_resting_agents() {
    let rig = Rig::start().await;
    let set = rig.post(OF_ALL, r#"{"max_turns": 1}"#).await;
    assert_eq!((set.status, &set.json()["session"]), (200, &json!("s1")));
    turn(&rig, "one").await;
    for agent in ["lead", "worker"] {
        assert_eq!(limit_of(&rig, agent).await, "session.max_turns");
        let path = format!("/v1/sessions/s1/agents/{agent}/messages");
        let refused = rig.post(&path, r#"{"text": "more"}"#).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "limit"), "{agent}");
    }
    // Only the session's own is lifted by that.
    assert_eq!(rig.post(OF_LEAD, r#"{"max_turns": 9}"#).await.json()["limit"], "session.max_turns");
    assert_eq!(rig.post(OF_ALL, r#"{"max_turns": 0}"#).await.status, 200);
    assert_eq!(limit_of(&rig, "worker").await, Value::Null);
    turn(&rig, "two").await;
}

#[tokio::test]
async fn what_is_raised_is_told_with_what_was_set() {
    let rig = Rig::start().await;
    let mut events = rig.events("/v1/sessions/s1/events?after=0", "").await;
    rig.post(OF_LEAD, r#"{"max_cost": "2.5", "max_time": "90s"}"#).await;
    rig.post(OF_ALL, r#"{"max_tokens": 5000}"#).await;
    let mut raised = Vec::new();
    while raised.len() < 2 {
        let told = events.told().await.unwrap();
        if told.name == "limit_raised" {
            raised.push(told.json());
        }
    }
    let [of_lead, of_all] = [&raised[0], &raised[1]];
    assert_eq!((&of_lead["agent"], &of_lead["by"]), (&json!("lead"), &json!("user")));
    assert_eq!(of_lead["limits"], json!({"max_cost": "2.50", "max_time": "90s"}));
    assert_eq!((of_all.get("agent"), &of_all["limits"]), (None, &json!({"max_tokens": 5000})));
}

#[tokio::test]
async fn only_a_person_sets_limits() {
    let (user, agent) = (Token::random().unwrap(), Token::random().unwrap());
    let holders = [(user.clone(), Sender::User), (agent.clone(), Sender::Agent(name("worker")))];
    let often = NonZeroU32::new(1_000).unwrap();
    let tokens = Tokens::new(holders, Rate { per_second: often, burst: often });
    let rig = Rig::of(Bounds::default(), scripts(), user, tokens).await;
    for path in [OF_LEAD, OF_ALL] {
        let request = rig.posting(path, r#"{"max_turns": 5}"#);
        let request = request.replace(rig.token.secret(), agent.secret());
        let refused = rig.connect().await.ask(request.as_bytes()).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "not_allowed"), "{path}");
    }
}
