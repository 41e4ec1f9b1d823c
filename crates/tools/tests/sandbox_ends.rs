//! How commands in sandboxes come to their end, and what is said when there is no sandbox
//! (semantics.md, section 5; invariant 9), in every kind that this machine has.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::path::Path;

use midturn_tools::process::{Cause, RunError, Supervision, Supervisor};
use midturn_tools::sandbox::{Confinement, Exceeded, LimitsBy, Sandbox, Tier, TreeLimits, Wanted};
use support::sandboxed::{Fixture, PROGRAM, run, sandboxes, says};
use support::{Mark, VICTIMS_MARK, has_python, supervisor, until_dead, victim_at_work};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_tree_is_held_to_its_limits_and_the_result_says_which() {
    if !has_python() {
        return;
    }
    let limits = TreeLimits { processes: 40, memory: 192 << 20, file_size: 1 << 20, open_files: 64 };
    let rows = [
        ("python3 -c 'x = bytearray(400 << 20); print(len(x))'", Exceeded::Memory(limits.memory)),
        (
            "python3 -c 'import os, time\nfor i in range(80): os.fork() or time.sleep(300)'",
            Exceeded::Processes(limits.processes),
        ),
    ];
    for sandbox in sandboxes(false, limits).await {
        let fixture = Fixture::new();
        for (text, exceeded) in rows {
            // Where no cgroup counts, the system's own error is all there is.
            if sandbox.in_force().limits == LimitsBy::Looking {
                continue;
            }
            let text = format!("timeout 5 bash -c {}", quoted(text));
            let command = fixture.command(&text, fixture.confinement());
            let (ended, _) = run(&sandbox, &command).await.unwrap();
            assert_eq!(ended.exceeded, Some(exceeded), "{}: {text}", sandbox.in_force());
        }
        let (ended, _) = run(&sandbox, &fixture.command("true", fixture.confinement())).await.unwrap();
        assert_eq!(ended.exceeded, None);
        let text = "head -c 2M /dev/zero > big; stat -c %s big; python3 -c 'for i in range(100): open(\"/dev/null\").fileno() or 1; a = [open(\"/dev/null\") for i in range(100)]' 2>&1 | tail -1";
        let output = says(&sandbox, &fixture, text).await;
        assert!(output.contains("1048576\n") && output.contains("Too many open files"), "{output}");
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The cgroups of a command.
async fn groups(sandbox: &Sandbox, fixture: &Fixture) -> Vec<String> {
    let said = says(sandbox, fixture, "cat /proc/self/cgroup").await;
    let names = said.lines().filter_map(|line| line.split('/').next_back());
    names.filter(|name| name.starts_with("midturn-")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_group_is_the_next_command_s_as_long_as_it_is_as_new_and_none_stays() {
    if !has_python() {
        return;
    }
    let limits = TreeLimits { processes: 40, memory: 512 << 20, ..TreeLimits::default() };
    for sandbox in sandboxes(false, limits).await {
        if sandbox.in_force().limits == LimitsBy::Looking {
            continue;
        }
        let (fixture, claim) = (Fixture::new(), sandbox.in_force().to_string());
        let first = groups(&sandbox, &fixture).await;
        assert!(!first.is_empty(), "{claim}");
        assert_eq!(groups(&sandbox, &fixture).await, first, "{claim}");
        // What a group has counted is one command's.
        let crowd = "python3 -c 'import os, time\nfor i in range(80): os.fork() or time.sleep(300)'";
        let crowd = fixture.command(crowd, fixture.confinement());
        let (ended, _) = run(&sandbox, &crowd).await.unwrap();
        assert_eq!(ended.exceeded, Some(Exceeded::Processes(limits.processes)), "{claim}");
        let second = groups(&sandbox, &fixture).await;
        assert!(second.len() == first.len() && second != first, "{claim}: {second:?}");
        // So is what it has in memory of files.
        let text = "head -c 64M /dev/zero > big; cat big | tail -c 1 | wc -c";
        assert_eq!(says(&sandbox, &fixture, text).await, "1\n", "{claim}");
        assert_ne!(groups(&sandbox, &fixture).await, second, "{claim}");
        drop(sandbox);
        let ours = format!("midturn-{}-*", std::process::id());
        let there =
            std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &ours]).output().unwrap();
        let there = String::from_utf8(there.stdout).unwrap();
        for name in first.iter().chain(&second) {
            assert!(!there.contains(&format!("{name}\n")), "{claim}: {there}");
        }
    }
}

#[tokio::test]
async fn nothing_is_left_alive_and_no_group_stays() {
    let rows = [
        ("setsid sleep 300 & (sleep 300 &); trap '' TERM; echo ready; sleep 300", Some("ready")),
        ("sleep 300 & setsid -f sleep 300; exit 0", None),
    ];
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        for (text, when) in rows {
            let fixture = Fixture::new();
            let mark = Mark::new();
            let mut command = fixture.command(text, fixture.confinement());
            command.environment = mark.environment();
            let cancel = CancellationToken::new();
            let mut held = Vec::new();
            let mut said = String::new();
            let mut hear = |bytes: &[u8]| {
                said.push_str(&String::from_utf8_lossy(bytes));
                if when.is_some_and(|when| said.contains(when)) {
                    held.extend(mark.hold_supervisors());
                    cancel.cancel();
                }
            };
            let supervisor = supervisor().sandbox(sandbox.clone());
            let ended = supervisor.run(&command, &cancel, &mut hear).await.unwrap();
            let claim = format!("{}: {text}", sandbox.in_force());
            assert_eq!(mark.alive(), [], "{claim}");
            assert_eq!(ended.left_running, if when.is_some() { 0 } else { 2 }, "{claim}");
            assert_eq!(ended.cause, if when.is_some() { Cause::Cancelled } else { Cause::Itself }, "{claim}");
            assert_eq!(held.is_empty(), when.is_none(), "{claim}");
            until_dead(&held);
        }
    }
}

const VICTIM: &str = "MIDTURN_TEST_SANDBOXED";

/// What the test below does in the process that is to be killed: it runs a command until then.
async fn victim(number: &str) {
    let sandbox = sandboxes(false, TreeLimits::default()).await.swap_remove(number.parse().unwrap());
    let fixture = Fixture::new();
    let mark = Mark::named(&std::env::var(VICTIMS_MARK).unwrap());
    let text = "trap '' TERM; setsid sleep 300 & (sleep 300 &); echo ready; sleep 300";
    let mut command = fixture.command(text, fixture.confinement());
    command.environment = mark.environment();
    let mut print = |bytes: &[u8]| eprint!("{}", String::from_utf8_lossy(bytes));
    let supervisor = supervisor().sandbox(sandbox);
    supervisor.run(&command, &CancellationToken::new(), &mut print).await.unwrap();
}

#[tokio::test]
async fn our_death_by_sigkill_ends_every_tree_in_every_sandbox() {
    if let Ok(number) = std::env::var(VICTIM) {
        return victim(&number).await;
    }
    for (number, sandbox) in sandboxes(false, TreeLimits::default()).await.iter().enumerate() {
        let mark = Mark::new();
        let mut victim = victim_at_work(VICTIM, &number.to_string(), &mark);
        let mut held = mark.hold();
        held.extend(mark.hold_all_above());
        assert!(held.len() >= 4, "{}: {:?}", sandbox.in_force(), mark.alive());
        victim.kill().unwrap();
        victim.wait().unwrap();
        until_dead(&held);
        assert_eq!(mark.alive(), [], "{}", sandbox.in_force());
    }
}

#[tokio::test]
async fn what_cannot_be_built_is_not_run() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        let write = format!("echo ran > {}", fixture.at("w/ran").display());
        let gone = Confinement { temporary: fixture.at("not/there"), ..fixture.confinement() };
        let mut command = fixture.command(&write, gone);
        let refused = run(&sandbox, &command).await;
        assert!(matches!(refused, Err(RunError::NoSandbox(_))), "{}: {refused:?}", sandbox.in_force());
        command.confinement = None;
        let refused = run(&sandbox, &command).await;
        assert!(matches!(refused, Err(RunError::NoSandbox(_))), "{}: {refused:?}", sandbox.in_force());
        std::os::unix::fs::symlink(".git", fixture.at("w/link")).unwrap();
        let linked = Confinement { read_only: vec![fixture.at("w/link/x")], ..fixture.confinement() };
        let refused = run(&sandbox, &fixture.command(&write, linked)).await;
        assert!(
            matches!(&refused, Err(RunError::NoSandbox(why)) if why.contains("is a link")),
            "{refused:?}"
        );
        assert!(!fixture.at("w/ran").exists());
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_apart_from_a_sandbox_that_is_not() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let fixture = Fixture::new();
        let mut command = fixture.command("", fixture.confinement());
        command.words = vec!["no-such-program".into()];
        let result = run(&sandbox, &command).await;
        assert!(matches!(result, Err(RunError::NotExecuted(_))), "{}: {result:?}", sandbox.in_force());
    }
}

