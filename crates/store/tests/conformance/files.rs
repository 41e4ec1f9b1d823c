//! SQLite: the suite, and what can be wrong with a file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn_conformance::maker::*;
use midturn_conformance::{Faulty, Place, SUITE, TROUBLES};
use midturn_core::engine::ports::archive::Rows;
use midturn_core::engine::ports::{Archive, StoreError};
use midturn_core::rules::id::SessionId;
use midturn_store::{OpenError, OpenMode, open_sqlite};
use nix::unistd::{Gid, Uid, chown, geteuid, setfsgid, setfsuid};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tempfile::TempDir;

use super::formats::{VERSION_1, version_1};
use super::needs::{Need, has_for_a_part};

struct InFile(PathBuf);

#[async_trait]
impl Place for InFile {
    async fn open(&self) -> Arc<dyn Archive> {
        Arc::new(open_sqlite(&self.0, OpenMode::Write).await.unwrap())
    }
}

#[tokio::test]
async fn every_claim_of_the_suite_holds_of_sqlite() {
    for claim in SUITE {
        let folder = tempfile::tempdir().unwrap();
        claim.holds(&InFile(folder.path().join("store.db"))).await;
    }
}

/// A file that may have so many pages, and another program that fills them.
struct Filled(PathBuf);

#[async_trait]
impl Faulty for Filled {
    async fn open(&self, patience: Duration) -> Arc<dyn Archive> {
        let archive = open_sqlite(&self.0, OpenMode::WriteAtMost(600)).await.unwrap();
        archive.be_patient(patience);
        Arc::new(archive)
    }

    async fn fail(&self) {
        change(&self.0, "CREATE TABLE filler (a); INSERT INTO filler VALUES (zeroblob(1600000))").await;
    }

    async fn mend(&self) {
        change(&self.0, "DROP TABLE filler").await;
    }
}

#[tokio::test]
async fn a_disk_that_was_full_is_waited_for() {
    for claim in TROUBLES {
        let folder = tempfile::tempdir().unwrap();
        claim.holds(&Filled(folder.path().join("store.db"))).await;
    }
}

/// A folder with a closed store in it that has one line.
async fn closed_store() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/store.db");
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let store = archive.begin(session("s")).await.unwrap();
    store.submit(rows(vec![said("lead", "kept")])).await.unwrap();
    archive.close().await;
    (folder, path)
}

async fn lines(archive: &dyn Archive) -> usize {
    archive.conversation(&SessionId::new("s"), &name("lead"), Rows::After(0), 100_000).await.unwrap().len()
}

