//! Attending to a session, wherever it runs: what a typed line does, what the person is told
//! of it, and how the command ends. What a message does is the coordinator's affair.

use std::fmt::Display;

use midturn_client::Said;
use midturn_core::rules::event::Outcome;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::view::Ask;
use midturn_view::words::{self, Tone};
use midturn_wire::agent::{Agent, State};
use midturn_wire::work::Stopped;

use super::listed;
use crate::failure::End;
use crate::run::console::Console;
use crate::run::input::Typed;
use crate::run::steering::{self, Line, LineError, Word};

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Nobody works and nobody will.
    Quiet,
    /// The same, and the session no longer lives where it was.
    Ended,
    /// A signal, or `/quit`.
    Interrupted,
    /// Nobody reads the output any more.
    OutputGone,
}

/// A session that can be steered, here or in another process. Errors are sentences.
pub(crate) trait Steered {
    /// What agents ask a person, the oldest first.
    async fn requests(&self) -> Result<Vec<Ask>, String>;

    /// Gives the word on one request, and on no later one of that call.
    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String>;

    /// Who is there.
    async fn agents(&self) -> Result<Vec<Agent>, String>;

    /// Sends a message.
    async fn send(&self, to: &AgentName, text: &str, urgency: Option<Urgency>) -> Result<(), String>;

    /// Stops an agent, and begins its next run with this.
    async fn supersede(&self, to: &AgentName, text: &str) -> Result<(), String>;

    /// Closes an agent and all below it, and names them.
    async fn close(&self, agent: &AgentName) -> Result<Vec<String>, String>;

    /// Stops an agent.
    async fn stop(&self, agent: &AgentName) -> Result<Stopped, String>;
}

/// Does what a line says; one that names nobody is for the lead. `true`: the session is to end.
pub(crate) async fn obey(steered: &impl Steered, lead: &AgentName, console: &Console, typed: Typed) -> bool {
    let agents = match steered.agents().await {
        Ok(agents) => agents,
        Err(trouble) => {
            complain(console, format!("not sent: {trouble}")).await;
            return false;
        }
    };
    let is_agent = |name: &str| agents.iter().any(|agent| agent.name.as_str() == name);
    match typed.and_then(|line| steering::parse(&line, is_agent)) {
        Ok(Line::Blank) => {}
        Ok(Line::Quit) => return true,
        Ok(Line::Ps) => {
            for agent in &agents {
                console.tell(Tone::Plain, listed(agent)).await;
            }
        }
        Ok(Line::Stop(name)) => stop(steered, console, &name).await,
        Ok(Line::Supersede(name, text)) => sent(steered.supersede(&name, &text).await, console, &name).await,
        Ok(Line::Close(name)) => match steered.close(&name).await {
            Ok(closed) => console.tell(Tone::Plain, told_closed(&closed)).await,
            Err(error) => complain(console, error).await,
        },
        Ok(Line::ToAgent { to, text, urgency }) => {
            sent(steered.send(&to, &text, urgency).await, console, &to).await;
        }
        Ok(Line::ToLead { text, unknown }) => {
            if let Some(unknown) = unknown {
                let told = format!("there is no agent `{unknown}`; the line went to `{lead}`");
                console.tell(Tone::Quiet, told).await;
            }
            sent(steered.send(lead, &text, None).await, console, lead).await;
        }
        Ok(Line::Answer(word)) => match answer(steered, &word, &console.asking(), is_agent).await {
            Ok(done) => console.tell(Tone::Plain, done).await,
            Err(error) => complain(console, error).await,
        },
        Err(error) => complain(console, error).await,
    }
    false
}

async fn complain(console: &Console, what: impl Display) {
    console.tell(Tone::Bad, format!("error: {what}")).await;
}

async fn sent(sent: Result<(), String>, console: &Console, to: &AgentName) {
    if let Err(trouble) = sent {
        complain(console, format!("not sent to {to}: {trouble}")).await;
    }
}

/// Who was closed, leaves first.
pub(crate) fn told_closed(closed: &[String]) -> String {
    match closed {
        [] => "it was closed already".to_owned(),
        names => format!("closed: {}", names.join(", ")),
    }
}

async fn stop(steered: &impl Steered, console: &Console, name: &AgentName) {
    match steered.stop(name).await {
        Err(trouble) => complain(console, trouble).await,
        Ok(Stopped { stopped, .. }) if stopped.is_empty() => {
            console.tell(Tone::Plain, format!("{name} is idle; there was nothing to stop")).await;
        }
        Ok(Stopped { still_queued, .. }) if !still_queued.is_empty() => {
            console.tell(Tone::Plain, format!("still queued for {name}: {}", still_queued.join(", "))).await;
        }
        Ok(_) => {}
    }
}

