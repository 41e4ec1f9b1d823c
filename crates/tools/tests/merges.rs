//! What no merge brings into the project folder, whatever it is made of (C9).
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::path::{Path, PathBuf};

use midturn_core::engine::ports::{Merge, Workplace as _};
use support::name;
use support::project::{Project, content, differences, run};

/// What is committed before the agent's branch begins, what the agent commits, what the person commits meanwhile, and
/// what of the merge's result is refused; nothing: it is merged.
const OBEYED: [(&str, &str, &str, &str, &str); 13] = [
    ("a new file", "true", "mkdir .vscode; echo 1 > .vscode/t; $ADD .vscode/t", "true", "(.vscode/t)"),
    ("in another spelling", "true", "mkdir s; echo 1 > s/MidTurn.toml; $ADD s", "true", "(s/MidTurn.toml)"),
    (
        "a file in a folder that the person has renamed",
        "mkdir x; seq 9 > x/t; $ADD x",
        "echo evil >> x/t; $ADD x",
        "git mv x .vscode",
        "(.vscode/t)",
    ),
    (
        "a new file in such a folder, which git lets follow",
        "mkdir x; seq 9 > x/t; $ADD x; git config merge.directoryRenames true",
        "echo evil > x/new; $ADD x",
        "git mv x .idea",
        "(.idea/new)",
    ),
    (
        "the same, where git asks first",
        "mkdir x; seq 9 > x/t; $ADD x",
        "echo evil > x/new; $ADD x",
        "git mv x .idea",
        "(.idea/new)",
    ),
    ("a rename into", "seq 9 > t; $ADD t", "$INTO .idea/t", "true", "(.idea/t)"),
    ("a rename out of", "mkdir .idea; seq 9 > .idea/t; $ADD .idea", "$OUT .idea/t", "true", "(.idea/t)"),
    (
        "a mode",
        "echo 1 > .mcp.json; $ADD .mcp.json",
        "git update-index --chmod=+x .mcp.json",
        "true",
        "(.mcp.json)",
    ),
    (
        "a link",
        "true",
        "git update-index --add --cacheinfo 120000,$(echo x | git hash-object -w --stdin),.claude",
        "true",
        "(.claude)",
    ),
    (
        "a new repository inside",
        "true",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),inner",
        "true",
        "(inner)",
    ),
    (
        "another commit of a repository that was there",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),inner",
        "git update-index --cacheinfo 160000,$(git rev-parse HEAD),inner",
        "true",
        "",
    ),
    (
        "a conflict at such a place",
        "mkdir x; seq 9 > x/t; $ADD x",
        "echo evil >> x/t; $ADD x",
        "git mv x .vscode; echo mine >> .vscode/t; $ADD .vscode",
        "(.vscode/t)",
    ),
    (
        "what the person has done as well",
        "true",
        "mkdir .idea; echo 1 > .idea/t; $ADD .idea",
        "mkdir .idea; echo 1 > .idea/t; $ADD .idea",
        "",
    ),
];

/// C9. An agent's worktree has no such files: it commits without them.
#[tokio::test]
async fn a_merge_whose_result_changes_what_tools_obey_is_refused_however_it_comes_about() {
    for diverged in [false, true] {
        for (claim, before, by_agent, by_person, says) in OBEYED {
            if !diverged && by_person != "true" {
                continue;
            }
            let project = Project::new();
            let (folder, elsewhere) = (project.folder.path(), project.state.path().join("clone"));
            commits(folder, before);
            let workplace = project.workplace();
            let own = run(&workplace, "w", "true").await;
            workplace.run_ended(&name("w"), 1).await.unwrap();
            let own = own.display();
            // Somewhere else, where nobody looks after it.
            shell(folder, &format!("git worktree add -q --detach {}", elsewhere.display()));
            commits(&elsewhere, by_agent);
            shell(folder, &format!("git -C {} switch -q --detach", own));
            shell(
                folder,
                &format!("git branch -qf midturn/s1/w $(git -C {} rev-parse HEAD)", elsewhere.display()),
            );
            shell(folder, &format!("rm -rf {}", own));
            if diverged {
                commits(folder, &format!("echo d > d.txt; git add d.txt; {by_person}"));
            }
            let files = content(folder);
            match workplace.merge(&name("w")).await.unwrap() {
                Merge::Refused(why) if !says.is_empty() => {
                    assert!(why.contains("tools obey") && why.contains(says), "{claim}: {why}");
                    let now = content(folder);
                    let changed = differences(&files, &now).into_iter();
                    let changed: Vec<_> = changed.filter(|path| !path.ends_with("index")).collect();
                    assert_eq!(changed, Vec::<PathBuf>::new(), "{claim}");
                }
                Merge::Merged(_) if says.is_empty() => {}
                merged => panic!("{claim}, {diverged}: {merged:?}"),
            }
        }
    }
}

/// Runs it and commits what it has in the index.
fn commits(folder: &Path, command: &str) {
    let moved = |from: &str, to: &str| {
        format!(
            "git update-index --add --cacheinfo 100644,$(git rev-parse :{from}),{to}; git rm -q --cached {from}"
        )
    };
    let command = match command.split_once(' ') {
        Some(("$INTO", to)) => moved("t", to),
        Some(("$OUT", from)) => moved(from, "t"),
        _ => command.replace("$ADD", "git add"),
    };
    shell(folder, &format!("{command}; git $ME commit -q --allow-empty -m c"));
}

fn shell(folder: &Path, command: &str) {
    let command = command.replace("$ME", "-c user.name=w -c user.email=w@w");
    let status =
        std::process::Command::new("bash").args(["-ec", &command]).current_dir(folder).status().unwrap();
    assert!(status.success(), "{command}");
}
