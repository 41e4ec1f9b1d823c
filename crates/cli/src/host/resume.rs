//! `midturn resume`: a session goes on where its process left it, and a person may steer it
//! as they could the run.

use std::sync::Arc;

use midturn_core::rules::id::SessionId;

use super::holding::{self, Opened};
use super::{Answering, Carrier, carry};
use crate::args::{ResumeArgs, WorkArgs};
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::project::Project;
use crate::run::progress::Tone;
use crate::run::{Attended, attended};
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
    let patience = commands::load(layer, &folder, env)?.general.store.patience;
    let set = args.work.whole_layer().set;
    attended(args.json, env, async |attended| match holding::open(&project, patience).await? {
        Opened::Theirs(who) if !set.is_empty() => Err(Failure::usage(format!(
            "another process goes on with the session, and as it was begun: leave --mode, --no-sandbox and --set out, \
             or end that process first ({who})"
        ))),
        Opened::Theirs(_) => client::remote_resume(&args.session, &project, attended).await,
        Opened::Ours(holding) => {
            let id = history::find(&*holding.archive, &args.session).await?;
            let carrier = Arc::new(Carrier::new(holding, env, layer));
            go_on(&project, carrier, &id, &set, attended).await
        }
    })
}

async fn go_on(
    project: &Project,
    carrier: Arc<Carrier>,
    id: &SessionId,
    set: &[String],
    attended: Attended,
) -> Result<End, Failure> {
    let answering = Answering::start(project, carrier.clone(), None).await?;
    let taken = carrier.go_on_with(id, set, (&attended.console).into()).await;
    let end = match taken {
        Ok(Some((begun, working))) if !working.is_empty() => {
            attended.tell_notes(&begun.safety.notes()).await;
            attended.console.tell(Tone::Plain, carry::goes_on(id, &working)).await;
            Ok(attended.steer(&carrier, begun).await)
        }
        Ok(Some(_)) => {
            let text = format!(
                "session {id} has nothing to go on with: no agent of it was stopped or failed, and none is at work"
            );
            attended.console.tell(Tone::Plain, text).await;
            Ok(End::Finished)
        }
        Ok(None) => Err(Failure::usage(format!("there is no session {id}; `midturn sessions` lists them"))),
        Err(error) => Err(error.into()),
    };
    attended.leave(&carrier, answering).await;
    end
}
