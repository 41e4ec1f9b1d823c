//! What the crates below have to complain of, on standard error: warnings and errors only,
//! a line each. There are no spans, no levels to choose and no files: whoever wants to see
//! what a run does reads its events. Secrets are taken out, of a panic's last words too.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Debug, Write};
use std::panic::PanicHookInfo;

use midturn_view::clean::clean;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::secrets;

/// Starts to listen, for the whole process.
pub(crate) fn start() {
    // It fails only where somebody listens already, and then somebody is told.
    let _ = tracing::subscriber::set_global_default(StandardError);
    std::panic::set_hook(Box::new(|info| write(&last_words(info))));
}

/// Lines that wait while the screen is there: they would be drawn into it.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// How many lines wait.
const HELD_MAX: usize = 256;

/// Holds back what the crates below complain of until this is done.
pub(crate) async fn held<T>(screen: impl Future<Output = T>) -> T {
    *HELD.lock() = Some(Vec::new());
    let _held = Held;
    screen.await
}

/// Lets go of what is held back when it goes itself: a screen that panics is a screen that is gone.
struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        let lines = HELD.lock().take().unwrap_or_default();
        lines.iter().for_each(|line| write(line));
    }
}

/// A line on standard error, unless whoever reads it takes nothing: the threads that complain
/// are those that agents work on. The lock of the standard library's stream is left alone,
/// since whoever shows progress may hold it while it waits.
fn write(line: &str) {
    if let Some(held) = &mut *HELD.lock() {
        if held.len() < HELD_MAX {
            held.push(line.to_owned());
        }
        return;
    }
    put(&format!("{line}\n"));
}

/// The same for what is worth nothing later: where the screen is it goes nowhere.
pub(crate) fn offer(text: &str) {
    if HELD.lock().is_none() {
        put(text);
    }
}

fn put(text: &str) {
    let end = rustix::stdio::stderr();
    let mut is_ready = [PollFd::new(&end, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if matches!(poll(&mut is_ready, Some(&now)), Ok(1..)) {
        // What can't be said can't be said.
        let _ = rustix::io::write(end, text.as_bytes());
    }
}

/// What the standard library says of a panic.
fn last_words(info: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let mut text = format!("thread '{}' {info}", thread.name().unwrap_or("<unnamed>"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        // Writing to a text can't fail.
        let _ = write!(text, "\n{backtrace}");
    }
    secrets::clean(&text).into_owned()
}

struct StandardError;

impl Subscriber for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN && metadata.target().starts_with("midturn")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let text = clean(&format!("{}{}", line.message, line.fields));
        write(&format!("midturn: {}", secrets::clean(&text)));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a text can't fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " ({name}: {value:?})"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    const KEY: &str = "sk-ant-canary-7f3a9c51e2d84f60a7b3-tail-b04d";

    /// Says that this process is the one that logs and panics.
    const SPEAKS: &str = "CANARY_SPEAKS";

    #[test]
    fn logs_and_the_last_words_of_a_panic_are_without_secrets() {
        if std::env::var_os(SPEAKS).is_some() {
            crate::secrets::hide([("A_KEY", KEY)]).unwrap();
            super::start();
            tracing::warn!(target: "midturn_core", error = %format!("no {KEY}"), "said {KEY}");
            panic!("with {KEY} at hand");
        }
        let name = "log::tests::logs_and_the_last_words_of_a_panic_are_without_secrets";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let said = command.args(["--exact", name, "--nocapture"]).env(SPEAKS, "1").output().unwrap();
        let told = String::from_utf8(said.stderr).unwrap();
        let all = told.clone() + &String::from_utf8(said.stdout).unwrap();
        // A part of it would be a leak too.
        assert!(!all.contains("canary-7f3a") && !all.contains("tail-b04d"), "{all}");
        assert!(told.contains("midturn: said [redacted: A_KEY] (error: no [redacted: A_KEY])"), "{told}");
        assert!(told.contains("panicked at") && told.contains("with [redacted: A_KEY] at hand"), "{told}");
    }
}
