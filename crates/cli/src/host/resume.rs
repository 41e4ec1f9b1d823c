//! `midturn resume`: a session goes on where its process left it, and a person may steer it
//! as they could the run.

use midturn_core::engine::Message;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::mail::Sender;
use midturn_view::words::Tone;
use midturn_wire::agent::Agent;

use super::holding::{self, Opened};
use super::limits::{self, Limits};
use super::{Begun, Carrier};
use crate::args::{ResumeArgs, WorkArgs};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::meanwhile::telling;
use crate::project::Project;
use crate::run::session::attending::{self, Carried};
use crate::run::{Attended, Manner, attended};
use crate::{client, commands, history};

/// `midturn resume [SESSION] [TEXT]`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session, or what it is made of is not sound any
/// more. [`Failure::Failed`]: the store fails.
pub(crate) fn resume(args: &ResumeArgs, env: &Env) -> Result<End, Failure> {
    let WorkArgs { store, layer, .. } = &args.work;
    let folder = commands::work_folder(layer)?;
    let project = Project::of(&folder, store, env)?;
    // With `--max-cost` as well: what it says is a limit that is raised.
    let whole = args.work.whole_layer();
    let config = commands::load(&whole, &folder, env)?;
    let patience = config.general.store.patience;
    let set = whole.set;
    attended(Manner::of(&args.attend, &config, env), env, async |attended| {
        match holding::open(&project, patience).await? {
            Opened::Theirs(who) if !set.is_empty() => Err(Failure::usage(format!(
                "another process goes on with the session, and as it was begun: leave --mode, --no-sandbox, --max-cost and --set out, \
             or end that process first ({who})"
            ))),
            Opened::Theirs(_) => {
                client::remote_resume(&args.session, args.text.as_deref(), &project, attended).await
            }
            Opened::Ours(holding) => {
                let id = history::find(&*holding.archive, &args.session)
                    .await
                    .map_err(|error| meant(args, error))?;
                let carrier = Carrier::new(holding, env, layer);
                let again = Again {
                    set: &set,
                    limits: limits::of(&config.settings, &set),
                    text: args.text.as_deref(),
                };
                attended
                    .carry(&project, carrier, async |carrier| go_on(carrier, &id, &again, &attended).await)
                    .await
            }
        }
    })
}

/// Whoever writes a sentence in a session's place is told where it goes.
fn meant(args: &ResumeArgs, error: Failure) -> Failure {
    match (error, &args.text) {
        (Failure::Usage(what), None) if args.session.contains(char::is_whitespace) => {
            Failure::usage(format!("{what}; to say something to it: midturn resume last TEXT"))
        }
        (error, _) => error,
    }
}

/// What a person wants of a session that goes on.
struct Again<'a> {
    set: &'a [String],
    /// The limits among what they set.
    limits: Limits,
    text: Option<&'a str>,
}

async fn go_on(
    carrier: &Carrier,
    id: &SessionId,
    again: &Again<'_>,
    attended: &Attended,
) -> Result<Result<Begun, End>, Failure> {
    let tell = async |line| attended.console.tell(Tone::Quiet, line).await;
    let taking = carrier.take_up(id, again.set, (&attended.console).into());
    let taken = telling(&format!("taking up session {id}"), taking, tell).await?;
    let gone = || Failure::usage(format!("there is no session {id}; `midturn sessions` lists them"));
    let (begun, _) = taken.ok_or_else(gone)?;
    let coordinator = &begun.live.coordinator;
    for note in limits::raise(coordinator, &again.limits).await {
        attended.console.tell(Tone::Bad, format!("error: {note}")).await;
    }
    // Before anybody is resumed: it is what the lead's run begins with.
    let refused = match again.text {
        Some(text) => coordinator.send(Message::new(Sender::User, begun.lead.as_str(), text)).await.err(),
        None => None,
    };
    coordinator.resume_all().await.map_err(Failure::failed)?;
    let agents: Vec<Agent> = coordinator.agents().into_iter().map(Agent::from).collect();
    let working = attending::at_work(&agents);
    if let Some(refusal) = &refused {
        let told = format!("error: not sent to {}: {refusal}", begun.lead);
        attended.console.tell(Tone::Bad, told).await;
    }
    // On the screen, and wherever the next line is asked for, a session that rests can be written to.
    if refused.is_some() && working.is_empty() || working.is_empty() && !attended.stays() {
        let rests = attending::rests(id, agents.iter().find(|agent| agent.name == begun.lead), Carried::Here);
        attended.console.tell(Tone::Plain, rests.told).await;
        return Ok(Err(rests.end));
    }
    attended.tell_notes(&begun.safety.notes()).await;
    attended.console.tell(Tone::Plain, attending::goes_on(id, &working)).await;
    Ok(Ok(begun))
}
