//! What agents' commands may touch, and what they planted (issue 4, item 2): in each kind of
//! sandbox that the machine offers.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use midturn_core::engine::ports::{Merge, Workplace as _};
use midturn_tools::sandbox::{Sandbox, TreeLimits};
use midturn_tools::workplace::GitAccess;
use serde_json::json;
use support::guarded::{Place, bash};
use support::project::{content, differences, git, run};
use support::{call, has_python_for_a_part, name, sandboxed};

/// The sandboxes that can be had on this machine, each of which has to do.
async fn sandboxes() -> Vec<Sandbox> {
    sandboxed::sandboxes(false, TreeLimits::default()).await
}

/// With git's own folder open to the lead's commands, and, where that is another thing, not.
async fn in_both_ways() -> Vec<(Sandbox, GitAccess)> {
    let open = sandboxes().await.into_iter().map(|sandbox| (sandbox, GitAccess::Write));
    let read_only = sandboxed::sandboxes_with_a_view().await.into_iter();
    open.chain(read_only.map(|sandbox| (sandbox, GitAccess::Read))).collect()
}

#[tokio::test]
async fn in_a_worktree_an_agent_can_do_what_commits_need() {
    let rows = [
        "echo 1 > one.txt; git add one.txt; git commit -q -m one",
        "git commit -q --amend -m two",
        "echo 2 > two.txt; git add .; git commit -q -m three; git reset -q --soft HEAD~1; git commit -q -m four",
        "git rebase -q -f HEAD~1",
        "git switch -q --detach; echo 3 > three.txt; git add .; git commit -q -m d; git switch -q -",
        "echo 4 > a.txt; git commit -q -a -m four; \
         git checkout -q --detach HEAD~1; echo 5 > a.txt; git commit -q -a -m five; ! git cherry-pick midturn/s1/w; \
         git cherry-pick --abort; ! git merge -q midturn/s1/w; git merge --abort; ! git rebase -q midturn/s1/w; \
         git rebase --abort; git switch -q midturn/s1/w; git revert --no-edit HEAD; git reset -q --hard HEAD~2",
        "git log --oneline main; git diff main; git status --short; git show HEAD; git reflog",
        "mkdir deep; echo x > deep/x; mv deep other; rm -r other",
        "echo x > \"$TMPDIR/x\"; test \"$(cat \"$TMPDIR/x\")\" = x; echo y > /tmp/y || ! mountpoint -q /tmp",
        "git init -q inner; cd inner; echo x > x; git add x; git -c user.name=w -c user.email=w@w commit -q -m inner; rm -rf ../inner",
    ];
    for sandbox in sandboxes().await {
        let place = Place::new();
        let workplace = place.workplace(&sandbox);
        for command in rows {
            let output = bash(&workplace, "w", &format!("set -e; {command}")).await;
            assert!(!output.is_error, "{}: {command}: {}", sandbox.in_force(), output.text);
        }
        bash(&workplace, "w", "echo left > left.txt").await;
        let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
        assert_eq!(changes.notes, Vec::<String>::new(), "{}", sandbox.in_force());
        assert_eq!(changes.files, ["left.txt", "one.txt", "two.txt"]);
        assert_eq!(place.project.git(&["show", "midturn/s1/w:left.txt"]), "left");
        let Merge::Merged(_) = workplace.merge(&name("w")).await.unwrap() else { panic!("not merged") };
        assert_eq!(place.project.git(&["status", "--porcelain"]), "");
        place.project.git(&["fsck", "--strict"]);
    }
}

#[tokio::test]
async fn in_the_project_folder_commands_can_commit_where_a_person_says_so() {
    for sandbox in sandboxes().await {
        let place = Place::new();
        let workplace = place.workplace_with(&sandbox, GitAccess::Write);
        let command = "set -e; echo 1 > one.txt; git add one.txt; git commit -q -m one; git switch -q -c side; \
                       echo 2 > two.txt; git add .; git commit -q -m two; git switch -q main; git merge -q side; \
                       echo 3 >> one.txt; git stash -q; git stash pop -q; git tag t; git branch -D side";
        let output = bash(&workplace, "lead", command).await;
        assert!(!output.is_error, "{}: {}", sandbox.in_force(), output.text);
        assert_eq!(place.project.git(&["log", "--format=%s"]), "two\none\nc");
        let output = bash(&workplace, "lead", "git commit -qam three && cat one.txt").await;
        assert!(output.text.starts_with("1\n3\n"), "{}: {}", sandbox.in_force(), output.text);
    }
}