/// Gives a word to the request that it is about, of those that were shown, and says what that did.
///
/// # Errors
/// A sentence: nobody asks, or the request is open no more.
pub(crate) async fn answer(
    asked: &impl Steered,
    word: &Word,
    shown: &[Ask],
    is_agent: impl Fn(&str) -> bool,
) -> Result<String, String> {
    let asking: Vec<AgentName> = shown.iter().map(|shown| shown.agent.clone()).collect();
    let (at, said) = steering::choose(word, &asking, is_agent).map_err(|error| error.to_string())?;
    let meant = shown.get(at).ok_or_else(|| LineError::NothingAsked.to_string())?;
    let mut open = asked.requests().await?;
    // What was asked since nobody has read: the word was not about that.
    open.retain(|ask| ask.agent == meant.agent && ask.tool == meant.tool && ask.since <= meant.since);
    let over = || LineError::NotAsking(meant.agent.to_string()).to_string();
    let request = open.last().ok_or_else(over)?;
    asked.answer(request, &said).await?;
    Ok(told(request, &said))
}

/// Says that a session goes on, and who works in it.
pub(crate) fn goes_on(id: impl Display, working: &[impl ToString]) -> String {
    let names: Vec<String> = working.iter().map(ToString::to_string).collect();
    format!("session {id} goes on: {}", names.join(", "))
}

/// Who is at work.
pub(crate) fn at_work(agents: &[Agent]) -> Vec<String> {
    let works = |agent: &&Agent| matches!(agent.state, State::Running | State::Ending);
    agents.iter().filter(works).map(|agent| agent.name.to_string()).collect()
}

/// Where a session is carried: it decides how a limit is raised.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Carried {
    /// Here, and no longer when this command ends.
    Here,
    /// In another process.
    Elsewhere,
}

/// What there is to say where nobody has anything to go on with, and the status that it ends with.
pub(crate) struct Rests {
    pub(crate) told: String,
    pub(crate) end: End,
}

/// Says why nobody in a session goes on, and what a person can do: how its lead's last run ended is how the
/// command ends (semantics.md, section 6).
pub(crate) fn rests(id: impl Display, lead: Option<&Agent>, carried: Carried) -> Rests {
    let last = lead.and_then(|lead| lead.last_end.as_ref().map(|last| last.outcome));
    if let Some((lead, limit)) = lead.and_then(|lead| Some((lead, lead.limit.as_ref()?))) {
        let name = limit.strip_prefix("session.").unwrap_or(limit);
        let raise = match carried {
            Carried::Here => format!("midturn resume {id} --set {limit}=N"),
            Carried::Elsewhere => {
                let whose = if name == limit { format!("{} ", lead.name) } else { String::new() };
                format!("midturn limit {whose}--{} N --session {id}", name.replace('_', "-"))
            }
        };
        let told = format!(
            "session {id} has nothing to go on with: {} rests at its limit {limit}; with a higher N it goes on: {raise}",
            lead.name
        );
        return Rests { told, end: End::Limit };
    }
    let told = format!(
        "session {id} has nothing to go on with: nothing in it is unanswered; \
         say what comes next: midturn resume {id} TEXT"
    );
    Rests { told, end: last.map_or(End::Finished, |last| ended(last.into())) }
}

/// The status of a command whose lead ended like this.
fn ended(outcome: Outcome) -> End {
    match outcome {
        Outcome::Finished => End::Finished,
        Outcome::Failed => End::Failed,
        Outcome::Limit => End::Limit,
        Outcome::Stopped => End::Interrupted,
    }
}

/// What an answer did, for the person who gave it.
pub(crate) fn told(request: &Ask, said: &Said) -> String {
    let call = format!("{}: {}", request.agent, words::asked(&request.name, &request.input));
    match said {
        Said::Once => format!("allowed: {call}"),
        Said::Always(rule) => {
            let rule = words::whole(rule.as_deref().unwrap_or(&request.always));
            format!("allowed, and from now on in this session {rule}: {call}")
        }
        Said::No(None) => format!("denied: {call}"),
        Said::No(Some(reason)) => format!("denied ({}): {call}", words::short(reason)),
    }
}

/// The lead's last word, unless it was given already.
pub(crate) async fn last_word(console: &Console, lead: &AgentName) {
    let last =
        console.told(|view| view.agent(lead).map(|lead| (lead.outcome, lead.ended, lead.text.clone())));
    if let Some((Some(Outcome::Finished), run, text)) = last
        && console.answers_run(run)
    {
        console.answer(&text).await;
    }
}

/// How a command ends whose session is over; the lead's last word is the answer. `before` is how the lead had
/// ended before, should nothing have been told of it since.
pub(crate) async fn end(console: &Console, over: Over, lead: &AgentName, before: Option<Outcome>) -> End {
    if matches!(over, Over::Quiet | Over::Ended) {
        last_word(console, lead).await;
    }
    let outcome = console.told(|view| view.agent(lead).and_then(|lead| lead.outcome)).or(before);
    match over {
        Over::Interrupted => End::Interrupted,
        Over::OutputGone => End::Failed,
        Over::Quiet | Over::Ended => outcome.map_or(End::Failed, ended),
    }
}
