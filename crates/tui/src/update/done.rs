//! What came of what was done. A text that was not accepted is a draft again.

use midturn_client::Trouble;
use midturn_core::rules::event::Event;
use midturn_core::rules::id::AgentName;
use midturn_view::clean::one_line;
use midturn_view::mail;
use midturn_view::patch::Patch;
use midturn_wire::agent::Agent;

use super::inbox::NONE;
use crate::changes::Changes;
use crate::effect::{Done, Effect, Outgoing};
use crate::look::Tone;
use crate::state::{Facts, Pane, State};

/// Takes what came of something.
pub(super) fn done(state: &mut State, done: Done) -> Vec<Effect> {
    if let Done::Sent(message, _) = &done {
        state.sending.retain(|sending| sending.id != message.id);
    }
    match done {
        Done::Sent(_, Ok(())) | Done::Answered(Ok(())) | Done::Copied(Ok(())) | Done::Agents(Err(_)) => {}
        Done::Sent(message, Err(trouble)) => refused(state, message, &trouble),
        Done::Withdrawn { to, id, text, edit, result } => {
            state.is_on_its_way(&id, false);
            withdrawn(state, &to, text, edit, result);
        }
        Done::Stopped { agent, result, back } => stopped(state, &agent, result, back),
        Done::Answered(Err(trouble)) => state.say(Tone::Bad, format!("not answered: {}", why(&trouble))),
        Done::Limited(agent, limits, Ok(())) => {
            let whose = agent.map_or_else(|| "all together".to_owned(), |agent| agent.to_string());
            state.asked.1 = true;
            state.say(Tone::Good, format!("{whose}: {}", limits.words()));
        }
        Done::Limited(_, _, Err(trouble)) => state.say(Tone::Bad, format!("not set: {}", why(&trouble))),
        Done::Resumed(agent, Ok(started)) => {
            let says = started.note.unwrap_or_else(|| "goes on".to_owned());
            state.say(Tone::Plain, format!("{agent}: {says}"));
        }
        Done::Resumed(agent, Err(trouble)) => state.say(Tone::Bad, format!("{agent}: {}", why(&trouble))),
        Done::Diff(agent, result) => diff(state, &agent, result),
        Done::Agents(Ok(agents)) => facts(state, agents),
        Done::Older(agent, result) => older(state, &agent, result),
        Done::Replayed(shift, result) => super::what_if::played(state, shift, result),
        Done::Edited(Ok(text)) => super::typed(state, |composer| composer.editor(&text)),
        Done::Edited(Err(why)) | Done::Copied(Err(why)) => state.say(Tone::Bad, why),
    }
    Vec::new()
}

fn why(trouble: &Trouble) -> String {
    match trouble.code() {
        Some(code @ "limit") => format!("{} with /limit", mail::refusal(code, &trouble.to_string())),
        Some(code) => mail::refusal(code, &trouble.to_string()),
        None => one_line(&trouble.to_string()),
    }
}

fn refused(state: &mut State, message: Outgoing, trouble: &Trouble) {
    if let Some(replaces) = message.replaces {
        // What it was to replace has been read or still waits: there is nothing to bring back.
        state.is_on_its_way(&replaces, false);
        state.last.insert(message.to, replaces);
        state.say(Tone::Bad, format!("not sooner: {}", why(trouble)));
        return;
    }
    state.composer.refused(&message.to, &message.text);
    state.keep_drafts();
    state.say(Tone::Bad, format!("not sent to {}, and kept as a draft: {}", message.to, why(trouble)));
    // Without an answer it may be there all the same.
    if trouble.code().is_none() {
        state.is_unsure(message);
    }
}

fn withdrawn(state: &mut State, to: &AgentName, text: String, edit: bool, result: Result<(), Trouble>) {
    match result {
        Ok(()) if edit => {
            state.composer.give_back(to, vec![text]);
            state.keep_drafts();
            state.say(Tone::Mail, "taken back to be edited: nobody has read it");
        }
        Ok(()) => state.say(Tone::Mail, "taken back: nobody has read it"),
        Err(trouble) => state.say(Tone::Bad, format!("not taken back: {}", why(&trouble))),
    }
}

fn stopped(state: &mut State, agent: &AgentName, result: Result<bool, Trouble>, back: Vec<String>) {
    let came = match back.len() {
        0 => String::new(),
        1 => "; your message that waited is a draft again".to_owned(),
        count => format!("; your {count} messages that waited are drafts again, one after the other"),
    };
    state.composer.give_back(agent, back);
    state.keep_drafts();
    match result {
        Ok(true) => state.say(Tone::Cut, format!("{agent} is stopped{came}")),
        Ok(false) => state.say(Tone::Quiet, format!("{agent} rests: there was nothing to stop{came}")),
        Err(trouble) => state.say(Tone::Bad, format!("{agent} was not stopped: {}{came}", why(&trouble))),
    }
}

fn diff(state: &mut State, agent: &AgentName, result: Result<midturn_wire::work::Diff, Trouble>) {
    if state.chosen.as_ref() != Some(agent) || !matches!(state.pane, Pane::Diff(_)) {
        return;
    }
    let shown = result.map(|diff| {
        let mut changes = Changes::new(Patch::read(&diff.patch), diff.truncated);
        // What was said to lines that have changed is seen first.
        changes.cursor = changes.within(isize::MIN, &state.remarks(&changes));
        changes.top = changes.cursor;
        Box::new(changes)
    });
    state.pane = Pane::Diff(Some(shown.map_err(|trouble| one_line(&trouble.to_string()))));
}

fn older(state: &mut State, agent: &AgentName, result: Result<(Vec<Event>, Option<u64>), Trouble>) {
    let Some(older) = state.older.as_mut().filter(|older| older.agent == *agent) else { return };
    match result {
        Ok((events, before)) => {
            older.page(&events, before);
            state.layouts.forget();
        }
        Err(trouble) => {
            (older.before, older.is_asked) = (None, false);
            state.say(Tone::Bad, format!("what is older can't be read: {}", why(&trouble)));
        }
    }
}

/// What events don't say.
fn facts(state: &mut State, agents: Vec<Agent>) {
    for agent in agents {
        let Agent { name, cost, priced_at, context, branch, limit, conflict, .. } = agent;
        let is_about = priced_at.is_some();
        let known = state.facts.get(&name).and_then(|facts| facts.conflict.as_ref());
        if known != conflict.as_ref() {
            state.inbox_seq = NONE;
        }
        state.facts.insert(name, Facts { cost, is_about, context, branch, limit, conflict });
    }
}
