//! The project's `.git` is read-only to commands of agents that work in the project folder, and they
//! commit by a tool (docs/decisions/0036): in each kind of sandbox that the machine offers.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use midturn_core::engine::ports::{Toolbox, Workplace as _};
use midturn_core::rules::approval::Effect;
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::CallId;
use midturn_tools::sandbox::{Sandbox, TreeLimits};
use midturn_tools::workplace::GitAccess;
use serde_json::{Value, json};
use support::lead::Place;
use support::project::{Project, content, differences, git};
use support::{name, sandboxed};

async fn sandboxes() -> Vec<Sandbox> {
    sandboxed::sandboxes(false, TreeLimits::default()).await
}

fn find(lead: &Arc<dyn Toolbox>, tool: &str) -> bool {
    lead.find(&ToolUse { id: CallId::new("c"), name: tool.into(), input: Value::Null }).is_some()
}

/// What git does by writing in its own folder; each fails by git's own words.
const WRITES: [&str; 9] = [
    "git add a.txt",
    "git commit -qam x",
    "git stash",
    "git checkout -q -b side",
    "git restore --staged a.txt",
    "git branch side",
    "git tag t",
    "git replace HEAD HEAD~0",
    "git config core.hooksPath /none",
];

/// What looks.
const READS: [&str; 7] = [
    "git status --short",
    "git diff",
    "git log --oneline",
    "git blame a.txt",
    "git grep two",
    "git describe --always",
    "git show HEAD",
];

/// C4: with mounts nothing in there changes, whatever a command does.
#[tokio::test]
async fn commands_in_the_project_folder_look_at_git_and_change_nothing_there() {
    for sandbox in sandboxed::sandboxes_with_a_view().await {
        let place = Place::new(&sandbox).await;
        place.bash("true").await;
        let before = content(&place.path(".git"));
        place.project.write("a.txt", "two\n");
        for command in READS {
            let output = place.bash(command).await;
            assert!(!output.is_error, "{}: {command}: {}", sandbox.in_force(), output.text);
        }
        for command in WRITES {
            let output = place.bash(command).await;
            let claim = format!("{}: {command}: {}", sandbox.in_force(), output.text);
            assert!(output.is_error, "{claim}");
            // What git says of this one names no reason.
            let told = output.text.contains("use the tool `commit`");
            assert_eq!(told, !command.contains("replace"), "{claim}");
        }
        place.bash("rm -rf .git; mv .git g; echo x > .git/HEAD; rm .git/index; touch .git/new").await;
        let changed = differences(&before, &content(&place.path(".git")));
        assert_eq!(changed, Vec::<PathBuf>::new(), "{}", sandbox.in_force());
    }
}

/// Where the project folder isn't the top of a repository of its own.
#[tokio::test]
async fn gits_folders_are_read_only_wherever_they_are() {
    for sandbox in sandboxes().await {
        for kind in ["linked", "subfolder", "submodule"] {
            let project = Project::new();
            project.write("sub/b.txt", "b\n");
            project.commit();
            let outside = tempfile::tempdir_in("/var/tmp").unwrap();
            let linked = outside.path().join("linked");
            let folder = match kind {
                "linked" => {
                    project.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
                    linked
                }
                "subfolder" => {
                    git(outside.path(), &["clone", "-q", project.folder.path().to_str().unwrap(), "p"]);
                    outside.path().join("p/sub")
                }
                _ => {
                    let from = project.folder.path().to_str().unwrap().to_owned();
                    git(outside.path(), &["init", "-q"]);
                    let words =
                        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "m"];
                    git(outside.path(), &words);
                    outside.path().join("m")
                }
            };
            let place = Place::in_folder(project, &folder, &sandbox, GitAccess::Read).await;
            let claim = format!("{}: {kind}", sandbox.in_force());
            for command in ["echo x >> .gitignore; git add .gitignore", "git branch other"] {
                let output = place.bash(command).await;
                assert!(output.is_error, "{claim}: {}", output.text);
                assert!(output.text.contains("use the tool `commit`"), "{claim}: {}", output.text);
            }
            place.bash("mkdir -p d; echo c > d/c.txt").await;
            place.committed(json!({"message": "In there"})).await;
            assert_eq!(git(&folder, &["log", "-1", "--format=%s"]), "In there", "{claim}");
            assert_eq!(git(&folder, &["status", "--porcelain"]), "", "{claim}");
            let listed = git(&folder, &["show", "--format=", "--name-only", "--relative"]);
            assert_eq!(listed, ".gitignore\nd/c.txt", "{claim}");
        }
    }
}

