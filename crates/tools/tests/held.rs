//! What is made once for an agent and held, and what each command has anew in it (docs/decisions/0056).

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use std::fs;
use std::sync::Arc;

use midturn_tools::process::{Command, Ended, RunError, Supervisor};
use midturn_tools::sandbox::{Cache, Confinement, Sandbox, Tier, TreeLimits};
use rustix::process::{Signal, pidfd_send_signal};
use support::sandboxed::{Fixture, has_a_view, sandboxes};
use support::{Mark, has_python, shell, supervisor, until_dead};
use tokio_util::sync::CancellationToken;

/// Commands of one agent, in what is held for it.
struct Agent {
    supervisor: Supervisor,
    fixture: Fixture,
    confinement: Confinement,
    mark: Mark,
}

impl Agent {
    fn new(sandbox: Sandbox) -> Self {
        let fixture = Fixture::new();
        fs::create_dir(fixture.at("cache")).unwrap();
        fs::write(fixture.at("cache/kept"), "of the person\n").unwrap();
        let mut confinement = fixture.confinement();
        confinement.caches.push(Cache { at: fixture.at("cache"), above: fixture.at("above") });
        Self { supervisor: supervisor().sandbox(sandbox), fixture, confinement, mark: Mark::new() }
    }

    fn command(&self, text: &str) -> Command {
        let mut command = shell(text, &self.mark);
        command.folder = self.fixture.at("w/src");
        let place = ("G".into(), self.fixture.folder.path().into());
        command.environment = command.environment.iter().cloned().chain([place]).collect();
        command.confinement = Some(Arc::new(self.confinement.clone()));
        command
    }

    async fn run(&self, text: &str, hear: &mut (dyn FnMut(&str) + Send)) -> Result<Ended, RunError> {
        let mut hear = |bytes: &[u8]| hear(&String::from_utf8_lossy(bytes));
        self.supervisor.run(&self.command(text), &CancellationToken::new(), &mut hear).await
    }

    async fn says(&self, text: &str) -> String {
        let mut said = String::new();
        self.run(text, &mut |text| said.push_str(text)).await.unwrap();
        said
    }
}

/// The sandboxes that are held.
async fn agents() -> Vec<Agent> {
    let all = sandboxes(false, TreeLimits::default()).await.into_iter();
    let held = all.filter(|sandbox| has_a_view(sandbox) && sandbox.in_force().tier == Tier::Landlock);
    held.map(Agent::new).collect()
}

/// F2: namespaces and view are made once.
#[tokio::test]
async fn commands_of_an_agent_share_what_is_held_and_nothing_else() {
    for agent in agents().await {
        let names =
            "readlink /proc/self/ns/{user,net,uts,cgroup}; readlink /proc/self/ns/{pid,mnt,ipc}; echo $$";
        let (first, second) = (agent.says(names).await, agent.says(names).await);
        let (first, second): (Vec<_>, Vec<_>) = (first.lines().collect(), second.lines().collect());
        assert_eq!(first[..4], second[..4], "made once");
        // The numbers of namespaces that are gone may be given again; of two at once they can't.
        assert_eq!((first.len(), first[7]), (8, second[7]), "each is alone");
        let ready = CancellationToken::new();
        let mut beside = String::new();
        let mut hear = |text: &str| {
            beside.push_str(text);
            ready.cancel();
        };
        let waits =
            agent.run("readlink /proc/self/ns/{pid,mnt,ipc}; until [ -e ../seen ]; do :; done", &mut hear);
        let (_, now) = tokio::join!(waits, async {
            ready.cancelled().await;
            agent.says("readlink /proc/self/ns/{pid,mnt,ipc}; touch ../seen").await
        });
        for (one, other) in beside.lines().zip(now.lines()) {
            assert_ne!(one, other);
        }
    }
}

/// C16: shared memory, System V memory, what is private, processes, sockets without a file.
#[tokio::test]
async fn what_a_command_leaves_is_gone_for_the_next() {
    if !has_python() {
        return;
    }
    for mut agent in agents().await {
        fs::create_dir_all(agent.fixture.at("other/.git/objects")).unwrap();
        agent.confinement.readable.clear();
        agent.confinement.readable.extend(agent.fixture.confinement().readable);
        agent.confinement.private.push(agent.fixture.at("other/.git"));
        agent.confinement.read_only.push(agent.fixture.at("other/.git/objects"));
        let leave = "echo x > /dev/shm/left && echo x > $G/other/.git/HEAD.lock && ipcmk -M 4096 > /dev/null; \
            python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"\\0left\")'; \
            (setsid sleep 100 > /dev/null 2>&1 &); echo .";
        assert_eq!(agent.says(leave).await, ".\n");
        let look = "(echo x > $G/other/.git/objects/x) 2> /dev/null; ls -A /dev/shm $G/other/.git; ipcs -m | grep -c 0x; pgrep sleep; grep -c left /proc/net/unix; echo .";
        let said = agent.says(look).await;
        let place = agent.fixture.at("other/.git");
        assert_eq!(said, format!("/dev/shm:\n\n{}:\nobjects\n0\n0\n.\n", place.display()));
        assert_eq!(
            fs::read_dir(place.join("objects")).unwrap().count(),
            0,
            "what is mounted again stays read-only"
        );
    }
}