/// Who tries it, what, and the file that must not be there or must be as it was.
const OUTSIDE: [(&str, &str, &str); 24] = [
    ("w", "echo x > $P/.git/hooks/post-checkout", ".git/hooks/post-checkout"),
    ("w", "git config core.fsmonitor x", ".git/config"),
    ("w", "echo x >> $P/.git/info/attributes", ".git/info/attributes"),
    ("w", "echo $OUT > $P/.git/objects/info/alternates", ".git/objects/info/alternates"),
    ("w", "git update-ref refs/heads/main HEAD~0; git branch other", ".git/refs/heads/other"),
    ("w", "echo x > $P/.git/commondir", ".git/commondir"),
    ("w", "echo x > $P/a.txt", "a.txt"),
    ("w", "echo x > $P/new.txt", "new.txt"),
    ("w", "echo x > $OUT/new.txt", ""),
    ("w", "ln -s $OUT link; echo x > link/new.txt", ""),
    (
        "w",
        "rm -f $P/.git/logs/refs/heads/midturn/s1/w; ln -s $OUT/new $P/.git/logs/refs/heads/midturn/s1/w; true",
        "",
    ),
    ("lead", "echo x > .git/hooks/post-checkout", ".git/hooks/post-checkout"),
    (
        "lead",
        "mv .git/hooks .git/h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        ".git/hooks/pre-commit",
    ),
    ("lead", "git config core.fsmonitor x", ".git/config"),
    ("lead", "echo '[core]' > .git/x; mv .git/x .git/config", ".git/config"),
    ("lead", "echo x > .git/commondir", ".git/commondir"),
    ("lead", "echo x > .git/config.worktree", ".git/config.worktree"),
    ("lead", "mkdir -p .claude/agents; echo x > .claude/agents/a.md", ".claude/agents/a.md"),
    ("lead", "echo x > midturn.toml", "midturn.toml"),
    ("lead", "mkdir -p sub; echo x > sub/midturn.toml", "sub/midturn.toml"),
    ("lead", "mkdir -p .vscode; echo x > .vscode/tasks.json", ".vscode/tasks.json"),
    ("lead", "ln -s $OUT/x .mcp.json", ".mcp.json"),
    ("lead", "echo x > known/midturn.toml", "known/midturn.toml"),
    ("lead", "rm -rf known; mkdir known; echo x > known/midturn.toml", "known/midturn.toml"),
];

