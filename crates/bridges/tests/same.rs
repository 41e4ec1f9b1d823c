//! A command is byte for byte the same with `midturn-exec` and without: its output, its status, the folder it
//! leaves behind, the files it makes, what it sees around itself.
//!
//! 200 commands each time; `MIDTURN_SAME_COMMANDS=2000` is the whole, which includes 100 MB of output.
#![allow(clippy::unwrap_used, reason = "this is all test code")]

#[path = "same/commands.rs"]
mod commands;
mod ground;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use commands::commands;
use ground::{Ground, ended, prefix};

const SHORT: usize = 200;

/// What is told of a difference at most.
const TOLD_MAX: usize = 1_500;

/// How often a command is run again to see whether it differs from itself.
const AGAIN: usize = 20;

#[derive(PartialEq, Eq)]
struct Outcome {
    output: Vec<u8>,
    /// As the system reports it: the code or the signal.
    status: i32,
    folder: Option<Vec<u8>>,
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

#[test]
fn commands_are_the_same_with_us_and_without() {
    let count = std::env::var("MIDTURN_SAME_COMMANDS").map_or(SHORT, |count| count.parse().unwrap());
    let commands = commands(count);
    let next = AtomicUsize::new(0);
    let different = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let ground = Ground::new();
                while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    different.lock().unwrap().extend(difference(&ground, command));
                }
            });
        }
    });
    let different = different.into_inner().unwrap();
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}

fn difference(ground: &Ground, command: &[u8]) -> Option<String> {
    let plain = outcome(ground, command, None);
    let ours = with_us(ground, command);
    if plain == ours {
        return None;
    }
    // What differs from itself proves nothing, unless ours is never among its ways.
    let is_one_of_its_ways = (0..AGAIN).any(|_| outcome(ground, command, None) == ours);
    (!is_one_of_its_ways).then(|| told(command, &plain, &ours))
}

/// The call waits in the spool: it is claimed, so it runs under our eyes.
fn with_us(ground: &Ground, command: &[u8]) -> Outcome {
    let text = serde_json::json!({ "command": String::from_utf8_lossy(command), "background": false });
    ground.lay("main", "calls", "toolu_1", &text.to_string());
    let outcome = outcome(ground, command, Some(prefix()));
    fs::remove_file(ground.agent("main").join("running/toolu_1")).unwrap();
    outcome
}

fn outcome(ground: &Ground, command: &[u8], prefix: Option<&Path>) -> Outcome {
    let work = ground.path("work");
    let (Ok(()) | Err(_)) = fs::remove_dir_all(&work);
    let (Ok(()) | Err(_)) = fs::remove_file(ground.path("cwd"));
    fs::create_dir(&work).unwrap();
    let status = ended(ground.start(command, prefix)).into_raw();
    let mut files = BTreeMap::new();
    collect(&work, &mut files);
    // Whether the kernel dumped a process's memory is no part of how the command ended.
    let status = if status & 0x7f == 0 { status } else { status & 0x7f };
    Outcome {
        output: without_numbers(ground.output()),
        status,
        folder: fs::read(ground.path("cwd")).ok(),
        files,
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.metadata().unwrap());
        let holds = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if kind.is_dir() {
            collect(&path, files);
        }
        files.insert(path, (kind.permissions().mode(), holds));
    }
}

/// bash names the process that died of a signal; no two runs have the same number.
fn without_numbers(output: Vec<u8>) -> Vec<u8> {
    const DIED: [&[u8]; 6] =
        [b"Terminated", b"Killed", b"Hangup", b"Aborted", b"User defined", b"Segmentation"];
    let has = |line: &[u8], word: &[u8]| line.windows(word.len()).any(|window| window == word);
    if output.len() > 100_000 || !has(&output, b": line ") {
        return output;
    }
    let lines = output.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let names_one = has(line, b": line ") && DIED.iter().any(|word| has(line, word));
        if names_one {
            line.iter().copied().filter(|b| !b.is_ascii_digit() && *b != b' ').collect()
        } else {
            line.to_vec()
        }
    });
    lines.collect::<Vec<_>>().concat()
}

fn told(command: &[u8], plain: &Outcome, ours: &Outcome) -> String {
    let short = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(TOLD_MAX)]).into_owned();
    let of = |outcome: &Outcome| {
        let Outcome { output, status, folder, files } = outcome;
        let folder = folder.as_deref().map(short);
        let files: Vec<_> = files.iter().map(|(path, (mode, holds))| (path, mode, short(holds))).collect();
        format!(
            "status {status}, folder {folder:?}, {} bytes {:?}, files {files:?}",
            output.len(),
            short(output)
        )
    };
    format!("--- {:?}\n  plain: {}\n  ours:  {}", short(command), of(plain), of(ours))
}