#[tokio::test]
async fn where_a_person_says_so_git_is_written_by_commands_and_the_tool_is_there_too() {
    for sandbox in sandboxes().await {
        let project = Project::new();
        let folder = project.folder.path().to_owned();
        let place = Place::in_folder(project, &folder, &sandbox, GitAccess::Write).await;
        let me = "git -c user.name=a -c user.email=a@example.invalid";
        let output =
            place.bash(&format!("echo 1 > one.txt; git add .; {me} commit -qm one && git branch side")).await;
        assert!(!output.is_error, "{}: {}", sandbox.in_force(), output.text);
        place.project.write("two.txt", "2\n");
        place.committed(json!({"message": "two"})).await;
        assert_eq!(place.project.git(&["log", "--format=%s"]), "two\none\nc");
    }
}

#[tokio::test]
async fn the_tool_is_there_where_an_agent_works_in_a_repositorys_project_folder() {
    for sandbox in sandboxes().await {
        let place = Place::new(&sandbox).await;
        assert!(find(&place.lead, "commit"));
        let subagent = place.workplace.open(&name("w")).await.unwrap();
        assert!(!find(&subagent, "commit") && find(&subagent, "bash"));
        let none = Project::empty();
        let folder = none.folder.path().to_owned();
        let none = Place::in_folder(none, &folder, &sandbox, GitAccess::Read).await;
        assert!(!find(&none.lead, "commit"));
    }
}

#[tokio::test]
async fn a_commit_holds_all_that_changed_and_the_persons_git_agrees() {
    for sandbox in sandboxes().await {
        let place = Place::of(Project::new(), &sandbox, |project| {
            project.write("gone.txt", "gone\n");
            project.write(".gitignore", "*.log\n");
            project.commit();
        });
        let place = place.await;
        place.bash("echo two >> a.txt; rm gone.txt; mkdir d; echo n > 'd/ü n.txt'; echo l > x.log").await;
        let said = place.committed(json!({"message": "Change it\n\nBecause.\n"})).await;
        let head = place.project.git(&["rev-parse", "HEAD"]);
        assert_eq!(said, format!("Committed {} on `main`, 3 files.", &head[..12]), "{}", sandbox.in_force());
        assert_eq!(place.status(), Vec::<String>::new());
        let log = place.log();
        assert!(log.starts_with("Change it|p <p@example.invalid>|p\n\nM\ta.txt\n"), "{log}");
        assert_eq!(
            place.project.git(&["log", "-1", "--format=%B"]),
            "Change it\n\nBecause.\n\nMidturn-Agent: lead"
        );
        assert_eq!(place.project.git(&["reflog", "-1", "--format=%gs"]), "commit: Change it");
        assert!(place.refused(json!({"message": "Again"})).await.contains("there is nothing to commit"));
        place.project.git(&["fsck", "--strict"]);
    }
}

