//! As many commands run at once as there are slots, whichever agents and sessions they are of (docs/decisions/0054;
//! semantics.md, section 5: a call that waits for a slot has done nothing).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caller;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::*;
use midturn_core::engine::{ActivityKind, AgentSpec, Coordinator, Message, Slots, ToolSet};
use midturn_core::rules::conversation::{ToolStatus, ToolUse};
use midturn_core::rules::event::{Event, EventKind, Scope};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{Sender, Urgency};
use parking_lot::Mutex;
use tokio::sync::Notify;

use caller::Caller;

/// A command that runs until it is let go.
#[derive(Default)]
struct Hold {
    running: AtomicUsize,
    most: AtomicUsize,
    go: Notify,
}

struct HoldTool(Arc<Hold>);

#[async_trait]
impl Tool for HoldTool {
    fn spec(&self) -> Arc<ToolSpec> {
        let input_schema = serde_json::json!({});
        Arc::new(ToolSpec { name: "hold".into(), description: "".into(), input_schema })
    }

    fn traits(&self, _: &ToolUse) -> CallTraits {
        CallTraits::COMMAND
    }

    async fn call(&self, call: ToolCall) -> Returned {
        let running = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(running, Ordering::SeqCst);
        tokio::select! {
            () = self.0.go.notified() => {}
            () = call.cancel.cancelled() => {}
        }
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        Output::ok("held").into()
    }
}

/// Who started a call, and how each ended, in order.
#[derive(Default)]
struct Told(Mutex<Vec<(String, Option<ToolStatus>)>>);

impl Observer for Told {
    fn event(&self, event: &Event) {
        let agent = || event.at.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        match &event.kind {
            EventKind::ToolStarted { .. } => self.0.lock().push((agent(), None)),
            EventKind::ToolFinished { status, .. } => self.0.lock().push((agent(), Some(*status))),
            _ => {}
        }
    }
}

struct House {
    hold: Arc<Hold>,
    told: Arc<Told>,
    coordinator: Coordinator,
}

impl House {
    async fn new(slots: &Slots) -> Self {
        let (hold, told) = (Arc::<Hold>::default(), Arc::<Told>::default());
        let tools = ToolSet::new(vec![Arc::new(HoldTool(hold.clone()))]);
        let builder = Coordinator::builder(Arc::new(Caller("hold")), Arc::new(tools)).slots(slots.clone());
        let coordinator = builder.observer(told.clone()).start().await.unwrap();
        Self { hold, told, coordinator }
    }

    async fn spawn(&self, name: &str) {
        let spec = AgentSpec::new(AgentName::new(name).unwrap(), "caller");
        self.coordinator.spawn_agent(AgentSpec { prompt: Some("go".into()), ..spec }).await.unwrap();
    }

    /// Lets everything go on that can.
    async fn settles(&self) {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    fn waits(&self, name: &str) -> bool {
        let activity = self.coordinator.agent(name).unwrap().activity;
        activity.iter().any(|activity| matches!(activity.what, ActivityKind::Slot { .. }))
    }

    fn of(&self, name: &str) -> Vec<Option<ToolStatus>> {
        self.told.0.lock().iter().filter(|(agent, _)| agent == name).map(|(_, status)| *status).collect()
    }

    async fn says(&self, to: &str, urgency: Urgency) {
        let message = Message { urgency: Some(urgency), ..Message::new(Sender::User, to, "Look.") };
        self.coordinator.send(message).await.unwrap();
    }
}

const ENDED: [Option<ToolStatus>; 2] = [None, Some(ToolStatus::Completed)];

#[tokio::test]
async fn no_more_commands_run_than_there_are_slots_and_all_have_their_turn_in_order() {
    let house = House::new(&Slots::new(2)).await;
    let names: Vec<String> = (0..9).map(|n| format!("a{n}")).collect();
    for name in &names {
        house.spawn(name).await;
        house.settles().await;
    }
    assert_eq!(house.hold.running.load(Ordering::SeqCst), 2);
    assert_eq!(names.iter().filter(|name| house.waits(name)).count(), 7);
    for _ in &names {
        house.hold.go.notify_one();
        house.settles().await;
    }
    house.coordinator.quiet().await;
    assert_eq!(house.hold.most.load(Ordering::SeqCst), 2);
    let started = house
        .told
        .0
        .lock()
        .iter()
        .filter(|(_, status)| status.is_none())
        .map(|(name, _)| name.clone())
        .collect::<Vec<_>>();
    assert_eq!(started, names);
    assert!(names.iter().all(|name| house.of(name) == ENDED && !house.waits(name)));
}

#[tokio::test]
async fn what_waits_for_a_slot_is_skipped_by_an_urgent_message_and_a_stop_and_by_no_other() {
    let house = House::new(&Slots::new(1)).await;
    for name in ["first", "second", "third", "fourth"] {
        house.spawn(name).await;
        house.settles().await;
    }
    house.says("second", Urgency::NextBoundary).await;
    house.settles().await;
    assert!(house.waits("second") && house.of("second").is_empty(), "its segment is entered");
    house.says("third", Urgency::Urgent).await;
    house.coordinator.stop("fourth", Sender::User, Scope::Agent).await.unwrap();
    house.settles().await;
    for name in ["third", "fourth"] {
        assert_eq!(house.of(name), [Some(ToolStatus::Skipped)], "{name}");
        assert!(!house.waits(name), "{name}");
    }
    house.hold.go.notify_one();
    house.settles().await;
    house.hold.go.notify_one();
    house.coordinator.quiet().await;
    assert_eq!([house.of("first"), house.of("second")], [ENDED, ENDED]);
}

#[tokio::test]
async fn sessions_share_the_slots_of_a_process_and_who_rests_holds_none() {
    let slots = Slots::new(1);
    let (one, other) = (House::new(&slots).await, House::new(&slots).await);
    one.spawn("one").await;
    one.settles().await;
    other.spawn("other").await;
    other.settles().await;
    assert!(other.waits("other"));
    // It is cut while it holds the slot.
    one.says("one", Urgency::Urgent).await;
    one.coordinator.quiet().await;
    other.settles().await;
    assert_eq!(one.of("one"), [None, Some(ToolStatus::Interrupted)]);
    assert!(!other.waits("other") && other.hold.running.load(Ordering::SeqCst) == 1);
    other.hold.go.notify_one();
    other.coordinator.quiet().await;
    assert_eq!(other.of("other"), ENDED);
}
