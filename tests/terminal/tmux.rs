//! A terminal and a program in it. A person sees what `screen` gives and types what `send` and `types` are given;
//! the rest is what tmux knows beyond that.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ground::output;
use crate::needs::{self, Need};

/// How long something is waited for that has to come. Most of it comes at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the words behind it and ends as they do, but not before tmux has read what they said, which it shows by
/// answering: it forgets what it has not read of a program when that ends.
const READ_TO_THE_END: &str = r#""$@"; status=$?; stty -icanon -echo; printf '\033[5n'; dd bs=1 count=4 of=/dev/null 2>/dev/null
[ $status -gt 128 ] && kill -$((status - 128)) $$; exit $status"#;

/// How often the screen is looked at meanwhile.
const PACE: Duration = Duration::from_millis(20);

/// The size of a terminal, in columns and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u16, pub(crate) u16);

/// What most tests look at.
pub(crate) const USUAL: Size = Size(120, 40);

/// Whether a test that needs a terminal can run.
#[must_use]
pub(crate) fn is_here() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = std::env::split_paths(&path).any(|folder| folder.join("tmux").exists());
    needs::has(Need::Tmux, is_here)
}

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this status.
    Status(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// Looks until something is found, for as long as a test waits.
pub(crate) async fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    timeout(PATIENCE, poll(found)).await.unwrap_or_else(|_| panic!("`{what}` never came"))
}

async fn poll<T>(found: impl Fn() -> Option<T>) -> T {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        if let Some(found) = found() {
            return found;
        }
    }
}