#[tokio::test]
async fn what_is_named_is_committed_and_what_a_person_staged_stays_staged() {
    for sandbox in sandboxes().await {
        let place = Place::of(Project::new(), &sandbox, |project| {
            project.write("gone/x", "x\n");
            project.write("[a].txt", "brackets\n");
            project.commit();
            project.write("staged.txt", "a person's\n");
            project.git(&["add", "staged.txt"]);
        });
        let place = place.await;
        place.bash("echo two >> a.txt; rm -r gone; echo 2 > '[a].txt'; echo new > new.txt").await;
        let there = place.path("a.txt");
        place.committed(json!({"message": "Some", "paths": [there, "./gone", "[a].txt"]})).await;
        let shown = place.project.git(&["show", "--format=", "--name-status"]);
        assert_eq!(shown, "M\t[a].txt\nM\ta.txt\nD\tgone/x", "{}", sandbox.in_force());
        assert_eq!(place.status(), ["A  staged.txt", "?? new.txt"]);
        for (path, why) in [
            ("../a.txt", "is not a path in your working folder"),
            ("/etc/passwd", "is not a path in your working folder"),
            ("none.txt", "pathspec 'none.txt' did not match"),
            (".git/config", "a person can commit it"),
            ("*.txt", "did not match"),
        ] {
            let said = place.refused(json!({"message": "x", "paths": ["new.txt", path]})).await;
            assert!(said.contains(why), "{path}: {said}");
        }
        assert!(place.refused(json!({"message": " \n"})).await.contains("`message`"));
        assert_eq!(place.status(), ["A  staged.txt", "?? new.txt"]);
    }
}

#[tokio::test]
async fn the_first_commit_and_one_on_no_branch_are_made() {
    for sandbox in sandboxes().await {
        let project = Project::empty();
        project.git(&["init", "-q", "-b", "main"]);
        let place = Place::of(project, &sandbox, |_| {}).await;
        place.bash("echo 1 > one.txt").await;
        let said = place.committed(json!({"message": "First"})).await;
        assert!(said.contains("on `main`, 1 file."), "{said}");
        assert_eq!(place.status(), Vec::<String>::new());
        place.project.git(&["switch", "-q", "--detach"]);
        place.bash("echo 2 > two.txt").await;
        let said = place.committed(json!({"message": "Second"})).await;
        assert!(said.contains("on no branch (detached HEAD)"), "{said}");
        assert_eq!(place.project.git(&["log", "--format=%s"]), "Second\nFirst");
    }
}

#[tokio::test]
async fn where_something_is_in_the_way_it_is_refused_and_said() {
    type Prepare = fn(&Project);
    let rows: [(Prepare, &str); 3] = [
        (|project| project.write(".git/index.lock", ""), "another git command is at work"),
        (|project| project.write(".git/MERGE_HEAD", ""), "a merge is under way"),
        (
            |project| {
                project.git(&["config", "filter.lfs.clean", "cat"]);
                project.write(".gitattributes", "*.bin filter=lfs\n");
                project.write("x.bin", "x");
            },
            "x.bin goes through a filter",
        ),
    ];
    for sandbox in sandboxes().await {
        for (prepare, why) in rows {
            let place = Place::of(Project::new(), &sandbox, |_| {}).await;
            let place = {
                let Place { project, .. } = place;
                Place::of(project, &sandbox, prepare).await
            };
            place.bash("echo 2 > a.txt").await;
            let said = place.refused(json!({"message": "x"})).await;
            assert!(said.contains(why), "{}: {said}", sandbox.in_force());
        }
    }
}

/// C4: a commit neither holds what gives authority nor a repository inside that git would obey.
#[tokio::test]
async fn what_others_obey_is_left_to_a_person() {
    for sandbox in sandboxes().await {
        let place = Place::of(Project::new(), &sandbox, |project| {
            project.write(".vscode/settings.json", "{}\n");
        });
        let place = place.await;
        let inner = "git init -q inner && cd inner && echo x > x && git add x && \
                     git -c user.name=w -c user.email=w@w commit -q -m i && git config core.fsmonitor ./evil; \
                     cd ..; git init -q empty; echo 2 > a.txt; git init -q --bare bare; \
                     git -C bare config core.fsmonitor ./evil";
        let output = place.bash(inner).await;
        assert!(!output.is_error, "{}", output.text);
        for path in ["inner", "empty", ".vscode/settings.json", ".vscode"] {
            let said = place.refused(json!({"message": "x", "paths": ["a.txt", path]})).await;
            assert!(said.contains("a person can commit it") && said.contains(path), "{path}: {said}");
        }
        let said = place.committed(json!({"message": "All"})).await;
        for left_out in ["inner", "empty", ".vscode/settings.json"] {
            assert!(said.contains(left_out), "{}: {left_out}: {said}", sandbox.in_force());
        }
        let held = place.project.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(held.starts_with("a.txt\nbare/HEAD\n"), "{held}");
        assert!(!place.project.git(&["show", "HEAD:bare/config"]).contains("fsmonitor"));
        assert_eq!(place.status(), ["?? .vscode/", "?? empty/", "?? inner/"]);
    }
}

