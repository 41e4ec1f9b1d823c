//! Processes of a dead daemon (issue 3, item 2): found and ended, and nobody else's. Each wait
//! is for an event: a pipe, or a hold on a process.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use midturn_core::engine::ports::Workplace as _;
use midturn_core::rules::id::SessionId;
use midturn_tools::leftovers;
use midturn_tools::process::{Supervision, Supervisor};
use midturn_tools::workplace::GitWorkplace;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use serde_json::json;
use support::needs::has_place_apart;
use support::project::{Project, run};
use support::{Mark, again, is_dead, name, shell, supervisor, supervisors, until_dead};
use tokio_util::sync::CancellationToken;

const KIND: &str = "MIDTURN_TEST_KIND";
const SESSION: &str = "MIDTURN_TEST_SESSION";
const COMMAND: &str = "MIDTURN_TEST_COMMAND";
const ENDS: &str = "MIDTURN_TEST_ENDS";
const FOLDERS: &str = "MIDTURN_TEST_FOLDERS";

/// A daemon: runs a command until it is killed.
async fn daemon(word: &str) {
    let var = |name: &str| std::env::var(name).unwrap();
    let kind = [Supervision::Namespace, Supervision::UserNamespace, Supervision::Subreaper]
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .unwrap();
    let session = SessionId::new(var(SESSION));
    let supervisor = supervisor().at_best(kind).grace(Duration::from_secs(600)).of_session(&session);
    let command = shell(&var(COMMAND), &Mark::named(session.as_str()));
    let mut print = |bytes: &[u8]| eprint!("{}", String::from_utf8_lossy(bytes));
    let ended = supervisor.run(&command, &CancellationToken::new(), &mut print).await;
    // Its supervisor was killed: so is it, soon.
    assert!(ended.is_err());
    std::future::pending().await
}

/// A daemon that opens an agent's worktree.
async fn opener(folders: &str) {
    let (project, state) = folders.split_once(':').unwrap();
    let session = SessionId::new(std::env::var(SESSION).unwrap());
    GitWorkplace::new(project, state, &session, |_| place()).open(&name("w")).await.unwrap();
}

/// Another daemon, which is not above those it looks at.
async fn ender(session: &str) {
    eprintln!("ended {}", leftovers::end(&[SessionId::new(session)]).await.unwrap());
}

/// The test of which the other processes are this one again ([`support::again`]).
const PLAYED: &str = "what_outlived_daemon_and_supervisor_is_ended";

/// What this process is in place of that test; `false` in the test's own.
async fn is_played() -> bool {
    let var = |name| std::env::var(name).ok();
    if let Some(word) = var(KIND) {
        daemon(&word).await;
    } else if let Some(folders) = var(FOLDERS) {
        opener(&folders).await;
    } else if let Some(session) = var(ENDS) {
        ender(&session).await;
    } else {
        return false;
    }
    true
}

