//! Where agents work: worktrees, branches, and what is committed when (issue 2, item 5).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_core::engine::ports::Workplace as _;
use support::name;
use support::project::{Project, run};

#[tokio::test]
async fn each_subagent_has_its_own_worktree_and_the_lead_the_folder_itself() {
    let project = Project::new();
    project.git(&["config", "user.name", "p"]);
    project.git(&["config", "user.email", "p@example.invalid"]);
    let workplace = project.workplace();
    run(&workplace, "lead", "echo lead > lead.txt").await;
    let one = run(&workplace, "one", "echo 1 > a.txt; echo new > new.txt; test ! -e lead.txt").await;
    let two = run(&workplace, "two", "rm a.txt").await;
    assert!(one.starts_with(project.state.path().canonicalize().unwrap()) && one != two);
    assert_eq!(workplace.folder(&name("lead")).unwrap(), project.folder.path().canonicalize().unwrap());

    let changes = workplace.run_ended(&name("one"), 1).await.unwrap();
    assert_eq!(changes.branch.as_deref(), Some("midturn/s1/one"));
    assert_eq!(changes.files, ["a.txt", "new.txt"]);
    let changes = workplace.run_ended(&name("two"), 1).await.unwrap();
    assert_eq!(
        (changes.branch.as_deref(), changes.files),
        (Some("midturn/s1/two"), vec!["a.txt".to_owned()])
    );

    assert_eq!(project.git(&["show", "midturn/s1/one:a.txt"]), "1");
    assert_eq!(
        project.git(&["log", "-1", "--format=%an <%ae> %s", "midturn/s1/one"]),
        "p <p@example.invalid> one: run 1"
    );
    assert_eq!(project.git(&["status", "--porcelain"]), "?? lead.txt");
    assert_eq!(project.git(&["log", "--format=%s"]), "c");
}

/// A process that is killed, or a power cut, can hit git between its lock on a ref and the move.
#[tokio::test]
async fn what_a_killed_git_locked_of_ours_is_free_again() {
    let project = Project::new();
    let locked = |name: &str| {
        let lock = project.folder.path().join(".git").join(name);
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        let file = std::fs::File::create(lock).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
    };
    locked("refs/midturn/s1.lock");
    locked("refs/heads/midturn/s1/w.lock");
    let workplace = project.workplace();
    run(&workplace, "w", "echo 1 > one.txt").await;
    locked("refs/heads/midturn/s1/w.lock");
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!((changes.files, changes.notes), (vec!["one.txt".to_owned()], vec![]));
    assert_eq!(project.git(&["show", "midturn/s1/w:one.txt"]), "1");
}

#[tokio::test]
async fn files_are_reported_since_the_start_and_an_idle_run_commits_nothing() {
    let project = Project::new();
    let workplace = project.workplace();
    let agent = name("w");
    run(&workplace, "w", "echo 1 > one.txt").await;
    workplace.run_ended(&agent, 1).await.unwrap();
    run(
        &workplace,
        "w",
        "echo 2 > two.txt; git -c user.name=w -c user.email=w@w commit -q --allow-empty -m own",
    )
    .await;
    let changes = workplace.run_ended(&agent, 2).await.unwrap();
    assert_eq!((changes.files, changes.notes), (vec!["one.txt".to_owned(), "two.txt".to_owned()], vec![]));
    let tip = project.git(&["rev-parse", "midturn/s1/w"]);
    workplace.run_ended(&agent, 3).await.unwrap();
    assert_eq!(project.git(&["rev-parse", "midturn/s1/w"]), tip);
}

#[tokio::test]
async fn a_dirty_tree_stays_as_it_is_and_the_report_says_so_once() {
    let project = Project::new();
    project.write("a.txt", "changed\n");
    project.write("b.txt", "new\n");
    let workplace = project.workplace();
    run(&workplace, "w", "grep -qx one a.txt; test ! -e b.txt").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    let [note] = &*changes.notes else { panic!("{:?}", changes.notes) };
    assert!(
        note.contains("uncommitted changes in the project folder (a.txt, b.txt) are not in it"),
        "{note}"
    );
    assert!(workplace.run_ended(&name("w"), 2).await.unwrap().notes.is_empty());
    assert_eq!(project.git(&["status", "--porcelain"]), " M a.txt\n?? b.txt");
}

