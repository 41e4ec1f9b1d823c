//! Planted faults do what they say, so that the crash harness that doesn't find one has a hole.
//! Each runs in a process of its own: a fault is read once. With `--features planted-faults`.
#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use midturn_core::rules::id::SessionId;
use midturn_tools::leftovers;
use rustix::process::{Signal, pidfd_send_signal};
use support::{Mark, again, is_dead, shell, supervisor, until_dead};
use tokio_util::sync::CancellationToken;

const MARK: &str = "MIDTURN_TEST_VICTIMS_MARK";
const ACT: &str = "MIDTURN_TEST_ACT";
const TREE: &str = "setsid sh -c 'echo ready; sleep 300; :' & wait";

/// What a test does in the process that a fault is planted in; `false` in the test's own.
#[tokio::main(flavor = "current_thread")]
async fn is_victim() -> bool {
    let Ok(mark) = std::env::var(MARK) else { return false };
    let (session, mark) = (SessionId::new(&*mark), Mark::named(&mark));
    match std::env::var(ACT).unwrap().as_str() {
        "abort" => {
            let cancel = CancellationToken::new();
            let mut sink = |_: &[u8]| cancel.cancel();
            supervisor().of_session(&session).run(&shell(TREE, &mark), &cancel, &mut sink).await.unwrap();
        }
        "run" => {
            let mut print = |bytes: &[u8]| eprint!("{}", String::from_utf8_lossy(bytes));
            let never = CancellationToken::new();
            let _ = supervisor().of_session(&session).run(&shell(TREE, &mark), &never, &mut print).await;
            std::future::pending().await
        }
        _ => eprintln!("ended {}", leftovers::end(&[session]).await.unwrap()),
    }
    true
}

fn start(fault: &str, act: &str, mark: &Mark) -> Child {
    let test = std::thread::current().name().unwrap().to_owned();
    again(&test)
        .env("_MIDTURN_PLANTED", fault)
        .env(MARK, mark.text())
        .env(ACT, act)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn until_ready(victim: &mut Child) {
    let lines = BufReader::new(victim.stderr.as_mut().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == "ready"));
}

/// Ends what survived.
fn clean(mark: &Mark) {
    for process in std::iter::repeat_with(|| mark.hold()).take_while(|held| !held.is_empty()).flatten() {
        pidfd_send_signal(&process, Signal::KILL).unwrap();
    }
}

#[test]
fn a_group_kill_lets_what_made_a_session_survive() {
    if is_victim() {
        return;
    }
    for (fault, survives) in [("group_kill_only", true), ("another_crates", false)] {
        let mark = Mark::new();
        assert!(start(fault, "abort", &mark).wait().unwrap().success());
        assert_eq!(!mark.alive().is_empty(), survives, "{fault}");
        clean(&mark);
    }
}

#[test]
fn a_supervisor_that_ignores_the_pipe_keeps_its_tree_when_the_daemon_dies() {
    if is_victim() {
        return;
    }
    let mark = Mark::new();
    let mut victim = start("supervisor_ignores_pipe", "run", &mark);
    until_ready(&mut victim);
    let (tree, supervisors) = (mark.hold(), mark.hold_all_above());
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(!tree.is_empty() && !supervisors.is_empty());
    assert!(!tree.iter().chain(&supervisors).any(is_dead));
    let mut end = start("no_leftovers", "end", &mark);
    let mut said = String::new();
    end.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(end.wait().unwrap().success() && said.contains("ended 0"), "{said}");
    assert!(!tree.iter().chain(&supervisors).any(is_dead));
    let mut end = start("", "end", &mark);
    assert!(end.wait().unwrap().success());
    until_dead(&tree);
    until_dead(&supervisors);
    assert_eq!(mark.alive(), []);
}
