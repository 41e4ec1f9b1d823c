//! How an agent's worktree and branch are found again by a later process (issue 3, items 2 and 4).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_core::engine::ports::{Merge, Workplace as _};
use midturn_tools::workplace::Wishes;
use support::project::{Project, merge, run, shell, work};
use support::{Heard, name};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_session_that_goes_on_finds_worktree_branch_and_start() {
    let project = Project::new();
    let first = run(
        &project.workplace(),
        "w",
        "echo committed > c.txt; git add c.txt; git $ME commit -qm c; echo x > x.txt",
    )
    .await;
    project.write("a.txt", "the project went on\n");
    project.commit();

    let workplace = project.resumed();
    assert_eq!(workplace.branch(&name("w")).as_deref(), Some("midturn/s1/w"), "before it has run");
    let diff = workplace.diff(&name("w")).await.unwrap();
    assert!(diff.patch.contains("+committed\n") && diff.patch.contains("+x\n"), "{diff:?}");
    assert_eq!(diff.start, project.git(&["rev-parse", "HEAD~"]));
    let Merge::Refused(why) = merge(&workplace).await else { panic!("x.txt is not committed") };
    assert!(why.contains("x.txt"), "{why}");

    let again = run(&workplace, "w", "grep -qx one a.txt; grep -qx x x.txt; echo y > y.txt").await;
    assert_eq!(again, first);
    let changes = workplace.run_ended(&name("w"), 2).await.unwrap();
    assert_eq!(changes.files, ["c.txt", "x.txt", "y.txt"]);
    assert_eq!((changes.branch.as_deref(), changes.notes), (Some("midturn/s1/w"), vec![]));
    run(&workplace, "v", "true").await;
    assert_eq!(workplace.run_ended(&name("v"), 1).await.unwrap().notes, Vec::<String>::new(), "a new agent");

    let idle = project.resumed();
    assert!(matches!(merge(&idle).await, Merge::Merged(_)), "though it never runs here");
}

/// A stop ends a setup, and a folder that isn't ready is made so when the session goes on: once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setup_that_was_cut_runs_again_when_the_session_goes_on() {
    let project = Project::new();
    let setup = |command: &str| Wishes { setup: Some(command.to_owned()), ..Wishes::default() };
    let cancel = CancellationToken::new();
    let first = project.workplace().wishes(setup("echo one; echo > begun; sleep 600"));
    first.open(&name("w")).await.unwrap();
    let folder = first.folder(&name("w")).unwrap();
    // Whoever reads it waits for the setup.
    shell(&folder, "mkfifo begun");
    let pipe = folder.join("begun");
    let begun = async {
        tokio::task::spawn_blocking(|| std::fs::read(pipe)).await.unwrap().unwrap();
        cancel.cancel();
    };
    let agent = name("w");
    let heard = Heard::default();
    let (told, ()) = tokio::join!(first.settle(&agent, &cancel, &heard), begun);
    assert_eq!(heard.text(), "+ echo one; echo > begun; sleep 600\none\n");
    assert!(told.contains("the setup `echo one; echo > begun; sleep 600` failed"), "{told}");
    drop(first);

    for (claim, times) in [("it was cut", "1"), ("it is done", "1")] {
        let again = project.resumed().wishes(setup("echo >> made"));
        again.open(&agent).await.unwrap();
        again.settle(&agent, &CancellationToken::new(), &Heard::default()).await;
        run(&again, "w", &format!("test $(wc -l < made) = {times}")).await;
        assert_eq!(again.folder(&agent).unwrap(), folder, "{claim}");
    }
}

/// What is left, what made it so (`$HALF`: as if it had never been made to the end), the branch
/// and whether the work is there afterwards, and what is said of it.
const LEFT: [(&str, &str, &str, bool, &str); 16] = [
    ("all of it", "true", "midturn/s1/w", true, ""),
    ("the branch", "rm -r ../w", "midturn/s1/w", true, "made again from its branch"),
    (
        "the branch, pruned",
        "rm -r ../w; git -C $P worktree prune",
        "midturn/s1/w",
        true,
        "made again from its branch",
    ),
    ("its files", "rm -r .git", "midturn/s1/w.2", false, "is no longer a worktree"),
    (
        "nothing",
        "cd ..; rm -r w; git -C $P worktree prune; git -C $P branch -q -D midturn/s1/w",
        "midturn/s1/w",
        false,
        "its worktree and its branch are gone",
    ),
    (
        "something else",
        "cd ..; rm -r w; git -C $P worktree prune; mkdir w; echo x > w/kept.txt",
        "midturn/s1/w.2",
        false,
        "is no longer a worktree",
    ),
    ("a file", "cd ..; rm -r w; echo kept > w", "midturn/s1/w.2", false, "is no longer a worktree"),
    (
        "another repository",
        "cd ..; rm -r w; git init -q w",
        "midturn/s1/w.2",
        false,
        "is no longer a worktree",
    ),
    (
        "a branch that somebody else has",
        "rm -r ../w; git -C $P worktree prune; git -C $P switch -q midturn/s1/w",
        "midturn/s1/w.2",
        true,
        "is checked out in",
    ),
    ("half made", "$HALF", "midturn/s1/w", true, ""),
    ("half made, the branch only", "$HALF; rm -r ../w", "midturn/s1/w", true, ""),
    (
        "half made, nothing yet",
        "$HALF; cd ..; rm -r w; git -C $P worktree prune; git -C $P branch -q -D midturn/s1/w",
        "midturn/s1/w",
        false,
        "",
    ),
    (
        "half made, the branch's lock",
        "$HALF; cd ..; rm -r w; cd $P; git worktree prune; git branch -q -D midturn/s1/w; \
         mkdir -p .git/refs/heads/midturn/s1; touch .git/refs/heads/midturn/s1/w.lock",
        "midturn/s1/w",
        false,
        "",
    ),
    (
        "the locks of a commit",
        "mkdir -p .git/refs/heads/midturn/s1; \
         touch .git/index.lock .git/HEAD.lock .git/refs/heads/midturn/s1/w.lock $P/.git/refs/heads/midturn/s1/w.lock",
        "midturn/s1/w",
        true,
        "",
    ),
    ("half made, without a file", "$HALF; rm a.txt", "midturn/s1/w", true, ""),
    ("no record", "rm ../w.json", "midturn/s1/w.2", false, "left over from before"),
];

#[tokio::test]
async fn what_is_left_of_a_worktree_is_made_use_of_and_the_rest_is_said() {
    for (claim, command, branch, has_work, says) in LEFT {
        let project = Project::new();
        let workplace = project.workplace();
        work(&workplace, "echo work > work.txt").await;
        let folder = workplace.folder(&name("w")).unwrap();
        let command = command.replace("$P", project.folder.path().to_str().unwrap());
        let command = command.replace("$HALF", "sed -i s/true/false/ ../w.json");
        shell(&folder, &command);
        let workplace = project.resumed();
        let commits = "test -e a.txt && git $ME commit -q --allow-empty -m again";
        let has = run(&workplace, "w", commits).await.join("work.txt").exists();
        assert_eq!(workplace.branch(&name("w")).as_deref(), Some(branch), "{claim}");
        assert_eq!(has, has_work, "{claim}");
        let notes = workplace.run_ended(&name("w"), 2).await.unwrap().notes;
        assert!(notes.join("; ").contains(says) && notes.is_empty() == says.is_empty(), "{claim}: {notes:?}");
        assert_eq!(project.resumed().branch(&name("w")).as_deref(), Some(branch), "{claim}: and once more");
    }
}