#[tokio::test]
async fn where_no_worktree_can_be_the_folder_itself_is_used_and_the_report_says_why() {
    let bare = Project::empty();
    let unborn = Project::empty();
    unborn.git(&["init", "-q"]);
    for (project, why) in [(bare, "it is not in a git repository"), (unborn, "has no commit yet")] {
        let workplace = project.workplace();
        let folder = run(&workplace, "w", "echo x > x.txt").await;
        assert_eq!(folder, project.folder.path().canonicalize().unwrap());
        let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
        assert_eq!(changes.branch, None);
        assert!(changes.notes[0].contains(why), "{:?}", changes.notes);
    }
}

#[tokio::test]
async fn what_is_left_over_from_before_is_left_alone() {
    let project = Project::new();
    let first = run(&project.workplace(), "w", "echo unsaved > unsaved.txt").await;
    project.git(&["branch", "midturn/s1/w.2"]);
    std::fs::create_dir(first.parent().unwrap().join("w.3")).unwrap();
    let workplace = project.workplace();
    run(&workplace, "w", "test ! -e unsaved.txt").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(changes.branch.as_deref(), Some("midturn/s1/w.4"));
    assert!(changes.notes[0].contains("left over from before"), "{:?}", changes.notes);
    assert!(first.join("unsaved.txt").exists());
}

#[tokio::test]
async fn a_folder_of_the_repository_is_the_same_folder_of_the_worktree() {
    let project = Project::new();
    project.write("sub/deep/b.txt", "b\n");
    project.commit();
    let workplace = project.workplace_in(&project.folder.path().join("sub"));
    let folder = run(&workplace, "w", "echo x > deep/b.txt; echo x > ../a.txt").await;
    assert!(folder.ends_with("w/sub"), "{}", folder.display());
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(changes.files, ["../a.txt", "deep/b.txt"]);
}