/// Changes a closed store as another program could.
async fn change(path: &Path, statement: &'static str) {
    let mut connection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    connection.execute(sqlx::raw_sql(statement)).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_second_writer_is_told_who_holds_the_store_and_a_reader_is_not_kept_out() {
    let (_folder, path) = closed_store().await;
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let refused = open_sqlite(&path, OpenMode::Write).await.unwrap_err();
    let OpenError::Held { pid, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(refused.to_string().contains(&std::process::id().to_string()));
    let reader = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap();
    assert_eq!(lines(&reader).await, 1);
    let taken = archive.take_up(&SessionId::new("s")).await.unwrap().unwrap();
    for n in 2..50 {
        taken.store.submit(rows(vec![said("lead", "more")])).await.unwrap();
        assert_eq!(lines(&reader).await, n);
    }
    let refused = reader.begin(session("t")).await.err().unwrap();
    assert!(refused.to_string().contains("reading only"), "{refused}");
    let refused = reader.take_up(&SessionId::new("s")).await.err().unwrap();
    assert!(refused.to_string().contains("reading only"), "{refused}");
    archive.close().await;
    assert_eq!(lines(&reader).await, 49);
    open_sqlite(&path, OpenMode::Write).await.unwrap();
}

#[tokio::test]
async fn what_was_submitted_is_written_when_the_store_is_closed_and_nothing_afterwards() {
    let (_folder, path) = closed_store().await;
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let taken = archive.take_up(&SessionId::new("s")).await.unwrap().unwrap();
    let commits: Vec<_> = (0..200).map(|_| taken.store.submit(rows(vec![said("lead", "late")]))).collect();
    archive.close().await;
    for commit in commits {
        commit.await.unwrap();
    }
    let late = taken.store.submit(rows(vec![said("lead", "never")])).await;
    assert!(matches!(late, Err(StoreError::Failed(_))));
    let reader = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap();
    assert_eq!(lines(&reader).await, 201);
}

#[tokio::test]
async fn nobody_else_can_read_a_store() {
    let (_folder, path) = closed_store().await;
    let _archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// What is done to a store, and how it is refused then.
type Harm = (&'static str, fn(&Path), fn(&OpenError) -> bool);

fn damaged(error: &OpenError) -> bool {
    matches!(error, OpenError::Damaged { .. })
}

const HARMS: [Harm; 7] = [
    (
        "garbage",
        |path| std::fs::write(path, "no database at all, but long enough".repeat(400)).unwrap(),
        damaged,
    ),
    ("a garbled header", |path| garble(path, 20..60), damaged),
    ("a truncated file", |path| truncate(path, 5_000), damaged),
    ("E8: a file that was cut by less than a page", |path| truncate(path, size(path) - 1_000), damaged),
    ("half a page", |path| truncate(path, 700), damaged),
    ("an empty file", |path| truncate(path, 0), damaged),
    (
        "a folder",
        |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        },
        |error| {
            matches!(
                error,
                OpenError::NotWritable { .. } | OpenError::Damaged { .. } | OpenError::Failed { .. }
            )
        },
    ),
];

fn size(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

fn truncate(path: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn garble(path: &Path, place: std::ops::Range<usize>) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[place].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_was() {
    for (name, harm, expected) in HARMS {
        let (_folder, path) = closed_store().await;
        harm(&path);
        let before = std::fs::read(&path).ok();
        for mode in [OpenMode::ReadOnly, OpenMode::Write] {
            let refused = open_sqlite(&path, mode).await.expect_err(name);
            assert!(expected(&refused), "{name}, {mode:?}: {refused}");
        }
        assert!(std::fs::read(&path).ok() == before, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_gone_while_its_log_is_there_is_damage_and_no_new_store() {
    let (_folder, path) = closed_store().await;
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    std::fs::write(&log, "frames").unwrap();
    std::fs::remove_file(&path).unwrap();
    for mode in [OpenMode::Write, OpenMode::ReadOnly] {
        let refused = open_sqlite(&path, mode).await.unwrap_err();
        assert!(damaged(&refused), "E7, {mode:?}: {refused}");
        assert!(!path.exists());
    }
    // What a reader leaves behind has nothing in it (E8).
    std::fs::write(&log, "").unwrap();
    let missing = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap_err();
    assert!(matches!(missing, OpenError::Missing(_)), "{missing}");
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    assert!(archive.sessions().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_store_of_version_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(&path, "").unwrap();
    change(&path, "PRAGMA application_id = 1298752596").await;
    for statements in VERSION_1[0] {
        change(&path, statements).await;
    }
    version_1(&*InFile(path).open().await).await;
}

#[tokio::test]
async fn a_file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let made = SqliteConnectOptions::new().filename(&path).create_if_missing(true).connect().await.unwrap();
    made.close().await.unwrap();
    change(&path, "CREATE TABLE sessions (a)").await;
    for mode in [OpenMode::ReadOnly, OpenMode::Write] {
        let refused = open_sqlite(&path, mode).await.unwrap_err();
        assert!(refused.to_string().contains("not one that midturn made"), "{refused}");
    }
}

#[tokio::test]
async fn a_newer_store_is_refused() {
    let (_folder, path) = closed_store().await;
    change(&path, "INSERT INTO schema_version VALUES (99, 0)").await;
    for mode in [OpenMode::ReadOnly, OpenMode::Write] {
        let refused = open_sqlite(&path, mode).await.unwrap_err();
        assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
    }
}

#[tokio::test]
async fn what_another_program_garbled_is_an_error_and_never_an_empty_answer() {
    let (_folder, path) = closed_store().await;
    change(&path, "INSERT INTO agents VALUES ('s', 'NO NAME', 0, 'lead', NULL, NULL, NULL, '', '{}', '{}')")
        .await;
    let reader = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap();
    let refused = reader.journal(&SessionId::new("s")).await.unwrap_err();
    assert!(refused.to_string().contains("docs/store.md"), "{refused}");
}

#[tokio::test]
async fn on_a_full_disk_nothing_of_the_write_is_visible_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let full = OpenMode::WriteAtMost(120);
    let archive = open_sqlite(&path, full).await.unwrap();
    archive.be_patient(Duration::ZERO);
    let store = archive.begin(session("s")).await.unwrap();
    let text = "x".repeat(20_000);
    let mut kept = 0;
    let refused = loop {
        assert!(kept < 100, "the disk is full at some time");
        match store.submit(rows(vec![said("lead", &text), said("lead", "2")])).await {
            Ok(()) => kept += 2,
            Err(refused) => break refused,
        }
    };
    assert!(kept > 0 && refused.to_string().contains("disk is full"), "{refused}");
    assert_eq!(lines(&archive).await, kept);
    assert_eq!(store.submit(rows(vec![said("lead", "small")])).await, Err(refused));
    archive.close().await;
    // With room again the session goes on.
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    let taken = archive.take_up(&SessionId::new("s")).await.unwrap().unwrap();
    taken.store.submit(rows(vec![said("lead", "on")])).await.unwrap();
    assert_eq!(lines(&archive).await, kept + 1);
    archive.close().await;
    let fuller = OpenMode::WriteAtMost(3);
    let refused = open_sqlite(folder.path().join("new.db"), fuller).await.unwrap_err();
    assert!(matches!(refused, OpenError::DiskFull(_)), "{refused}");
    assert!(!folder.path().join("new.db").exists(), "no half store gets the name");
}

/// The commands of docs/store.md, "When it is damaged": putting it aside, a backup, saving what can be read.
fn documented() -> [String; 3] {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/store.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## When it is damaged").unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect::<Vec<_>>().try_into().unwrap()
}

fn in_shell(command: &str, folder: &Path) {
    let status = std::process::Command::new("sh").args(["-c", command]).current_dir(folder).status();
    assert!(status.unwrap().success(), "{command}");
}

/// A damaged store, looked at by a reader, with a backup beside it.
async fn damaged_store() -> (TempDir, PathBuf) {
    let (folder, path) = closed_store().await;
    std::fs::copy(&path, path.with_file_name("backup.db")).unwrap();
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    // What is cut off is of another session.
    let other = archive.begin(session("other")).await.unwrap();
    other.submit(rows(vec![said("lead", &"x".repeat(50_000))])).await.unwrap();
    archive.close().await;
    truncate(&path, size(&path) - 1_000);
    let refused = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap_err();
    assert!(damaged(&refused), "{refused}");
    (folder, path)
}

/// E8: what the page says to do about a damaged store works as it is written.
#[tokio::test]
async fn the_ways_out_of_damage_work_as_they_are_documented() {
    let [aside, backup, save] = documented();
    let (_folder, path) = damaged_store().await;
    in_shell(&aside, path.parent().unwrap());
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    assert!(archive.sessions().await.unwrap().is_empty(), "a new store begins");
    archive.close().await;
    let (_folder, path) = damaged_store().await;
    in_shell(&aside, path.parent().unwrap());
    in_shell(&backup, path.parent().unwrap());
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    assert_eq!(lines(&archive).await, 1);
    archive.close().await;
    let shell = std::process::Command::new("sqlite3").arg("--version").output().is_ok();
    if !has_for_a_part(Need::Sqlite3, shell) {
        return;
    }
    let (_folder, path) = damaged_store().await;
    in_shell(&aside, path.parent().unwrap());
    in_shell(&save, path.parent().unwrap());
    let archive = open_sqlite(&path, OpenMode::Write).await.unwrap();
    assert_eq!(lines(&archive).await, 1);
    archive.take_up(&SessionId::new("s")).await.unwrap().unwrap();
}

/// Root may write anywhere: this thread's files become somebody else's business. Threads that
/// it starts inherit that.
fn be_nobody(folder: &Path) {
    if geteuid().is_root() {
        for path in ["", "sub", "sub/store.db", "sub/store.db.lock"].map(|path| folder.join(path)) {
            chown(&path, Some(Uid::from_raw(65_534)), Some(Gid::from_raw(65_534))).unwrap();
        }
        setfsgid(Gid::from_raw(65_534));
        setfsuid(Uid::from_raw(65_534));
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_store_that_can_only_be_read_is_read_and_not_written() {
    let (folder, path) = closed_store().await;
    be_nobody(folder.path());
    allow(&path, 0o400);
    allow(path.parent().unwrap(), 0o500);
    let refused = open_sqlite(&path, OpenMode::Write).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotWritable { .. }), "{refused}");
    let reader = open_sqlite(&path, OpenMode::ReadOnly).await.unwrap();
    assert_eq!(lines(&reader).await, 1);
    let refused = open_sqlite(path.with_file_name("new.db"), OpenMode::Write).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotWritable { .. }), "{refused}");
    allow(path.parent().unwrap(), 0o700);
    let refused = open_sqlite(&path, OpenMode::Write).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotWritable { .. }), "{refused}");
    // What was made beside the file is as little writable as the file was.
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        allow(&file.unwrap().path(), 0o600);
    }
    open_sqlite(&path, OpenMode::Write).await.unwrap();
}