/// What the lead does so that a person's next git command obeys it; `$X` is a program.
const FOR_A_PERSON: [&str; 6] = [
    "git replace -f HEAD $(git commit-tree -m evil HEAD^{tree})",
    "git config include.path ../later; printf '[core]\\nfsmonitor = $X\\n' > later",
    "git config core.hooksPath later; mkdir -p later; cp $X later/post-index-change; cp $X later/post-checkout",
    "printf '[core]\\nfsmonitor = $X\\n' >> .git/config",
    "$INNER nested; git -C nested config core.fsmonitor $X; git add nested; echo y > nested/x",
    "git init -q --bare bare; git -C bare config core.fsmonitor $X; git -C bare config core.worktree ..",
];

/// C4: in each kind of sandbox, also where the lead can write its `.git`.
#[tokio::test]
async fn a_persons_git_runs_nothing_of_what_the_lead_left_for_it() {
    const INNER: &str = "inner() { git init -q $1; echo x > $1/x; git -C $1 add x; \
                         git -C $1 -c user.name=w -c user.email=w@w commit -q -m i; }; inner";
    for sandbox in sandboxes().await {
        for (row, by_tool) in FOR_A_PERSON.iter().flat_map(|row| [(row, false), (row, true)]) {
            let outside = tempfile::tempdir_in("/var/tmp").unwrap();
            let (program, witness) = (outside.path().join("x"), outside.path().join("ran"));
            let place = Place::new(&sandbox).await;
            let command = row.replace("$INNER", INNER).replace("$X", program.to_str().unwrap());
            let text = format!("#!/bin/sh\necho ran >> {}\n", witness.display());
            std::fs::write(&program, text).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let said = place.bash(&format!("{command}; echo two > a.txt")).await.text;
            let claim = format!("{}: {command}: {said}", sandbox.in_force());
            if by_tool {
                let said = place.commit(json!({"message": "All"})).await.text;
                assert!(said.starts_with("Committed"), "{claim}: {said}");
            }
            place.workplace.run_ended(&name("lead"), 1).await.unwrap();
            // What was run in the sandbox could not say so.
            assert!(!witness.exists(), "{claim}");
            for words in [&["status"][..], &["diff"], &["log", "-p"], &["checkout", "-q", "."]] {
                place.project.git(words);
            }
            for folder in ["nested", "bare"].map(|folder| place.path(folder)) {
                let _ = std::process::Command::new("git").arg("status").current_dir(folder).output();
            }
            assert!(!witness.exists(), "{claim}");
        }
    }
}

