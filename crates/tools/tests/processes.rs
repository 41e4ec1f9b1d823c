//! Commands and their trees (semantics.md, section 5; invariant 9). Nothing here sleeps: each
//! wait is for an event, so a test that would fail by waiting hangs instead of lying.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::time::Duration;

use midturn_tools::process::{Cause, Ended, ExitStatus, RunError, Supervision, Supervisor};
use support::{Mark, VICTIMS_MARK, shell, supervisor, supervisors, until_dead, victim_at_work};
use tokio_util::sync::CancellationToken;

/// Runs a command and cancels it when its output holds `when`.
async fn run(supervisor: &Supervisor, text: &str, mark: &Mark, when: Option<&str>) -> (Ended, String) {
    let cancel = CancellationToken::new();
    let mut output = Vec::new();
    let mut sink = |bytes: &[u8]| {
        output.extend_from_slice(bytes);
        if when.is_some_and(|when| String::from_utf8_lossy(&output).contains(when)) {
            cancel.cancel();
        }
    };
    let ended = supervisor.run(&shell(text, mark), &cancel, &mut sink).await.unwrap();
    (ended, String::from_utf8(output).unwrap())
}

#[tokio::test]
async fn a_command_that_ends_by_itself_is_reported_as_it_ended() {
    let rows: [(&str, ExitStatus, &str); 7] = [
        ("true", ExitStatus::Exited(0), ""),
        ("echo a; echo b >&2; echo c", ExitStatus::Exited(0), "a\nb\nc\n"),
        ("exit 3", ExitStatus::Exited(3), ""),
        ("kill -9 $$", ExitStatus::Signalled(9), ""),
        ("kill -RTMIN $$", ExitStatus::Signalled(34), ""),
        ("cat; echo end", ExitStatus::Exited(0), "end\n"),
        ("kill 0; wait", ExitStatus::Signalled(15), ""),
    ];
    for (kind, supervisor) in supervisors() {
        for (text, status, output) in rows {
            let mark = Mark::new();
            let ended = run(&supervisor, text, &mark, None).await;
            let expected = Ended { status, cause: Cause::Itself, left_running: 0, exceeded: None };
            assert_eq!(ended, (expected, output.to_owned()), "{kind:?}: {text}");
            assert_eq!(mark.alive(), [], "{kind:?}: {text}");
            assert_eq!(supervisor.supervision(), kind);
        }
    }
}

#[tokio::test]
async fn an_abort_leaves_nothing_alive_whatever_the_tree_does() {
    let rows = [
        ("alone", "echo ready; sleep 300"),
        ("in the background", "sleep 300 & sleep 300 & echo ready; wait"),
        ("sessions of their own", "setsid sleep 300 & setsid -f sleep 300; echo ready; wait"),
        (
            "double forks",
            "(setsid bash -c '(sleep 300 &) ; sleep 300 &' &); (sleep 300 &); echo ready; sleep 300",
        ),
        (
            "SIGTERM ignored",
            "trap '' TERM; (trap '' TERM; sleep 300) & echo ready; while :; do sleep 300; done",
        ),
        ("stopped", "sleep 300 & kill -STOP $!; echo ready; kill -STOP $$"),
        ("stopped, SIGTERM ignored", "trap '' TERM; setsid sleep 300 & echo ready; kill -STOP $$; sleep 300"),
        (
            "always forking",
            "trap '' TERM; f() { sleep 0.01; (f &); }; (f &); (f &); echo ready; wait; sleep 300",
        ),
    ];
    for (kind, supervisor) in supervisors() {
        for (claim, text) in rows {
            let mark = Mark::new();
            let (ended, output) = run(&supervisor, text, &mark, Some("ready")).await;
            assert_eq!(ended.cause, Cause::Cancelled, "{kind:?}: {claim}");
            assert_eq!(output, "ready\n", "{kind:?}: {claim}");
            assert_eq!(mark.alive(), [], "{kind:?}: {claim}");
        }
    }
}

#[tokio::test]
async fn sigterm_comes_first_and_what_it_makes_a_command_say_is_kept() {
    for (kind, supervisor) in supervisors() {
        let supervisor = supervisor.grace(Duration::from_secs(600));
        // It is asked when `sleep` is there: bash forgets a signal that comes to a child it has just forked.
        let text = "trap 'echo tidy; exit 7' TERM; sleep 300 & \
            until read c < /proc/$!/comm && [ $c = sleep ]; do :; done; echo ready; wait";
        let (ended, output) = run(&supervisor, text, &Mark::new(), Some("ready")).await;
        assert_eq!((ended.status, output.as_str()), (ExitStatus::Exited(7), "ready\ntidy\n"), "{kind:?}");
    }
}

#[tokio::test]
async fn what_a_command_left_running_is_ended_and_counted_though_it_holds_the_pipe() {
    let rows = [
        ("sleep 300 & echo done", 1),
        ("sleep 300 & setsid sleep 300 & (sleep 300 &); echo done", 3),
        ("trap '' TERM; sleep 300 & echo done", 1),
        ("(sleep 300 & sleep 300 & kill -STOP $!); echo done", 2),
    ];
    for (kind, supervisor) in supervisors() {
        for (text, left_running) in rows {
            let mark = Mark::new();
            let (ended, output) = run(&supervisor, text, &mark, None).await;
            let expected =
                Ended { status: ExitStatus::Exited(0), cause: Cause::Itself, left_running, exceeded: None };
            assert_eq!((ended, output.as_str()), (expected, "done\n"), "{kind:?}: {text}");
            assert_eq!(mark.alive(), [], "{kind:?}: {text}");
        }
    }
}

