//! What a sandbox costs: `true` in each kind that works here, beside `true` alone and `true` in
//! bubblewrap alone with the very same mounts. In rounds, so that all see the same machine.
//!
//! `MIDTURN_BENCH_PROGRAM` names another program for supervisors: the whole `midturn`, say; `MIDTURN_BENCH_COMMAND`
//! another command than `true`, `MIDTURN_BENCH_KIND` the one kind to be measured.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use midturn_tools::process::{Command, ExitStatus, Streams, Supervision, Supervisor};
use midturn_tools::sandbox::{Cache, Confinement, Own, Sandbox, Tier, Toolchains, Wanted};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 21;
/// Of these the first makes what the others share, where they share anything: an agent's turns.
const PER_ROUND: usize = 20;

const KINDS: [(&str, Tier, Supervision); 4] = [
    ("in bubblewrap, supervised", Tier::Bubblewrap, Supervision::UserNamespace),
    ("in Landlock with namespaces, supervised", Tier::Landlock, Supervision::UserNamespace),
    ("in Landlock alone, supervised", Tier::Landlock, Supervision::Subreaper),
    ("supervised, no sandbox", Tier::None, Supervision::UserNamespace),
];

/// Somebody who is measured.
enum Runner {
    Alone(Vec<String>),
    Supervised(Box<Sandbox>, Box<Supervisor>, Command),
    /// Bubblewrap alone, as a supervisor would start it now; with or without a process 1 of its own.
    Bubblewrap {
        like: Box<Supervisor>,
        folder: PathBuf,
        as_first: bool,
        words: Vec<String>,
    },
}

impl Runner {
    async fn run(&self) -> Duration {
        // What the last one leaves to the system to wind up is not this one's.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let begin = Instant::now();
        match self {
            Self::Alone(words) | Self::Bubblewrap { words, .. } => {
                let mut process = tokio::process::Command::new(&words[0]);
                process.args(&words[1..]).stdin(Stdio::null());
                assert!(process.status().await.unwrap().success());
            }
            Self::Supervised(_, supervisor, command) => {
                let ended = supervisor.run(command, &CancellationToken::new(), &mut |_| {}).await.unwrap();
                assert_eq!(ended.status, ExitStatus::Exited(0));
            }
        }
        begin.elapsed()
    }

    /// Sockets that have to be hidden come and go; and what forks the commands is measured when it is over.
    async fn renew(&mut self) {
        if let Self::Supervised(sandbox, supervisor, _) = self {
            **supervisor = Supervisor::with_program(program()).sandbox((**sandbox).clone());
        }
        if let Self::Bubblewrap { like, folder, as_first, words } = self {
            *words = bubblewraps_words(like, folder).await;
            words.retain(|word| *as_first || word != "--as-pid-1");
            words.push("true".into());
        }
    }
}

fn program() -> PathBuf {
    std::env::var_os("MIDTURN_BENCH_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_midturn-supervise").into(), PathBuf::from)
}

/// What an agent in a worktree has, about.
fn confinement(folder: &Path) -> Confinement {
    for path in ["w/src", "git/objects", "git/refs", "git/hooks", "state", "temporary"] {
        std::fs::create_dir_all(folder.join(path)).unwrap();
    }
    std::fs::write(folder.join("w/.git"), "").unwrap();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let list = Toolchains::of(home.as_deref(), |name| std::env::var_os(name));
    let named = |what: &str, n: usize| folder.join(format!("{what}-{n}"));
    let own = list.emptied.iter().enumerate().map(|(n, at)| Own { at: at.clone(), from: named("home", n) });
    let own: Vec<_> = own.collect();
    own.iter().for_each(|own| std::fs::create_dir_all(&own.from).unwrap());
    let cache = |(n, at): (usize, &PathBuf)| Cache { at: at.clone(), above: named("cache", n) };
    Confinement {
        readable: list.readable,
        own,
        caches: list.caches.iter().enumerate().map(cache).collect(),
        writable: ["w", "git/objects", "git/refs"].map(|path| folder.join(path)).into(),
        read_only: vec![folder.join("w/.git")],
        hidden: vec![folder.join("state")],
        temporary: folder.join("temporary"),
        ..Confinement::default()
    }
}

