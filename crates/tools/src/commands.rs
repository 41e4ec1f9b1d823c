//! A command of an agent's, in its confinement: what has to be kept from it is looked up before, what
//! it planted is taken away afterwards. What the command is for is not known here.

use std::io;
use std::sync::Arc;

use midturn_core::engine::ports::OutputSink;
use midturn_core::rules::capture::{Capture, Decoder};
use tokio_util::sync::CancellationToken;

use crate::confined::Confined;
use crate::context::{OUTPUT_BYTES, ToolContext, off_the_runtime};
use crate::process::{Command, Ended, RunError};
use crate::protect::guard::Before;
use crate::seen::Running;

/// A command that is over.
pub(crate) struct Done {
    /// How it ended.
    pub(crate) ended: Result<Ended, RunError>,
    /// What it said, the middle left out where that is long.
    pub(crate) said: Capture,
    /// What it planted, which no command may do.
    pub(crate) planted: Vec<String>,
    /// What else there is to say.
    pub(crate) notes: Vec<String>,
}

/// Runs a command to its end; what it says is told while it comes.
///
/// # Errors
/// What has to be kept from it can't be looked up: it was not started.
pub(crate) async fn run(
    context: &Arc<ToolContext>,
    mut command: Command,
    cancel: &CancellationToken,
    output: &dyn OutputSink,
) -> io::Result<Done> {
    let before = confine(context, &mut command).await?;
    command.gate.clone_from(&context.gate);
    let running = begins(context).await?;
    let mut said = Capture::new(OUTPUT_BYTES);
    let mut decoder = Decoder::default();
    let mut told = |bytes: &[u8]| {
        said.write(bytes);
        output.tell(&decoder.decode(bytes));
    };
    let ended = context.supervisor.run(&command, cancel, &mut told).await;
    let rest = decoder.finish();
    if !rest.is_empty() {
        output.tell(&rest);
    }
    let (planted, mut notes) = look_after(context, before).await;
    notes.extend(context.gate.iter().flat_map(|gate| gate.take_notes()));
    if let Some(running) = running {
        let looked = ended_beside_others(context, running).await;
        notes.extend(looked.err().map(|error| format!("what it changed is not known: {error}")));
    }
    Ok(Done { ended, said, planted, notes })
}

/// Confines the command, where there is a sandbox; what is to be compared afterwards.
async fn confine(context: &Arc<ToolContext>, command: &mut Command) -> io::Result<Option<Arc<Before>>> {
    let context = context.clone();
    let look = move || context.confined.as_ref().map(Confined::before).transpose();
    let Some((confinement, before)) = off_the_runtime(look).await.flatten()? else { return Ok(None) };
    command.confinement = Some(confinement);
    Ok(Some(before))
}

/// Where others work in the same folder: what the agent knows of its files, before its command.
async fn begins(context: &Arc<ToolContext>) -> io::Result<Option<Running>> {
    let context = context.clone();
    off_the_runtime(move || context.seen.as_ref().map(|seen| seen.command_begins(context.root.path()))).await
}

/// And after it.
async fn ended_beside_others(context: &Arc<ToolContext>, running: Running) -> io::Result<()> {
    let context = context.clone();
    let look = move || {
        if let Some(seen) = &context.seen {
            seen.command_ended(context.root.path(), &running);
        }
    };
    off_the_runtime(look).await
}

/// What a command planted is taken away; what there is to say of it, and what else there is to say.
async fn look_after(context: &Arc<ToolContext>, before: Option<Arc<Before>>) -> (Vec<String>, Vec<String>) {
    let Some(before) = before else { return Default::default() };
    let context = context.clone();
    let after = move || context.confined.as_ref().map(|confined| confined.after(&before));
    let notes = off_the_runtime(after).await.map(Option::unwrap_or_default);
    notes.unwrap_or_else(|error| (vec![format!("what it planted was not looked for: {error}")], Vec::new()))
}
