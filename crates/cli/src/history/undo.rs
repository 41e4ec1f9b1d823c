//! `midturn undo`: what agents changed in the project folder itself is taken back (docs/decisions/0044). No process
//! that carries the session is asked: what is kept lies in the state folder, and who holds it works alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use midturn_tools::workplace::undo::{Kept, Turn, Undo, Undone};
use midturn_view::words;

use super::list::Now;
use crate::args::UndoArgs;
use crate::commands;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::meanwhile::Meanwhile;
use crate::project::Project;

/// `midturn undo`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session. [`Failure::Failed`]: there is nothing to undo, an agent is in the
/// middle of a turn, or the folder can't be changed.
pub(crate) fn undo(args: &UndoArgs, env: &Env) -> Result<End, Failure> {
    let project = Project::named(&args.place, env)?;
    commands::block_on(async {
        let (_, id) = super::kept(&project, &args.session).await?;
        let opened = Undo::open(&project.whole_state(), &id).await.map_err(Failure::failed)?;
        let nothing = || {
            Failure::failed(format!(
                "there is nothing to undo in session {id}: none of its turns that are kept changed a file in the project \
                 folder itself. What subagents do is on their branches: `midturn diff AGENT`"
            ))
        };
        let mut opened = opened.filter(|opened| opened.turns().len() > 0).ok_or_else(nothing)?;
        if args.list {
            return commands::print(&listed(opened.turns(), &Now::of_machine()));
        }
        let count = usize::try_from(args.turns).unwrap_or(usize::MAX);
        let meanwhile = Meanwhile::begin("looking through the files", env);
        let undone = opened.undo(count, args.dry_run).await.map_err(Failure::failed);
        drop(meanwhile);
        let undone = undone?;
        commands::print(&told(&undone, args.dry_run, &Now::of_machine()))
    })?
}

/// The turns, a line each.
fn listed<'a>(turns: impl Iterator<Item = &'a Turn>, now: &Now) -> String {
    turns.fold(String::new(), |mut text, turn| {
        let _ = writeln!(text, "{}, {}", name(turn, now), files(turn.files));
        text
    })
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// `lead, run 1 turn 3, 2026-11-24 14:02`.
fn name(turn: &Turn, now: &Now) -> String {
    let who = turn.who.iter().map(|who| {
        let turn =
            who.turn.map_or_else(|| "a turn that was cut off".to_owned(), |turn| format!("turn {turn}"));
        format!("{}, run {} {turn}", who.agent, who.run)
    });
    format!("{}, {}", who.collect::<Vec<_>>().join("; "), now.day(turn.began_at.saturating_mul(1_000_000)))
}

/// What was done, or would be.
fn told(undone: &[Undone], only_look: bool, now: &Now) -> String {
    let mut text = String::new();
    for Undone { turn, restored, removed, kept } in undone {
        let _ = writeln!(text, "{} {}", if only_look { "would undo" } else { "undone:" }, name(turn, now));
        let mut row = |what: &str, path: &Path, why: &str| {
            let _ = writeln!(text, "  {what:<9} {}{why}", words::short(&path.to_string_lossy()));
        };
        let all = |paths: &[PathBuf], what, row: &mut dyn FnMut(&str, &Path, &str)| {
            paths.iter().for_each(|path| row(what, path, ""));
        };
        all(restored, "restored", &mut row);
        all(removed, "removed", &mut row);
        kept.iter().for_each(|(path, why)| row("kept", path, because(*why)));
        turn.left_out
            .iter()
            .for_each(|path| row("kept", Path::new(path), ": too large to be looked at, or not readable"));
        if turn.committed {
            text += "  what was committed in it stays committed: `git log` shows it\n";
        }
    }
    if !only_look {
        text += "its agents are told with the result of their next call\n";
    }
    text
}

fn because(why: Kept) -> &'static str {
    match why {
        Kept::ChangedSince => ": it was changed since",
        Kept::Lost => ": git has let go of what was in it before",
    }
}