#[tokio::test]
async fn two_commands_at_once_add_to_one_cache_and_the_persons_stays() {
    for agent in agents().await {
        let ready = CancellationToken::new();
        // The first goes on until the second has written, which it sees.
        let first = "cd $G/cache && echo 1 > one && echo ready; until [ -e two ]; do :; done; cat two";
        let mut said = String::new();
        let mut hear = |text: &str| {
            said.push_str(text);
            ready.cancel();
        };
        let first = agent.run(first, &mut hear);
        let (_, second) = tokio::join!(first, async {
            ready.cancelled().await;
            agent.says("cd $G/cache && cat one && echo 2 > two && echo mine > kept").await
        });
        assert_eq!((&*said, &*second), ("ready\n2\n", "1\n"));
        assert_eq!(fs::read_dir(agent.fixture.at("cache")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(agent.fixture.at("cache/kept")).unwrap(), "of the person\n");
    }
}

/// An editor puts a new file in the place of the old one; a person renames a folder and makes another.
#[tokio::test]
async fn what_is_moved_or_replaced_outside_is_covered_again_for_the_next_command() {
    for mut agent in agents().await {
        fs::write(agent.fixture.at("w/settings"), "a").unwrap();
        agent.confinement.read_only.push(agent.fixture.at("w/settings"));
        let write = "cd $G/w; echo x > .git/hooks/x; echo x > settings; echo x > .git/ok; echo .";
        let at = |path: &str| agent.fixture.at(path);
        for round in ["as it was", "replaced", "by another name", "moved away", "removed and made"] {
            match round {
                "replaced" => {
                    fs::write(at("new"), "b").unwrap();
                    fs::rename(at("new"), at("w/settings")).unwrap();
                }
                // The very same file, and nothing that was mounted on it: only the system can tell.
                "by another name" => {
                    fs::hard_link(at("w/settings"), at("same")).unwrap();
                    fs::remove_file(at("w/settings")).unwrap();
                    fs::rename(at("same"), at("w/settings")).unwrap();
                }
                "moved away" => {
                    fs::rename(at("w/.git"), at("w/.git.old")).unwrap();
                    fs::create_dir_all(at("w/.git/hooks")).unwrap();
                }
                "removed and made" => {
                    fs::remove_dir(at("w/.git/hooks")).unwrap();
                    fs::create_dir(at("w/.git/hooks")).unwrap();
                }
                _ => {}
            }
            let before = fs::read_to_string(at("w/settings")).unwrap();
            let said = agent.says(&format!("({write}) 2>/dev/null")).await;
            assert_eq!(said, ".\n", "{round}");
            assert_eq!(fs::read_to_string(at("w/settings")).unwrap(), before, "{round}");
            assert_eq!(fs::read_dir(at("w/.git/hooks")).unwrap().count(), 0, "{round}");
            assert!(at("w/.git/ok").exists(), "{round}: the rest is the agent's");
        }
    }
}

/// What is still mounted in its place, and comes from what somebody has put away.
#[tokio::test]
async fn the_next_command_works_in_the_folder_that_is_there_now() {
    for agent in agents().await {
        let at = |path: &str| agent.fixture.at(path);
        assert_eq!(agent.says("echo 1 > $G/w/one; ls $G/w").await, "one\nsrc\n");
        fs::rename(at("w"), at("put-away")).unwrap();
        fs::create_dir_all(at("w/.git/hooks")).unwrap();
        fs::create_dir(at("w/src")).unwrap();
        assert_eq!(agent.says("echo 2 > $G/w/two; ls $G/w").await, "src\ntwo\n");
        assert!(at("w/two").exists() && !at("put-away/two").exists());
    }
}

#[tokio::test]
async fn a_person_can_make_between_two_commands_what_a_command_cannot() {
    for mut agent in agents().await {
        let place = agent.fixture.at("w/.mcp.json");
        agent.confinement.read_only.push(place.clone());
        let write = "(echo agent > $G/w/.mcp.json) 2>/dev/null; cat $G/w/.mcp.json 2>/dev/null; echo .";
        assert_eq!(agent.says(write).await, ".\n");
        assert!(!place.exists(), "nothing stands there between commands");
        fs::write(&place, "person\n").unwrap();
        assert_eq!(agent.says(write).await, "person\n.\n");
        fs::remove_file(&place).unwrap();
        assert_eq!(agent.says(write).await, ".\n");
        assert!(!place.exists());
    }
}

/// Who kills what holds a command kills the command, and that is said; the next one has another.
#[tokio::test]
async fn whose_anchor_or_seed_is_killed_is_dead_and_the_next_command_runs() {
    for agent in agents().await {
        // Each says when it is there: what is becoming another program shows no mark.
        let tree_of_three = "(sh -c 'echo ready; sleep 100; :' &); setsid sh -c 'echo ready; sleep 100; :' & echo ready; sleep 100; :";
        // Process 1, its anchor, the seed: nearest first.
        for nth in 0..3 {
            let (mut tree, mut above, mut said) = (Vec::new(), Vec::new(), String::new());
            let mut hear = |text: &str| {
                said.push_str(text);
                if said.matches("ready").count() == 3 {
                    (tree, above) = (agent.mark.hold(), agent.mark.hold_all_above_one());
                    pidfd_send_signal(&above[nth], Signal::KILL).unwrap();
                }
            };
            let ended = agent.run(tree_of_three, &mut hear).await;
            assert!(matches!(ended, Err(RunError::SupervisorKilled)), "{nth}: {ended:?}");
            assert!(tree.len() >= 3);
            until_dead(&tree);
            assert_eq!(agent.says("echo next").await, "next\n", "{nth}");
        }
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_is_held_when_nobody_needs_it() {
    for agent in agents().await {
        let mut above = Vec::new();
        let mut hear = |_: &str| {
            above = agent.mark.hold_all_above_one();
            fs::write(agent.fixture.at("w/seen"), "").unwrap();
        };
        agent.run("echo; until [ -e ../seen ]; do :; done", &mut hear).await.unwrap();
        assert_eq!(above.len(), 3);
        let Agent { supervisor, .. } = agent;
        drop(supervisor);
        until_dead(&above);
    }
}