#[tokio::test]
async fn nothing_outside_is_written_and_nothing_with_authority_is_planted() {
    for (sandbox, access) in in_both_ways().await {
        let place = Place::new();
        place.project.write("known/midturn.toml", "known\n");
        place.project.commit();
        let there = || -> Vec<_> { OUTSIDE.iter().filter(|row| place.path(row.2).exists()).collect() };
        let from_the_start = there();
        let workplace = place.workplace_with(&sandbox, access);
        run(&workplace, "w", "true").await;
        run(&workplace, "lead", "true").await;
        let before = std::fs::read_dir(place.outside.path()).unwrap().count();
        for (agent, command, file) in OUTSIDE {
            let path = place.path(file);
            let was = std::fs::read(&path).ok();
            let words = command
                .replace("$P", place.path("").to_str().unwrap())
                .replace("$OUT", place.outside.path().to_str().unwrap());
            let output = bash(&workplace, agent, &words).await;
            let is_now = path.symlink_metadata().is_ok().then(|| std::fs::read(&path).ok()).flatten();
            let says = format!("{}: {agent}: {command}: {}", sandbox.in_force(), output.text);
            assert_eq!(is_now, was, "{says}");
            let is_nothing = path.symlink_metadata().map_or(true, |found| found.is_dir());
            assert!(file.is_empty() || was.is_some() || is_nothing, "{says}");
            assert_eq!(std::fs::read_dir(place.outside.path()).unwrap().count(), before, "{says}");
        }
        assert_eq!(place.project.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
        place.project.git(&["fsck", "--strict"]);
        // What has stood in for it is gone, too.
        workplace.run_ended(&name("lead"), 1).await.unwrap();
        assert_eq!(there(), from_the_start);
    }
}

/// C8: with mounts these can't be made even while the command runs; and git sees nothing of what stands
/// in for them.
#[tokio::test]
async fn what_stands_in_at_the_top_can_neither_be_made_nor_committed() {
    for sandbox in sandboxed::sandboxes_with_a_view().await {
        let place = Place::new();
        let workplace = place.workplace(&sandbox);
        let command = "for name in midturn.toml .mcp.json .claude .midturn .vscode .idea; do \
                       ! echo x > $name; ! touch $name/x; ! mv a.txt $name; ! rm -rf $name; done 2>&-; ls -A; \
                       git status --porcelain";
        for agent in ["lead", "w"] {
            let output = bash(&workplace, agent, command).await;
            assert!(!output.is_error, "{}: {agent}: {}", sandbox.in_force(), output.text);
            let listed: Vec<_> = output.text.lines().collect();
            let all =
                [".claude", ".git", ".idea", ".mcp.json", ".midturn", ".vscode", "a.txt", "midturn.toml"];
            assert_eq!(listed, all, "{}: {agent}", sandbox.in_force());
        }
        for agent in ["lead", "w"] {
            workplace.run_ended(&name(agent), 1).await.unwrap();
        }
        let left = std::fs::read_dir(place.path("")).unwrap().count();
        assert_eq!(left, 2, "{}", sandbox.in_force());
    }
}

/// C4: what git would obey where a person works is gone at the run's end, and the repository isn't.
#[tokio::test]
async fn what_agents_leave_for_git_in_the_project_folder_is_put_aside_and_said() {
    for sandbox in sandboxes().await {
        let place = Place::new();
        let workplace = place.workplace(&sandbox);
        let program = place.program();
        let command = format!(
            "set -e; git init -q inner; cd inner; git config core.fsmonitor {0}; git config user.name w; \
             git init -q --bare data; cp {0} data/hooks/post-checkout; git init -q plain",
            program.display()
        );
        let output = bash(&workplace, "lead", &command).await;
        assert!(!output.is_error, "{}: {}", sandbox.in_force(), output.text);
        let notes = workplace.run_ended(&name("lead"), 1).await.unwrap().notes;
        let expected = ["`inner/.git/config` has settings", "`inner/data/hooks/post-checkout` is run by git"];
        assert_eq!(notes.len(), expected.len(), "{}: {notes:?}", sandbox.in_force());
        for expected in expected {
            assert!(notes.iter().any(|note| note.starts_with(expected)), "{expected}: {notes:?}");
        }
        git(&place.path("inner"), &["status"]);
        assert!(!place.witness().exists(), "{}", sandbox.in_force());
        assert_eq!(git(&place.path("inner"), &["config", "user.name"]), "w");
        assert_eq!(workplace.run_ended(&name("lead"), 2).await.unwrap().notes, Vec::<String>::new());
        // What a person does between two runs is a person's; and tools can make a repository, too.
        git(&place.path("inner"), &["config", "alias.st", "!true"]);
        let toolbox = workplace.open(&name("lead")).await.unwrap();
        let settings = "[core]\n\tfsmonitor = x\n";
        for (path, content) in [("b/HEAD", ""), ("b/objects/x", ""), ("b/refs/x", ""), ("b/config", settings)]
        {
            call(&toolbox, "write", json!({"path": path, "content": content})).await;
        }
        let notes = workplace.run_ended(&name("lead"), 3).await.unwrap().notes;
        assert!(notes.len() == 1 && notes[0].starts_with("`b/config` has settings"), "{notes:?}");
        assert_eq!(git(&place.path("inner"), &["config", "alias.st"]), "!true");
    }
}

#[tokio::test]
async fn a_branch_that_changes_what_is_obeyed_is_merged_by_a_person_only() {
    for sandbox in sandboxes().await {
        let place = Place::new();
        let workplace = place.workplace(&sandbox);
        // Never a file of the worktree, so there is nothing to put aside.
        let command = "blob=$(echo evil | git hash-object -w --stdin); \
                       git update-index --add --cacheinfo 100644,$blob,.claude/agents/evil.md; git commit -q -m e; \
                       git update-index --skip-worktree .claude/agents/evil.md";
        bash(&workplace, "w", command).await;
        let merged = workplace.merge(&name("w")).await.unwrap();
        let Merge::Refused(why) = merged else { panic!("{merged:?}") };
        assert!(why.contains("(.claude/agents/evil.md)") && why.contains("git merge midturn/s1/w"), "{why}");
        assert!(!place.path(".claude").exists());
    }
}

#[tokio::test]
async fn secrets_and_other_agents_are_out_of_sight() {
    for sandbox in sandboxes().await {
        let place = Place::new();
        let state = place.project.state.path().canonicalize().unwrap();
        std::fs::write(state.join("token"), "canary\n").unwrap();
        let workplace = place.workplace(&sandbox);
        let other = run(&workplace, "other", "echo canary > o.txt; echo canary > \"$TMPDIR/t\"").await;
        let reads = [
            format!("cat {}/token", state.display()),
            format!("cat {}/o.txt", other.display()),
            format!("cat {}/tmp/s1/other/t", state.display()),
            format!("grep -r canary {}", state.display()),
            "env; cat /proc/$PPID/environ".to_owned(),
        ];
        for agent in ["w", "lead"] {
            for command in &reads {
                let output = bash(&workplace, agent, command).await;
                assert!(
                    !output.text.contains("canary"),
                    "{}: {agent}: {command}: {}",
                    sandbox.in_force(),
                    output.text
                );
            }
        }
    }
}

/// What the lead does with git's own folder: `$PLANT` plants programs and settings in each that it
/// can find.
const MOVED: [&str; 13] = [
    "mv .git g; cp -r g .git; $PLANT",
    "mv .git g; mkdir -p sub; mv g sub/g; git init -q --bare fake; echo \"gitdir: $PWD/fake\" > .git; $PLANT",
    "mv .git g; ln -s g .git; $PLANT",
    "mkdir new; mv .git new/original; cp -r new/original/. new; mv new .git; $PLANT",
    "mv .git g; $PLANT",
    "mkdir -p .claude; mv .git .claude/g; $PLANT",
    "mkdir -p .claude; mv .git .claude/g; cp -r .claude/g .git; ln -s .claude other; $PLANT",
    "python3 -c 'import os; os.rename(\".git\", os.environ[\"TMPDIR\"] + \"/g\")' && cp -r \"$TMPDIR/g\" .git; $PLANT",
    "mkdir sub; mv .git sub/g; mkdir .git; $PLANT; chmod 000 .git sub/g; chmod 500 sub .",
    "mkfifo pipe; mv .git g; mv pipe .git; $PLANT",
    "mv .git/worktrees .git/g; cp -r .git/g .git/worktrees; $PLANT",
    "mv .git/worktrees/w .git/worktrees/g; cp -r .git/worktrees/g .git/worktrees/w; $PLANT",
    "mv .git/worktrees .git/g; ln -s g .git/worktrees; mv .git g; cp -r g .git; $PLANT",
];

/// What is planted: by each file's name, what a person's git would obey.
const PLANT: &str = "for d in .git g sub/g .claude/g .git/original \"$TMPDIR/g\"; do [ -d $d ] || continue; \
    mkdir -p $d/hooks $d/info $d/modules/m/hooks; echo x > $d/hooks/post-checkout; echo x > $d/commondir; \
    echo x > $d/config.worktree; echo x >> $d/config; echo x > $d/info/attributes; echo x > $d/modules/m/config; \
    echo x > $d/objects/info/alternates; \
    for w in $d/worktrees/*; do [ -d $w ] && echo x > $w/commondir; echo x > $w/config.worktree; rm -f $w/gitdir; done; \
    done; true";

#[tokio::test]
async fn gits_own_folder_comes_back_as_it_was_wherever_it_is_moved() {
    for (sandbox, access) in in_both_ways().await {
        let place = Place::new();
        place.project.git(&["config", "gc.auto", "0"]);
        let workplace = place.workplace_with(&sandbox, access);
        run(&workplace, "w", "true").await;
        run(&workplace, "lead", "true").await;
        let before = content(&place.path(".git"));
        let id = |path: &str| place.path(path).symlink_metadata().map(|about| (about.dev(), about.ino()));
        let known = [id(".git").unwrap(), id(".git/worktrees").unwrap()];
        let moved = MOVED.into_iter();
        for command in moved.filter(|text| !text.starts_with("python3") || has_python_for_a_part()) {
            let output = bash(&workplace, "lead", &command.replace("$PLANT", PLANT)).await;
            let says = format!("{}: {command}: {}", sandbox.in_force(), output.text);
            assert_eq!(known, [id(".git").unwrap(), id(".git/worktrees").unwrap()], "{says}");
            let changed = differences(&before, &content(&place.path(".git")));
            let of_rubbish = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "g");
            let changed: Vec<_> = changed.iter().filter(|path| !of_rubbish(path)).collect();
            assert!(changed.is_empty(), "{says}: {changed:?}");
            assert!(output.is_error || sandbox.in_force().mount_namespace, "{says}");
            let next =
                "chmod u+rwx sub; rm -rf .git/worktrees/g .git/g sub .claude other fake new g; git status";
            let next = bash(&workplace, "lead", next).await;
            assert!(!next.text.contains("not started"), "{says}: {}", next.text);
            assert!(!place.path(".claude/g").exists(), "{says}: {}", next.text);
        }
        for agent in ["lead", "w"] {
            let output = bash(&workplace, agent, "git commit -q --allow-empty -m after").await;
            let reads = agent == "lead" && access == GitAccess::Read && sandbox.in_force().mount_namespace;
            assert_eq!(output.is_error, reads, "{}: {agent}: {}", sandbox.in_force(), output.text);
        }
        place.project.git(&["fsck", "--strict"]);
    }
}