#[tokio::test]
async fn a_command_whose_time_is_up_is_ended_whole() {
    for (kind, supervisor) in supervisors() {
        let mark = Mark::new();
        let mut command = shell("setsid sleep 300 & sleep 300", &mark);
        command.timeout = Duration::ZERO;
        let ended = supervisor.run(&command, &CancellationToken::new(), &mut |_| {}).await.unwrap();
        assert_eq!(ended.cause, Cause::TimedOut, "{kind:?}");
        assert_eq!(mark.alive(), [], "{kind:?}");
    }
}

#[tokio::test]
async fn a_token_cancelled_before_the_start_ends_the_command_too() {
    for (kind, supervisor) in supervisors() {
        let (mark, cancel) = (Mark::new(), CancellationToken::new());
        cancel.cancel();
        let ended = supervisor.run(&shell("sleep 300", &mark), &cancel, &mut |_| {}).await.unwrap();
        assert_eq!(ended.cause, Cause::Cancelled, "{kind:?}");
        assert_eq!(mark.alive(), [], "{kind:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_tree_with_it() {
    for (_, supervisor) in supervisors() {
        let (mark, ready) = (Mark::new(), CancellationToken::new());
        let (never, told) = (CancellationToken::new(), ready.clone());
        // The child says when it is there: between its fork and its exec it can't be found by its mark.
        let command = shell("trap '' TERM; setsid sh -c 'echo ready; sleep 300' & wait", &mark);
        // Held while it runs: the drop at the end of `select!` begins to end it.
        let mut held = Vec::new();
        let mut sink = |_: &[u8]| {
            held.extend(mark.hold());
            held.extend(mark.hold_supervisors());
            told.cancel();
        };
        tokio::select! {
            _ = supervisor.run(&command, &never, &mut sink) => panic!("it ends only when dropped"),
            () = ready.cancelled() => {}
        }
        assert!(held.len() >= 3, "{held:?}");
        until_dead(&held);
    }
}

#[tokio::test]
async fn a_supervisor_ends_and_is_reaped_after_its_report() {
    for (_, supervisor) in supervisors() {
        let mark = Mark::new();
        let cancel = CancellationToken::new();
        let mut held = Vec::new();
        let mut sink = |_: &[u8]| {
            held.extend(mark.hold_supervisors());
            cancel.cancel();
        };
        supervisor.run(&shell("echo ready; sleep 300", &mark), &cancel, &mut sink).await.unwrap();
        assert!(!held.is_empty());
        until_dead(&held);
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_says_so() {
    for (kind, supervisor) in supervisors() {
        let mut command = shell("", &Mark::new());
        command.words = vec!["no-such-program".into()];
        let result = supervisor.run(&command, &CancellationToken::new(), &mut |_| {}).await;
        assert!(matches!(result, Err(RunError::NotExecuted(_))), "{kind:?}: {result:?}");
    }
}

#[tokio::test]
async fn words_that_cannot_be_handed_over_are_refused() {
    for text in ["a\0b".to_owned(), "x".repeat(1 << 20)] {
        let command = shell(&text, &Mark::new());
        let result = supervisor().run(&command, &CancellationToken::new(), &mut |_| {}).await;
        assert!(matches!(result, Err(RunError::Words)), "{result:?}");
    }
}

#[tokio::test]
async fn a_command_sees_its_own_processes_in_proc_and_no_control_socket() {
    for (kind, supervisor) in supervisors() {
        let text = "sleep 300 & grep -c \"^PPid:\t$$\\$\" /proc/$!/status; kill $!; \
                    readlink /proc/self/fd/* | grep -c socket";
        let (_, output) = run(&supervisor, text, &Mark::new(), None).await;
        assert_eq!(output, "1\n0\n", "{kind:?}");
    }
}

const PARENT: &str = "MIDTURN_TEST_PARENT";

/// What the test below does in the process that is to be killed: it runs a command until then.
#[tokio::main(flavor = "current_thread")]
async fn victim(word: &str) {
    let kind = [Supervision::Namespace, Supervision::UserNamespace, Supervision::Subreaper]
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .unwrap();
    let mark = Mark::named(&std::env::var(VICTIMS_MARK).unwrap());
    let command = shell("trap '' TERM; setsid sleep 300 & (sleep 300 &); echo ready; sleep 300", &mark);
    let mut print = |bytes: &[u8]| eprint!("{}", String::from_utf8_lossy(bytes));
    supervisor().at_best(kind).run(&command, &CancellationToken::new(), &mut print).await.unwrap();
}

#[test]
fn our_death_by_sigkill_ends_every_tree_of_ours() {
    if let Ok(word) = std::env::var(PARENT) {
        return victim(&word);
    }
    for (kind, _) in supervisors() {
        let mark = Mark::new();
        let mut victim = victim_at_work(PARENT, kind.as_str(), &mark);
        let mut held = mark.hold();
        held.extend(mark.hold_all_above());
        assert!(held.len() >= 4, "{kind:?}: {:?}", mark.alive());
        victim.kill().unwrap();
        victim.wait().unwrap();
        until_dead(&held);
        assert_eq!(mark.alive(), [], "{kind:?}");
    }
}