fn command(folder: &Path, text: &str) -> Command {
    Command {
        words: text.split(' ').map(Into::into).collect(),
        folder: folder.join("w"),
        environment: Arc::new(["PATH", "HOME"].map(|name| (name.into(), std::env::var_os(name).unwrap()))),
        timeout: Duration::from_secs(60),
        confinement: Some(Arc::new(confinement(folder))),
        gate: None,
        streams: Streams::default(),
    }
}

/// The processor time of this process and of all that it waited for: whoever is not needed any more is waited for first.
async fn processor_time() -> Duration {
    while !is_alone() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks = stat.rsplit(')').next().unwrap().split_ascii_whitespace().skip(11).take(4);
    Duration::from_millis(10 * ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
}

/// Whether no thread of ours has a child.
fn is_alone() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut children =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children.all(|children| children.is_empty())
}

/// Bubblewrap's own words, as they were given for a command that runs.
async fn bubblewraps_words(supervisor: &Supervisor, folder: &Path) -> Vec<String> {
    let cancel = CancellationToken::new();
    let mut words = Vec::new();
    let mut look = |_: &[u8]| {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|p| std::fs::read_to_string(p.path().join("cmdline")).ok());
        let of_ours = |line: &String| line.contains("bwrap\0") && line.contains(folder.to_str().unwrap());
        words = lines
            .filter(of_ours)
            .map(|line| line.split_terminator('\0').map(str::to_owned).collect())
            .next()
            .unwrap();
        cancel.cancel();
    };
    let _ended = supervisor.run(&command(folder, "yes"), &cancel, &mut look).await;
    let end = words.iter().position(|word| word == "--").unwrap();
    words.truncate(end + 1);
    words
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let text = std::env::var("MIDTURN_BENCH_COMMAND").unwrap_or_else(|_| "true".into());
    let words = text.split(' ').map(str::to_owned).collect();
    let mut runners = vec![("alone", Runner::Alone(words))];
    let only = std::env::var("MIDTURN_BENCH_KIND").ok();
    for (name, tier, best) in
        KINDS.into_iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| name.contains(only)))
    {
        let wanted = Wanted { tier: Some(tier), ..Wanted::default() };
        let Ok(sandbox) = Sandbox::probe_at_best(&wanted, &program(), best).await else { continue };
        println!("{name}: {}", sandbox.in_force());
        if tier == Tier::Bubblewrap {
            for (name, as_first) in
                [("in bubblewrap alone, as process 1", true), ("in bubblewrap alone", false)]
            {
                let like = Box::new(Supervisor::with_program(program()).sandbox(sandbox.clone()));
                let folder = folder.path().to_owned();
                runners.push((name, Runner::Bubblewrap { like, folder, as_first, words: Vec::new() }));
            }
        }
        let supervisor = Box::new(Supervisor::with_program(program()).sandbox(sandbox.clone()));
        runners
            .push((name, Runner::Supervised(Box::new(sandbox), supervisor, command(folder.path(), &text))));
    }
    let mut figures = vec![Vec::new(); runners.len()];
    let mut processor = vec![Duration::ZERO; runners.len()];
    for _ in 0..ROUNDS {
        for (at, (_, runner)) in runners.iter_mut().enumerate() {
            runner.renew().await;
            let mut spans = Vec::new();
            let before = processor_time().await;
            for _ in 0..PER_ROUND {
                spans.push(runner.run().await);
            }
            runner.renew().await;
            processor[at] += processor_time().await - before;
            spans.sort();
            figures[at].push(spans[PER_ROUND / 2]);
        }
    }
    println!(
        "`{text}`, {ROUNDS} rounds of {PER_ROUND}, wall time in ms: median, least, most of the rounds' medians; processor \
         time of one in ms"
    );
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let alone = runners.iter().position(|(name, _)| *name == "in bubblewrap alone");
    for (name, _) in &runners {
        let at = runners.iter().position(|(other, _)| other == name).unwrap();
        figures[at].sort();
        let [median, least, most] = [ROUNDS / 2, 0, ROUNDS - 1].map(|i| millis(figures[at][i]));
        let each = millis(processor[at]) / (ROUNDS * PER_ROUND) as f64;
        println!("  {name:<44} {median:>7.2} {least:>7.2} {most:>7.2} {each:>7.2}");
    }
    if let Some(alone) = alone {
        let ratio = millis(figures[alone + 1][ROUNDS / 2]) / millis(figures[alone][ROUNDS / 2]);
        println!("  supervised in bubblewrap, of bubblewrap alone: {ratio:.2} (at most 1.20)");
    }
}
