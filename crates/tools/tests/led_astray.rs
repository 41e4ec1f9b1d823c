//! What agents make of their own repositories: our git for them runs nothing outside their sandbox, and is
//! led nowhere (issue 4, item 2; issue 13, item 1).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_core::engine::ports::{Merge, Workplace as _};
use midturn_tools::sandbox::{Sandbox, TreeLimits};
use support::guarded::{Place, bash};
use support::project::{git, run};
use support::{name, sandboxed};

/// The sandboxes that can be had on this machine, each of which has to do.
async fn sandboxes() -> Vec<Sandbox> {
    sandboxed::sandboxes(false, TreeLimits::default()).await
}

/// What an agent does to its worktree before its run ends; none of it may make our git run a
/// program, or lead it out.
const PLANTED: [&str; 5] = [
    "printf '[core]\\nfsmonitor = $X\\n[filter \"e\"]\\nclean = $X\\n' >> $OWN/config; echo '* filter=e' > .gitattributes",
    "echo '* filter=known diff=known merge=known' > .gitattributes; echo x > y.txt",
    "git init -q inner; cd inner; echo x > x; git add x; git -c user.name=w -c user.email=w@w commit -q -m i; cd ..; git add inner; git commit -q -m i; cd inner; \
     git config filter.e.clean $X; git config core.fsmonitor $X; echo '* filter=e' > .gitattributes; touch -d 2020-01-01 x",
    "ln -s $OUT/index .midturn-index; git switch -q --detach",
    "mkfifo $OWN/MERGE_MSG $OWN/pipe; ln -s $OUT/lock $OWN/index.lock",
];

/// The same, after which it is no repository any more, or another one, or one in which nothing can be
/// written without leaving the sandbox.
const REPLACED: [&str; 9] = [
    "rm -rf .git; mkdir -p .git/hooks; echo 'ref: refs/heads/x' > .git/HEAD; mkdir .git/objects .git/refs; printf '[core]\\nfsmonitor = $X\\n' > .git/config",
    "rm -rf .git; echo \"gitdir: $PWD/fake\" > .git; git init -q --bare fake; git -C fake config core.fsmonitor $X",
    "git init -q --bare fake; git -C fake config core.fsmonitor $X; echo $PWD/fake > $OWN/commondir",
    "rm -f .git/index; ln -s $OUT/index .git/index",
    "rm -f .git/logs/HEAD; ln -s $OUT/log .git/logs/HEAD",
    "mv .git/logs .git/l; ln -s $OUT .git/logs",
    "ln -s $OUT/message .git/COMMIT_EDITMSG; ln -s $OUT/head .git/ORIG_HEAD",
    "mv .git fake; ln -s fake .git; git config core.fsmonitor $X",
    "echo $OUT > $OWN/objects/info/alternates; git config core.worktree $OUT; git config core.fsmonitor $X",
];

/// C1 to C4: whatever an agent makes of its repository, the project's has only what is whole.
#[tokio::test]
async fn an_agents_repository_that_is_none_any_more_leads_nowhere() {
    for sandbox in sandboxes().await {
        for command in REPLACED {
            let place = Place::new();
            let program = place.program();
            let workplace = place.workplace(&sandbox);
            let folder = run(&workplace, "w", "true").await;
            let tip = place.project.git(&["rev-parse", "midturn/s1/w"]);
            let words = command
                .replace("$OWN", ".git")
                .replace("$OUT", place.outside.path().to_str().unwrap())
                .replace("$X", program.to_str().unwrap());
            let output = bash(&workplace, "w", &format!("echo new > new.txt; {words}")).await;
            let claim = format!("{}: {command}: {}", sandbox.in_force(), output.text);
            let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
            let _ = workplace.diff(&name("w")).await;
            let merge = workplace.merge(&name("w")).await;
            assert!(matches!(merge, Ok(Merge::Refused(_)) | Err(_)), "{claim}: {merge:?}");
            assert!(changes.notes.iter().any(|note| note.contains("the work is in")), "{claim}: {changes:?}");
            assert!(folder.join("new.txt").exists(), "{claim}");
            assert_eq!(place.project.git(&["rev-parse", "midturn/s1/w"]), tip, "{claim}");
            assert!(!place.witness().exists(), "{claim}");
            assert_eq!(std::fs::read_dir(place.outside.path()).unwrap().count(), 1, "{claim}");
            place.project.git(&["fsck", "--strict"]);
        }
    }
}

#[tokio::test]
async fn our_own_git_runs_nothing_that_was_planted_and_is_led_nowhere() {
    for sandbox in sandboxes().await {
        for command in PLANTED {
            let place = Place::new();
            let program = place.program();
            for key in
                ["filter.known.clean", "filter.known.smudge", "diff.known.textconv", "merge.known.driver"]
            {
                place.project.git(&["config", key, program.to_str().unwrap()]);
            }
            let workplace = place.workplace(&sandbox);
            let folder = run(&workplace, "w", "true").await;
            let own = git(&folder, &["rev-parse", "--absolute-git-dir"]);
            let words = command
                .replace("$OWN", &own)
                .replace("$OUT", place.outside.path().to_str().unwrap())
                .replace("$X", program.to_str().unwrap());
            let output = bash(&workplace, "w", &format!("echo new > new.txt; {words}")).await;
            // What the agent's own git ran, it ran in the sandbox, where it can't say so.
            let claim = format!("{}: {command}: {}", sandbox.in_force(), output.text);
            let changes = workplace.run_ended(&name("w"), 1).await.unwrap();
            workplace.diff(&name("w")).await.unwrap();
            workplace.merge(&name("w")).await.unwrap();
            assert!(changes.files.contains(&"new.txt".to_owned()), "{claim}: {changes:?}");
            assert_eq!(place.project.git(&["show", "midturn/s1/w:new.txt"]), "new", "{claim}");
            assert!(!place.witness().exists(), "{claim}");
            assert_eq!(std::fs::read_dir(place.outside.path()).unwrap().count(), 1, "{claim}");
        }
    }
}

/// The sandbox apart: where there is none, what an agent wrote still makes our git run nothing.
#[tokio::test]
async fn without_a_sandbox_too_our_own_git_runs_nothing_that_was_planted() {
    for command in PLANTED.iter().filter(|command| !command.contains("$OUT") && !command.contains("mkfifo")) {
        let place = Place::new();
        let program = place.program();
        let witnessing = std::fs::read(&program).unwrap();
        for key in ["filter.known.clean", "filter.known.smudge", "diff.known.textconv", "merge.known.driver"]
        {
            place.project.git(&["config", key, program.to_str().unwrap()]);
        }
        let workplace = place.project.workplace();
        let folder = run(&workplace, "w", "true").await;
        let own = git(&folder, &["rev-parse", "--absolute-git-dir"]);
        // What the agent's own git runs is the agent's affair.
        std::fs::write(&program, "#!/bin/sh\ncat\n").unwrap();
        let words = command.replace("$OWN", &own).replace("$X", program.to_str().unwrap());
        bash(&workplace, "w", &format!("echo new > new.txt; {words}")).await;
        std::fs::write(&program, &witnessing).unwrap();
        workplace.run_ended(&name("w"), 1).await.unwrap();
        let _ = workplace.diff(&name("w")).await;
        let _ = workplace.merge(&name("w")).await;
        let ran = std::fs::read_to_string(place.witness()).unwrap_or_default();
        assert_eq!(ran, "", "{command}");
    }
}
