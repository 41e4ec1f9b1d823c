//! One message in and out again, on one thread: the mailbox alone, with its bounds, ids and
//! urgency, without store and receipt. All carry the same message, made beforehand.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atomic_waker::AtomicWaker;
use midturn_core::engine::Mailbox;
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{Mail, MailKind, Relation, Sender, Urgency};
use midturn_core::rules::settings::Settings;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{Case, Row, cpu};

/// A message as it is once it is accepted.
pub fn mail(urgency: Urgency) -> Arc<Mail> {
    Arc::new(Mail {
        id: MessageId::new("auto-1"),
        from: Sender::User,
        to: AgentName::new("worker").unwrap(),
        text: "Stop: use the new name `load`, not `open`.".into(),
        urgency,
        kind: MailKind::Words,
        only_run: None,
        expires_at: None,
    })
}

pub fn row() -> Row {
    Row {
        name: "a message in and out, one thread",
        target: Some((0.6, "tokio unbounded, awaited")),
        per_round: 20_000,
        countable: true,
        cases: vec![ours(), by_hand(), tokio_unbounded(), tokio_awaited(), flume_unbounded()],
    }
}

fn ours() -> Case {
    let mailbox = Mailbox::default();
    assert!(mailbox.prompt());
    let (mail, settings) = (mail(Urgency::AfterTools), Settings::default());
    Case::plain("the mailbox", move || {
        let room = mailbox.has_room(&mail.from, &mail.to, mail.text.len(), &settings);
        assert!(room.is_ok());
        mailbox.push(black_box(mail.clone()), Relation::Person);
        let taken = mailbox.take(Urgency::FollowUp);
        assert_eq!(taken.len(), 1);
        taken
    })
}

/// The least that can wake a sleeper and lose nothing; it knows no bound and no urgency.
fn by_hand() -> Case {
    let (flag, queue, waker) = (AtomicBool::new(false), Mutex::new(VecDeque::new()), AtomicWaker::new());
    let mail = mail(Urgency::AfterTools);
    Case::plain("flag, deque and AtomicWaker", move || {
        queue.lock().push_back(black_box(mail.clone()));
        flag.store(true, Ordering::Release);
        waker.wake();
        let taken = if flag.swap(false, Ordering::Acquire) { queue.lock().pop_front() } else { None };
        assert!(taken.is_some());
        taken
    })
}

fn tokio_unbounded() -> Case {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mail = mail(Urgency::AfterTools);
    Case::plain("tokio unbounded", move || {
        sender.send(black_box(mail.clone())).unwrap();
        receiver.try_recv().unwrap()
    })
}

fn tokio_awaited() -> Case {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mail = mail(Urgency::AfterTools);
    Case::measured("tokio unbounded, awaited", move |n| {
        cpu::measure(|| {
            runtime.block_on(async {
                for _ in 0..n {
                    sender.send(black_box(mail.clone())).unwrap();
                    black_box(receiver.recv().await);
                }
            });
        })
    })
}

fn flume_unbounded() -> Case {
    let (sender, receiver) = flume::unbounded();
    let mail = mail(Urgency::AfterTools);
    Case::plain("flume unbounded", move || {
        sender.send(black_box(mail.clone())).unwrap();
        receiver.try_recv().unwrap()
    })
}
