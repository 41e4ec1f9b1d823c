//! What the lead changed in the project folder is taken back turn by turn (docs/decisions/0044).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::path::{Path, PathBuf};

use midturn_core::engine::ports::Workplace as _;
use midturn_core::rules::id::SessionId;
use midturn_tools::workplace::GitWorkplace;
use midturn_tools::workplace::undo::{Kept, Undo, UndoError, Undone};
use serde_json::json;
use support::project::{Project, git};
use support::{call, name};

/// The lead's turn `turn`: these commands, one call each.
async fn turn(workplace: &GitWorkplace, turn: u32, commands: &[&str]) -> String {
    let toolbox = workplace.open(&name("lead")).await.unwrap();
    let mut said = String::new();
    for command in commands {
        let output = call(&toolbox, "bash", json!({"command": command})).await;
        assert!(!output.is_error, "{command}: {}", output.text);
        said += &output.text;
    }
    workplace.turn_ended(&name("lead"), 1, turn);
    said
}

async fn end(workplace: &GitWorkplace) -> Vec<String> {
    workplace.run_ended(&name("lead"), 1).await.unwrap().notes
}

async fn opened(project: &Project) -> Undo {
    Undo::open(project.state.path(), &SessionId::new("s1")).await.unwrap().unwrap()
}

async fn undone(project: &Project, count: usize) -> Vec<Undone> {
    opened(project).await.undo(count, false).await.unwrap()
}

fn read(project: &Project, file: &str) -> Option<String> {
    std::fs::read_to_string(project.folder.path().join(file)).ok()
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[tokio::test]
async fn the_last_turns_are_taken_back_and_what_a_person_changed_since_stays() {
    let project = Project::new();
    project.write("crlf.txt", "a\r\nb\r\n");
    project.write("sub/run.sh", "#!/bin/sh\n");
    project.commit();
    project.write("own.txt", "not committed\n");
    let workplace = project.workplace();
    turn(&workplace, 1, &["echo two > a.txt", "mkdir -p new/deep; echo n > new/deep/file; ln -s a.txt link"])
        .await;
    // Once it was looked at.
    end(&workplace).await;
    project.write("between.txt", "a person's\n");
    turn(&workplace, 2, &["cat a.txt"]).await;
    turn(
        &workplace,
        3,
        &["echo three > a.txt; rm crlf.txt own.txt; chmod +x sub/run.sh; echo lead >> between.txt; echo x > late"],
    )
    .await;
    assert_eq!(end(&workplace).await, Vec::<String>::new());
    project.write("late", "a person's now\n");
    let status = || project.git(&["status", "--porcelain"]);
    let before = status();

    let looked = opened(&project).await.undo(9, true).await.unwrap();
    assert_eq!(
        (looked.len(), status()),
        (2, before),
        "a look changes nothing, and a turn that changed nothing isn't kept"
    );

    let last = undone(&project, 1).await.remove(0);
    assert_eq!(last.turn.who[0].turn, Some(3));
    assert_eq!(last.restored, paths(&["a.txt", "between.txt", "crlf.txt", "own.txt", "sub/run.sh"]));
    assert_eq!(last.kept, [(PathBuf::from("late"), Kept::ChangedSince)]);
    let files =
        ["a.txt", "crlf.txt", "own.txt", "between.txt", "late"].map(|file| read(&project, file).unwrap());
    assert_eq!(files, ["two\n", "a\r\nb\r\n", "not committed\n", "a person's\n", "a person's now\n"]);

    let first = undone(&project, 1).await.remove(0);
    assert_eq!((first.restored, first.removed), (paths(&["a.txt"]), paths(&["link", "new/deep/file"])));
    assert_eq!(read(&project, "a.txt").unwrap(), "one\n");
    assert!(!project.folder.path().join("new").exists(), "a folder that it made goes with its last file");
    assert_eq!(undone(&project, 1).await, [], "there is no more");
    assert_eq!(
        status(),
        "?? between.txt\n?? late\n?? own.txt".to_owned(),
        "the index and git know nothing of it"
    );

    // The lead is told with its next call, and what it does then can be undone again.
    let said = turn(&workplace, 4, &["echo again > a.txt"]).await;
    assert!(said.contains("Note: the user has undone what the last turn changed"), "{said}");
    assert!(said.contains("Left as they are, since they were changed later: late"), "{said}");
    end(&workplace).await;
    assert!(!turn(&workplace, 5, &["true"]).await.contains("undone"), "it is told once");
    end(&workplace).await;
    assert_eq!(undone(&project, 1).await[0].restored, paths(&["a.txt"]));
}

#[tokio::test]
async fn nothing_is_undone_in_the_middle_of_a_turn_and_a_turn_whose_process_died_can_be() {
    let project = Project::new();
    let workplace = project.workplace();
    let toolbox = workplace.open(&name("lead")).await.unwrap();
    call(&toolbox, "write", json!({"path": "a.txt", "content": "half\n"})).await;
    let busy = Undo::open(project.state.path(), &SessionId::new("s1")).await;
    assert!(matches!(busy, Err(UndoError::UnderWay)));
    // As a process that is killed.
    drop((workplace, toolbox));
    let undone = undone(&project, 1).await;
    assert_eq!((undone[0].turn.who[0].turn, read(&project, "a.txt")), (None, Some("one\n".to_owned())));
}

/// Attributes, filters and repositories inside are the project's: what is kept is bytes, and nothing of theirs runs.
#[tokio::test]
async fn what_is_kept_are_bytes_and_nothing_of_the_projects_is_obeyed() {
    let project = Project::new();
    project.write(".gitattributes", "*.txt text eol=crlf filter=evil\n*.bin ident\n");
    project.write("b.bin", "$Id$\n");
    project.commit();
    let ran = project.state.path().join("ran");
    let clean = format!("touch {}; cat", ran.display());
    for key in ["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"] {
        project.git(&["config", key, &clean]);
    }
    let inner = project.folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["config", "core.fsmonitor", &clean]);
    git(&inner, &["-c", "user.name=p", "-c", "user.email=p@p", "commit", "-q", "--allow-empty", "-m", "c"]);
    project.write("c.txt", "lf\n");
    let _ = std::fs::remove_file(&ran);
    let workplace = project.workplace();
    turn(&workplace, 1, &["printf 'x\\r\\ny\\n' > c.txt; echo changed > b.bin; rm a.txt"]).await;
    turn(&workplace, 2, &["printf z > c.txt"]).await;
    end(&workplace).await;
    undone(&project, 1).await;
    assert_eq!(read(&project, "c.txt").unwrap(), "x\r\ny\n");
    undone(&project, 1).await;
    assert_eq!(
        ["a.txt", "b.bin", "c.txt"].map(|file| read(&project, file).unwrap()),
        ["one\n", "$Id$\n", "lf\n"]
    );
    assert!(!ran.exists(), "a program of the project's ran");
}

