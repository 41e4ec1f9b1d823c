//! PostgreSQL: the suite, and what only a database that many share can show.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_conformance::maker::*;
use midturn_conformance::{Faulty, Place, SUITE, TROUBLES};
use midturn_core::engine::ports::archive::Rows;
use midturn_core::engine::ports::{Archive, Commit, StoreError, Transaction};
use midturn_store::{OpenError, open_postgres};
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::formats::{VERSION_1, version_1};
use super::proxy::Proxy;
use super::server::{Server, url};

struct Database(String);

#[async_trait]
impl Place for Database {
    async fn open(&self) -> Arc<dyn Archive> {
        Arc::new(open_postgres(&self.0).await.unwrap())
    }
}

/// A new database.
async fn database(server: &Server, name: &str) -> Database {
    let mut connection = PgConnection::connect(&server.url("postgres")).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
    connection.execute(sqlx::query(create)).await.unwrap();
    Database(server.url(name))
}

#[tokio::test]
async fn every_claim_of_the_suite_holds_of_postgres() {
    let Some(server) = Server::start() else { return };
    for (n, claim) in SUITE.iter().enumerate() {
        claim.holds(&database(&server, &format!("claim{n}")).await).await;
    }
    println!("what is special about PostgreSQL");
    a_takeover_by_another_process_is_final(&database(&server, "takeover").await).await;
    a_restarted_connection_is_made_anew(&database(&server, "restart").await).await;
    a_newer_database_is_refused(&database(&server, "newer").await).await;
    two_that_start_at_once_make_the_tables_once(&database(&server, "twice").await).await;
    a_commit_is_written_once_wherever_the_line_is_cut(&server).await;
    for (n, claim) in TROUBLES.iter().enumerate() {
        let name = format!("trouble{n}");
        database(&server, &name).await;
        claim.holds(&Restarted { server: &server, name }).await;
    }
    let old = database(&server, "version1").await;
    let mut other = PgConnection::connect(&old.0).await.unwrap();
    for statements in VERSION_1[1] {
        other.execute(sqlx::raw_sql(statements)).await.unwrap();
    }
    version_1(&*old.open().await).await;
    let nobody = open_postgres(&server.url("no-such-database")).await.unwrap_err();
    assert!(matches!(nobody, OpenError::Unreachable { .. }), "{nobody}");
    drop(server);
}

/// A server that is stopped and started.
struct Restarted<'a> {
    server: &'a Server,
    name: String,
}

#[async_trait]
impl Faulty for Restarted<'_> {
    async fn open(&self, patience: Duration) -> Arc<dyn Archive> {
        let archive = open_postgres(&self.server.url(&self.name)).await.unwrap();
        archive.be_patient(patience);
        Arc::new(archive)
    }

    async fn fail(&self) {
        self.server.stop();
    }

    async fn mend(&self) {
        self.server.start_again();
    }
}

/// A16: the answer to a commit is lost, or the way there; either way it counts once.
async fn a_commit_is_written_once_wherever_the_line_is_cut(server: &Server) {
    let proxy = Proxy::to(server.port()).await;
    for (n, word) in [&b"COMMIT\0"[..], b"INSERT 0 ", b"BEGIN\0"].into_iter().enumerate() {
        let name = format!("cut{n}");
        database(server, &name).await;
        let archive = open_postgres(&url(proxy.port(), &name)).await.unwrap();
        let record = session("s");
        let store = archive.begin(record.clone()).await.unwrap();
        for kind in 0..3 {
            // Rows, events and agents are each known again by another key.
            proxy.cut_at(word);
            store.submit(of_a_kind(kind)).await.unwrap();
            assert!(proxy.was_cut(), "{word:?}");
            store.submit(rows(vec![said("lead", &kind.to_string())])).await.unwrap();
        }
        let page = archive
            .conversation(&record.id, &midturn_conformance::maker::name("lead"), Rows::After(0), 100)
            .await
            .unwrap();
        let said: Vec<_> = page.iter().map(|row| (row.seq, row.content.as_str())).collect();
        assert_eq!(said, [(1, "row"), (2, "0"), (3, "1"), (4, "2")], "{word:?}");
        let journal = archive.journal(&record.id).await.unwrap().unwrap();
        assert_eq!((journal.last_seq, journal.agents.len()), (2, 1), "{word:?}");
        archive.close().await;
    }
}

