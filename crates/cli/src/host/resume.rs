//! `midturn resume`: a session goes on where its process left it, and a person may steer it
//! as they could the run.

use midturn_core::rules::id::SessionId;
use midturn_view::words::Tone;

use super::holding::{self, Opened};
use super::{Begun, Carrier};
use crate::args::{ResumeArgs, WorkArgs};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::Project;
use crate::run::session::attending;
use crate::run::{Attended, Manner, attended};
use crate::{client, commands, history};

/// `midturn resume [SESSION]`.
///
/// # Errors
/// [`Failure::Usage`]: there is no such session, or what it is made of is not sound any
/// more. [`Failure::Failed`]: the store fails.
pub(crate) fn resume(args: &ResumeArgs, env: &Env) -> Result<End, Failure> {
    let WorkArgs { store, layer, .. } = &args.work;
    let folder = commands::work_folder(layer)?;
    let project = Project::of(&folder, store, env)?;
    let config = commands::load(layer, &folder, env)?;
    let patience = config.general.store.patience;
    let set = args.work.whole_layer().set;
    attended(Manner::of(&args.attend, &config, env), env, async |attended| {
        match holding::open(&project, patience).await? {
            Opened::Theirs(who) if !set.is_empty() => Err(Failure::usage(format!(
                "another process goes on with the session, and as it was begun: leave --mode, --no-sandbox, --max-cost and --set out, \
             or end that process first ({who})"
            ))),
            Opened::Theirs(_) => client::remote_resume(&args.session, &project, attended).await,
            Opened::Ours(holding) => {
                let id = history::find(&*holding.archive, &args.session).await?;
                let carrier = Carrier::new(holding, env, layer);
                attended
                    .carry(&project, carrier, async |carrier| go_on(carrier, &id, &set, &attended).await)
                    .await
            }
        }
    })
}

async fn go_on(
    carrier: &Carrier,
    id: &SessionId,
    set: &[String],
    attended: &Attended,
) -> Result<Option<Begun>, Failure> {
    let taken = carrier.go_on_with(id, set, (&attended.console).into()).await?;
    let gone = || Failure::usage(format!("there is no session {id}; `midturn sessions` lists them"));
    let (begun, working) = taken.ok_or_else(gone)?;
    // On the screen a session that rests can be written to.
    if working.is_empty() && attended.screen.is_none() {
        attended.console.tell(Tone::Plain, attending::rests(id)).await;
        return Ok(None);
    }
    attended.tell_notes(&begun.safety.notes()).await;
    attended.console.tell(Tone::Plain, attending::goes_on(id, &working)).await;
    Ok(Some(begun))
}
