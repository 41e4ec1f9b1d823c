//! From an urgent message to the next line of the loop that waits for a tool in process. One
//! task is the loop: it arms a token, waits for the tool or the token, and goes round. The
//! other sends, and lets the loop run. Both are on one thread and are switched alike.

use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::Mailbox;
use midturn_core::rules::mail::{Relation, Urgency};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Case, Row, cpu, fleet, queue};

pub fn row() -> Row {
    Row {
        name: "urgent to the loop's next line",
        target: Some((1.2, "CancellationToken and select")),
        per_round: 10_000,
        countable: true,
        cases: vec![ours(), by_token()],
    }
}

/// The tool that the loop waits for; it never ends by itself.
fn tool() -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    oneshot::channel()
}

fn ours() -> Case {
    let runtime = fleet::runtime();
    let mail = queue::mail(Urgency::Urgent);
    Case::measured("urgent message in a mailbox", move |n| {
        let mailbox = Arc::new(Mailbox::default());
        assert!(mailbox.prompt());
        let looping = {
            let mailbox = mailbox.clone();
            async move {
                let (_keeps, mut tool) = tool();
                let run = mailbox.run_token();
                for _ in 0..n {
                    let work = run.child_token();
                    mailbox.arm(work.clone(), true);
                    tokio::select! {
                        biased;
                        _ = &mut tool => unreachable!("the tool never ends"),
                        () = work.cancelled() => {}
                    }
                    assert_eq!(mailbox.take(Urgency::AfterTools).len(), 1);
                }
            }
        };
        alternate(&runtime, n, looping, || {
            mailbox.push(mail.clone(), Relation::Person);
        })
    })
}

/// What one would write: a token and a message beside it.
fn by_token() -> Case {
    let runtime = fleet::runtime();
    let mail = queue::mail(Urgency::Urgent);
    Case::measured("CancellationToken and select", move |n| {
        let slot = Arc::new(Mutex::new((CancellationToken::new(), None)));
        let looping = {
            let slot = slot.clone();
            async move {
                let (_keeps, mut tool) = tool();
                let run = CancellationToken::new();
                for _ in 0..n {
                    let work = run.child_token();
                    slot.lock().0 = work.clone();
                    tokio::select! {
                        biased;
                        _ = &mut tool => unreachable!("the tool never ends"),
                        () = work.cancelled() => {}
                    }
                    assert!(slot.lock().1.take().is_some());
                }
            }
        };
        alternate(&runtime, n, looping, || {
            let mut slot = slot.lock();
            slot.1 = Some(mail.clone());
            slot.0.cancel();
        })
    })
}

fn alternate(
    runtime: &tokio::runtime::Runtime,
    n: u64,
    looping: impl Future<Output = ()> + Send + 'static,
    mut send: impl FnMut(),
) -> Duration {
    runtime.block_on(async {
        let looping = tokio::spawn(looping);
        tokio::task::yield_now().await;
        let before = cpu::used();
        for _ in 0..n {
            send();
            tokio::task::yield_now().await;
        }
        let used = cpu::used() - before;
        looping.await.unwrap();
        used
    })
}
