//! A person's editor saves what agents' commands may not write: it renames a new file over the old one while a
//! command runs, and what was mounted over the old one goes with it. In each kind of sandbox that the machine offers.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::path::Path;

use midturn_core::engine::ports::Workplace as _;
use midturn_tools::sandbox::{Sandbox, TreeLimits};
use midturn_tools::workplace::{GitAccess, GitWorkplace, Reach};
use serde_json::json;
use support::project::Project;
use support::{call, name, sandboxed, supervisor};

/// How far git's folder is open, what is saved, and what the command does once it sees that.
const ROWS: [(GitAccess, &str, &str); 6] = [
    (GitAccess::Read, "midturn.toml", "echo evil >> midturn.toml"),
    (GitAccess::Read, "midturn.toml", "rm -f midturn.toml; echo evil > midturn.toml"),
    (GitAccess::Write, ".git/config", PLANT),
    (GitAccess::Write, ".git/config", "true"),
    // The new one is in a folder that is read-only whole.
    (GitAccess::Read, ".git/config", PLANT),
    (GitAccess::Read, ".git/config", "true"),
];
const PLANT: &str = "echo '[core] fsmonitor = ./evil' >> .git/config";

fn workplace(project: &Project, sandbox: &Sandbox, git: GitAccess) -> GitWorkplace {
    let reach = Reach { git, ..Reach::default() };
    project.workplace().reach(reach).supervisor(supervisor().sandbox(sandbox.clone()))
}

/// Saves it as editors do, and git.
fn save(path: &Path, text: &str) {
    let beside = path.with_extension("lock");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_replaces_while_a_command_runs_is_as_they_saved_it_or_they_are_told() {
    for sandbox in sandboxed::sandboxes(false, TreeLimits::default()).await {
        for (git, file, does) in ROWS {
            let project = Project::new();
            project.write("midturn.toml", "# old\n");
            project.commit();
            let path = project.folder.path().join(file);
            let workplace = workplace(&project, &sandbox, git);
            let toolbox = workplace.open(&name("lead")).await.unwrap();
            let command = format!(
                "touch ready; until grep -q saved {file}; do read -rt 0.01 <> <(:); done; {does}; echo tried"
            );
            let running =
                tokio::spawn(async move { call(&toolbox, "bash", json!({"command": command})).await });
            let ready = project.folder.path().join("ready");
            while !ready.exists() {
                tokio::task::yield_now().await;
            }
            let saved = std::fs::read_to_string(&path).unwrap() + "# saved\n";
            save(&path, &saved);
            let output = running.await.unwrap();
            let notes = workplace.run_ended(&name("lead"), 1).await.unwrap().notes.join("; ");
            let (in_force, output) = (sandbox.in_force(), output.text);
            let now = std::fs::read_to_string(&path).unwrap();
            let says = format!("{} was replaced from outside while a command ran", path.display());
            if in_force.mount_namespace {
                let is_git = file == ".git/config";
                assert!(!is_git || !now.contains("evil"), "{file} {does}: {now}");
                let is_held = is_git && git == GitAccess::Read;
                let is_kept = is_held || does == "true";
                assert_eq!(now == saved, is_kept, "{git:?} {file} {does}: a mount goes with what it is over");
                let told = [&output, &notes].map(|told| told.contains(&says));
                assert_eq!(told, [!is_held; 2], "{git:?} {file} {does}: {output}; {notes}");
            } else {
                assert!(!now.contains("saved") && !now.contains("evil"), "{file} {does}: {now}");
                assert!(output.contains("was made as it was before"), "{file} {does}: {output}");
            }
        }
    }
}
