//! What a repository for each agent costs: its start in a project of many files beside `git worktree add`,
//! and the way back of few and many files. In rounds, so that all see the same machine.
//!
//! `MIDTURN_BENCH_FOLDER` names another folder than `/var/tmp`: one in memory, say, where no disk has a part in it.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use midturn_core::engine::ports::Workplace as _;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_tools::process::Supervisor;
use midturn_tools::sandbox::{Sandbox, Wanted};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};

const ROUNDS: usize = 9;
const FILES: usize = 50_000;
const PER_FOLDER: usize = 100;

/// How many files come back.
const BACK: [usize; 2] = [10, 5_000];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let beside = std::env::var_os("MIDTURN_BENCH_FOLDER").unwrap_or_else(|| "/var/tmp".into());
    let folder = tempfile::tempdir_in(beside).unwrap();
    let project = folder.path().join("project");
    write_files(&project, "src", FILES, "");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["-c", "user.name=p", "-c", "user.email=p@example.invalid", "commit", "-q", "-m", "c"]);
    git(&project, &["repack", "-adq"]);
    let program = env!("CARGO_BIN_EXE_midturn-supervise");
    let sandbox = Sandbox::probe(&Wanted::default(), Path::new(program)).await.unwrap();
    println!("{FILES} files, {}", sandbox.in_force());
    let supervisor = Supervisor::with_program(program).sandbox(sandbox);
    let place = |_: &AgentName| AgentPlace::new(Isolation::Worktree);
    let session = SessionId::new("bench");
    let workplace = GitWorkplace::new(&project, folder.path().join("state"), &session, place);
    let workplace = workplace.supervisor(supervisor);
    let (mut linked, mut own, mut back) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..=ROUNDS {
        let top = folder.path().join(format!("linked-{round}"));
        let begin = Instant::now();
        git(&project, &["worktree", "add", "-q", "--detach", top.to_str().unwrap()]);
        linked.push(begin.elapsed());
        git(&project, &["worktree", "remove", "--force", top.to_str().unwrap()]);
        let agent = AgentName::new(format!("w{round}")).unwrap();
        let begin = Instant::now();
        workplace.open(&agent).await.unwrap();
        own.push(begin.elapsed());
        let top = workplace.folder(&agent).unwrap();
        for (count, back) in BACK.into_iter().zip(&mut back) {
            write_files(&top, &format!("new-{count}"), count, &format!("of {agent}"));
            let begin = Instant::now();
            let changes = workplace.run_ended(&agent, 1).await.unwrap();
            back.push(begin.elapsed());
            assert!(changes.notes.is_empty() && changes.files.len() >= count, "{changes:?}");
        }
        std::fs::remove_dir_all(top).unwrap();
    }
    let ratios =
        own.iter().zip(&linked).skip(1).map(|(own, linked)| own.as_secs_f64() / linked.as_secs_f64());
    println!("git worktree add                     {}", told(&linked));
    println!("an agent's start                     {}", told(&own));
    println!("  ratio, median                      {:.2}", median(ratios.collect()));
    for (count, back) in BACK.into_iter().zip(&back) {
        println!("a run's end with {count:>5} new files     {}", told(back));
    }
}

fn write_files(top: &Path, folder: &str, count: usize, more: &str) {
    for n in 0..count {
        let folder = top.join(folder).join((n / PER_FOLDER).to_string());
        if n % PER_FOLDER == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("{n}.rs")), format!("fn f{n}() {{}}\n{more}\n").repeat(8))
            .unwrap();
    }
}

fn git(folder: &Path, words: &[&str]) {
    assert!(Command::new("git").args(words).current_dir(folder).status().unwrap().success(), "{words:?}");
}

/// The first round is for warming up.
fn told(times: &[Duration]) -> String {
    let seconds: Vec<f64> = times.iter().skip(1).map(Duration::as_secs_f64).collect();
    let (least, most) =
        seconds.iter().fold((f64::MAX, 0_f64), |(least, most), &s| (least.min(s), most.max(s)));
    format!("{:.2} s ({least:.2}–{most:.2})", median(seconds))
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
