//! Where agents work: each subagent in a git worktree of its own, the lead in the project
//! folder itself (issue 2, item 5). What an agent changed is committed to its branch at each
//! run's end. No worktree and no branch is ever removed here: they hold somebody's work.

mod commit;
mod git;
mod worktree;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::{Changes, ToolError, Toolbox, Workplace};
use midturn_core::rules::id::{AgentName, RunId, SessionId};
use parking_lot::Mutex;

use self::worktree::{NoWorktree, Repository, Worktree};
use crate::ground::{Ground, Limits, command_environment};
use crate::process::Supervisor;
use crate::root::Root;
use crate::toolbox::WorkTools;

/// Whether an agent works apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In a worktree and on a branch of its own.
    Worktree,
    /// In the project folder itself.
    None,
}

/// What an agent is given to work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Whether it works apart.
    pub isolation: Isolation,
    /// The work tools it has, by name in any case; `None`: all of them.
    pub tools: Option<Vec<String>>,
}

impl AgentPlace {
    /// All work tools, in a place of this kind.
    pub fn new(isolation: Isolation) -> Self {
        Self { isolation, tools: None }
    }
}

/// Says what an agent is given; asked once, when its first run starts.
pub type PlaceOf = dyn Fn(&AgentName) -> AgentPlace + Send + Sync;

/// The places of one session's agents in one project.
pub struct GitWorkplace {
    project: PathBuf,
    state: PathBuf,
    session: String,
    place_of: Box<PlaceOf>,
    limits: Limits,
    supervisor: Arc<Supervisor>,
    environment: Arc<[(OsString, OsString)]>,
    /// One worktree is made at a time: git takes no two at once.
    making: tokio::sync::Mutex<()>,
    opened: Mutex<HashMap<AgentName, Arc<Opened>>>,
}

/// An agent's place.
struct Opened {
    ground: Arc<Ground>,
    tools: Arc<WorkTools>,
    worktree: Option<Worktree>,
    /// What the next report has to say of how it began.
    notes: Mutex<Vec<String>>,
}

impl GitWorkplace {
    /// The places in `project`; worktrees lie in the folder `state`, which is made when it is
    /// needed. Commands get our environment, without keys.
    pub fn new(
        project: impl Into<PathBuf>,
        state: impl Into<PathBuf>,
        session: &SessionId,
        place_of: impl Fn(&AgentName) -> AgentPlace + Send + Sync + 'static,
    ) -> Self {
        Self {
            project: project.into(),
            state: state.into(),
            session: worktree::part_of_branch(session.as_str()),
            place_of: Box::new(place_of),
            limits: Limits::default(),
            supervisor: Arc::new(Supervisor::ourselves()),
            environment: command_environment(std::env::vars_os()),
            making: tokio::sync::Mutex::default(),
            opened: Mutex::default(),
        }
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With commands that run under these supervisors.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Arc::new(supervisor);
        self
    }

    /// With another environment for commands; it is handed on as it is.
    #[must_use]
    pub fn environment(mut self, environment: Arc<[(OsString, OsString)]>) -> Self {
        self.environment = environment;
        self
    }

    /// The folder an agent works in, once its place is open.
    pub fn folder(&self, agent: &AgentName) -> Option<PathBuf> {
        self.opened.lock().get(agent).map(|opened| opened.ground.root.path().to_owned())
    }

    async fn make(&self, agent: &AgentName) -> Result<Opened, ToolError> {
        let place = (self.place_of)(agent);
        let (worktree, notes) = match place.isolation {
            Isolation::None => (None, Vec::new()),
            Isolation::Worktree => match self.worktree(agent).await {
                Ok((worktree, notes)) => (Some(worktree), notes),
                Err(NoWorktree::NotPossible(why)) => {
                    let folder = self.project.display();
                    (
                        None,
                        vec![format!(
                            "{agent} works in the folder {folder} itself, not in a worktree: {why}"
                        )],
                    )
                }
                Err(failed) => return Err(ToolError(format!("{agent} has no place to work in: {failed}"))),
            },
        };
        let folder = worktree.as_ref().map_or(&self.project, |worktree| &worktree.root);
        let root = Root::open(folder)
            .map_err(|e| ToolError(format!("the folder {} can't be opened: {e}", folder.display())))?;
        let ground =
            Ground::new(root, self.limits.clone(), self.supervisor.clone(), self.environment.clone());
        let ground = Arc::new(ground);
        let tools = Arc::new(WorkTools::new(&ground, place.tools.as_deref()));
        Ok(Opened { ground, tools, worktree, notes: Mutex::new(notes) })
    }

    async fn worktree(&self, agent: &AgentName) -> Result<(Worktree, Vec<String>), NoWorktree> {
        let _one_at_a_time = self.making.lock().await;
        let repository = Repository::of(&self.project).await?;
        let head = repository.head().await?;
        let beside = self.beside().map_err(|e| {
            NoWorktree::Failed(format!("the state folder {} can't be used: {e}", self.state.display()))
        })?;
        let mut notes: Vec<_> = repository.dirty(&beside.state, &head).await?.into_iter().collect();
        let worktree = repository.add(&beside.worktrees, &self.session, agent.as_str(), head).await?;
        if !worktree.branch.ends_with(&format!("/{agent}")) {
            let branch = &worktree.branch;
            notes.push(format!(
                "a worktree or branch of that name is left over from before, so {agent} works on {branch}"
            ));
        }
        Ok((worktree, notes))
    }

    /// The folders that worktrees are made in, as git will name them.
    fn beside(&self) -> std::io::Result<Beside> {
        let worktrees = self.state.join("worktrees").join(&self.session);
        std::fs::create_dir_all(&worktrees)?;
        Ok(Beside { state: Path::canonicalize(&self.state)?, worktrees: worktrees.canonicalize()? })
    }

    fn opened(&self, agent: &AgentName) -> Option<Arc<Opened>> {
        self.opened.lock().get(agent).cloned()
    }
}

struct Beside {
    state: PathBuf,
    worktrees: PathBuf,
}

#[async_trait]
impl Workplace for GitWorkplace {
    async fn open(&self, agent: &AgentName) -> Result<Arc<dyn Toolbox>, ToolError> {
        let opened = match self.opened(agent) {
            Some(opened) => opened,
            None => {
                let made = Arc::new(self.make(agent).await?);
                self.opened.lock().insert(agent.clone(), made.clone());
                made
            }
        };
        Ok(opened.tools.clone())
    }

    async fn run_ended(&self, agent: &AgentName, run: RunId) -> Result<Changes, ToolError> {
        let opened =
            self.opened(agent).ok_or_else(|| ToolError(format!("{agent} has no place that was opened")))?;
        let edited = opened.ground.take_edited();
        let mut changes = match &opened.worktree {
            Some(worktree) => commit::commit(worktree, agent.as_str(), run).await,
            None => Changes { files: edited, ..Changes::default() },
        };
        changes.notes.splice(0..0, std::mem::take(&mut *opened.notes.lock()));
        Ok(changes)
    }
}