#[tokio::test]
async fn without_a_sandbox_limits_hold_and_it_says_so() {
    let wanted =
        Wanted { limits: TreeLimits { file_size: 1 << 20, ..TreeLimits::default() }, ..Wanted::default() };
    let off = Sandbox::off(&wanted);
    assert_eq!(off.in_force().tier, Tier::None);
    assert!(off.in_force().to_string().starts_with("no sandbox, network open, limits"), "{}", off.in_force());
    let fixture = Fixture::new();
    let mut command = fixture.command("head -c 2M /dev/zero > big; stat -c %s big", fixture.confinement());
    command.confinement = None;
    let (_, output) = run(&off, &command).await.unwrap();
    assert!(output.contains("1048576\n"), "{output}");
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_refused_with_how_to_get_it() {
    let wanted = Wanted { tier: Some(Tier::Bubblewrap), ..Wanted::default() };
    let none = Sandbox::probe(&wanted, Path::new("/dev/null")).await.unwrap_err().to_string();
    for word in ["no command is run", "apt install bubblewrap", "--no-sandbox"] {
        assert!(none.contains(word), "{none}");
    }
}

#[tokio::test]
async fn the_supervision_of_a_sandbox_is_its_own() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let supervision = Supervisor::with_program(PROGRAM).sandbox(sandbox.clone()).supervision();
        let expected = match (sandbox.in_force().tier, sandbox.in_force().mount_namespace) {
            (Tier::Bubblewrap, _) => Supervision::Inside,
            (_, true) => Supervision::UserNamespace,
            (_, false) => Supervision::Subreaper,
        };
        assert_eq!(supervision, expected);
    }
}