fn of_a_kind(kind: u32) -> Arc<Transaction> {
    match kind {
        0 => rows(vec![said("lead", "row")]),
        1 => events(vec![event(1, "lead", 1, 0, run_started()), event(2, "lead", 1, 1, model_started(1))]),
        _ => Arc::new(Transaction { agents: vec![agent(0, "lead")], ..Transaction::default() }),
    }
}

async fn a_takeover_by_another_process_is_final(place: &Database) {
    let (one, two) = (place.open().await, place.open().await);
    let record = session("s");
    let old = one.begin(record.clone()).await.unwrap();
    let mut commits = Vec::new();
    let mut taken = None;
    for n in 0..100 {
        commits.push(old.submit(rows(vec![said("lead", &n.to_string())])));
        if n == 50 {
            taken = two.take_up(&record.id).await.unwrap();
        }
    }
    let taken = taken.unwrap();
    assert_eq!(taken.epoch, 2);
    let counted = count(commits).await;
    let page = two.conversation(&record.id, &name("lead"), Rows::After(0), 1_000).await.unwrap();
    assert_eq!(page.len(), counted, "what was told durable is there, and nothing else");
    assert!(counted < 100);
    assert_eq!((one.stale_writes() > 0, two.stale_writes()), (true, 0));
    taken.store.submit(rows(vec![said("lead", "new")])).await.unwrap();
    assert_eq!(old.submit(rows(vec![said("lead", "old")])).await, Err(StoreError::Stale));
}

/// How many succeeded; none may after the first that did not.
async fn count(commits: Vec<Commit>) -> usize {
    let mut counted = Vec::new();
    for commit in commits {
        counted.push(commit.await);
    }
    let good = counted.iter().take_while(|result| result.is_ok()).count();
    assert!(counted[good..].iter().all(|result| *result == Err(StoreError::Stale)));
    good
}

async fn a_restarted_connection_is_made_anew(place: &Database) {
    let archive = place.open().await;
    let store = archive.begin(session("s")).await.unwrap();
    store.submit(rows(vec![said("lead", "one")])).await.unwrap();
    let mut other = PgConnection::connect(&place.0).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    other.execute(sqlx::query(end)).await.unwrap();
    store.submit(rows(vec![said("lead", "two")])).await.unwrap();
    let page = archive.conversation(&session("s").id, &name("lead"), Rows::After(0), 9).await.unwrap();
    assert_eq!(page.len(), 2);
}

async fn a_newer_database_is_refused(place: &Database) {
    place.open().await.close().await;
    let mut other = PgConnection::connect(&place.0).await.unwrap();
    other.execute(sqlx::query("INSERT INTO schema_version VALUES (99, 0)")).await.unwrap();
    let refused = open_postgres(&place.0).await.unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
}

async fn two_that_start_at_once_make_the_tables_once(place: &Database) {
    let (one, two) = tokio::join!(open_postgres(&place.0), open_postgres(&place.0));
    let archives: [Arc<dyn Archive>; 2] = [Arc::new(one.unwrap()), Arc::new(two.unwrap())];
    archives[0].begin(session("s")).await.unwrap();
    assert_eq!(archives[1].sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_and_no_password_is_told() {
    for url in ["postgres://u:secret@127.0.0.1:1/d", "postgres://u:secret@[broken/d?password=secret"] {
        let refused = open_postgres(url).await.unwrap_err();
        assert!(matches!(refused, OpenError::Unreachable { .. }), "{refused}");
        assert!(!format!("{refused} {refused:?}").contains("secret"), "{refused}");
    }
}
