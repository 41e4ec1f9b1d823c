//! One sender to 10,000 mailboxes of agents that don't run. Ours finds each by its name; the
//! alternative has the handles at hand. What is taken out between two rounds is not counted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::{Coordinator, Message};
use midturn_core::rules::mail::{Mail, Relation, Sender, Urgency};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{Case, Row, cpu, fleet, queue};

const AGENTS: u32 = 10_000;

/// A step that reaches all of them in an order that no cache foresees.
const STEP: u32 = 7_919;

pub fn row() -> Row {
    Row {
        name: "one sender to 10,000 mailboxes",
        target: Some((1.0, "tokio unbounded, by handle")),
        per_round: u64::from(AGENTS) * 3,
        countable: false,
        cases: vec![ours(), tokio_by_handle(), tokio_by_name(), whole_send()],
    }
}

fn scattered() -> impl Iterator<Item = u32> {
    (0..AGENTS).map(|i| i * STEP % AGENTS)
}

fn names() -> Vec<String> {
    scattered().map(|i| format!("agent-{i}")).collect()
}

/// Agents with a name and no model: nobody wakes them, so what is sent stays queued.
fn agents(runtime: &Runtime) -> Coordinator {
    runtime.block_on(async {
        let coordinator = fleet::idle().await;
        for i in 0..AGENTS {
            coordinator.spawn_agent(fleet::name_only(i)).await.unwrap();
        }
        coordinator
    })
}

/// Sends `n` in rounds over all receivers, and empties them after each.
fn in_rounds(n: u64, mut send: impl FnMut(usize), mut empty: impl FnMut()) -> Duration {
    let mut used = Duration::ZERO;
    let mut left = usize::try_from(n).unwrap();
    while left > 0 {
        let round = left.min(AGENTS as usize);
        used += cpu::measure(|| (0..round).for_each(&mut send));
        empty();
        left -= round;
    }
    used
}

fn ours() -> Case {
    let runtime = fleet::runtime();
    let coordinator = agents(&runtime);
    let (names, mail) = (names(), queue::mail(Urgency::AfterTools));
    let settings = fleet::settings();
    Case::measured("mailbox, by name", move |n| {
        let send = |i: usize| {
            let pushed = coordinator.with_mailbox(&names[i], |mailbox| {
                mailbox.has_room(&mail.from, &mail.to, mail.text.len(), &settings).unwrap();
                mailbox.push(black_box(mail.clone()), Relation::Person)
            });
            assert!(black_box(pushed).is_some());
        };
        in_rounds(n, send, || empty_all(&coordinator, &names))
    })
}

fn empty_all(coordinator: &Coordinator, names: &[String]) {
    for name in names {
        coordinator.with_mailbox(name, |mailbox| mailbox.take(Urgency::FollowUp));
    }
}

type Sends = UnboundedSender<Arc<Mail>>;
type Receives = UnboundedReceiver<Arc<Mail>>;

/// Both ends, in the order in which they are sent to.
fn channels() -> (Vec<Sends>, Vec<Receives>) {
    let mut channels: Vec<Option<(Sends, Receives)>> =
        (0..AGENTS).map(|_| Some(mpsc::unbounded_channel())).collect();
    scattered().filter_map(|i| channels[i as usize].take()).unzip()
}

fn tokio_by_handle() -> Case {
    let (senders, mut receivers) = channels();
    let mail = queue::mail(Urgency::AfterTools);
    Case::measured("tokio unbounded, by handle", move |n| {
        let send = |i: usize| senders[i].send(black_box(mail.clone())).unwrap();
        in_rounds(n, send, || receivers.iter_mut().for_each(|receiver| while receiver.try_recv().is_ok() {}))
    })
}

fn tokio_by_name() -> Case {
    let (senders, mut receivers) = channels();
    let names = names();
    let map: HashMap<String, Sends> = names.iter().cloned().zip(senders).collect();
    let mail = queue::mail(Urgency::AfterTools);
    Case::measured("tokio unbounded, by name in a HashMap", move |n| {
        let send = |i: usize| map[&names[i]].send(black_box(mail.clone())).unwrap();
        in_rounds(n, send, || receivers.iter_mut().for_each(|receiver| while receiver.try_recv().is_ok() {}))
    })
}

/// For scale: the whole way, with the id, the checks, the record, the event and the receipt.
/// What was sent is withdrawn afterwards, so that no more receipts are open than messages.
fn whole_send() -> Case {
    let runtime = fleet::runtime();
    let coordinator = agents(&runtime);
    let names = names();
    let sent = RefCell::new(Vec::with_capacity(AGENTS as usize));
    Case::measured("the whole send, receipt and record included", move |n| {
        let send = |i: usize| {
            let message = Message::new(Sender::User, names[i].as_str(), "Use the new name.");
            sent.borrow_mut().push(runtime.block_on(coordinator.send(message)).unwrap());
        };
        let withdraw = || {
            for receipt in sent.borrow_mut().drain(..) {
                let taken = runtime.block_on(coordinator.withdraw(&Sender::User, &receipt.id));
                assert_eq!(taken.ok(), Some(1));
            }
        };
        in_rounds(n, send, withdraw)
    })
}
