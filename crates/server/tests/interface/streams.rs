//! Event streams: nothing is missing, nothing comes twice, and nobody pays for the slow.

use std::sync::Arc;

use midturn_conformance::memory;
use midturn_core::engine::ports::{Archive, Observer};
use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{InterruptReason, ToolStatus, Usage};
use midturn_core::rules::event::{
    CallRef, Event, EventKind, Halt, LiveEvent, LiveKind, Outcome, Place, Scope, Trigger, VERSION,
};
use midturn_core::rules::id::{CallId, MessageId, SessionId};
use midturn_core::rules::mail::Point;
use midturn_core::rules::time::Micros;
use midturn_server::feed::{Follower, News, Retention};
use midturn_server::{Feed, Live};
use serde_json::{Value, json};

use crate::support::client::{Client, Told};
use crate::support::host::record;
use crate::support::{self, Rig, name};

/// A session `s2` whose events are told by the test.
struct Stage {
    rig: Rig,
    feed: Arc<Feed>,
    kept: Arc<memory::Kept>,
}

const EVENTS: &str = "/v1/sessions/s2/events";
const STREAM: &str = "/v1/sessions/s2/agents/worker/stream";

impl Stage {
    async fn keeping(retention: Retention) -> Self {
        let rig = Rig::start().await;
        let live = rig.host.live.lock()[0].clone();
        let feed = Arc::new(Feed::keeping(retention, Default::default()));
        let record = record("s2", "a stage");
        let kept = rig.archive.add(record.clone());
        rig.host.enter(Live { record, feed: feed.clone(), ..live });
        Self { rig, feed, kept }
    }

    async fn new() -> Self {
        Self::keeping(Retention::default()).await
    }

    /// Records an event and tells of it.
    fn tell(&self, agent: &str, kind: EventKind) {
        let seq = self.feed.last() + 1;
        let event = Event { v: VERSION, seq, t: Micros(seq), at: Place::of(&name(agent), 1, 1), kind };
        self.kept.event(&event);
        self.feed.event(&event);
    }

    /// Events of two agents in turn.
    fn tell_many(&self, count: usize) {
        for _ in 0..count {
            let agent = if self.feed.last().is_multiple_of(2) { "lead" } else { "worker" };
            self.tell(agent, model_started());
        }
    }

    fn say(&self, kind: LiveKind) {
        let at = Place::of(&name("worker"), 1, 1);
        let (seq, n) = (self.feed.last(), support::counted());
        self.feed.live(&LiveEvent { v: VERSION, seq, n, t: Micros(1), at, kind });
    }

    async fn from(&self, last: u64) -> Client {
        self.rig.events(EVENTS, &format!("Last-Event-ID: {last}\r\n")).await
    }
}

fn model_started() -> EventKind {
    EventKind::ModelStarted { call: 1, messages: 1, purpose: Purpose::Turn }
}

fn text(text: &str) -> LiveKind {
    LiveKind::TextDelta { text: text.to_owned() }
}

fn ids(told: &[Told]) -> Vec<u64> {
    told.iter().filter_map(|told| told.id).collect()
}

fn resync(last: u64) -> Told {
    Told { id: None, name: "resync".to_owned(), data: json!({"last": last}).to_string() }
}

#[tokio::test]
async fn a_client_goes_on_at_every_position_without_a_gap_or_a_double() {
    // The feed keeps 8 of 40: most positions begin in the archive.
    let stage = Stage::keeping(Retention { items: 8, bytes: 1 << 20 }).await;
    stage.tell_many(40);
    let mut clients = Vec::new();
    for last in 0..=40 {
        clients.push((last, stage.from(last).await));
    }
    let mut of_worker = stage.rig.events(&format!("{EVENTS}?agent=worker&after=3"), "").await;
    let mut from_query = stage.rig.events(&format!("{EVENTS}?after=11"), "").await;
    let mut header_wins = stage.rig.events(&format!("{EVENTS}?after=1"), "Last-Event-ID: 39\r\n").await;
    stage.tell_many(5);
    for (last, client) in &mut clients {
        let expected: Vec<u64> = (*last + 1..=45).collect();
        assert_eq!(ids(&client.next(expected.len()).await), expected, "after {last}");
    }
    assert_eq!(ids(&of_worker.next(21).await), (4..=44).step_by(2).collect::<Vec<u64>>());
    assert_eq!(ids(&from_query.next(34).await), (12..=45).collect::<Vec<u64>>());
    assert_eq!(ids(&header_wins.next(6).await), (40..=45).collect::<Vec<u64>>());
}

