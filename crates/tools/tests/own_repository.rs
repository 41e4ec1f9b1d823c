//! An agent's own repository (issue 13, item 1): what it borrows, and what comes back, in projects of every
//! kind and through whatever their owner does meanwhile.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::sync::Arc;

use midturn_core::engine::ports::{Merge, Workplace as _};
use serde_json::json;
use support::name;
use support::needs::{Need, has};
use support::own::{ME, Place, bash, ended, sandbox, sandboxes, sh};
use support::project::{content, differences};

/// What kinds of projects there are; what makes one; what an agent does there, and the files that it has
/// changed then.
const KINDS: [(&str, &str, &str, &[&str]); 13] = [
    ("plain", "true", "echo x > x.txt", &["x.txt"]),
    (
        "SHA-256",
        "rm -rf .git; git init -q -b main --object-format=sha256; git add .; git commit -qm c",
        "echo x > x.txt; $ME commit -q --allow-empty -m m",
        &["x.txt"],
    ),
    (
        "reftable",
        "rm -rf .git; git init -q -b main --ref-format=reftable; git add .; git commit -qm c; git tag -am t v1; git branch side",
        "git log --oneline side; git rev-parse v1; echo x > x.txt; git add .; $ME commit -qm m",
        &["x.txt"],
    ),
    (
        "shallow",
        "for n in 1 2 3; do git commit -q --allow-empty -m $n; done; cd ..; mv project far; git clone -q --depth 1 file://$PWD/far project",
        "test $(git rev-list --count HEAD) = 1; git fsck; echo x > x.txt",
        &["x.txt"],
    ),
    (
        "sparse",
        "mkdir in out; echo 1 > in/f; echo 2 > out/f; git add .; git commit -qm d; git sparse-checkout set in",
        "test -e in/f; test ! -e out/f; echo x > in/x.txt; git status --short",
        &["in/x.txt"],
    ),
    (
        "partial",
        "echo old > old.txt; git add .; git commit -qm old; git rm -q old.txt; git commit -qm new; git config uploadpack.allowFilter true; cd ..; \
         mv project far; git clone -q --filter=blob:none file://$PWD/far project",
        "git log --oneline; ! git show HEAD~1:old.txt; echo x > x.txt",
        &["x.txt"],
    ),
    (
        "a linked worktree",
        "cd ..; mv project main; git -C main worktree add -q ../project -b linked",
        "git log --oneline main; echo x > x.txt; git add .; $ME commit -qm m",
        &["x.txt"],
    ),
    (
        "tags and branches",
        "git tag -am t v1; git branch side; git branch feature/x; git update-ref refs/remotes/origin/main HEAD; git tag b $(git rev-parse HEAD:a.txt); \
         git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main",
        "test \"$(git describe)\" = v1; git tag -n v1; git switch -q feature/x; git switch -q -; git fsck; git gc -q; echo x > x.txt",
        &["x.txt"],
    ),
    (
        "a branch ahead of its upstream",
        "git clone -q --bare . ../far; git remote add origin https://me:secret@example.invalid/x; git config branch.main.remote origin; \
         git config branch.main.merge refs/heads/main; git update-ref refs/remotes/origin/main HEAD; git commit -q --allow-empty -m ahead",
        "git remote -v | grep -q example.invalid; ! grep -r secret .git/config; git log --oneline origin/main..main; echo x > x.txt",
        &["x.txt"],
    ),
    (
        "hooks",
        "mkdir .husky; printf '#!/bin/sh\\necho hook > hooked.txt; git add hooked.txt\\n' > .husky/pre-commit; chmod +x .husky/pre-commit; git add .; \
         git commit -qm h; git config core.hooksPath .husky",
        "echo x > x.txt; git add .; $ME commit -qm m; test -e hooked.txt",
        &["hooked.txt", "x.txt"],
    ),
    (
        "damaged",
        "git switch -qc bad; echo bad > bad.txt; git add .; git commit -qm bad; git switch -q main; \
         rm -f .git/objects/$(git rev-parse bad | sed 's|^..|&/|'); echo nonsense > .git/refs/heads/worse",
        "echo x > x.txt; git add .; $ME commit -qm m",
        &["x.txt"],
    ),
    (
        "objects of its own borrowed",
        "cd ..; mv project far; git clone -q --shared far project",
        "echo x > x.txt; git log --oneline",
        &["x.txt"],
    ),
    (
        "a day's work",
        "git switch -qc topic; echo t > t.txt; git add .; git commit -qm t; git switch -q main; echo m > m.txt; git add .; git commit -qm m",
        "set -x; $ME merge -q topic -m merged; echo s > a.txt; $ME stash -q; $ME stash pop -q; git checkout -q a.txt; $ME rebase -q HEAD~1; \
         git worktree add -q wt -b other; git worktree remove wt; git bisect start HEAD HEAD~1; git bisect reset; $ME cherry-pick --allow-empty topic || $ME cherry-pick --skip; \
         git branch -q -D other; git tag mine; git reflog > /dev/null; git gc -q --prune=now; echo x > x.txt",
        &["t.txt", "x.txt"],
    ),
];

