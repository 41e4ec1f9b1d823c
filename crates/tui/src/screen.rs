//! The terminal itself: taken over, drawn on, and given back as it was, however that ends.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect, Size};

use crate::settings::Notify;
use crate::state::State;

/// Asks for keys that tell Shift+Enter from Enter: tmux knows this word and not kitty's.
const TELL_KEYS_APART: &str = "\x1b[>4;1m";

/// Takes that back.
const AS_BEFORE: &str = "\x1b[>4;0m";

/// The window's title is kept, and is as it was again: xterm's words for it, which tmux knows, too.
const KEEP_TITLE: &str = "\x1b[22;2t";
const TITLE_AS_BEFORE: &str = "\x1b[23;2t";

/// How long a text is that goes to the terminal besides what is drawn, in characters.
const TOLD_MAX: usize = 200;

/// What is drawn on.
pub(crate) trait Surface {
    /// Draws the state.
    ///
    /// # Errors
    /// The terminal can't be written.
    fn draw(&mut self, state: &State) -> io::Result<()>;

    /// Forgets what stands there: the next drawing draws all of it.
    ///
    /// # Errors
    /// The terminal can't be written.
    fn redraw(&mut self) -> io::Result<()>;

    /// Gives the terminal to somebody else for a while.
    ///
    /// # Errors
    /// It can't be taken back.
    fn lend(&mut self, to: &mut dyn FnMut()) -> io::Result<()>;

    /// Gives the window a title.
    ///
    /// # Errors
    /// The terminal can't be written.
    fn title(&mut self, title: &str) -> io::Result<()>;

    /// Tells somebody who doesn't look.
    ///
    /// # Errors
    /// The terminal can't be written.
    fn tell(&mut self, text: &str) -> io::Result<()>;

    /// Puts a text into the clipboard.
    ///
    /// # Errors
    /// Why it is not there.
    fn copy(&mut self, text: &str) -> io::Result<()>;
}

/// The terminal of this process.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
    mouse: bool,
    notify: Notify,
    title: Option<String>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// It is none, or can't be written.
    pub(crate) fn enter(mouse: bool, notify: Notify) -> io::Result<Self> {
        give_back_when_it_panics();
        enter(mouse, notify)?;
        let out = BufWriter::with_capacity(64 << 10, terminal()?);
        let terminal = Terminal::new(CrosstermBackend::new(out)).inspect_err(|_| give_back())?;
        Ok(Self { terminal, mouse, notify, title: None })
    }

    /// How large it is.
    pub(crate) fn size(&self) -> Size {
        self.terminal.size().unwrap_or(Size::new(80, 24))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // What a panic left of a frame goes first: behind the leaving it would stand in the shell.
        let _ = execute!(self.terminal.backend_mut(), EndSynchronizedUpdate);
        give_back();
    }
}

impl Surface for Screen {
    fn draw(&mut self, state: &State) -> io::Result<()> {
        // In one piece, where the terminal can: no half frame is ever seen.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| crate::draw::draw(state, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    fn redraw(&mut self) -> io::Result<()> {
        // Not `clear`: that asks the terminal where its cursor is, by way of the standard library's output (somebody
        // may hold its lock) and of the answer among the keys (which somebody else reads).
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    fn lend(&mut self, to: &mut dyn FnMut()) -> io::Result<()> {
        give_back();
        to();
        enter(self.mouse, self.notify)?;
        if let Some(title) = self.title.clone() {
            self.title(&title)?;
        }
        self.redraw()
    }

    fn title(&mut self, title: &str) -> io::Result<()> {
        self.title = Some(title.to_owned());
        let out = self.terminal.backend_mut();
        write!(out, "\x1b]2;{}\x07", inert(title))?;
        out.flush()
    }

    fn tell(&mut self, text: &str) -> io::Result<()> {
        let words = told(self.notify, text, std::env::var_os("TMUX").is_some());
        let out = self.terminal.backend_mut();
        out.write_all(words.as_bytes())?;
        out.flush()
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        // tmux drops the terminal's own word for it unless it is configured to pass it on.
        if std::env::var_os("TMUX").is_some() && to_tmux(text).is_ok() {
            return Ok(());
        }
        let out = self.terminal.backend_mut();
        write!(out, "\x1b]52;c;{}\x07", base64(text.as_bytes()))?;
        out.flush()
    }
}

/// What tells somebody who doesn't look. tmux keeps what it doesn't know to itself, unless it is asked to pass it on.
fn told(notify: Notify, text: &str, in_tmux: bool) -> String {
    let text = inert(text);
    let words = match notify {
        Notify::Off | Notify::Title => return String::new(),
        Notify::Bell => return "\x07".to_owned(),
        // A number at its beginning would be another word of some terminals'.
        Notify::Osc9 => format!("\x1b]9;midturn: {text}\x07"),
        Notify::Osc777 => format!("\x1b]777;notify;midturn;{}\x07", text.replace(';', ",")),
    };
    if in_tmux { format!("\x1bPtmux;{}\x1b\\", words.replace('\x1b', "\x1b\x1b")) } else { words }
}

/// A text that ends no sequence it stands in. Names and what models say were made inert before; here it must be.
fn inert(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TOLD_MAX).collect()
}

