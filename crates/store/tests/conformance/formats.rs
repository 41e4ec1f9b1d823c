//! What every released version kept is read (A17).

use midturn_conformance::maker::*;
use midturn_core::engine::ports::archive::Rows;
use midturn_core::engine::ports::{Archive, SessionJournal};
use midturn_core::rules::event::{EventKind, Halt};
use midturn_core::rules::id::{MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::settings::Settings;

/// What makes a store as version 1 left it, in SQLite and in PostgreSQL.
pub(crate) const VERSION_1: [[&str; 3]; 2] = [
    [include_str!("../../migrations/sqlite_1.sql"), MARKED, KEPT],
    [include_str!("../../migrations/postgres_1.sql"), MARKED, KEPT],
];

const MARKED: &str = "CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL); \
    INSERT INTO schema_version VALUES (1, 0)";

const KEPT: &str = include_str!("../formats/1.sql");

/// A17: a session that version 1 kept is as it was, its settings as far as they still mean something.
pub(crate) async fn version_1(archive: &dyn Archive) {
    let id = SessionId::new("0193-kept");
    let journal = archive.journal(&id).await.unwrap().unwrap();
    is_whole(&journal);
    let taken = archive.take_up(&id).await.unwrap().unwrap();
    assert_eq!((taken.epoch, &taken.journal), (2, &journal));
    taken.store.submit(rows(vec![said("lead", "on")])).await.unwrap();
    let known = taken.store.known(&Sender::User, &MessageId::new("m-1")).await.unwrap();
    assert_eq!(known.len(), 1);
    let events = archive.events(&id, None, Rows::After(0), 100).await.unwrap();
    let read = |json: &str| serde_json::from_str::<midturn_core::rules::event::Event>(json);
    assert!(events.iter().all(|event| read(&event.json).is_ok()), "whoever follows it reads all of it");
}

fn is_whole(journal: &SessionJournal) {
    let [lead, worker] = &journal.agents[..] else { panic!("{:?}", journal.agents) };
    let settings = Settings { max_turns: 40, ..Settings::default() };
    assert_eq!(*lead.record.settings, settings, "what is gone is ignored, what is missing is the default");
    assert_eq!(*worker.record.settings, Settings::default());
    assert_eq!((lead.stands.run, lead.stands.turns, lead.stands.calls, lead.rows.len()), (1, 2, 2, 5));
    let stop = lead.tail.last().map(|event| &event.kind);
    assert!(matches!(stop, Some(EventKind::StopRequested { reason: Halt::Stop, .. })), "{stop:?}");
    let (end, seq) = worker.last_end.as_ref().unwrap();
    assert_eq!((&*end.text, end.owed_to.as_ref(), *seq), ("Done.", Some(&name("lead")), 16));
    let states: Vec<_> = journal.mail.iter().map(|kept| kept.state.as_str()).collect();
    assert_eq!(states, ["injected", "returned", "queued"]);
    assert_eq!(journal.mail[2].state, ReceiptState::Queued);
    assert_eq!(journal.last_seq, 19);
}