#[tokio::test]
async fn what_a_running_command_did_to_its_own_worktree_keeps_nobody_from_another() {
    const RUIN: &str = "own=$(git rev-parse --absolute-git-dir); \
        for file in commondir gitdir; do echo no/such > beside; mv -f beside $own/$file; done; echo > told; cat go";
    for sandbox in sandboxes().await {
        let place = Place::new();
        let workplace = place.workplace(&sandbox);
        let folder = run(&workplace, "one", "mkfifo told go").await;
        let blocking = |act: fn(PathBuf), pipe: &str| {
            let pipe = folder.join(pipe);
            tokio::task::spawn_blocking(move || act(pipe))
        };
        let spawned = async {
            blocking(|told| drop(std::fs::read(told).unwrap()), "told").await.unwrap();
            let spawned = workplace.open(&name("two")).await.map(drop);
            blocking(|go| std::fs::write(go, "").unwrap(), "go").await.unwrap();
            spawned
        };
        let (output, spawned) = tokio::join!(bash(&workplace, "one", RUIN), spawned);
        spawned.unwrap_or_else(|error| panic!("{}: {error}: {}", sandbox.in_force(), output.text));
        place.project.git(&["worktree", "list"]);
    }
}

#[tokio::test]
async fn without_gits_own_folder_no_command_goes_on_with_another() {
    let rows = ["mv .git g; cp -r g .git; rm -rf g", "rm -rf .git; git init -q", "rm -rf .git; ln -s . .git"];
    for (sandbox, access) in in_both_ways().await {
        for command in rows {
            let place = Place::new();
            let workplace = place.workplace_with(&sandbox, access);
            run(&workplace, "lead", "true").await;
            let output = bash(&workplace, "lead", &format!("{command}; true")).await;
            let claim = format!("{}: {command}: {}", sandbox.in_force(), output.text);
            let next = bash(&workplace, "lead", "echo it ran").await;
            let notes = workplace.run_ended(&name("lead"), 1).await.unwrap().notes.join("\n");
            if sandbox.in_force().mount_namespace {
                assert!(
                    place.path(".git/hooks").is_dir() && next.text == "it ran\n",
                    "{claim}: {}",
                    next.text
                );
                continue;
            }
            assert!(place.path(".git").symlink_metadata().is_err(), "{claim}");
            assert!(output.is_error && output.text.contains("can't be put back: it was removed"), "{claim}");
            assert!(next.is_error && next.text.contains("not started"), "{claim}: {}", next.text);
            assert!(notes.contains("a person has to"), "{claim}: {notes}");
        }
    }
}
