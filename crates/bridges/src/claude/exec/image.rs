//! What we become, or what our child becomes: a program, its words, its environment.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::quoted;

/// A program with all that it is given.
pub(super) struct Image {
    program: CString,
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    /// The shell that Claude Code would run this text in.
    ///
    /// Claude Code's own environment has no `_`; the one there is is of the shell that became us.
    pub(super) fn shell(text: &OsStr, called: &OsStr) -> Self {
        let shell = shell(snapshot(text.as_bytes()));
        let words = [shell.as_os_str(), OsStr::new("-c"), text];
        Self::of(shell.as_os_str(), &words, |name, value| name != "_" || value != called)
    }

    /// A program, looked up in `PATH` as a shell does.
    pub(super) fn program(words: &[OsString]) -> Self {
        let program = words.first().map_or(PathBuf::new(), |name| found(name).unwrap_or_else(|| name.into()));
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        Self::of(program.as_os_str(), &words, |_, _| true)
    }

    fn of(program: &OsStr, words: &[&OsStr], stays: impl Fn(&OsStr, &OsStr) -> bool) -> Self {
        let environment = std::env::vars_os().filter(|(name, value)| stays(name, value));
        let entry = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            text(&name)
        };
        Self {
            program: text(program),
            words: words.iter().map(|word| text(word)).collect(),
            environment: environment.map(entry).collect(),
        }
    }

    /// Becomes it. Returns only if that can't be done.
    pub(super) fn become_it(&self) -> io::Error {
        let Err(errno) = nix::unistd::execve(&self.program, &self.words, &self.environment);
        errno.into()
    }
}

/// What the system gave us holds no NUL.
fn text(given: &OsStr) -> CString {
    CString::new(given.as_bytes()).unwrap_or_default()
}

/// An MCP server or a hook. Without us a server is started by its words, which Claude Code quotes into one line
/// for a prefix, and a hook's line is run by `/bin/sh`.
pub(super) fn of_the_harness(line: &OsStr) -> Image {
    let is_server = std::env::var_os("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS").is_some()
        && std::env::var_os("CLAUDE_PID").is_none();
    match is_server.then(|| quoted::words(line.as_bytes())).flatten() {
        Some(words) => Image::program(&words.into_iter().map(OsString::from_vec).collect::<Vec<_>>()),
        None => Image::program(&["/bin/sh".into(), "-c".into(), line.to_owned()]),
    }
}

/// The kind of shell whose snapshot the text reads first.
fn snapshot(text: &[u8]) -> Option<&'static str> {
    let head = String::from_utf8_lossy(&text[..text.len().min(4_096)]);
    let (_, name) = head.split_once("/shell-snapshots/snapshot-")?;
    ["bash", "zsh"].into_iter().find(|kind| name.starts_with(kind))
}

/// Looked for as Claude Code does, except that it has to be able to read the snapshot.
fn shell(kind: Option<&str>) -> PathBuf {
    let given = ["CLAUDE_CODE_SHELL", "SHELL"].into_iter().filter_map(std::env::var_os);
    let is_shell = |path: &OsStr| {
        let path = path.to_string_lossy();
        path.contains("bash") || path.contains("zsh")
    };
    let prefers_bash = std::env::var_os("SHELL").is_some_and(|shell| file_name(&shell) == "bash");
    let [first, second] = if prefers_bash { ["bash", "zsh"] } else { ["zsh", "bash"] };
    let usual = [first, second].into_iter().flat_map(|name| {
        ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(|folder| Path::new(folder).join(name))
    });
    let candidates = given
        .filter(|path| is_shell(path))
        .chain([first.into()])
        .filter_map(|name| found(&name))
        .chain(usual)
        .chain(std::iter::once_with(|| found(OsStr::new(second))).flatten());
    let fits = |path: &PathBuf| kind.is_none_or(|kind| file_name(path.as_os_str()).contains(kind));
    candidates.into_iter().filter(fits).find(|path| is_executable(path)).unwrap_or_else(|| "/bin/bash".into())
}

fn file_name(path: &OsStr) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn found(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok() && path.is_file()
}
