//! `midturn run`: everything that can be wrong is found before anything starts, then a lead
//! gets the task and a person may steer until it is done.
//!
//! This module wires; what a message does is decided in `midturn-core`, what a tool does in
//! `midturn-tools`, what a model says in `midturn-providers`.

pub(crate) mod console;
mod descriptors;
pub(crate) mod facts;
pub(crate) mod input;
pub(crate) mod models;
pub(crate) mod names;
pub(crate) mod prepare;
pub(crate) mod progress;
pub(crate) mod prompts;
pub(crate) mod session;
pub(crate) mod session_id;
pub(crate) mod signals;
pub(crate) mod steering;
mod task;
pub(crate) mod team;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use midturn_tui::settings::Settings;
use midturn_view::words::Tone;
use tokio_util::sync::CancellationToken;

use crate::args::{AttendArgs, LayerArgs, RunArgs};
use crate::client;
use crate::config::Config;
use crate::env::Env;
use crate::failure::{End, Failure};
use crate::host::holding::{self, Opened};
use crate::host::{Answering, Begun, Carrier};
use crate::project::Project;
use crate::screen;
use console::Console;
use models::{Earlier, Reached};

/// Said where another process carries the session.
const GUEST: &str =
    "another process carries this project's sessions; `midturn ps` shows what holds their commands";

/// `midturn run "TASK"`.
///
/// # Errors
/// [`Failure::Usage`]: arguments, configuration, files or environment are not sound, and
/// nothing was begun. [`Failure::Failed`]: the run could not be begun.
pub(crate) fn run(args: &RunArgs, env: &Env) -> Result<End, Failure> {
    let task = &task::task(args, env)?;
    let prepared = prepare::prepare(&args.work.whole_layer(), env, &Earlier::default(), &Reached::default())?;
    let project = Project::of(&prepared.folder, &args.work.store, env)?;
    let patience = prepared.config.general.store.patience;
    let manner = Manner::of(&args.attend, &prepared.config, env);
    attended(manner, env, async |attended| {
        match holding::open(&project, patience).await? {
            Opened::Theirs(_) => {
                let sharing = prepared.sharing().await.into_iter().collect();
                attended
                    .tell_notes(&[prepared.notes.clone(), sharing, vec![GUEST.to_owned()]].concat())
                    .await;
                client::remote_run(task, &prepared.layer, &project, attended).await
            }
            Opened::Ours(holding) => {
                // What was said of this run's safety is not said of its guests'.
                let layer = LayerArgs { set: args.work.layer.set.clone(), ..prepared.layer.clone() };
                let carrier = Carrier::new(holding, env, &layer);
                let safety = carrier.safety_of(&prepared.config).await?.sharing(prepared.sharing().await);
                attended.tell_notes(&[safety.notes(), prepared.notes.clone()].concat()).await;
                let audience = (&attended.console).into();
                let begins = attended.carry(&project, carrier, async |carrier| {
                    Ok(Ok(carrier.begin_with(task, prepared, audience).await?))
                });
                begins.await
            }
        }
    })
}

/// How somebody attends to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manner {
    /// They read events, not lines.
    pub(crate) json: bool,
    /// Lines of standard input are theirs, to steer.
    pub(crate) steers: bool,
    /// They look at the screen, which is so configured.
    pub(crate) screen: Option<Settings>,
    /// Where agents' folders are, if not in the state folder.
    pub(crate) base: Option<PathBuf>,
    /// They are asked for the next line when all is done.
    pub(crate) stays: bool,
}

impl Manner {
    /// As the arguments and the configuration say.
    pub(crate) fn of(args: &AttendArgs, config: &Config, env: &Env) -> Self {
        let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let stays = !args.json && !args.once && !args.steer_stdin && is_at_terminal;
        let is_shown = stays && screen::is_possible(&args.screen, env);
        let screen = is_shown.then(|| config.terminal(env, args.screen.ascii));
        let base = config.general.folder.base();
        Self { json: args.json, steers: Self::steers(args), screen, stays, base }
    }

    /// Lines, or events, for a command that has no other options; a person at a terminal steers.
    pub(crate) fn of_lines(json: bool) -> Self {
        Self { json, steers: std::io::stdin().is_terminal(), screen: None, stays: false, base: None }
    }

