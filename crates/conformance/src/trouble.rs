//! Claims about a store that fails for a while (semantics.md, section 7; A16, E2).

use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::archive::Rows;
use midturn_core::engine::ports::{Archive, Store, StoreError};
use midturn_core::rules::id::SessionId;
use tokio::task::JoinHandle;

use super::Faulty;
use super::maker::*;

/// Needs room on a disk.
fn large(text: &str) -> Arc<midturn_core::engine::ports::Transaction> {
    rows(vec![said("lead", &format!("{text}{}", "x".repeat(20_000)))])
}

/// The conversation, without what makes it large.
async fn said_in(archive: &dyn Archive, session: &SessionId) -> Vec<String> {
    let page = archive.conversation(session, &name("lead"), Rows::After(0), 10_000).await.unwrap();
    page.into_iter().map(|row| row.content.trim_end_matches('x').to_owned()).collect()
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut again = tokio::time::interval(Duration::from_millis(2));
    let waits = async {
        while !is_so() {
            again.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Somebody waits for each of these.
fn numbered(store: &dyn Store, from: usize, to: usize) -> Vec<JoinHandle<Result<(), StoreError>>> {
    (from..to).map(|n| tokio::spawn(store.submit(large(&n.to_string())))).collect()
}

fn numbers(to: usize) -> Vec<String> {
    (0..to).map(|n| n.to_string()).collect()
}

/// A16: what was accepted stays, in its order and once; who asks hears at once that it is waited for.
pub(crate) async fn a_store_that_fails_is_waited_for(place: &dyn Faulty) {
    let archive = place.open(Duration::from_secs(60)).await;
    let (one, two) = (session("one"), session("two"));
    let stores = [archive.begin(one.clone()).await.unwrap(), archive.begin(two.clone()).await.unwrap()];
    for store in &stores {
        store.submit(large("0")).await.unwrap();
    }
    assert_eq!(stores[0].trouble(), None);
    place.fail().await;
    let mut commits = numbered(&*stores[0], 1, 4);
    until("the store says that it fails", || stores[0].trouble().is_some()).await;
    let trouble = stores[1].trouble().unwrap();
    assert!(trouble.starts_with("it is being waited for, so try again in a moment: "), "{trouble}");
    // The other session's wait behind it, and whoever begins one now hears why it can't be.
    commits.extend(numbered(&*stores[1], 1, 4));
    commits.extend(numbered(&*stores[0], 4, 7));
    let refused = archive.begin(session("three")).await.err().unwrap();
    assert!(refused.to_string().contains("waited for"), "{refused}");
    place.mend().await;
    for commit in commits {
        commit.await.unwrap().unwrap();
    }
    assert_eq!(said_in(&*archive, &one.id).await, numbers(7));
    assert_eq!(said_in(&*archive, &two.id).await, numbers(4));
    assert_eq!(stores[0].trouble(), None, "mail is accepted again");
    archive.begin(session("three")).await.unwrap();
    stores[1].submit(large("4")).await.unwrap();
    archive.close().await;
}

/// E2: after its patience whoever waits is told. A session of which nothing was refused goes on by
/// itself, the others once they are taken up.
pub(crate) async fn a_session_whose_store_failed_for_too_long_is_taken_up_again(place: &dyn Faulty) {
    let archive = place.open(Duration::ZERO).await;
    let (one, two) = (session("one"), session("two"));
    let store = archive.begin(one.clone()).await.unwrap();
    let other = archive.begin(two.clone()).await.unwrap();
    store.submit(large("0")).await.unwrap();
    place.fail().await;
    let commits = numbered(&*store, 1, 3);
    let mut told = Vec::new();
    for commit in commits {
        told.push(commit.await.unwrap().unwrap_err());
    }
    let text = told[0].to_string();
    assert!(text.contains("then resume the session"), "{text}");
    assert!(told.iter().all(|error| matches!(error, StoreError::Failed(_))), "{told:?}");
    place.mend().await;
    until("the store is well", || other.trouble().is_none()).await;
    assert_eq!(store.submit(large("never")).await, Err(told[0].clone()), "the first reason stands");
    other.submit(large("0")).await.unwrap();
    let taken = archive.take_up(&one.id).await.unwrap().unwrap();
    assert_eq!(taken.epoch, 2);
    taken.store.submit(large("1")).await.unwrap();
    assert_eq!(said_in(&*archive, &one.id).await, numbers(2));
    assert_eq!(said_in(&*archive, &two.id).await, numbers(1));
    archive.close().await;
}

/// Who closes a store that fails is not kept waiting.
pub(crate) async fn a_store_that_is_closed_is_not_waited_for(place: &dyn Faulty) {
    let archive = place.open(Duration::from_secs(3_600)).await;
    let store = archive.begin(session("s")).await.unwrap();
    place.fail().await;
    let commits = numbered(&*store, 0, 3);
    until("the store says that it fails", || store.trouble().is_some()).await;
    archive.close().await;
    for commit in commits {
        commit.await.unwrap().unwrap_err();
    }
    place.mend().await;
}