/// Whether the terminal is ours. Who gives back what isn't would take from whoever has it: keys are told apart
/// by levels, and each giving back goes one down.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Whether the window's title is ours, too.
static HAS_TITLE: AtomicBool = AtomicBool::new(false);

fn enter(mouse: bool, notify: Notify) -> io::Result<()> {
    enable_raw_mode()?;
    IS_OURS.store(true, Ordering::SeqCst);
    let entered = terminal().and_then(|mut out| {
        turn_on(&mut out, mouse)?;
        if notify != Notify::Off {
            HAS_TITLE.store(true, Ordering::SeqCst);
            out.write_all(KEEP_TITLE.as_bytes())?;
        }
        out.flush()
    });
    entered.inspect_err(|_| give_back())
}

/// Standard output, without the standard library's lock: somebody may hold that who writes when this has ended.
fn terminal() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn turn_on(out: &mut File, mouse: bool) -> io::Result<()> {
    execute!(out, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange)?;
    execute!(out, PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
    out.write_all(TELL_KEYS_APART.as_bytes())?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    Ok(())
}

/// Gives the terminal back, if this process has it. What can't be written can't be mended: the window may be closed.
pub fn give_back() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Ok(mut out) = terminal() {
        let _ = execute!(out, DisableMouseCapture, PopKeyboardEnhancementFlags);
        let _ = out.write_all(AS_BEFORE.as_bytes());
        if HAS_TITLE.swap(false, Ordering::SeqCst) {
            let _ = out.write_all(TITLE_AS_BEFORE.as_bytes());
        }
        let _ = execute!(out, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, Show);
    }
    let _ = disable_raw_mode();
}

/// Who panics while it draws says so on a terminal that is as it was. An agent's task that panics elsewhere
/// takes nothing from whoever looks.
fn give_back_when_it_panics() {
    static ONCE: Once = Once::new();
    let drawing = std::thread::current().id();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            if std::thread::current().id() == drawing {
                give_back();
            }
            before(what);
        }));
    });
}

fn to_tmux(text: &str) -> io::Result<()> {
    let mut tmux = Command::new("tmux")
        .args(["load-buffer", "-w", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = tmux.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    if tmux.wait()?.success() { Ok(()) } else { Err(io::Error::other("tmux didn't take it")) }
}

/// Writes bytes as base64.
fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_look_is_told_in_the_way_they_chose_and_no_text_ends_the_sequence() {
        let evil = "1;w asks\u{7}\u{1b}]0;x\u{9c}\ny";
        for (notify, in_tmux, expected) in [
            (Notify::Off, false, ""),
            (Notify::Title, true, ""),
            (Notify::Bell, false, "\x07"),
            (Notify::Bell, true, "\x07"),
            (Notify::Osc9, false, "\x1b]9;midturn: 1;w asks]0;xy\x07"),
            (Notify::Osc777, false, "\x1b]777;notify;midturn;1,w asks]0,xy\x07"),
            (Notify::Osc9, true, "\x1bPtmux;\x1b\x1b]9;midturn: 1;w asks]0;xy\x07\x1b\\"),
        ] {
            assert_eq!(told(notify, evil, in_tmux), expected);
        }
        assert_eq!(inert(&"x".repeat(900)).len(), TOLD_MAX);
    }
}
