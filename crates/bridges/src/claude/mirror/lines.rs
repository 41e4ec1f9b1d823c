//! What a line of a transcript says that a session's events tell, and reading the lines that are new.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::super::transcript::opened;
use super::super::wire::{Beside, Block, Content, Line, Prompt, Reply, Usage};

/// As much of a transcript as is read at once. Of a longer one the end is shown.
const MOST: u64 = 8 * 1024 * 1024;

/// What the program says of a turn that a person has interrupted.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Something that stands in a transcript, and when it was written: in microseconds since 1970.
pub(super) struct Said {
    pub(super) at: u64,
    pub(super) what: What,
}

pub(super) enum What {
    /// Somebody asks for something: the first words of a run.
    Asked { text: String, by: By },
    /// A block of a reply.
    Replied(Part),
    /// A call has ended.
    Ended { call: String, text: String, is_error: bool },
    /// A hook has given the model these texts.
    Given { event: String, texts: Vec<String> },
    /// The program has delivered what came while the agent worked.
    Delivered { text: String, by: By },
    /// A person has interrupted the turn.
    Interrupted,
}

/// Who speaks in a transcript that is not its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A person, or for a subagent the one that began it.
    Asker,
    /// The agent that began it.
    Coordinator,
    /// The program itself.
    Program,
}

/// A line's part of a reply.
pub(super) struct Part {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) calls: Vec<(String, String, Value)>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Usage,
}

/// What was written behind `from`, and where the next look begins. The last line may still be written.
///
/// # Errors
/// The transcript can't be read.
pub(super) fn behind(transcript: &Path, from: u64) -> io::Result<(Vec<Said>, u64)> {
    let mut file = match opened(transcript) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), from)),
        opened => opened?,
    };
    let start = from.max(file.metadata()?.len().saturating_sub(MOST));
    file.seek(SeekFrom::Start(start))?;
    let mut lines = BufReader::new(file.take(MOST));
    let (mut said, mut at) = (Vec::new(), start);
    let mut line = Vec::new();
    // What begins in the middle of a line is none.
    let mut is_whole = start == from;
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            // A line that is longer than all that is read at once would be read for ever; what is left of it is none.
            let is_endless = read as u64 == MOST;
            return Ok((said, if is_endless { at + MOST } else { at }));
        }
        if is_whole {
            says(&line, &mut said);
        }
        is_whole = true;
        at += read as u64;
    }
}

fn says(line: &[u8], said: &mut Vec<Said>) {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { return };
    let Ok(at) = line.timestamp.parse::<jiff::Timestamp>() else { return };
    let at = u64::try_from(at.as_microsecond()).unwrap_or_default();
    let mut push = |what| said.push(Said { at, what });
    match &*line.kind {
        "assistant" => replied(&line).into_iter().map(What::Replied).for_each(push),
        "user" if !line.is_compact_summary => asked(&line).into_iter().for_each(push),
        "attachment" => beside(&line).into_iter().for_each(&mut push),
        _ => {}
    }
}

fn replied(line: &Line<'_>) -> Option<Part> {
    let reply: Reply = serde_json::from_str(line.message?.get()).ok()?;
    let Reply { id, content, stop_reason, usage } = reply;
    let mut part = Part { id, text: String::new(), calls: Vec::new(), stop_reason, usage };
    for block in content {
        match block {
            Block::Text { text } => part.text.push_str(&text),
            Block::ToolUse { id, name, input } => part.calls.push((id, name, input)),
            Block::Thinking {} | Block::ToolResult { .. } | Block::Other => {}
        }
    }
    Some(part)
}

fn asked(line: &Line<'_>) -> Vec<What> {
    let prompt = line.message.and_then(|message| serde_json::from_str::<Prompt>(message.get()).ok());
    let Some(Prompt { content }) = prompt else { return Vec::new() };
    let text = content.text();
    let mut all = Vec::new();
    if let Content::Blocks(blocks) = content {
        for block in blocks {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                all.push(What::Ended { call: tool_use_id, text: content.text(), is_error });
            }
        }
    }
    if text.starts_with(INTERRUPTED) {
        all.push(What::Interrupted);
    } else if !text.is_empty() && all.is_empty() && !line.is_meta {
        all.push(What::Asked { text, by: by(line.origin.as_ref().map(|origin| origin.kind.as_str())) });
    }
    all
}

fn beside(line: &Line<'_>) -> Option<What> {
    match serde_json::from_str(line.attachment?.get()).ok()? {
        Beside::HookAdditionalContext { content, event } => Some(What::Given { event, texts: content }),
        Beside::QueuedCommand { prompt, origin } => {
            let by = by(origin.as_ref().map(|origin| origin.kind.as_str()));
            Some(What::Delivered { text: prompt.text(), by })
        }
        Beside::Other => None,
    }
}

fn by(origin: Option<&str>) -> By {
    match origin {
        None | Some("human" | "user") => By::Asker,
        Some("coordinator") => By::Coordinator,
        Some(_) => By::Program,
    }
}