/// No index of the project's is of use in each of these, and files are found all the same.
#[tokio::test]
async fn projects_of_other_kinds_can_be_undone_too() {
    let kinds: [(&str, &[&[&str]]); 4] = [
        ("SHA-256", &[&["init", "-q", "--object-format=sha256"]]),
        ("split index", &[&["init", "-q"], &["config", "core.splitIndex", "true"]]),
        ("no commit yet", &[&["init", "-q"]]),
        ("index of version 4", &[&["init", "-q"], &["config", "index.version", "4"]]),
    ];
    for (kind, setup) in kinds {
        let project = Project::empty();
        setup.iter().for_each(|words| drop(project.git(words)));
        project.write("sub/a.txt", "one\n");
        project.write("above.txt", "one\n");
        match kind {
            "no commit yet" => drop(project.git(&["add", "-A"])),
            _ => project.commit(),
        }
        // The project folder is one in the repository.
        let folder = project.folder.path().join("sub");
        let workplace = project.workplace_in(&folder);
        turn(&workplace, 1, &["echo two > a.txt; echo new > b.txt"]).await;
        assert_eq!(end(&workplace).await, Vec::<String>::new(), "{kind}");
        project.write("above.txt", "a person's\n");
        let undone = undone(&project, 1).await.remove(0);
        assert_eq!((undone.restored, undone.removed), (paths(&["a.txt"]), paths(&["b.txt"])), "{kind}");
        assert_eq!(read(&project, "sub/a.txt").unwrap(), "one\n", "{kind}");
        assert_eq!(read(&project, "above.txt").unwrap(), "a person's\n", "{kind}");
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_what_is_not_kept_is_said() {
    let project = Project::new();
    let large = std::fs::File::create(project.folder.path().join("large")).unwrap();
    large.set_len(17 << 20).unwrap();
    let workplace = project.workplace().turns_kept(2);
    for n in 1..=3 {
        turn(&workplace, n, &[&format!("echo {n} > a.txt; echo {n} >> large")]).await;
    }
    end(&workplace).await;
    let undo = opened(&project).await;
    let kept: Vec<_> = undo.turns().map(|turn| (turn.who[0].turn, turn.left_out.clone())).collect();
    assert_eq!(kept, [(Some(3), vec!["large".to_owned()]), (Some(2), vec!["large".to_owned()])]);
    drop(undo);
    assert_eq!(undone(&project, 9).await.len(), 2);
    assert_eq!(read(&project, "a.txt").unwrap(), "1\n");

    let off = Project::new();
    let workplace = off.workplace().turns_kept(0);
    turn(&workplace, 1, &["echo 2 > a.txt"]).await;
    end(&workplace).await;
    assert!(Undo::open(off.state.path(), &SessionId::new("s1")).await.unwrap().is_none());

    // Where it can't be kept, the call runs, and the run's end says so.
    let broken = Project::new();
    std::fs::write(broken.state.path().join("undo"), "in the way").unwrap();
    let workplace = broken.workplace();
    turn(&workplace, 1, &["echo 2 > a.txt"]).await;
    let notes = end(&workplace).await;
    assert!(notes.iter().any(|note| note.contains("can't be taken back with `midturn undo`")), "{notes:?}");
}

/// What the project's git let go of can't come back: that file stays, and the others don't.
#[tokio::test]
async fn what_was_lost_with_the_projects_objects_is_said() {
    let project = Project::new();
    project.write("b.txt", "b\n");
    let workplace = project.workplace();
    turn(&workplace, 1, &["echo two > a.txt; echo two > b.txt"]).await;
    end(&workplace).await;
    let content = project.git(&["rev-parse", "HEAD:a.txt"]);
    let (folder, file) = content.split_at(2);
    std::fs::remove_file(project.folder.path().join(Path::new(".git/objects")).join(folder).join(file))
        .unwrap();
    let undone = undone(&project, 1).await.remove(0);
    assert_eq!(undone.kept, [(PathBuf::from("a.txt"), Kept::Lost)]);
    assert_eq!(undone.restored, paths(&["b.txt"]));
    assert_eq!(["a.txt", "b.txt"].map(|file| read(&project, file).unwrap()), ["two\n", "b\n"]);
}
