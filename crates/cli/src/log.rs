//! What the crates below have to complain of, on standard error: warnings and errors only,
//! a line each. There are no spans, no levels to choose and no files: whoever wants to see
//! what a run does reads its events. Secrets are taken out, of a panic's last words too.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Debug, Write};
use std::panic::PanicHookInfo;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::run::progress;
use crate::secrets;

/// Starts to listen, for the whole process.
pub fn start() {
    // It fails only where somebody listens already, and then somebody is told.
    let _ = tracing::subscriber::set_global_default(StandardError);
    std::panic::set_hook(Box::new(|info| write(&last_words(info))));
}

/// A line on standard error, unless whoever reads it takes nothing: the threads that complain
/// are those that agents work on. The lock of the standard library's stream is left alone,
/// since whoever shows progress may hold it while it waits.
fn write(line: &str) {
    let end = rustix::stdio::stderr();
    let mut is_ready = [PollFd::new(&end, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if matches!(poll(&mut is_ready, Some(&now)), Ok(1..)) {
        let line: String = format!("{line}\n");
        // What can't be said can't be said.
        let _ = rustix::io::write(end, line.as_bytes());
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
        let text: String = progress::harmless(&format!("{}{}", line.message, line.fields)).collect();
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