    /// Whether lines of standard input steer; a terminal has a person at it.
    fn steers(args: &AttendArgs) -> bool {
        args.steer_stdin || std::io::stdin().is_terminal()
    }
}

/// What a command has at hand that a person attends to.
#[derive(Clone)]
pub(crate) struct Attended {
    /// What they read.
    pub(crate) console: Arc<Console>,
    /// Whether lines of standard input steer.
    steers: bool,
    /// How the screen is, if they look at one.
    pub(crate) screen: Option<Settings>,
    /// Where agents' folders are, if not in the state folder.
    pub(crate) base: Option<PathBuf>,
    /// Whether they are asked for the next line when all is done.
    stays: bool,
    /// Cancelled by Ctrl-C and its kin.
    pub(crate) interrupted: CancellationToken,
}

/// Runs a command that a person attends to, to its end.
///
/// # Errors
/// What the command fails with; [`Failure::Failed`] if nobody can read its output any more.
pub(crate) fn attended<F>(manner: Manner, env: &Env, command: F) -> Result<End, Failure>
where
    F: AsyncFnOnce(Attended) -> Result<End, Failure>,
{
    let interrupted = signals::listen()?;
    descriptors::make_room();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the runtime can't be started: {error}")))?;
    let Manner { json, steers, screen, stays, base } = manner;
    let console = Arc::new(Console::start(json, env, interrupted.clone()));
    let (ended, written) = runtime.block_on(async {
        let given = Attended { console: console.clone(), steers, screen, stays, base, interrupted };
        let ended = command(given).await;
        (ended, console.finish().await)
    });
    // Whatever still holds a thread (a blocked read, say) must not hold the end.
    runtime.shutdown_background();
    if !written {
        // Nobody reads: whatever more is said would wait for that, too.
        let end = ended.unwrap_or_else(|failure| failure.end());
        std::process::exit(i32::from(end as u8));
    }
    match ended {
        Ok(_) if console.is_broken() => {
            Err(Failure::failed("standard output can't be written; the run was stopped"))
        }
        ended => ended,
    }
}

impl Attended {
    /// Whether a session that rests can be written to here.
    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    /// What a person has to know before agents begin.
    pub(crate) async fn tell_notes(&self, notes: &[String]) {
        for note in notes {
            self.console.tell(Tone::Quiet, format!("note: {note}")).await;
        }
    }

    /// Carries a session that begins, or goes on, in this process to its end; how it ends, where
    /// there is nothing to do in it.
    ///
    /// # Errors
    /// As `begins`, or [`Failure::Failed`]: nobody could ask this process.
    pub(crate) async fn carry<F>(
        &self,
        project: &Project,
        carrier: Carrier,
        begins: F,
    ) -> Result<End, Failure>
    where
        F: AsyncFnOnce(&Carrier) -> Result<Result<Begun, End>, Failure>,
    {
        // Whoever leaves a page of it leaves it to the terminal that began it.
        let answering = Answering::start(project, Arc::new(carrier), None, None).await?;
        let end = match begins(answering.carrier()).await {
            Ok(Ok(begun)) => Ok(self.steer(project, &answering, begun).await),
            Ok(Err(end)) => Ok(end),
            Err(failure) => Err(failure),
        };
        self.leave(answering).await;
        end
    }

    /// Stops what is at work, lets the person read what is still to be read, and takes the
    /// interface down: until then it answers.
    pub(crate) async fn leave(&self, answering: Answering) {
        answering.carrier().shutdown().await;
        self.console.heard_all().await;
        answering.end(self.interrupted.is_cancelled()).await;
    }

    async fn wait_for_guests(&self, carrier: &Carrier) {
        let working = carrier.all().iter().filter(|begun| begun.live.coordinator.is_busy()).count();
        if working == 0 || self.interrupted.is_cancelled() {
            return;
        }
        let told = format!(
            "{working} more at work that others have begun here; waiting for them, Ctrl-C stops them"
        );
        self.console.tell(Tone::Plain, told).await;
        tokio::select! {
            () = self.interrupted.cancelled() => {}
            () = carrier.quiet() => {}
        }
    }
}
