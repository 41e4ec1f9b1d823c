//! What the program's transcript shows of what was handed over.
//!
//! The program writes it some hundred milliseconds behind, also behind the agent's next hook: that a message isn't
//! there yet says nothing. A reply that is newer than the hand-over does, because lines stand in order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::value::RawValue;

use super::wire::{self, Attachment, Origin, Row};
use crate::spool::{Handed, Joined, Mailbox, step};

/// As much of a transcript as is read for one look. What stands behind it is seen by a later one, or never.
const MOST: u64 = 64 * 1024 * 1024;

/// As much of its end as says how a turn ended.
const END: u64 = 64 * 1024;

/// A waiting hook hands over what it has taken when it ends, which the program notes a moment later: a reply that
/// comes in this time, in microseconds, says nothing of it.
const ON_ITS_WAY: u64 = 10_000_000;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// Hooks gave the model these texts.
    Context(Vec<String>),
    /// A waiting hook has given the model this.
    Woken(String),
    /// The program has this of a waiting hook, and gives it to the model when it can.
    Enqueued(String),
    /// The model replied at this time, in microseconds since 1970.
    Reply(u64),
}

/// Finds what was handed over in the agent's transcript: it has arrived, or it never did and waits again, or
/// nothing shows yet.
///
/// # Errors
/// The spool can't be written.
pub fn settle(joined: &Joined, agent: &str, mailbox: &Mailbox) -> io::Result<()> {
    let handed = mailbox.handed()?;
    let (Some((first, _)), Some(transcript)) = (handed.first(), joined.transcript(agent)) else {
        return Ok(());
    };
    // Asked before the transcript is read: what a program writes before it dies is in there.
    let dead: Vec<bool> = handed.iter().map(|(handed, _)| handed.by.is_dead()).collect();
    let from = handed.iter().map(|(handed, _)| handed.offset).min().unwrap_or(first.offset);
    // Without it nothing shows.
    let Ok(said) = read(&transcript, from) else { return Ok(()) };
    // A line is what one hand-over gave, be it of several messages.
    let mut used: HashMap<usize, u64> = HashMap::new();
    for ((handed, message), dead) in handed.iter().zip(dead) {
        let text = message.told();
        let shows = said.iter().enumerate().find(|(at, (offset, said))| {
            let is_free = used.get(at).is_none_or(|used| *used == handed.at);
            *offset >= handed.offset && is_free && shows(said, handed.by.woke, &text)
        });
        if let Some((at, _)) = shows {
            used.insert(at, handed.at);
            mailbox.arrived(handed)?;
        } else if dead || is_lost(handed, &text, &said) {
            mailbox.was_lost(handed)?;
        }
    }
    Ok(())
}

/// Whether a reply is newer than the hand-over, and the program has nothing of it. What it has in its queue it gives
/// behind the tools of a turn that runs by then, or else with a turn of its own.
fn is_lost(handed: &Handed, text: &str, said: &[(u64, Said)]) -> bool {
    let waits = |(at, said): &(u64, Said)| {
        *at >= handed.offset && matches!(said, Said::Enqueued(words) if words.contains(text))
    };
    if handed.by.woke && said.iter().any(waits) {
        return false;
    }
    let known = handed.at + if handed.by.woke { ON_ITS_WAY } else { 0 };
    said.iter().any(|(_, said)| matches!(said, Said::Reply(at) if *at > known))
}

fn shows(said: &Said, woke: bool, text: &str) -> bool {
    match said {
        Said::Context(texts) => !woke && texts.iter().any(|given| given.contains(text)),
        Said::Woken(words) => woke && words.contains(text),
        Said::Enqueued(_) | Said::Reply(_) => false,
    }
}

/// Whether an agent rests: it has ended, or a person has interrupted its turn, which no hook is told of.
pub fn rests(joined: &Joined, agent: &str) -> bool {
    joined.is_resting(agent)
        || joined.transcript(agent).is_some_and(|transcript| ends_interrupted(&transcript))
}

