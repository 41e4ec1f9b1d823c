//! An agent's branch: its diff, its merge, and how it is found again (issue 3, items 2 and 4).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use midturn_core::engine::ports::{Merge, Workplace as _};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use support::name;
use support::project::{Files, ME, Project, content, differences, git, merge, run, shell, work};

const NONE: Vec<PathBuf> = Vec::new();

#[tokio::test]
async fn a_diff_has_what_is_committed_and_what_is_not_and_leaves_no_trace() {
    let project = Project::new();
    project.write("gone.txt", "gone\n");
    project.write("b.txt", "one\ntwo\nthree\nfour\n");
    project.commit();
    let workplace = project.workplace();
    work(&workplace, "echo two > a.txt; printf '\\0\\1' > image.bin").await;
    let folder = run(
        &workplace,
        "w",
        "git mv b.txt c.txt; rm gone.txt; mkdir -p 'ü b'; echo new > 'ü b/n.txt'; echo staged > s.txt; git add s.txt; \
         echo later >> s.txt; printf '\\0\\2' > other.bin; echo x > .midturn-tmp-1-1",
    )
    .await;
    project.write("in-the-project.txt", "not the agent's\n");
    project.commit();
    let (project_before, before) = (content(project.folder.path()), content(&folder));

    let diff = workplace.diff(&name("w")).await.unwrap();

    assert_eq!(differences(&project_before, &content(project.folder.path())), NONE, "no trace");
    assert_eq!(differences(&before, &content(&folder)), NONE, "no trace");
    assert_eq!(
        std::fs::read_dir(folder.parent().unwrap()).unwrap().count(),
        2,
        "the worktree and its record"
    );
    assert_eq!((diff.branch.as_str(), diff.truncated), ("midturn/s1/w", false));
    assert_eq!(diff.start, project.git(&["rev-parse", "HEAD~"]));
    let parts = [
        "-one\n+two\n",
        "rename from b.txt\nrename to c.txt\n",
        "deleted file mode 100644\n",
        "+new\n",
        "+staged\n+later\n",
        "Binary files /dev/null and b/image.bin differ\n",
        "Binary files /dev/null and b/other.bin differ\n",
    ];
    for part in parts {
        assert!(diff.patch.contains(part), "{part}\n{}", diff.patch);
    }
    assert_eq!(diff.patch.matches("diff --git").count(), 7, "{}", diff.patch);
    assert!(diff.patch.starts_with("diff --git a/a.txt b/a.txt\n"), "{}", diff.patch);
}

#[tokio::test]
async fn a_diff_is_there_whatever_state_the_worktree_is_in() {
    let conflict = format!(
        "git switch -q -c side; echo 1 > a.txt; git {ME} commit -qam 1; git switch -q -; echo 2 > a.txt; \
         git {ME} commit -qam 2; ! git {ME} merge -q side > /dev/null"
    );
    let rows: [(&str, &str, &str); 7] = [
        ("nothing changed", "true", ""),
        ("a merge with conflicts", &conflict, "+<<<<<<< HEAD\n"),
        ("no branch", "git switch -q --detach; echo x > x.txt", "+x\n"),
        (
            "no index, and a file that is ignored now",
            "echo x > x.txt; p='git rev-parse --git-path'; rm \"$($p index)\"; echo a.txt >> \"$($p info/exclude)\"",
            "+x\n",
        ),
        ("an index of another kind", "git update-index --split-index; echo x > x.txt", "+x\n"),
        ("a lock left", "echo x > x.txt; touch \"$(git rev-parse --git-path index.lock)\"", "+x\n"),
        ("no worktree any more", "rm -r .git; echo x > x.txt", "is no longer a worktree"),
    ];
    for (claim, command, part) in rows {
        let project = Project::new();
        let workplace = project.workplace();
        run(&workplace, "w", command).await;
        let diff = workplace.diff(&name("w")).await.unwrap();
        assert!(
            diff.patch.contains(part) && diff.patch.is_empty() == part.is_empty(),
            "{claim}: {}",
            diff.patch
        );
        assert!(!diff.patch.contains("deleted"), "{claim}: {}", diff.patch);
    }
}