/// Those of them in which the sandbox plays a part.
const IN_EVERY_SANDBOX: [&str; 4] = ["plain", "a linked worktree", "hooks", "a day's work"];

#[tokio::test]
async fn git_works_in_projects_of_every_kind_and_the_work_comes_back() {
    for (n, sandbox) in sandboxes().await.into_iter().enumerate() {
        let rows = KINDS.into_iter().filter(|(kind, ..)| n == 0 || IN_EVERY_SANDBOX.contains(kind));
        for (kind, makes, does, files) in rows {
            let place = Place::with_a_commit();
            place.sh(makes);
            let workplace = place.workplace(&sandbox);
            let does = format!("set -e; {{ {}; }} 2>&1", does.replace("$ME", ME));
            let output = bash(&workplace, "w", &does).await;
            let claim = format!("{}: {kind}: {}", sandbox.in_force(), output.text);
            assert!(!output.is_error, "{claim}");
            let diff = workplace.diff(&name("w")).await.unwrap();
            assert!(diff.patch.contains("x.txt"), "{claim}: {diff:?}");
            let changes = ended(&workplace, "w").await;
            assert_eq!(
                (
                    changes.files.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
                    changes.notes.len()
                ),
                (files, 0),
                "{claim}: {changes:?}"
            );
            let merged = workplace.merge(&name("w")).await.unwrap();
            assert!(matches!(merged, Merge::Merged(_)), "{claim}: {merged:?}");
            if kind != "damaged" {
                place.git(&["fsck"]);
            }
            assert_eq!(place.git(&["status", "--porcelain"]), "", "{claim}");
        }
    }
}

/// What a project's owner does while an agent works, and its whole history with it.
const DAYS: [&str; 7] = [
    "git commit -q --amend -m amended; git reflog expire --expire=all --all; git gc -q --prune=now",
    "git switch -q --orphan new; git commit -q --allow-empty -m new; git branch -q -D main side; git tag -d v1; \
     git reflog expire --expire=all --all; git gc -q --prune=now",
    "git repack -q -ad; git prune --expire=now; git worktree prune",
    "git rebase -q --root --exec 'git commit -q --amend --no-edit --allow-empty -m r'; git branch -q -D side; \
     git reflog expire --expire=all --all; git gc -q --prune=now --aggressive",
    "git pack-refs --all --prune; git maintenance run --task=gc --quiet; git prune --expire=now",
    "git branch -q -D midturn/s1/w; git reflog expire --expire=all --all; git gc -q --prune=now",
    "git worktree add -q ../linked; git -C ../linked commit -q --allow-empty -m linked; git worktree remove --force ../linked",
];

/// Nothing of an agent's is lost, and nothing that it borrowed.
#[tokio::test]
async fn whatever_the_owner_does_meanwhile_an_agent_has_what_it_borrowed() {
    let sandbox = sandbox().await;
    for day in DAYS {
        let place = Place::with_a_commit();
        place.sh("git switch -qc side; echo s > s.txt; git add .; git commit -qm s; git tag -am t v1; git switch -q main");
        let workplace = place.workplace(&sandbox);
        let commit = format!("echo 1 > one.txt; git add .; {ME} commit -qm one");
        assert!(!bash(&workplace, "w", &commit).await.is_error);
        ended(&workplace, "w").await;
        assert!(!bash(&workplace, "w", &commit.replace("one", "two")).await.is_error);
        place.sh(day);
        let output = bash(
            &workplace,
            "w",
            &format!("set -e; git fsck; git log --all --oneline; git show v1 side:s.txt main:a.txt; echo 3 > three.txt; git add .; {ME} commit -qm three"),
        )
        .await;
        let claim = format!("{day}: {}", output.text);
        assert!(!output.is_error, "{claim}");
        let changes = ended(&workplace, "w").await;
        assert_eq!(changes.files, ["one.txt", "three.txt", "two.txt"], "{claim}: {changes:?}");
        assert_eq!(changes.notes, Vec::<String>::new(), "{claim}");
        assert_eq!(place.git(&["log", "--format=%s", "-3", "midturn/s1/w"]), "three\ntwo\none", "{claim}");
        place.git(&["fsck", "--strict"]);
    }
}