fn hook(project: &Project, name: &str, script: &str) {
    project.write(&format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    let path = project.folder.path().join(".git/hooks").join(name);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn hooks_run_in_the_agents_sandbox_and_may_change_what_is_committed() {
    for sandbox in sandboxes().await {
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = Place::of(Project::new(), &sandbox, |project| {
            project.write("fail", "0\n");
            project.commit();
            let out = outside.path().display();
            hook(
                project,
                "pre-commit",
                &format!(
                    "echo x > {out}/x\ngit diff --cached --name-only\necho formatted > a.txt\ngit add a.txt\nexit $(cat fail)"
                ),
            );
            hook(
                project,
                "commit-msg",
                "echo Signed-off-by: hook >> \"$1\"; grep -v bad \"$1\" > /dev/null; ! grep bad \"$1\"",
            );
        });
        let place = place.await;
        place.bash("echo two > a.txt; echo b > b.txt").await;
        let said = place.committed(json!({"message": "Both", "paths": ["b.txt"]})).await;
        assert!(
            said.contains("on `main`, 2 files.\n") && said.contains("\nb.txt"),
            "{}: {said}",
            sandbox.in_force()
        );
        assert_eq!(
            place.project.git(&["log", "-1", "--format=%B"]),
            "Both\n\nMidturn-Agent: lead\nSigned-off-by: hook"
        );
        assert_eq!(place.project.git(&["show", "HEAD:a.txt"]), "formatted");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{}", sandbox.in_force());
        assert_eq!(place.status(), Vec::<String>::new());
        place.bash("echo three > b.txt").await;
        let said = place.refused(json!({"message": "A bad one"})).await;
        assert!(said.contains("hook `commit-msg` ended with exit status 1\n"), "{said}");
        place.bash("echo 3 > fail").await;
        let said = place.refused(json!({"message": "Failing"})).await;
        assert!(
            said.contains("hook `pre-commit` ended with exit status 3\n") && said.contains("\nb.txt\nfail"),
            "{said}"
        );
        assert_eq!(place.status(), ["M b.txt", "M fail"], "what a hook did to a file is left");
    }
}

/// Where hooks can write git's own folder, what they commit there is whole, and nobody's commit is lost.
#[tokio::test]
async fn a_commit_that_came_in_between_stays_and_ours_is_refused() {
    for sandbox in sandboxes().await {
        let project = Project::new();
        hook(
            &project,
            "pre-commit",
            "unset GIT_INDEX_FILE; exec git -c user.name=h -c user.email=h@example.invalid commit -q --no-verify \
             --allow-empty -m between",
        );
        let folder = project.folder.path().to_owned();
        let place = Place::in_folder(project, &folder, &sandbox, GitAccess::Write).await;
        place.bash("echo two > a.txt").await;
        let output = place.commit(json!({"message": "Ours"})).await;
        let claim = format!("{}: {}", sandbox.in_force(), output.text);
        assert!(output.is_error && output.text.contains("somebody else committed meanwhile"), "{claim}");
        assert_eq!(place.project.git(&["log", "--format=%s"]), "between\nc", "{claim}");
        place.project.git(&["fsck", "--strict"]);
        assert_eq!(place.status(), ["M a.txt"], "{claim}");
    }
}

/// What hooks store themselves, anybody could have written: it is read from the work tree again.
#[tokio::test]
async fn what_a_hook_stages_has_to_be_in_the_work_tree() {
    let rows = [
        (
            "git update-index --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),a.txt",
            "staged a.txt otherwise",
        ),
        ("rm \"$GIT_INDEX_FILE\"; ln -s /etc/passwd \"$GIT_INDEX_FILE\"", "left no index"),
        (
            "mkdir -p .vscode 2>&-; git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.vscode/t",
            ".vscode/t",
        ),
    ];
    for sandbox in sandboxes().await {
        for (script, why) in rows {
            let place =
                Place::of(Project::new(), &sandbox, |project| hook(project, "pre-commit", script)).await;
            place.bash("echo two > b.txt").await;
            let said = place.refused(json!({"message": "x"})).await;
            assert!(said.contains(why), "{}: {script}: {said}", sandbox.in_force());
        }
    }
}

#[tokio::test]
async fn a_commit_is_asked_about_as_an_edit_is_and_as_a_command_where_nothing_holds_its_hooks() {
    let effect = |lead: &Arc<dyn Toolbox>| {
        let call = ToolUse { id: CallId::new("c"), name: "commit".into(), input: Value::Null };
        let traits = lead.find(&call).unwrap().traits(&call);
        assert!(!traits.safe && traits.abortable);
        traits.effect
    };
    let project = Project::new();
    let bare = project.workplace().open(&name("lead")).await.unwrap();
    assert_eq!(effect(&bare), Effect::Edits);
    hook(&project, "pre-commit", "true");
    assert_eq!(effect(&bare), Effect::Runs);
    for sandbox in sandboxes().await {
        let place = Place::of(Project::new(), &sandbox, |project| hook(project, "pre-commit", "true")).await;
        assert_eq!(effect(&place.lead), Effect::Edits);
    }
}