#[tokio::test]
async fn a_file_that_was_changed_in_the_instant_of_the_checkout_is_in_the_diff() {
    let project = Project::new();
    // A disk whose times of change can't be relied on, so that these can be the same too.
    project.git(&["config", "core.trustctime", "false"]);
    let workplace = project.workplace();
    // The same size and time as git has in its index, which was written in that very second.
    let command = "old='touch -d 2020-01-01'; $old a.txt; git update-index -q --refresh; echo two > a.txt; \
                   $old a.txt; $old \"$(git rev-parse --git-path index)\"";
    run(&workplace, "w", command).await;
    let diff = workplace.diff(&name("w")).await.unwrap();
    assert!(diff.patch.contains("-one\n+two\n"), "{}", diff.patch);
}

#[tokio::test]
async fn a_long_diff_is_cut_at_a_line_and_says_so() {
    let project = Project::new();
    let workplace = project.workplace();
    run(&workplace, "w", "yes 'ü line of text' | head -c 3M > long.txt").await;
    let diff = workplace.diff(&name("w")).await.unwrap();
    assert!(diff.truncated && diff.patch.len() <= 1 << 20 && diff.patch.len() > (1 << 20) - 100);
    assert!(diff.patch.ends_with("+ü line of text\n"));
}

#[tokio::test]
async fn neither_diff_nor_merge_runs_a_program_that_the_repository_names() {
    let project = Project::new();
    project.write(".gitattributes", "*.txt diff=own\n");
    project.commit();
    let witness = project.state.path().join("ran");
    let program = project.state.path().join("program");
    std::fs::write(&program, format!("#!/bin/sh\necho ran >> {}\nexit 1\n", witness.display())).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for key in ["diff.external", "diff.own.command", "diff.own.textconv", "core.pager", "core.fsmonitor"] {
        project.git(&["config", key, program]);
    }
    for (key, value) in [("color.ui", "always"), ("diff.noprefix", "true"), ("commit.gpgSign", "true")] {
        project.git(&["config", key, value]);
    }
    project.git(&["config", "branch.main.mergeOptions", "--squash --no-ff"]);
    let hooks = project.folder.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-merge-commit", "post-merge", "commit-msg", "reference-transaction", "post-checkout"] {
        std::fs::copy(program, hooks.join(hook)).unwrap();
    }
    let workplace = project.workplace();
    work(&workplace, "echo two > a.txt").await;
    let diff = workplace.diff(&name("w")).await.unwrap();
    assert!(diff.patch.starts_with("diff --git a/a.txt b/a.txt\n"), "{}", diff.patch);
    assert_eq!(merge(&workplace).await, Merge::Merged(project.git(&["rev-parse", "midturn/s1/w"])));
    assert_eq!(project.git(&["rev-parse", "main"]), project.git(&["rev-parse", "midturn/s1/w"]));
    assert!(!witness.exists());
}

#[tokio::test]
async fn a_merge_is_a_commit_by_midturn_and_leaves_other_changes_alone() {
    let project = Project::new();
    project.write("mine.txt", "mine\n");
    project.commit();
    project.git(&["config", "user.name", "A Person"]);
    project.git(&["config", "user.email", "person@example.invalid"]);
    let workplace = project.workplace();
    work(&workplace, "echo two > a.txt; echo new > n.txt").await;
    project.write("b.txt", "b\n");
    project.commit();
    let head = project.git(&["rev-parse", "HEAD"]);
    // Changes that are not in the way, one of them staged.
    project.write("mine.txt", "changed\n");
    project.write("b.txt", "staged\n");
    project.git(&["add", "b.txt"]);

    let Merge::Merged(commit) = merge(&workplace).await else { panic!("not merged") };

    assert_eq!(project.git(&["rev-parse", "HEAD"]), commit);
    assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(
        project.git(&["log", "-1", "--format=%P"]),
        format!("{head} {}", project.git(&["rev-parse", "midturn/s1/w"]))
    );
    assert_eq!(
        project.git(&["log", "-1", "--format=%an <%ae>, %cn <%ce>: %s"]),
        "A Person <person@example.invalid>, midturn <midturn@midturn.invalid>: Merge branch 'midturn/s1/w'"
    );
    assert_eq!(project.git(&["status", "--porcelain"]), "M  b.txt\n M mine.txt");
    assert_eq!(std::fs::read_to_string(project.folder.path().join("n.txt")).unwrap(), "new\n");
    assert_eq!(merge(&workplace).await, Merge::UpToDate);
}