/// Submodules are there, from those that the project has, and what it lacks is said.
#[tokio::test]
async fn submodules_come_from_the_projects_own() {
    for sandbox in sandboxes().await {
        let place = Place::with_a_commit();
        sh(
            place.folder.path(),
            "git init -q -b main lib; cd lib; echo l > l.txt; git add .; git commit -qm l",
        );
        place.sh(
            "add='git -c protocol.file.allow=always submodule --quiet add'; $add ../lib libs/one; $add ../lib gone; \
             git commit -qm s; git submodule deinit -q -f gone; rm -rf .git/modules/gone ../lib",
        );
        let workplace = place.workplace(&sandbox);
        let command = "set -e; cat libs/one/l.txt; test ! -e gone/l.txt; git submodule status; git -C libs/one log --oneline; \
                       git config submodule.libs/one.url; echo x > x.txt";
        let output = bash(&workplace, "w", command).await;
        let changes = ended(&workplace, "w").await;
        let claim = format!("{}: {}: {changes:?}", sandbox.in_force(), output.text);
        assert!(
            !output.is_error && output.text.starts_with("l\n") && !output.text.contains("file:"),
            "{claim}"
        );
        assert_eq!(changes.files, ["x.txt"], "{claim}");
        assert!(
            changes.notes.len() == 1
                && changes.notes[0].ends_with(": gone (the project has nothing of it either)"),
            "{claim}: {changes:?}"
        );
        assert!(matches!(workplace.merge(&name("w")).await.unwrap(), Merge::Merged(_)), "{claim}");
        assert_eq!(place.git(&["status", "--porcelain"]), "", "{claim}");
    }
}

/// Five agents at once, of whom two changed the same file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_branches_of_five_agents_are_merged_one_after_the_other() {
    let place = Place::with_a_commit();
    let workplace = Arc::new(place.workplace(&sandbox().await));
    let at_work: Vec<_> = (0..5)
        .map(|n| {
            let workplace = workplace.clone();
            tokio::spawn(async move {
                let agent = format!("w{n}");
                let line = if n < 2 { format!("echo {n} > a.txt") } else { format!("echo {n} > {n}.txt") };
                assert!(!bash(&workplace, &agent, &line).await.is_error);
                ended(&workplace, &agent).await
            })
        })
        .collect();
    for agent in at_work {
        assert_eq!(agent.await.unwrap().notes, Vec::<String>::new());
    }
    for (n, conflicts) in [(0, false), (1, true), (2, false), (3, false), (4, false)] {
        let merged = workplace.merge(&name(&format!("w{n}"))).await.unwrap();
        assert_eq!(matches!(merged, Merge::Conflicts(_)), conflicts, "{n}: {merged:?}");
    }
    assert_eq!(place.sh("cat a.txt 2.txt 3.txt 4.txt"), "0\n2\n3\n4\n");
}

/// Two Midturns in two worktrees of one repository, and agents of the same name.
#[tokio::test]
async fn a_second_midturn_in_a_linked_worktree_is_in_nobodys_way() {
    let sandbox = sandbox().await;
    let place = Place::with_a_commit();
    place.sh("git worktree add -q ../linked -b linked");
    let (first, second) = (place.workplace(&sandbox), place.workplace_in(&place.at("linked"), &sandbox));
    for (workplace, text) in [(&first, "1"), (&second, "2")] {
        assert!(!bash(workplace, "w", &format!("echo {text} > {text}.txt")).await.is_error);
    }
    let branches = [ended(&first, "w").await.branch.unwrap(), ended(&second, "w").await.branch.unwrap()];
    assert_eq!(branches, ["midturn/s1/w", "midturn/s2/w"]);
    for (workplace, folder, file) in [(&first, "project", "1.txt"), (&second, "linked", "2.txt")] {
        assert!(matches!(workplace.merge(&name("w")).await.unwrap(), Merge::Merged(_)));
        assert!(place.at(folder).join(file).exists());
    }
}