/// What is left when the machine stops while git makes one for a person.
#[tokio::test]
async fn a_worktree_that_git_left_half_made_keeps_nobody_from_another() {
    let project = Project::new();
    let files = [("gitdir", "/nowhere/.git\n"), ("commondir", "../..\n"), ("HEAD", "ref: refs/heads/x\n")];
    for (empty, _) in files {
        for (file, content) in files {
            let content = if file == empty { "" } else { content };
            project.write(&format!(".git/worktrees/{empty}-is-empty/{file}"), content);
        }
    }
    let workplace = project.workplace();
    run(&workplace, "w", "git status; git commit -q --allow-empty -m more").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(changes.notes, Vec::<String>::new());
    assert_eq!(project.git(&["log", "-1", "--format=%s", "midturn/s1/w"]), "more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_worktrees_are_made_at_once() {
    let project = Project::new();
    let workplace = std::sync::Arc::new(project.workplace());
    let opened: Vec<_> = (0..12)
        .map(|n| {
            let workplace = workplace.clone();
            tokio::spawn(async move { run(&workplace, &format!("w{n}"), "echo x > x.txt").await })
        })
        .collect();
    for opened in opened {
        opened.await.unwrap();
    }
    let ended = (0..12).map(|n| {
        let workplace = workplace.clone();
        tokio::spawn(async move { workplace.run_ended(&name(&format!("w{n}")), 1).await.unwrap() })
    });
    for ended in ended.collect::<Vec<_>>() {
        let changes = ended.await.unwrap();
        assert_eq!((changes.files, changes.notes), (vec!["x.txt".to_owned()], vec![]));
    }
}

#[tokio::test]
async fn no_hook_or_monitor_of_the_repository_runs() {
    let project = Project::new();
    let hooks = project.folder.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let witness = project.state.path().join("ran");
    let script = format!("#!/bin/sh\necho ran >> {}\nexit 1\n", witness.display());
    for hook in [
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "reference-transaction",
        "monitor",
    ] {
        std::fs::write(hooks.join(hook), &script).unwrap();
        std::fs::set_permissions(hooks.join(hook), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    project.git(&["config", "core.fsmonitor", hooks.join("monitor").to_str().unwrap()]);
    project.git(&["config", "commit.gpgSign", "true"]);
    let workplace = project.workplace();
    run(&workplace, "w", "echo x > x.txt").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!((changes.files, changes.notes), (vec!["x.txt".to_owned()], vec![]));
    assert!(!witness.exists());
}

#[tokio::test]
async fn work_is_on_the_branch_whatever_state_the_worktree_was_left_in() {
    let me = "-c user.name=w -c user.email=w@w";
    let rows = [
        ("another branch", "git switch -q -c other; echo x > x.txt".to_owned(), "on branch other"),
        (
            "no branch",
            format!("git switch -q --detach; echo x > x.txt; git add x.txt; git {me} commit -q -m d"),
            "on no branch",
        ),
        (
            "its branch deleted",
            "git switch -q --detach; git branch -q -D midturn/s1/w; echo x > x.txt".to_owned(),
            "on no branch",
        ),
        ("a lock left", "echo x > x.txt; touch \"$(git rev-parse --git-path index.lock)\"".to_owned(), ""),
        (
            "a merge with conflicts",
            format!(
                "git switch -q -c side; echo 1 > a.txt; git {me} commit -qam 1; git switch -q -; echo 2 > a.txt; \
                 git {me} commit -qam 2; git merge -q side; echo x > x.txt"
            ),
            "a merge was not finished",
        ),
        (
            "a rebase with conflicts",
            format!(
                "git switch -q -c side; echo 1 > a.txt; git {me} commit -qam 1; git switch -q -; echo 2 > a.txt; \
                 git {me} commit -qam 2; git {me} rebase -q side; echo x > x.txt"
            ),
            "on no branch",
        ),
    ];
    for (claim, command, says) in rows {
        let project = Project::new();
        let workplace = project.workplace();
        run(&workplace, "w", &format!("{{ {command}; }} > /dev/null 2>&1; true")).await;
        let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
        assert!(changes.files.contains(&"x.txt".to_owned()), "{claim}: {changes:?}");
        assert_eq!(project.git(&["show", "midturn/s1/w:x.txt"]), "x", "{claim}");
        assert!(changes.notes.join("; ").contains(says), "{claim}: {:?}", changes.notes);
        let tip = project.git(&["rev-parse", "midturn/s1/w"]);
        workplace.run_ended(&name("w"), 2).await.unwrap();
        assert_eq!(
            project.git(&["rev-parse", "midturn/s1/w"]),
            tip,
            "{claim}: nothing new, nothing committed"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_committed_is_said_and_stays() {
    let project = Project::new();
    let workplace = project.workplace();
    let folder = run(&workplace, "w", "echo x > x.txt; rm -r .git").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert!(changes.notes[0].contains("not everything could be committed"), "{:?}", changes.notes);
    assert!(folder.join("x.txt").exists());

    let inner = run(&workplace, "v", "git init -q inner; cd inner; echo y > y.txt; git add y.txt; git -c user.name=w -c user.email=w@w commit -q -m y").await;
    let changes = workplace.run_ended(&name("v"), 1).await.unwrap();
    assert_eq!(changes.files, ["inner"]);
    assert!(changes.notes[0].contains("git repository of its own"), "{:?}", changes.notes);
    assert!(inner.join("inner/y.txt").exists());
}

#[tokio::test]
async fn links_that_lead_out_are_named() {
    let project = Project::new();
    let workplace = project.workplace();
    run(&workplace, "w", "mkdir d; ln -s ../a.txt d/in; ln -s ../../x d/out; ln -s /etc/passwd p").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(
        changes.notes,
        ["links on the branch lead out of the project: d/out to ../../x, p to /etc/passwd"]
    );
}

#[tokio::test]
async fn names_with_blanks_quotes_and_line_breaks_are_reported_as_they_are() {
    let project = Project::new();
    let workplace = project.workplace();
    run(&workplace, "w", "touch 'a b' 'ü\"' $'c\\nd' .midturn-tmp-1-1").await;
    let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(changes.files, ["a b", "c\nd", "ü\""]);
}
