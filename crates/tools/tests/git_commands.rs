//! How many git commands an agent's repository costs when its agent begins and when a run of it ends: each is a
//! process, in a sandbox of its own. A program in the place of git counts them.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use midturn_core::engine::ports::Workplace as _;
use support::needs::has_place_apart;
use support::project::{Project, run};
use support::{Heard, again, name};
use tokio_util::sync::CancellationToken;

/// What says where the commands are written down.
const LOG: &str = "MIDTURN_TEST_GIT_COMMANDS";

/// What the first agent needs and another one: its start, and its first run's end where nothing was done.
/// (A look at the agent's settings, without a sandbox only, is not counted.)
const OF_THE_FIRST: [&str; 7] =
    ["cat-file", "for-each-ref", "hash-object", "pack-objects", "reset", "status", "update-ref"];
const OF_ANOTHER: [&str; 5] = ["cat-file", "for-each-ref", "reset", "status", "update-ref"];
const OF_AN_IDLE_END: [&str; 2] = ["rev-parse", "status"];

/// Where something was: it is committed, looked at and brought back.
const OF_AN_END: [&str; 16] = [
    "add",
    "commit",
    "config",
    "diff-tree",
    "diff-tree",
    "index-pack",
    "ls-files",
    "merge-base",
    "pack-objects",
    "rev-list",
    "rev-list",
    "rev-parse",
    "rev-parse",
    "status",
    "update-ref",
    "worktree",
];

/// Of as many that begin at once: what they ask of the project they ask together.
const AT_ONCE: usize = 5;

#[tokio::test]
async fn an_agent_costs_few_git_commands() {
    let Some(log) = std::env::var_os(LOG) else { return counted() };
    let log = Path::new(&log);
    let project = Project::new();
    project.git(&["-c", "user.name=p", "-c", "user.email=p@example.invalid", "tag", "-am", "t", "v1"]);
    let workplace = project.workplace();
    workplace.open(&name("lead")).await.unwrap();
    taken(log);
    for (agent, expected) in [("w", &OF_THE_FIRST[..]), ("v", &OF_ANOTHER)] {
        workplace.open(&name(agent)).await.unwrap();
        workplace.settle(&name(agent), &CancellationToken::new(), &Heard::default()).await;
        assert_eq!(taken(log), expected, "{agent} begins");
    }
    workplace.run_ended(&name("w"), 1).await.unwrap();
    assert_eq!(taken(log), OF_AN_IDLE_END);
    run(&workplace, "v", "echo two > a.txt").await;
    assert_eq!(workplace.run_ended(&name("v"), 1).await.unwrap().files, ["a.txt"]);
    assert_eq!(taken(log), OF_AN_END);
    let many: Vec<_> = (0..AT_ONCE).map(|n| name(&format!("m{n}"))).collect();
    let open = async |agent| drop(workplace.open(agent).await.unwrap());
    let [a, b, c, d, e] = &many[..] else { unreachable!() };
    tokio::join!(open(a), open(b), open(c), open(d), open(e));
    let (once, each): (Vec<_>, Vec<_>) =
        taken(log).into_iter().partition(|command| !["reset", "update-ref"].contains(&&**command));
    // The first one looks before the others ask.
    let expected = ["cat-file", "cat-file", "for-each-ref", "for-each-ref", "hash-object", "status"];
    assert_eq!(once, expected);
    assert_eq!(each.len(), 2 * AT_ONCE, "{each:?}");
}

/// This test again, with a program first in `PATH` that writes down what git is asked for.
fn counted() {
    if !has_place_apart() {
        return;
    }
    // Where no agent can write: no program of ours is taken from elsewhere.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (git, log) = (folder.path().join("git"), folder.path().join("log"));
    let path = std::env::var("PATH").unwrap();
    let script = format!("#!/bin/sh\nPATH={path}\necho \"$1 $2\" >> {}\nexec git \"$@\"\n", log.display());
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut again = again("an_agent_costs_few_git_commands");
    again.env(LOG, &log).env("PATH", format!("{}:{path}", folder.path().display()));
    let done = again.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The commands since the last time, in the order of their names.
fn taken(log: &Path) -> Vec<String> {
    let lines = std::fs::read_to_string(log).unwrap();
    std::fs::write(log, "").unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with("config --list"));
    let mut commands: Vec<_> = lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    commands.sort();
    commands
}