/// A session of before, whose agents had linked worktrees: with a merge that is not finished.
#[tokio::test]
async fn a_worktree_as_agents_had_them_before_is_taken_over() {
    for opens in [true, false] {
        let place = Place::with_a_commit();
        let top = place.at("state/worktrees/s1/w");
        std::fs::create_dir_all(top.parent().unwrap()).unwrap();
        let start = place.git(&["rev-parse", "HEAD"]);
        place.sh(&format!("git worktree add -q --no-track -b midturn/s1/w {}", top.display()));
        let record = json!({"version": 1, "session": "s1", "agent": "w", "name": "w", "branch": "midturn/s1/w", "start": start, "made": true});
        std::fs::write(top.with_file_name("w.json"), record.to_string()).unwrap();
        sh(
            &top,
            "echo c > c.txt; git add .; git commit -qm c; echo s > s.txt; git add s.txt; echo u > u.txt",
        );
        let workplace = place.workplace(&sandbox().await).resumed(true);
        if opens {
            let output =
                bash(&workplace, "w", &format!("set -e; git status --short; {ME} commit -qm staged")).await;
            assert!(!output.is_error && output.text == "A  s.txt\n?? u.txt\n", "{}", output.text);
            let changes = ended(&workplace, "w").await;
            assert_eq!((changes.files.len(), changes.notes), (3, Vec::<String>::new()));
        } else {
            let diff = workplace.diff(&name("w")).await.unwrap();
            assert!(["+c\n", "+s\n", "+u\n"].iter().all(|added| diff.patch.contains(added)), "{diff:?}");
            sh(&top, "git add .; git commit -qm rest");
        }
        assert!(matches!(workplace.merge(&name("w")).await.unwrap(), Merge::Merged(_)));
        assert_eq!(place.git(&["worktree", "list"]).lines().count(), 1, "the old one is gone");
        place.git(&["branch", "-d", "midturn/s1/w"]);
        place.git(&["fsck", "--strict"]);
    }
}

/// Large files: their names are in git, what is in them is the owner's, and stays it.
#[tokio::test]
async fn large_files_are_there_and_stay_as_they_are() {
    let found = std::process::Command::new("git").args(["lfs", "version"]).output();
    if !has(Need::Lfs, found.is_ok_and(|said| said.status.success())) {
        return;
    }
    for sandbox in sandboxes().await {
        let place = Place::with_a_commit();
        place.sh("git lfs install --local > /dev/null; git lfs track '*.bin' > /dev/null; echo large > l.bin; git add .; git commit -qm l; \
             touch -d 2020-01-01 *; git status > /dev/null");
        let before = content(&place.at("project/.git/lfs"));
        let workplace = place.workplace(&sandbox);
        let command = format!(
            "set -e; grep -qx large l.bin; git lfs ls-files; echo worse >> l.bin; echo new > n.bin; git add n.bin; {ME} commit -qm n"
        );
        let output = bash(&workplace, "w", &command).await;
        let claim = format!("{}: {}", sandbox.in_force(), output.text);
        assert!(!output.is_error, "{claim}");
        let changes = ended(&workplace, "w").await;
        assert_eq!(
            (changes.files, changes.notes),
            (vec!["l.bin".to_owned(), "n.bin".to_owned()], vec![]),
            "{claim}"
        );
        assert!(place.git(&["show", "midturn/s1/w:l.bin"]).contains("oid sha256:"), "{claim}");
        assert!(matches!(workplace.merge(&name("w")).await.unwrap(), Merge::Merged(_)), "{claim}");
        let changed = differences(&before, &content(&place.at("project/.git/lfs")));
        assert!(changed.iter().all(|path| !before.contains_key(path)), "{claim}: {changed:?}");
        assert_eq!(
            place.sh("git lfs checkout > /dev/null; cat l.bin n.bin"),
            "large\nworse\nnew\n",
            "{claim}"
        );
    }
}

/// A folder in memory, of so many bytes.
struct Disk(std::path::PathBuf);

impl Disk {
    /// `None`: nobody may make one here.
    fn mount(at: &std::path::Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size},mode=700");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .status();
        has(Need::Mount, mount.is_ok_and(|mounted| mounted.success())).then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        std::process::Command::new("umount").arg("--lazy").arg(&self.0).status().unwrap();
    }
}

/// On a full disk an agent has no place, and leaves none half made: with room, it has the one that it would have had.
#[tokio::test]
async fn a_full_disk_is_said_and_leaves_nothing_behind() {
    let place = Place::with_a_commit();
    place.sh("head -c 8M /dev/urandom > large; git add .; git commit -qm large");
    let Some(disk) = Disk::mount(&place.at("state"), "4m") else { return };
    let workplace = place.workplace(&sandbox().await);
    let Err(error) = workplace.open(&name("w")).await.map(drop) else { panic!("8 MB are not in 4") };
    assert!(error.0.contains("(free on the disk of"), "{error:?}");
    assert_eq!(place.git(&["for-each-ref", "refs/heads/midturn"]), "");
    let left =
        std::fs::read_dir(place.at("state/worktrees/s1")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["w.json"], "what is remembered of it, and nothing else");
    sh(&disk.0, "mount -o remount,size=64m .");
    assert!(!bash(&workplace, "w", "echo x > x.txt").await.is_error);
    let changes = ended(&workplace, "w").await;
    assert_eq!((changes.branch.as_deref(), changes.files), (Some("midturn/s1/w"), vec!["x.txt".to_owned()]));
    assert_eq!(changes.notes, Vec::<String>::new());
}
