//! Real tools in an agent's own repository, with what they need of a person's home: in every kind of sandbox that
//! this machine has, without a network.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_tools::sandbox::{Sandbox, TreeLimits};
use support::guarded::{Place, bash};
use support::needs::{Need, has_for_a_part};
use support::sandboxed::{sandboxes, sandboxes_with_a_view};
use support::{has_python_for_a_part, is_on_the_path};

const MANIFEST: &str = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nmemchr = \"2\"\n[workspace]\n";

/// In a subagent's repository and in the project folder.
async fn works(sandbox: &Sandbox, place: &Place, command: &str, says: &str) {
    let workplace = place.workplace(sandbox);
    for agent in ["w", "lead"] {
        let output = bash(&workplace, agent, command).await;
        let claim = format!("{}: {agent}: {command}: {}", sandbox.in_force(), output.text);
        assert!(!output.is_error && output.text.contains(says), "{claim}");
    }
}

#[tokio::test]
async fn cargo_builds_from_the_persons_cache() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        place.project.write("Cargo.toml", MANIFEST);
        place
            .project
            .write("src/main.rs", "fn main() { println!(\"{:?}\", memchr::memchr(b'b', b\"ab\")) }\n");
        place.project.commit();
        works(&sandbox, &place, "cargo run --offline -q && git status --short", "Some(1)").await;
    }
}

#[tokio::test]
async fn python_makes_an_environment_and_npm_runs_a_script() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        if has_python_for_a_part() {
            let command =
                "python3 -m venv e && e/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'";
            works(&sandbox, &place, command, "True").await;
        }
        if has_for_a_part(Need::Node, is_on_the_path("npm")) {
            let command = "mkdir n && cd n && npm init -y >/dev/null && npm pkg set scripts.say='echo said' && npm install --offline && npm run -s say";
            works(&sandbox, &place, command, "said").await;
        }
    }
}

#[tokio::test]
async fn git_knows_who_the_person_is_and_nothing_else_of_them() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        let command = "git config --global --list --name-only; ls -A ~ | grep -v -x -e .cargo -e .rustup -e .pyenv \
            -e .gitconfig -e .npm -e .cache -e .local -e .nvm -e go; git init -q x && cd x && touch f && git add f && \
            git -c user.name=A -c user.email=a@example.org commit -q -m m && touch ~/mine && git log --format=%an";
        works(&sandbox, &place, command, "A").await;
    }
}

/// It was 58 when all of the system was bound, on a machine with 20 mounts.
#[tokio::test]
async fn a_view_is_made_of_fewer_mounts_than_the_whole_system() {
    for sandbox in sandboxes_with_a_view().await {
        let place = Place::new();
        let output = bash(&place.workplace(&sandbox), "w", "wc -l < /proc/self/mountinfo").await;
        println!("{}: {} mounts", sandbox.in_force(), output.text.trim());
        let count: u32 = output.text.trim().parse().unwrap();
        assert!(count < 58, "{}: {count}", sandbox.in_force());
    }
}
