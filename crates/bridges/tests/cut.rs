//! Urgent mail ends a command with all that it started, and nothing else does.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod ground;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use ground::{Ground, alive, ended, is_alive, prefix, signal, until};

const MAIL: &str = "00000000000000000001-3-00000000000000a1";
const COMMITTED: &str = "00000000000000000001-3c-00000000000000a1";
const FROM_LEAD: &str = r#"{"id": "m1", "from": "lead", "text": "stop", "urgency": "urgent", "sent_at": 1}"#;

fn call(command: &str, more: &str) -> String {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(r#"{{"command": "{command}"{more}}}"#)
}

fn has(ground: &Ground, text: &str) -> bool {
    String::from_utf8_lossy(&ground.output()).contains(text)
}

#[test]
fn the_whole_tree_ends_and_what_it_said_is_kept() {
    let ground = Ground::new();
    let mark = format!("300.0{}", std::process::id());
    let command = format!(
        "echo before; sleep {mark} & setsid sleep {mark} & (setsid setsid sleep {mark} &); \
         (trap '' TERM; sleep {mark}; sleep {mark}) & printf ready; wait; echo never"
    );
    ground.lay("a1", "calls", "toolu_1", &call(&command, ""));
    let child = ground.start(command.as_bytes(), Some(prefix()));
    until("all run", || has(&ground, "ready") && alive(&mark).len() >= 4);
    assert!(ground.agent("a1").join("running/toolu_1").exists());
    let sent = Instant::now();
    ground.lay("a1", "new", MAIL, FROM_LEAD);
    let status = ended(child);
    let took = sent.elapsed();
    assert_eq!(alive(&mark), [0; 0]);
    assert_eq!(status.code(), Some(143));
    assert!(took < Duration::from_secs(1), "{took:?}");
    let output = String::from_utf8(ground.output()).unwrap();
    let (said, line) = output.trim_end().rsplit_once('\n').unwrap();
    assert!(said.starts_with("before\nready") && !said.contains("never"), "{output}");
    assert!(line.starts_with("[Interrupted after "), "{output}");
    assert!(line.ends_with(" s: message received from lead. It may have taken effect in part.]"), "{output}");
    assert!(ground.agent("a1").join("new").join(COMMITTED).exists());
    assert!(!ground.path("cwd").exists());
}

#[test]
fn only_urgent_mail_for_this_call_s_agent_cuts() {
    for (name, more, agent, place, mail, text, is_cut) in [
        ("urgent", "", "a1", "new", MAIL, FROM_LEAD, true),
        ("committed by somebody else", "", "a1", "new", COMMITTED, FROM_LEAD, true),
        (
            "of a person",
            "",
            "a1",
            "new",
            MAIL,
            r#"{"id": "m1", "from": "user", "text": "stop", "urgency": "urgent", "sent_at": 1}"#,
            true,
        ),
        ("a background run", r#", "background": true"#, "a1", "new", MAIL, FROM_LEAD, false),
        ("whose it is can't be told", r#", "ambiguous": true"#, "a1", "new", MAIL, FROM_LEAD, false),
        ("for another agent", "", "a2", "new", MAIL, FROM_LEAD, false),
        ("not urgent", "", "a1", "new", "00000000000000000001-2-00000000000000a1", FROM_LEAD, false),
        ("no mail", "", "a1", "new", MAIL, "{", false),
        ("handed over", "", "a1", "handed", MAIL, FROM_LEAD, false),
    ] {
        let ground = Ground::new();
        let command = "echo ready; read -r x < ../gate; echo \"$x\"";
        let made = std::process::Command::new("mkfifo").arg(ground.path("gate")).status().unwrap();
        assert!(made.success());
        ground.lay("a1", "calls", "toolu_1", &call(command, more));
        let child = ground.start(command.as_bytes(), Some(prefix()));
        until("it runs", || has(&ground, "ready"));
        ground.lay(agent, place, mail, text);
        if !is_cut {
            fs::write(ground.path("gate"), "went on\n").unwrap();
        }
        let status = ended(child);
        assert_eq!(status.code(), Some(if is_cut { 143 } else { 0 }), "{name}");
        assert_eq!(has(&ground, "went on"), !is_cut, "{name}");
        assert_eq!(has(&ground, "[Interrupted after"), is_cut, "{name}");
        assert!(ground.agent("a1").join("running/toolu_1").exists(), "{name}");
        let committed = ground.agent("a1").join("new").join(COMMITTED).exists();
        assert_eq!(committed, is_cut, "{name}");
    }
}

#[test]
fn a_call_whose_result_was_given_is_not_cut_and_mail_that_was_withdrawn_does_not_cut() {
    for (name, gone) in [("moved to the background", true), ("withdrawn", false)] {
        let ground = Ground::new();
        let command = "echo ready; read -r x < ../gate; echo \"$x\"";
        let made = std::process::Command::new("mkfifo").arg(ground.path("gate")).status().unwrap();
        assert!(made.success());
        ground.lay("a1", "calls", "toolu_1", &call(command, ""));
        if !gone {
            ground.lay("a1", "new", MAIL, FROM_LEAD);
            fs::remove_file(ground.agent("a1").join("new").join(MAIL)).unwrap();
        }
        let child = ground.start(command.as_bytes(), Some(prefix()));
        until("it runs", || has(&ground, "ready"));
        if gone {
            fs::remove_file(ground.agent("a1").join("running/toolu_1")).unwrap();
            ground.lay("a1", "new", MAIL, FROM_LEAD);
        }
        fs::write(ground.path("gate"), "went on\n").unwrap();
        assert_eq!(ended(child).code(), Some(0), "{name}");
        assert!(has(&ground, "went on"), "{name}");
    }
}

#[test]
fn the_oldest_equal_call_is_claimed_and_else_the_only_one() {
    for (calls, command, claimed) in [
        (&[("a1", "t1", "sleep 0"), ("a2", "t2", "echo x")][..], "echo x", Some(("a2", "t2"))),
        (&[("a1", "t2", "echo x"), ("a1", "t1", "echo x")], "echo x", Some(("a1", "t2"))),
        (&[("a1", "t1", "other")], "echo x", Some(("a1", "t1"))),
        (&[("a1", "t1", "other"), ("a1", "t2", "another")], "echo x", None),
        (&[("a1", "t1", "true")], "true", Some(("a1", "t1"))),
        (&[], "echo x", None),
    ] {
        let ground = Ground::new();
        for (agent, id, command) in calls {
            ground.lay(agent, "calls", id, &call(command, ""));
        }
        let status = ended(ground.start(command.as_bytes(), Some(prefix())));
        assert!(status.success());
        for (agent, id, _) in calls {
            let is_claimed = ground.agent(agent).join("running").join(id).exists();
            assert_eq!(is_claimed, claimed == Some((*agent, *id)), "{calls:?}");
            assert_eq!(ground.agent(agent).join("calls").join(id).exists(), !is_claimed, "{calls:?}");
        }
    }
}

#[test]
fn a_spool_that_is_a_link_or_open_to_others_is_none() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    for part in ["", "new", "calls"] {
        for is_link in [true, false] {
            let ground = Ground::new();
            ground.lay("a1", "new", "x", "");
            ground.lay("a1", "calls", "t1", &call("echo x", ""));
            let folder = ground.agent("a1").join(part);
            if is_link {
                let moved = ground.path("moved");
                fs::rename(&folder, &moved).unwrap();
                symlink(
                    &moved,
                    ground.agent("a1").join(part).as_os_str().to_str().unwrap().trim_end_matches('/'),
                )
                .unwrap();
            } else {
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
            }
            assert!(ended(ground.start(b"echo x", Some(prefix()))).success(), "{part} {is_link}");
            assert_eq!(ground.output(), b"x\n");
            assert!(ground.agent("a1").join("calls/t1").exists(), "{part} {is_link}");
        }
    }
}

#[test]
fn without_us_nothing_of_the_shell_runs_on() {
    let ground = Ground::new();
    let command = "echo $$ > ../shell; sleep 300.2 & echo $! > ../sleeper; echo ready; wait";
    ground.lay("a1", "calls", "t1", &call(command, ""));
    let child = ground.start(command.as_bytes(), Some(prefix()));
    until("it runs", || has(&ground, "ready"));
    let pid = |name: &str| fs::read_to_string(ground.path(name)).unwrap().trim().parse::<i32>().unwrap();
    let (shell, sleeper) = (pid("shell"), pid("sleeper"));
    assert_ne!(shell, child.id().cast_signed());
    signal(child.id().cast_signed(), "-KILL");
    assert_eq!(ended(child).signal(), Some(9));
    until("the shell is gone", || !is_alive(shell));
    signal(sleeper, "-KILL");
}

#[test]
fn what_is_sent_to_us_reaches_the_command_once() {
    for name in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "WINCH"] {
        let ground = Ground::new();
        let command = format!(
            "trap 'echo got; n=x' {name}; echo ready; while [ -z \"$n\" ]; do read -r -t 0.01 x <> ../gate; done; exit 7"
        );
        let made = std::process::Command::new("mkfifo").arg(ground.path("gate")).status().unwrap();
        assert!(made.success());
        ground.lay("a1", "calls", "t1", &call(&command, ""));
        let child = ground.start(command.as_bytes(), Some(prefix()));
        until("it runs", || has(&ground, "ready"));
        signal(child.id().cast_signed(), &format!("-{name}"));
        assert_eq!(ended(child).code(), Some(7), "{name}");
        assert_eq!(ground.output(), b"ready\ngot\n", "{name}");
    }
}

#[test]
fn what_claude_code_sends_to_the_whole_tree_reaches_the_command_once() {
    let ground = Ground::new();
    let command = "trap 'echo got; n=x' TERM; echo ready; while [ -z \"$n\" ]; do :; done; echo on; exit 7";
    ground.lay("a1", "calls", "t1", &call(command, ""));
    let child = ground.start(command.as_bytes(), Some(prefix()));
    until("it runs", || has(&ground, "ready"));
    let group = Pid::from_child(&child);
    kill_process_group(group, Signal::TERM).unwrap();
    assert_eq!(ended(child).code(), Some(7));
    assert_eq!(ground.output(), b"ready\ngot\non\n");
}

#[test]
fn what_it_leaves_running_lives_on() {
    let ground = Ground::new();
    let command = "sleep 300.3 & echo $! > ../left";
    ground.lay("a1", "calls", "t1", &call(command, ""));
    assert!(ended(ground.start(command.as_bytes(), Some(prefix()))).success());
    let left = fs::read_to_string(ground.path("left")).unwrap().trim().parse().unwrap();
    assert!(is_alive(left));
    signal(left, "-KILL");
}
