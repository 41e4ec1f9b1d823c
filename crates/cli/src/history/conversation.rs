//! `midturn show`: an agent's conversation, whole, in the order of its record. It leaves out nothing and
//! decides nothing; what is no longer, or never was, part of a request is marked.

use midturn_core::engine::ports::archive::{AgentJournal, Rows};
use midturn_core::engine::ports::store::Row;
use midturn_core::engine::ports::{Archive, SessionJournal};
use midturn_core::rules::conversation::{Block, Injected, Partial, Reply, ToolResult};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::record::Line;
use midturn_view::clean::{clean, one_line};
use midturn_wire::agent::ChatMessage;
use serde_json::json;

use super::kept;
use crate::args::ShowArgs;
use crate::commands::{self, Reader};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::Project;
use crate::secrets;

/// How many messages are read at once.
const PAGE: u32 = 1_000;

/// `midturn show AGENT`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session, or no such agent in it. [`Failure::Failed`]: the store can't be read.
pub(crate) fn show(args: &ShowArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    commands::block_on(async {
        let asked = if args.session == "current" { "last" } else { &args.session };
        let (archive, id) = kept(&project, asked).await?;
        let journal = archive.journal(&id).await.map_err(Failure::failed)?;
        let gone = || Failure::usage(format!("there is no session {id}; `midturn sessions` lists them"));
        let journal = journal.ok_or_else(gone)?;
        let agent = find(&journal, &args.agent)?;
        if args.json {
            return messages(&*archive, &id, &args.agent).await;
        }
        // Entry by entry: a conversation may be larger than what one wants to hold twice.
        for (at, row) in agent.rows.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| agent.rows.get(at));
            if commands::put(&secrets::clean(&clean(&text(row, before))))? == Reader::Gone {
                break;
            }
        }
        Ok(End::Finished)
    })?
}

fn find<'a>(journal: &'a SessionJournal, agent: &AgentName) -> Result<&'a AgentJournal, Failure> {
    journal.agents.iter().find(|one| one.record.name == *agent).ok_or_else(|| {
        let names: Vec<&str> = journal.agents.iter().map(|one| one.record.name.as_str()).collect();
        let session = &journal.record.id;
        Failure::usage(format!("there is no agent `{agent}` in session {session}: {}", names.join(", ")))
    })
}

/// The same as the interface has it, a JSON object a line.
async fn messages(archive: &dyn Archive, id: &SessionId, agent: &AgentName) -> Result<End, Failure> {
    let mut after = 0;
    loop {
        let page =
            archive.conversation(id, agent, Rows::After(after), PAGE).await.map_err(Failure::failed)?;
        let Some(last) = page.last() else { return Ok(End::Finished) };
        after = last.seq;
        let lines = page.into_iter().map(|row| format!("{}\n", json!(ChatMessage::from(row))));
        if commands::put(&secrets::clean(&lines.collect::<String>()))? == Reader::Gone {
            return Ok(End::Finished);
        }
    }
}

/// An entry of the record, below a heading of its own; a new turn has one above it.
fn text(row: &Row, before: Option<&Row>) -> String {
    let is_new = before.is_none_or(|before| (before.run, before.turn) != (row.run, row.turn));
    let turn = match row.turn {
        _ if !is_new => String::new(),
        // What a run begins with belongs to none of its turns.
        0 => format!("==== run {} ====\n\n", row.run),
        turn => format!("==== run {}, turn {turn} ====\n\n", row.run),
    };
    turn + &match &row.line {
        Line::Prompt(prompt) => under("prompt", prompt),
        Line::Alone(mail, point) => injected(mail, &format!("at {}", point.as_str())),
        Line::Beside(mail, point) => injected(mail, &format!("with the results, at {}", point.as_str())),
        Line::Reply(reply) => replied(&row.agent, reply),
        Line::Interrupted(partial) => cut(&row.agent, partial),
        Line::Result(result) => ended(result),
        Line::Compacted(compaction) => {
            under("summary: from here on the model has it in place of what is older", &compaction.summary)
        }
        Line::Unused(reply) => {
            under("a summary that made no room, and is no part of what the model has", &reply.text())
        }
    }
}

fn under(heading: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("---- {heading}\n{text}{end}\n")
}

fn injected(mail: &Injected, place: &str) -> String {
    let from: Vec<String> = mail.messages.iter().map(|key| key.from.to_string()).collect();
    let from = if from.is_empty() { String::new() } else { format!(" from {}", from.join(", ")) };
    under(&format!("message{from}, {place}"), &mail.text)
}

fn replied(agent: &AgentName, reply: &Reply) -> String {
    let blocks = reply.blocks.iter().map(|block| match block {
        Block::Text(text) => under(agent.as_str(), text),
        Block::Thinking(thinking) => under(&format!("{agent} thinks"), &thinking.text),
        Block::ToolUse(call) => under(
            &format!("{agent} calls {} ({})", one_line(&call.name), one_line(call.id.as_str())),
            &arguments(&call.input),
        ),
        Block::Provider(block) => under(&format!("{agent}: a block of the provider's"), &block.0),
    });
    blocks.collect()
}

/// The arguments of a call, a line or a block each, so that a command can be read as it is.
fn arguments(input: &serde_json::Value) -> String {
    let Some(fields) = input.as_object() else { return input.to_string() };
    let field = |(name, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{}:\n{text}", one_line(name)),
        Some(text) => format!("{}: {text}", one_line(name)),
        None => format!("{}: {value}", one_line(name)),
    };
    fields.iter().map(field).collect::<Vec<_>>().join("\n")
}

fn cut(agent: &AgentName, partial: &Partial) -> String {
    let Partial { text, thinking, reason, .. } = partial;
    let mark = format!("cut ({}), and no part of what the model has", reason.as_str());
    let thought = match thinking.as_str() {
        "" => String::new(),
        thinking => under(&format!("{agent} thinks, {mark}"), thinking),
    };
    thought + &under(&format!("{agent}, {mark}"), text)
}

fn ended(result: &ToolResult) -> String {
    let ToolResult { id, name, status, text, .. } = result;
    under(&format!("{} ({}) {}", one_line(name), one_line(id.as_str()), status.as_str()), text)
}