#[tokio::test]
async fn without_a_position_a_stream_begins_with_what_comes_next() {
    let stage = Stage::new().await;
    stage.tell_many(5);
    let mut client = stage.rig.events(EVENTS, "").await;
    stage.tell_many(2);
    let told = client.next(2).await;
    assert_eq!(ids(&told), [6, 7]);
    assert_eq!((told[0].name.as_str(), &told[0].json()["seq"]), ("model_started", &json!(6)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_join_while_events_come_miss_none_and_get_none_twice() {
    let stage = Arc::new(Stage::keeping(Retention { items: 64, bytes: 1 << 20 }).await);
    let teller = stage.clone();
    let told = tokio::spawn(async move {
        for _ in 0..400 {
            teller.tell_many(1);
            tokio::task::yield_now().await;
        }
    });
    let mut last = 0;
    // One client after the other, each goes on where the one before it left.
    for joins in 0..40 {
        let mut client = stage.from(last).await;
        let next = ids(&client.next(10).await);
        assert_eq!(next, (last + 1..=last + 10).collect::<Vec<u64>>(), "joined {joins}");
        last += 10;
    }
    told.await.unwrap();
}

#[tokio::test]
async fn what_can_t_be_resumed_says_resync_and_ends() {
    let stage = Stage::keeping(Retention { items: 8, bytes: 1 << 20 }).await;
    stage.tell_many(20);
    assert_eq!(stage.from(21).await.all().await, [resync(20)]);
    assert_eq!(stage.from(9_007_199_254_740_991).await.all().await, [resync(20)]);
    // Events that were told and are not in the archive.
    let lost = Arc::new(Feed::keeping(Retention { items: 4, bytes: 1 << 20 }, Default::default()));
    let live = stage.rig.host.live.lock()[0].clone();
    let record = record("s3", "lost");
    stage.rig.archive.add(record.clone());
    stage.rig.host.enter(Live { record, feed: lost.clone(), ..live });
    for seq in 1..=10 {
        let at = Place::of(&name("lead"), 1, 1);
        lost.event(&Event { v: VERSION, seq, t: Micros(seq), at, kind: model_started() });
    }
    let mut client = stage.rig.events("/v1/sessions/s3/events", "Last-Event-ID: 2\r\n").await;
    assert_eq!(client.all().await, [resync(10)]);
}

#[tokio::test]
async fn a_slow_client_is_told_to_resync_and_costs_nobody_else_anything() {
    let stage = Stage::keeping(Retention { items: 32, bytes: 1 << 20 }).await;
    let mut slow = stage.rig.events(EVENTS, "").await;
    let mut quick = stage.rig.events(EVENTS, "").await;
    let big = "x".repeat(64 * 1024);
    for n in 1..=100_u64 {
        let kind = EventKind::ModelInterrupted {
            reason: InterruptReason::Error,
            text: big.clone(),
            thinking: Vec::new(),
            partial_tokens: 0,
        };
        stage.tell("worker", kind);
        assert_eq!(quick.told().await.unwrap().id, Some(n));
    }
    let told = slow.all().await;
    let (end, before) = told.split_last().unwrap();
    assert_eq!(*end, resync(100));
    assert_eq!(ids(before), (1..=before.len() as u64).collect::<Vec<_>>(), "what it got has no gap");
    assert!(before.len() < 100, "it was slow");
    let mut back = stage.from(before.len() as u64).await;
    let rest = 100 - before.len();
    assert_eq!(ids(&back.next(rest).await).last(), Some(&100));
}

#[tokio::test]
async fn who_joins_a_reply_gets_what_was_said_so_far_in_one_piece() {
    let stage = Stage::new().await;
    stage.tell("worker", model_started());
    let mut early = stage.rig.events(EVENTS, "").await;
    for word in ["Once ", "upon ", "a "] {
        stage.say(text(word));
    }
    stage.say(LiveKind::ToolOutput { tool: CallId::new("t1"), text: "out".to_owned() });
    let mut late = stage.rig.events(EVENTS, "").await;
    let mut resumed = stage.from(0).await;
    let mut other = stage.rig.events(&format!("{EVENTS}?agent=lead"), "").await;
    let first = late.next(2).await;
    assert_eq!((first[0].name.as_str(), &first[0].json()["text"]), ("text_delta", &json!("Once upon a ")));
    assert_eq!((first[1].name.as_str(), &first[1].json()["tool"]), ("tool_output", &json!("t1")));
    assert_eq!(resumed.next(3).await[1..], first[..]);
    stage.say(text("time"));
    let pieces: Vec<Value> = early.next(5).await.iter().map(|told| told.json()["text"].clone()).collect();
    assert_eq!(pieces, ["Once ", "upon ", "a ", "out", "time"]);
    let next = late.told().await.unwrap();
    assert_eq!((next.id, &next.json()["text"], &next.json()["seq"]), (None, &json!("time"), &json!(1)));
    stage.tell("worker", finished("Once upon a time"));
    let mut after = stage.rig.events(EVENTS, "").await;
    stage.tell("lead", model_started());
    assert_eq!(after.told().await.unwrap().name, "tool_output", "the call goes on, the reply is whole");
    assert_eq!(after.told().await.unwrap().id, Some(3));
    assert_eq!(other.told().await.unwrap().id, Some(3));
}

#[tokio::test]
async fn who_joins_while_a_call_comes_hears_how_far_each_has_come_once() {
    let stage = Stage::new().await;
    stage.tell("worker", model_started());
    for (tool, bytes) in [("t1", 0), ("t1", 1_024), ("t2", 0), ("t1", 2_048)] {
        stage.say(LiveKind::CallDelta { tool: CallId::new(tool), name: "write".into(), bytes });
    }
    let mut late = stage.rig.events(EVENTS, "").await;
    let said: Vec<Value> = late.next(2).await.iter().map(Told::json).collect();
    let told = said.iter().map(|said| json!([said["type"], said["name"], said["tool"], said["bytes"]]));
    let last = [json!(["call_delta", "write", "t1", 2_048]), json!(["call_delta", "write", "t2", 0])];
    assert_eq!(told.collect::<Vec<_>>(), last);
}

fn finished(text: &str) -> EventKind {
    EventKind::ModelFinished {
        stop_reason: "tool_use".into(),
        usage: Usage::default(),
        text: text.to_owned(),
        thinking: Vec::new(),
        tools: vec![CallRef { id: CallId::new("t1"), name: "read".into(), input: serde_json::Value::Null }],
        purpose: Purpose::Turn,
    }
}

/// A run in all of seed 004's names.
fn whole_run() -> Vec<EventKind> {
    let call = || (CallId::new("t1"), "read".into());
    vec![
        EventKind::RunStarted { trigger: Trigger::Prompt },
        model_started(),
        finished("I read."),
        EventKind::ApprovalRequested {
            tool: call().0,
            name: call().1,
            input: json!({"path": "a"}),
            always: "read".into(),
        },
        EventKind::ApprovalResolved {
            tool: call().0,
            decision: Decision::Once,
            by: "user".to_owned(),
            reason: None,
        },
        EventKind::ToolStarted { tool: call().0, name: call().1, input: json!({"path": "a"}), batch: 1 },
        EventKind::ToolFinished {
            tool: call().0,
            name: call().1,
            status: ToolStatus::Interrupted,
            is_error: true,
            bytes: 3,
            output: "cut".to_owned(),
        },
        EventKind::MessageInjected {
            messages: vec![MessageId::new("m1")],
            point: Point::C,
            text: "[User feedback: no]".into(),
            skipped: Vec::new().into(),
            interrupted: Vec::new().into(),
        },
        EventKind::StopRequested {
            by: "user".to_owned(),
            scope: Scope::Agent,
            reason: Halt::Stop,
            still_queued: Vec::new(),
        },
        EventKind::ModelInterrupted {
            reason: InterruptReason::UserCancelled,
            text: "Then".to_owned(),
            thinking: Vec::new(),
            partial_tokens: 1,
        },
        EventKind::RunFinished { outcome: Outcome::Stopped, error: None, turns: 2, usage: Usage::default() },
    ]
}

#[tokio::test]
async fn the_stream_of_a_run_speaks_seed_004_s_names() {
    let stage = Stage::new().await;
    let mut client = stage.rig.events(STREAM, "").await;
    for kind in whole_run() {
        stage.tell("worker", kind);
        stage.tell("lead", model_started());
    }
    let mut told = Vec::new();
    while told.last().is_none_or(|told: &Told| told.name != "done") {
        told.push(client.told().await.unwrap());
    }
    let brief: Vec<(&str, Value)> = told.iter().map(|told| (told.name.as_str(), told.json())).collect();
    let expected = [
        ("text", json!({"stream_run_id": 1, "text": "I read."})),
        (
            "approval_requested",
            json!({"stream_run_id": 1, "id": "t1", "name": "read", "input": {"path": "a"}, "always": "read"}),
        ),
        ("approval_resolved", json!({"stream_run_id": 1, "id": "t1", "decision": "once", "by": "user"})),
        ("tool_call", json!({"stream_run_id": 1, "id": "t1", "name": "read", "input": {"path": "a"}})),
        (
            "tool_result",
            json!({"stream_run_id": 1, "id": "t1", "name": "read", "status": "interrupted", "output": "cut", "partial": true}),
        ),
        (
            "soft_interrupt_injected",
            json!({"stream_run_id": 1, "messages": ["m1"], "content": "no", "point": "C"}),
        ),
        ("text", json!({"stream_run_id": 1, "text": "Then"})),
        ("interrupted", json!({"stream_run_id": 1, "reason": "user_cancelled"})),
        ("done", json!({"stream_run_id": 1, "outcome": "stopped"})),
    ];
    assert_eq!(brief, expected);
    assert_eq!(ids(&told), [5, 7, 9, 11, 13, 15, 19, 21]);
    // The same again, from the archive's words.
    let mut again = stage.rig.events(STREAM, "Last-Event-ID: 0\r\n").await;
    assert_eq!(again.next(told.len()).await, told);
}

#[tokio::test]
async fn text_that_was_heard_piece_by_piece_is_not_told_again() {
    let stage = Stage::new().await;
    let mut client = stage.rig.events(STREAM, "").await;
    stage.tell("worker", model_started());
    stage.say(text("I "));
    stage.say(text("re"));
    stage.say(LiveKind::ThinkingDelta { text: "hm".to_owned() });
    stage.tell("worker", finished("I read."));
    stage.tell("worker", model_started());
    stage.say(text("All."));
    stage.tell("worker", finished("All."));
    stage.tell(
        "worker",
        EventKind::RunFinished {
            outcome: Outcome::Failed,
            error: Some("server".into()),
            turns: 2,
            usage: Usage::default(),
        },
    );
    let told = client.next(7).await;
    let texts: Vec<_> = told.iter().take(4).map(|told| told.json()["text"].clone()).collect();
    assert_eq!(texts, ["I ", "re", "ad.", "All."]);
    // The whole was heard: the client only moves on.
    assert_eq!(told[4], Told { id: Some(4), name: String::new(), data: String::new() });
    assert_eq!((told[5].name.as_str(), &told[5].json()["error"]), ("error", &json!("server")));
    assert_eq!((told[6].name.as_str(), &told[6].json()["outcome"]), ("done", &json!("failed")));
}

#[tokio::test]
async fn a_stop_while_tools_run_is_told_as_interrupted_with_its_reason() {
    for (by, reason) in [("user", "user_cancelled"), ("lead", "stopped_by_parent")] {
        let stage = Stage::new().await;
        let mut client = stage.rig.events(STREAM, "").await;
        stage.tell("worker", EventKind::RunStarted { trigger: Trigger::Prompt });
        let still_queued = Vec::new();
        stage.tell(
            "worker",
            EventKind::StopRequested {
                by: by.to_owned(),
                scope: Scope::Agent,
                reason: Halt::Stop,
                still_queued,
            },
        );
        let (outcome, usage) = (Outcome::Stopped, Usage::default());
        stage.tell("worker", EventKind::RunFinished { outcome, error: None, turns: 1, usage });
        let told = client.next(2).await;
        assert_eq!((told[0].name.as_str(), &told[0].json()["reason"]), ("interrupted", &json!(reason)));
        assert_eq!(told[1].name, "done");
    }
}

/// E6: an event is durable before it is told. Who has read it in the archive, of a session that was
/// just being taken up, comes back with its number, and must not be sent back behind it.
#[tokio::test]
async fn who_has_what_is_recorded_and_not_told_yet_waits_for_what_follows() {
    let stage = Stage::new().await;
    stage.tell_many(5);
    let next = |seq| Event {
        v: VERSION,
        seq,
        t: Micros(seq),
        at: Place::of(&name("lead"), 1, 1),
        kind: model_started(),
    };
    let (sixth, seventh) = (next(6), next(7));
    stage.kept.event(&sixth);
    let mut client = stage.from(6).await;
    stage.feed.event(&sixth);
    stage.kept.event(&seventh);
    stage.feed.event(&seventh);
    assert_eq!(ids(&client.next(1).await), [7]);
    assert_eq!(stage.from(8).await.all().await, [resync(7)], "what was never recorded is not waited for");
}

/// A11: whoever watches a session that is let go hears its end, and comes back by number.
#[tokio::test]
async fn when_a_session_is_let_go_its_readers_get_all_there_is_and_the_end() {
    let stage = Stage::new().await;
    assert!(!stage.feed.is_read());
    let mut early = stage.rig.events(EVENTS, "").await;
    assert!(stage.feed.is_read(), "a session that is watched is known to be");
    stage.tell_many(40);
    stage.feed.end();
    assert_eq!(ids(&early.all().await), (1..=40).collect::<Vec<u64>>());
    assert_eq!(ids(&stage.from(38).await.all().await), [39, 40], "who comes later, too");
}

fn json_of(news: &News) -> Option<Value> {
    match news {
        News::Event(json) | News::Delta(json) => Some(serde_json::from_slice(json).unwrap()),
        News::Rejoined => None,
    }
}

/// A1: who follows in the same process and is too slow for the ring misses no event: it reads them
/// in the archive, and of what is being said it hears all in one piece.
#[tokio::test]
async fn a_follower_that_is_slow_hears_every_event_and_what_is_being_said_in_one_piece() {
    let stage = Stage::keeping(Retention { items: 8, bytes: 1 << 20 }).await;
    let archive: Arc<dyn Archive> = stage.rig.archive.clone();
    let mut follower = Follower::new(stage.feed.clone(), archive, SessionId::new("s2"));
    stage.tell("worker", model_started());
    stage.say(text("Once "));
    assert_eq!(json_of(&follower.next().await.unwrap().unwrap()).unwrap()["seq"], 1);
    assert_eq!(json_of(&follower.next().await.unwrap().unwrap()).unwrap()["text"], "Once ");
    // More than the ring keeps, of another agent: the worker is still speaking.
    for _ in 0..100 {
        stage.tell("lead", model_started());
    }
    stage.say(text("upon "));
    stage.feed.end();
    let mut heard = Vec::new();
    while let Some(news) = follower.next().await.unwrap() {
        heard.push(json_of(&news));
    }
    let seqs = heard
        .iter()
        .flatten()
        .filter(|told| told.get("n").is_none())
        .map(|told| told["seq"].as_u64().unwrap());
    assert_eq!(seqs.collect::<Vec<_>>(), (2..=101).collect::<Vec<_>>());
    let [None, Some(said)] = &heard[heard.len() - 2..] else { panic!("{heard:?}") };
    assert_eq!(said["text"], "Once upon ");
}

/// A1: an archive that fails for a while is asked again; one that stays broken is said to be.
#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_an_archive_that_fails() {
    let stage = Stage::keeping(Retention { items: 4, bytes: 1 << 20 }).await;
    let archive: Arc<dyn Archive> = stage.rig.archive.clone();
    let mut follower = Follower::new(stage.feed.clone(), archive, SessionId::new("s2"));
    stage.tell_many(20);
    stage.rig.archive.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    {
        let mut next = std::pin::pin!(follower.next());
        let waited = tokio::time::timeout(std::time::Duration::from_secs(5), next.as_mut()).await;
        assert!(waited.is_err(), "it waits");
        stage.rig.archive.broken.store(false, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(json_of(&next.await.unwrap().unwrap()).unwrap()["seq"], 1);
    }
    for seq in 2..=20 {
        assert_eq!(json_of(&follower.next().await.unwrap().unwrap()).unwrap()["seq"], seq);
    }
    stage.tell_many(20);
    stage.rig.archive.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(follower.next().await.is_err());
}

#[tokio::test]
async fn at_the_end_of_the_process_clients_read_to_the_end() {
    let stage = Stage::new().await;
    let mut client = stage.rig.events(EVENTS, "").await;
    stage.tell_many(50);
    stage.rig.shutdown.cancel();
    assert_eq!(ids(&client.all().await), (1..=50).collect::<Vec<u64>>());
    let socket = stage.rig.socket.clone();
    stage.rig.end().await;
    assert!(!socket.exists(), "the socket's file is gone");
}
