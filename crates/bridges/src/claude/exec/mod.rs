//! `midturn-exec`: the program that `CLAUDE_CODE_SHELL_PREFIX` names.
//!
//! Claude Code starts `PREFIX TEXT` for every Bash command (`bash -c TEXT` without us), every stdio MCP server
//! and every shell-form hook. It is our own binary under another name, so this comes before anything else in
//! `main`, and there is no thread. What we know of a call we know from the spool: a call that an agent of ours
//! begins is claimed there, and ends as a whole tree when urgent mail for that agent comes.
//!
//! Whatever of ours fails, the line runs as it would without us: in our place, by `execve`.

mod claim;
mod folder;
mod fork;
mod image;
mod mail;
mod quoted;
mod tree;
mod watch;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use self::image::Image;

/// The file name by which our binary knows that it is this program.
pub const NAME: &str = "midturn-exec";

/// What a shell exits with when it can't execute what it is to become.
const NOT_EXECUTED: u8 = 126;

/// Runs the line that we are given. `None`: we were called by another name.
///
/// To be called before there is a second thread.
pub fn main() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let called = words.next()?;
    (Path::new(&called).file_name()? == NAME).then(|| run(&called, &words.collect::<Vec<_>>()))
}

fn run(called: &OsStr, words: &[OsString]) -> ExitCode {
    let image = match words {
        [] => return ExitCode::SUCCESS,
        [line] if is_of_the_harness() => image::of_the_harness(line),
        [text] => {
            let shell = Image::shell(text, called);
            // Without a call of ours there is nobody to cut it for.
            match claim::claim(text.as_bytes()).filter(|claim| claim.can_be_cut()) {
                Some(claim) => return watch::run(&shell, &claim),
                None => shell,
            }
        }
        // Claude Code gives one. More can only be the words of a program.
        words => Image::program(words),
    };
    ExitCode::from(not_executed(&image.become_it()))
}

/// What isn't a command of a model's: MCP servers and hooks.
fn is_of_the_harness() -> bool {
    std::env::var_os("AI_AGENT").is_some_and(|agent| agent.as_bytes().ends_with(b"_harness"))
}

fn not_executed(error: &std::io::Error) -> u8 {
    eprintln!("{NAME}: the command could not be executed: {error}");
    NOT_EXECUTED
}