/// Whether an agent's hooks don't look any more: between two replies one always runs, behind the tools or with a
/// prompt, and since it has looked last it has replied and replied again.
pub fn is_deaf(joined: &Joined, agent: &str) -> bool {
    let (Some(looked), Some(transcript)) = (joined.looked(agent), joined.transcript(agent)) else {
        return false;
    };
    end_of(&transcript).is_ok_and(|end| last_reply_but_one(&end).is_some_and(|at| at > looked))
}

/// When the reply before the last was complete, in microseconds since 1970.
fn last_reply_but_one(end: &[u8]) -> Option<u64> {
    let lines = end.split(|byte| *byte == b'\n').rev();
    let mut replies = lines.filter_map(|line| {
        let row: Row<'_> = serde_json::from_slice(line).ok()?;
        let reply: wire::Said<'_> =
            serde_json::from_str(row.message.filter(|_| row.kind == "assistant")?.get()).ok()?;
        // The program's own words, about an error say.
        (reply.model != "<synthetic>").then_some(())?;
        Some((reply.id.into_owned(), said_at(&row)?))
    });
    let (last, _) = replies.next()?;
    replies.find(|(id, _)| *id != last).map(|(_, at)| at)
}

/// In microseconds since 1970.
fn said_at(row: &Row<'_>) -> Option<u64> {
    let at: jiff::Timestamp = row.timestamp.parse().ok()?;
    u64::try_from(at.as_microsecond()).ok()
}

/// Whether the last words of a transcript are the program's own about an interruption.
fn ends_interrupted(transcript: &Path) -> bool {
    let Ok(end) = end_of(transcript) else { return false };
    let text = String::from_utf8_lossy(&end);
    let is_turn = |line: &&str| line.contains("\"type\":\"user\"") || line.contains("\"type\":\"assistant\"");
    text.lines().rfind(is_turn).is_some_and(|line| line.contains("[Request interrupted by user"))
}

fn end_of(transcript: &Path) -> io::Result<Vec<u8>> {
    let mut file = opened(transcript)?;
    file.seek(SeekFrom::Start(length(transcript).saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How long a transcript is; nothing where there is none yet.
pub(crate) fn length(transcript: &Path) -> u64 {
    step();
    std::fs::metadata(transcript).map_or(0, |found| found.len())
}

/// Whatever is named as a transcript: what is no file isn't there, and a pipe keeps nobody waiting.
pub(super) fn opened(transcript: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(transcript)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn read(transcript: &Path, from: u64) -> io::Result<Vec<(u64, Said)>> {
    step();
    let mut file = opened(transcript)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let mut said = Vec::new();
    let mut at = from;
    // The last line may still be written.
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        said.extend(says(line).map(|what| (at, what)));
        at += line.len() as u64;
    }
    Ok(said)
}

fn says(line: &[u8]) -> Option<Said> {
    let row: Row<'_> = serde_json::from_slice(line).ok()?;
    if row.kind == "assistant" {
        return said_at(&row).map(Said::Reply);
    }
    let is_notice =
        |origin: &Option<Origin>| origin.as_ref().is_some_and(|origin| origin.kind == "task-notification");
    let words = |raw: Option<&RawValue>| serde_json::from_str::<String>(raw?.get()).ok();
    if row.operation == "enqueue" {
        return words(row.content).map(Said::Enqueued);
    }
    if is_notice(&row.origin) {
        let told: wire::Said<'_> = serde_json::from_str(row.message?.get()).ok()?;
        return words(told.content).map(Said::Woken);
    }
    let attachment: Attachment = serde_json::from_str(row.attachment?.get()).ok()?;
    if attachment.kind == "queued_command" {
        return is_notice(&attachment.origin).then_some(Said::Woken(attachment.prompt));
    }
    (attachment.kind == "hook_additional_context").then_some(Said::Context(attachment.content))
}