/// How many processes another daemon ends.
fn ended_by_another(session: &SessionId) -> usize {
    let output = ourselves().env(ENDS, session.as_str()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines().find_map(|line| line.strip_prefix("ended ")?.parse().ok()).unwrap()
}

fn place() -> midturn_tools::workplace::AgentPlace {
    midturn_tools::workplace::AgentPlace::new(midturn_tools::workplace::Isolation::Worktree)
}

fn ourselves() -> std::process::Command {
    let mut command = again(PLAYED);
    command.stdout(Stdio::null());
    command
}

/// A daemon whose command said `ready` as often as it was to, with holds on all it started.
struct Daemon {
    child: Child,
    mark: Mark,
    tree: Vec<OwnedFd>,
    supervisors: Vec<OwnedFd>,
}

impl Daemon {
    fn start(kind: Supervision, command: &str, ready: usize) -> Self {
        let mark = Mark::new();
        let mut child = ourselves()
            .env(KIND, kind.as_str())
            .env(SESSION, mark.text())
            // The shell stays: what becomes another program has no mark for a moment.
            .env(COMMAND, format!("{command}; :"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines.map(Result::unwrap).filter(|line| line == "ready").take(ready).count();
        assert_eq!(said, ready, "{command}");
        let (tree, supervisors) = (mark.hold(), mark.hold_all_above());
        assert!(!tree.is_empty() && !supervisors.is_empty());
        Self { child, mark, tree, supervisors }
    }

    fn session(&self) -> SessionId {
        SessionId::new(self.mark.text())
    }

    /// Stopped ones can't end their trees; dead ones neither.
    fn signal_supervisors(&self, signal: Signal) {
        for supervisor in &self.supervisors {
            // One that is held twice is gone the second time.
            assert!(matches!(pidfd_send_signal(supervisor, signal), Ok(()) | Err(Errno::SRCH)));
        }
    }

    /// It is dead then, and stays in the table: what a living daemon started is nobody's leftover.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        let pid = Pid::from_child(&self.child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    }

    fn all_dead(&self) -> bool {
        self.tree.iter().chain(&self.supervisors).all(is_dead)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It fails when it is dead already.
        let _ = (self.child.kill(), self.child.wait());
        for supervisor in &self.supervisors {
            let _ = pidfd_send_signal(supervisor, Signal::KILL);
        }
        for process in
            std::iter::repeat_with(|| self.mark.hold()).take_while(|held| !held.is_empty()).flatten()
        {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

const TREES: [(&str, &str); 4] = [
    ("alone", "echo ready; echo ready; echo ready; sleep 300; :"),
    (
        "sessions of their own and double forks",
        "setsid sh -c 'echo ready; sleep 300' & (setsid sh -c '(sh -c \"echo ready; sleep 300\" &)' &); echo ready; wait",
    ),
    (
        "SIGTERM ignored",
        "trap '' TERM HUP; setsid sh -c 'echo ready; sleep 300' & (sh -c 'echo ready; sleep 300' &); echo ready; wait",
    ),
    (
        "always forking",
        "trap '' TERM; f() { sleep 0.01; (f &); }; (f &); (setsid sh -c 'echo ready; sleep 300' &); echo ready; echo ready; sleep 300",
    ),
];

#[tokio::test]
async fn what_outlived_daemon_and_supervisor_is_ended() {
    if is_played().await {
        return;
    }
    for (claim, command) in TREES {
        let mut daemon = Daemon::start(Supervision::Subreaper, command, 3);
        daemon.signal_supervisors(Signal::KILL);
        until_dead(&daemon.supervisors);
        daemon.kill();
        assert!(!daemon.mark.alive().is_empty(), "{claim}");
        let ended = leftovers::end(&[daemon.session()]).await.unwrap();
        assert!(ended >= 1, "{claim}");
        assert!(daemon.all_dead() && daemon.mark.alive().is_empty(), "{claim}: {:?}", daemon.mark.alive());
        assert_eq!(leftovers::end(&[daemon.session()]).await.unwrap(), 0, "{claim}: nothing is left");
    }
}

#[tokio::test]
async fn supervisors_that_do_not_end_their_trees_are_ended_with_them() {
    for (kind, _) in supervisors() {
        for (claim, command) in TREES {
            let mut daemon = Daemon::start(kind, command, 3);
            daemon.signal_supervisors(Signal::STOP);
            daemon.kill();
            let ended = leftovers::end(&[daemon.session()]).await.unwrap();
            assert!(ended >= 2, "{kind:?}: {claim}: {ended}");
            assert!(daemon.all_dead() && daemon.mark.alive().is_empty(), "{kind:?}: {claim}");
        }
    }
}

#[tokio::test]
async fn a_process_without_the_mark_is_found_by_its_parent_or_its_session() {
    let scrubbed = "env -i MIDTURN_TEST_SCRUBBED=NAME /bin/sh -c 'echo ready; sleep 300; :'";
    let rows = [
        ("its parent", format!("setsid {scrubbed} & sleep 300")),
        ("its session", format!("({scrubbed} &); sleep 300")),
        (
            "the session of one that made one",
            format!(
                "setsid sh -c '({scrubbed} &); sleep 300' & wait",
                scrubbed = scrubbed.replace('\'', "\"")
            ),
        ),
    ];
    for (claim, command) in rows {
        let scrubbed = Mark::new();
        let mut daemon = Daemon::start(Supervision::Subreaper, &command.replace("NAME", scrubbed.text()), 1);
        let held = scrubbed.hold_by("MIDTURN_TEST_SCRUBBED");
        assert!(!held.is_empty(), "{claim}");
        daemon.signal_supervisors(Signal::KILL);
        until_dead(&daemon.supervisors);
        daemon.kill();
        leftovers::end(&[daemon.session()]).await.unwrap();
        assert!(held.iter().all(is_dead) && daemon.all_dead(), "{claim}");
    }
}

#[tokio::test]
async fn neither_a_live_daemons_process_nor_another_sessions_is_touched() {
    for (kind, _) in supervisors() {
        let live = Daemon::start(kind, "setsid sh -c 'echo ready; sleep 300' & wait", 1);
        assert_eq!(ended_by_another(&live.session()), 0, "{kind:?}: its daemon lives");
        let mut dead = Daemon::start(kind, "echo ready; sleep 300", 1);
        dead.signal_supervisors(Signal::STOP);
        dead.kill();
        assert_eq!(ended_by_another(&SessionId::new("another")), 0, "{kind:?}");
        assert!(!dead.tree.iter().any(is_dead), "{kind:?}: another session's");
        assert!(!live.tree.iter().chain(&live.supervisors).any(is_dead), "{kind:?}");
    }
}

#[tokio::test]
async fn our_own_commands_go_on_while_a_dead_daemons_of_the_same_session_are_ended() {
    for (kind, supervisor) in supervisors() {
        let mut dead = Daemon::start(kind, "echo ready; sleep 300", 1);
        let supervisor: Supervisor = supervisor.of_session(&dead.session());
        dead.signal_supervisors(Signal::STOP);
        dead.kill();
        let (ours, ready, cancel) = (Mark::new(), CancellationToken::new(), CancellationToken::new());
        let command = shell("setsid sh -c 'echo ready; sleep 300' & wait", &ours);
        let mut sink = |_: &[u8]| ready.cancel();
        let ending = async {
            ready.cancelled().await;
            let held = ours.hold();
            let ended = leftovers::end(&[dead.session()]).await.unwrap();
            let alive = !held.is_empty() && !held.iter().any(is_dead);
            cancel.cancel();
            (ended, alive)
        };
        let (_, (ended, alive)) = tokio::join!(supervisor.run(&command, &cancel, &mut sink), ending);
        assert!(ended >= 2 && alive && dead.all_dead(), "{kind:?}: {ended}");
    }
}

#[tokio::test]
async fn a_command_sees_one_mark_and_it_is_its_own_sessions() {
    let (outer, inner) = (SessionId::new("outer"), SessionId::new("inner"));
    let mut command = shell("env | grep -ao '_MIDTURN_TREE=.*'", &Mark::new());
    let mut environment: Vec<_> = command.environment.to_vec();
    let owner = json!({"pid": 1, "started": 1, "session": 1, "namespace": "pid:[1]"});
    let mark = json!({"owner": owner, "purpose": "command", "session": outer.as_str()});
    environment.push(("_MIDTURN_TREE".into(), mark.to_string().into()));
    command.environment = environment.into();
    let mut output = Vec::new();
    let mut sink = |bytes: &[u8]| output.extend_from_slice(bytes);
    supervisor().of_session(&inner).run(&command, &CancellationToken::new(), &mut sink).await.unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.lines().count() == 1 && output.ends_with("\"session\":\"inner\"}\n"), "{output}");
}

/// A project, and a git before the real one that waits before it makes a worktree until somebody
/// writes to the pipe `go`, once it has said so through the pipe `there`. Nothing of the
/// project itself could make our git wait: it obeys nothing of a repository's.
fn slow_project() -> (Project, tempfile::TempDir) {
    let project = Project::new();
    // Where no agent can write: no program of ours is taken from elsewhere.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let slow = folder.path();
    for pipe in ["there", "go"] {
        assert!(std::process::Command::new("mkfifo").arg(slow.join(pipe)).status().unwrap().success());
    }
    project.write("a.slow", "slow\n");
    project.commit();
    let real = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH={real}\ncase \"$*\" in *'reset --hard'*) echo there > {0}/there; cat {0}/go;; esac\nexec git \"$@\"\n",
        slow.display()
    );
    std::fs::write(slow.join("git"), script).unwrap();
    std::fs::set_permissions(slow.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    (project, folder)
}

#[tokio::test]
async fn a_git_command_of_a_dead_daemon_is_let_finish_and_its_worktree_is_found() {
    if !has_place_apart() {
        return;
    }
    let (project, slow) = slow_project();
    let pipes = slow.path().to_owned();
    let folders = format!("{}:{}", project.folder.path().display(), project.state.path().display());
    let mark = Mark::new();
    let session = SessionId::new(mark.text());
    let mut opener = ourselves();
    let path = format!("{}:{}", pipes.display(), std::env::var("PATH").unwrap());
    let opener = opener.env(FOLDERS, folders).env(SESSION, session.as_str()).env("PATH", path);
    let opener = opener.stderr(Stdio::null());
    let mut opener = opener.spawn().unwrap();
    assert_eq!(std::fs::read_to_string(pipes.join("there")).unwrap(), "there\n");
    opener.kill().unwrap();
    // Whenever this comes, while the end waits or before: git goes on.
    let go = tokio::task::spawn_blocking(move || std::fs::write(pipes.join("go"), "").unwrap());
    assert_eq!(leftovers::end(std::slice::from_ref(&session)).await.unwrap(), 0);
    go.await.unwrap();
    opener.wait().unwrap();
    let workplace = GitWorkplace::new(project.folder.path(), project.state.path(), &session, |_| place());
    let workplace = workplace.supervisor(supervisor()).resumed(true);
    run(&workplace, "w", "test \"$(cat a.slow)\" = slow").await;
    assert_eq!(workplace.branch(&name("w")).as_deref(), Some(&*format!("midturn/{session}/w")));
    assert_eq!(workplace.run_ended(&name("w"), 1).await.unwrap().notes, Vec::<String>::new());
}