/// A terminal of its own: no other test's server, no settings of whoever runs the tests.
pub(crate) struct Terminal {
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Terminal {
    /// Starts a program in it; `command` makes a command that sees the right ground.
    pub(crate) fn start(
        command: impl Fn(&str) -> Command,
        below: &Path,
        Size(columns, lines): Size,
        program: &[&str],
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("tmux-").tempdir_in(below).unwrap();
        let terminal = Self { socket: folder.path().join("s"), _folder: folder };
        let mut tmux = command("tmux");
        tmux.arg("-u").arg("-S").arg(&terminal.socket).args(["-f", "/dev/null", "start-server", ";"]);
        // For a program that asks for it, Shift+Enter is a key of its own here.
        tmux.args(["set-option", "-s", "extended-keys", "on", ";"]);
        // Before the program is there: it may end at once, and its last screen is to stay as it was.
        for [option, value] in [["remain-on-exit", "on"], ["remain-on-exit-format", ""], ["status", "off"]] {
            tmux.args(["set-option", "-g", option, value, ";"]);
        }
        tmux.args(["new-session", "-d", "-x", &columns.to_string(), "-y", &lines.to_string(), "--"]);
        output(tmux.args(["sh", "-c", READ_TO_THE_END, "sh"]).args(program));
        terminal
    }

    /// Has tmux do something.
    fn tmux(&self, words: &[&str]) -> String {
        output(Command::new("tmux").arg("-u").arg("-S").arg(&self.socket).args(words))
    }

    /// Presses keys, as tmux calls them: `Enter`, `C-s`, `M-Up`, `S-Enter`, `Escape`, `F1`.
    pub(crate) fn send(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "--"], keys].concat());
    }

    /// Types a text, letter by letter.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", &word(text)]);
    }

    /// Pastes a text: in brackets, where the program asked for them.
    pub(crate) fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", "--", &word(text)]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    /// The lines of the screen, without the spaces at their ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        self.lines(&["capture-pane", "-p"])
    }

    /// The same with the escape codes of its colours and styles.
    pub(crate) fn screen_with_styles(&self) -> Vec<String> {
        self.lines(&["capture-pane", "-p", "-e"])
    }

    /// The screen and all that was scrolled out of it.
    pub(crate) fn all_lines(&self) -> Vec<String> {
        self.lines(&["capture-pane", "-p", "-S", "-"])
    }

    fn lines(&self, words: &[&str]) -> Vec<String> {
        self.tmux(words).lines().map(str::to_owned).collect()
    }

    /// What tmux knows of the pane.
    fn knows(&self, variable: &str) -> String {
        self.tmux(&["display-message", "-p", &format!("#{{{variable}}}")]).trim_end().to_owned()
    }

    fn number(&self, variable: &str) -> Option<i32> {
        self.knows(variable).parse().ok()
    }

    /// Column and line of the cursor, from 0.
    pub(crate) fn cursor(&self) -> (i32, i32) {
        (self.number("cursor_x").unwrap(), self.number("cursor_y").unwrap())
    }

    /// Whether the cursor is shown.
    pub(crate) fn cursor_is_shown(&self) -> bool {
        self.number("cursor_flag") == Some(1)
    }

    /// Whether the screen is the alternate one.
    pub(crate) fn alternate_on(&self) -> bool {
        self.number("alternate_on") == Some(1)
    }

    /// Whether the program is told of the mouse.
    pub(crate) fn mouse_on(&self) -> bool {
        self.number("mouse_any_flag") == Some(1)
    }

    /// The title that the program gave.
    pub(crate) fn title(&self) -> String {
        self.knows("pane_title")
    }

    /// From now on all that the program writes goes into a file, too.
    pub(crate) fn writes_to(&self, file: &Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
    }

    /// How the program has ended, if it has.
    pub(crate) fn end(&self) -> Option<End> {
        if self.number("pane_dead") != Some(1) {
            return None;
        }
        let signal = self.number("pane_dead_signal").map(End::Signal);
        let end = signal.or_else(|| self.number("pane_dead_status").map(End::Status));
        if let (None, Some(server)) = (end, self.number("pid").and_then(Pid::from_raw)) {
            // tmux 3.3a misses a child's end now and then, and leaves it a zombie until it is told again.
            kill_process(server, Signal::CHILD).unwrap();
        }
        end
    }

    pub(crate) fn resize(&self, Size(columns, lines): Size) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let above = self.number("pane_pid").unwrap();
        let below = std::fs::read_to_string(format!("/proc/{above}/task/{above}/children")).unwrap();
        let program = below.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        kill_process(program.unwrap(), signal).unwrap();
    }

    /// Closes the window while the program runs, as a person does who has had enough.
    pub(crate) fn close(self) {
        drop(self);
    }

    /// Waits until this holds of the screen, which is given.
    pub(crate) async fn wait_until(&self, what: &str, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        let seen = self.wait(|| Some(self.screen()).filter(|screen| holds(screen))).await;
        seen.unwrap_or_else(|| self.never(what))
    }

    /// Waits until a line of the screen has this text.
    pub(crate) async fn sees(&self, text: &str) -> Vec<String> {
        self.wait_until(text, |screen| has(screen, text)).await
    }

    /// Waits until no line has it any more.
    pub(crate) async fn sees_no(&self, text: &str) -> Vec<String> {
        self.wait_until(&format!("no {text}"), |screen| !has(screen, text)).await
    }

    /// Waits until the program has ended.
    pub(crate) async fn ends(&self) -> End {
        let ended = timeout(PATIENCE, poll(|| self.end())).await;
        ended.unwrap_or_else(|_| self.never("its end"))
    }

    /// Waits for something that a program which has ended brings no more.
    async fn wait<T>(&self, found: impl Fn() -> Option<T>) -> Option<T> {
        let found_or_over = || {
            // Looked at before: what it said last is on the screen when it has ended.
            let has_ended = self.end().is_some();
            let found = found();
            (found.is_some() || has_ended).then_some(found)
        };
        timeout(PATIENCE, poll(found_or_over)).await.ok().flatten()
    }

    fn never(&self, what: &str) -> ! {
        let how = self.end().map_or("it still runs".to_owned(), |end| format!("it has ended: {end:?}"));
        panic!("`{what}` never came ({how}); the screen is\n{}", self.screen().join("\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// A text as a word of a command: a semicolon at its end would end the command.
fn word(text: &str) -> String {
    text.strip_suffix(';').map_or_else(|| text.to_owned(), |before| format!("{before}\\;"))
}

/// Whether a line has this text.
pub(crate) fn has(screen: &[String], text: &str) -> bool {
    screen.iter().any(|line| line.contains(text))
}

/// Whether a line has this text and says that the call runs.
pub(crate) fn runs(screen: &[String], text: &str) -> bool {
    screen.iter().any(|line| line.contains(text) && line.contains(" running "))
}