#[tokio::test]
async fn where_nothing_else_was_committed_the_branch_is_simply_taken_over() {
    let project = Project::new();
    let workplace = project.workplace();
    work(&workplace, "true").await;
    assert_eq!(merge(&workplace).await, Merge::UpToDate);
    work(&workplace, "echo two > a.txt").await;
    let tip = project.git(&["rev-parse", "midturn/s1/w"]);
    assert_eq!(merge(&workplace).await, Merge::Merged(tip.clone()));
    assert_eq!(project.git(&["rev-parse", "main"]), tip);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_merge_with_conflicts_names_the_files_and_changes_nothing() {
    let project = Project::new();
    project.write("sub/deep/b.txt", "b\n");
    project.write("sub/gone.txt", "1\n2\n3\n");
    project.commit();
    let workplace = project.workplace_in(&project.folder.path().join("sub"));
    work(&workplace, "echo two > ../a.txt; echo bee > deep/b.txt; echo 4 >> gone.txt; echo fine > fine.txt")
        .await;
    project.write("a.txt", "three\n");
    project.write("sub/deep/b.txt", "be\n");
    std::fs::remove_file(project.folder.path().join("sub/gone.txt")).unwrap();
    project.commit();
    project.write("a.txt", "and a change\n");
    let before = content(project.folder.path());
    let conflicts = ["../a.txt", "deep/b.txt", "gone.txt"].map(str::to_owned);
    assert_eq!(merge(&workplace).await, Merge::Conflicts(conflicts.to_vec()));
    assert_eq!(differences(&before, &content(project.folder.path())), NONE);
}

/// The files that a merge changed that was refused. Git looks at its files again, says where it
/// was, and keeps an object or two that nothing refers to.
fn touched(project: &Project, before: &Files) -> Vec<PathBuf> {
    let own = project.folder.path().join(".git");
    let mut changed = differences(before, &content(project.folder.path()));
    changed.retain(|path| {
        !path.starts_with(own.join("objects")) && *path != own.join("index") && *path != own.join("ORIG_HEAD")
    });
    changed
}

/// What is in the way, how it gets there, and what is said of it.
const IN_THE_WAY: [(&str, &str, &str); 17] = [
    ("a dirty file", "echo mine > a.txt", "uncommitted changes in the project folder are in the way (a.txt)"),
    (
        "a staged file",
        "echo mine > a.txt; git add a.txt",
        "uncommitted changes in the project folder are in the way (a.txt)",
    ),
    (
        "an untracked file",
        "echo mine > n.txt",
        "untracked files in the project folder are in the way (n.txt)",
    ),
    (
        "an ignored file",
        "echo n.txt > .git/info/exclude; echo mine > n.txt",
        "untracked files in the project folder are in the way (n.txt)",
    ),
    ("a folder", "mkdir n.txt; echo mine > n.txt/x", "in the way (n.txt)"),
    ("a detached HEAD", "git switch -q --detach", "detached HEAD"),
    ("a branch without a commit", "git switch -q --orphan new", "no commit yet"),
    ("a merge", "git merge -q --no-commit --no-ff side > /dev/null", "a merge is under way"),
    (
        "a cherry-pick",
        "echo 0 > s.txt; git add s.txt; git $ME commit -qm s; ! git $ME cherry-pick side > /dev/null 2>&1",
        "a cherry-pick is under way",
    ),
    (
        "a rebase",
        "echo 0 > s.txt; git add s.txt; git $ME commit -qm s; ! git $ME rebase -q side > /dev/null 2>&1",
        "a rebase is under way",
    ),
    (
        "conflicts of a stash",
        "echo 1 > a.txt; git $ME stash -q; echo 2 > a.txt; git $ME commit -qam 2; ! git $ME stash pop > /dev/null 2>&1",
        "conflicts in the project folder that nobody has resolved",
    ),
    ("a lock", "touch .git/index.lock", "another git command"),
    ("uncommitted work", "cd ../w; echo more > more.txt", "w has work that is not committed (more.txt)"),
    ("a broken worktree", "rm -r ../w/.git", "is no longer w's worktree"),
    (
        "no branch",
        "git -C ../w switch -q --detach; git -C ../w branch -q -D midturn/s1/w; git branch -q -D midturn/s1/w",
        "is gone",
    ),
    ("somebody on the branch", "git switch -q midturn/s1/w; $MORE", "is checked out in"),
    (
        "somebody else's commit on the branch",
        "git switch -q midturn/s1/w; git $ME commit -q --allow-empty -m theirs; git switch -q main; $MORE",
        "somebody else moved midturn/s1/w",
    ),
];

#[tokio::test]
async fn whatever_is_in_the_way_of_a_merge_is_said_and_stays() {
    for diverged in [false, true] {
        for (claim, command, says) in IN_THE_WAY {
            let project = Project::new();
            let workplace = project.workplace();
            work(&workplace, "echo two > a.txt; echo new > n.txt").await;
            let worktree = workplace.folder(&name("w")).unwrap();
            let setup = "git switch -q -c side; echo 1 > s.txt; git add s.txt; git $ME commit -qm side; git switch -q main";
            let more = "git -C ../w $ME commit -q --allow-empty -m more";
            let command = command.replace("$MORE", more).replace("../w", worktree.to_str().unwrap());
            shell(project.folder.path(), setup);
            if diverged {
                shell(project.folder.path(), "echo d > d.txt; git add d.txt; git $ME commit -qm d");
            }
            shell(project.folder.path(), &command);
            let (before, index) = (content(project.folder.path()), project.git(&["ls-files", "--stage"]));
            let merged = merge(&workplace).await;
            let Merge::Refused(why) = merged else { panic!("{claim}: {merged:?}") };
            assert!(why.contains(says), "{claim}: {why}");
            assert_eq!(touched(&project, &before), NONE, "{claim}");
            assert_eq!(project.git(&["ls-files", "--stage"]), index, "{claim}");
        }
    }
}

/// Who works in the project folder has what is not committed there to show, and nothing to merge.
#[tokio::test]
async fn who_has_no_branch_has_nothing_to_merge() {
    let project = Project::new();
    let workplace = project.workplace_at(project.state.path());
    let no_branch = |agent: &str| format!("`{agent}` has no branch of its own");
    for agent in ["lead", "never-there"] {
        assert_eq!(workplace.branch(&name(agent)), None);
        assert_eq!(workplace.merge(&name(agent)).await.unwrap_err().0, no_branch(agent));
    }
    assert_eq!(workplace.diff(&name("never-there")).await.unwrap_err().0, no_branch("never-there"));
    let (state, place) =
        (project.folder.path().join("state"), |_: &AgentName| AgentPlace::new(Isolation::None));
    let workplace = GitWorkplace::new(project.folder.path(), state, &SessionId::new("s1"), place);
    let workplace = workplace.supervisor(support::supervisor());
    project.write("mine.txt", "mine\n");
    run(&workplace, "lead", "echo two >> a.txt; echo new > new.txt; git add new.txt").await;
    let index = project.git(&["diff", "--cached", "--name-only"]);
    let diff = workplace.diff(&name("lead")).await.unwrap();
    assert_eq!((diff.branch.as_str(), diff.start), ("main", project.git(&["rev-parse", "HEAD"])));
    for added in ["+two\n", "+new\n", "+mine\n"] {
        assert!(diff.patch.contains(added), "{added:?} in {}", diff.patch);
    }
    assert_eq!(
        project.git(&["diff", "--cached", "--name-only"]),
        index,
        "the index is nobody's but the person's"
    );
}

#[tokio::test]
async fn a_worktree_inside_the_project_that_lost_its_link_is_not_taken_for_the_project() {
    let project = Project::new();
    project.write("mine.txt", "mine\n");
    let workplace = project.workplace_at(&project.folder.path().join("state"));
    run(&workplace, "w", "echo x > x.txt; rm -r .git").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert!(changes.notes.join("; ").contains("not everything could be committed"), "{:?}", changes.notes);
    assert_eq!(project.git(&["rev-parse", "midturn/s1/w"]), project.git(&["rev-parse", "main"]));
    let diff = workplace.diff(&name("w")).await.unwrap();
    assert!(!diff.patch.contains("mine"), "{}", diff.patch);
}

#[tokio::test]
async fn another_sessions_worktree_is_never_taken() {
    let project = Project::new();
    let of = |session: &str| project.workplace_of(session, project.folder.path());
    let first = run(&of("a/b"), "w", "echo x > x.txt").await;
    let other = of("a-b").resumed(true);
    assert_eq!(other.branch(&name("w")), None, "an id of the same form");
    let second = run(&other, "w", "test ! -e x.txt").await;
    assert_ne!(first, second);
    // Not resumed: a new session that happens to have the name of an old one.
    let third = run(&of("a-b"), "w", "true").await;
    assert!(third != first && third != second);
    assert_eq!(run(&of("a-b").resumed(true), "w", "true").await, third);
    assert_eq!(git(&first, &["branch", "--show-current"]), "midturn/a-b/w");
}
