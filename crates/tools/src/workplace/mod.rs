//! Where agents work: each subagent in a worktree with a repository of its own, the lead in the project
//! folder itself (issue 2, item 5; issue 13, item 1). What an agent changed is committed to its branch at
//! each run's end, and comes back into the project. No worktree and no branch is ever removed here: they
//! hold somebody's work.

mod apart;
mod back;
mod borrowed;
mod by_tool;
mod commit;
mod confine;
mod copied;
mod diff;
mod folders;
mod git;
mod handed_on;
mod home;
mod keeper;
mod large_files;
mod layout;
mod let_in;
mod linked;
mod make;
mod merge;
mod message;
mod place;
mod ready;
mod record;
mod remains;
mod settle;
mod snapshot;
mod stage;
mod starting;
mod status;
mod submodules;
mod surroundings;
mod told;
pub mod undo;
mod worktree;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use midturn_core::engine::ToolSet;
use midturn_core::engine::ports::{Changes, Diff, Merge, OutputSink, ToolError, Toolbox, Workplace};
use midturn_core::rules::approval::Unread;
use midturn_core::rules::id::{AgentName, RunId, SessionId, TurnId};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

pub use self::apart::Ready;
pub use self::let_in::LetIn;
pub use self::place::{AgentPlace, GitAccess, Isolation, PlaceOf, Reach};
pub use self::ready::{Listener, Wishes};
pub use self::remains::{Remains, news};
pub use self::undo::TURNS_KEPT;

use self::by_tool::ByTool;
use self::folders::SessionFolders;
use self::layout::RepositoryLayout;
use self::record::{Record, Records};
use self::starting::{Had, Starting};
use self::surroundings::WayOut;
use self::undo::Recorder;
use self::worktree::{FolderState, NoWorktree, Repository, Worktree};
use crate::confined::Confined;
use crate::context::{Limits, ToolContext, off_the_runtime};
use crate::mark::{Mark, Purpose};
use crate::process::Supervisor;
use crate::programs;
use crate::sandbox::Tier;
use crate::seen::Together;
use crate::toolbox::{names, work_tools};
use crate::tools::commit::COMMIT;

/// The places of one session's agents in one project.
pub struct GitWorkplace {
    project: PathBuf,
    state: PathBuf,
    session: SessionId,
    resumed: bool,
    apart: bool,
    place_of: Box<PlaceOf>,
    limits: Limits,
    supervisor: Supervisor,
    reach: Reach,
    way_out: WayOut,
    wishes: Wishes,
    unread: Unread,
    turns_kept: usize,
    /// Of the agents that work in the project folder itself.
    recorder: OnceLock<Arc<Recorder>>,
    /// Looked up before any agent works; why not, if it is in no repository.
    layout: OnceCell<Result<Arc<RepositoryLayout>, String>>,
    folders: OnceLock<Arc<SessionFolders>>,
    /// What our git commands carry, so that they are found when we are dead.
    mark: Option<Mark>,
    /// Of the agents that begin.
    starting: Starting,
    /// One branch is merged at a time.
    merging: tokio::sync::Mutex<()>,
    opened: Mutex<HashMap<AgentName, Arc<Opened>>>,
    /// Of the agents in the project folder.
    together: Arc<Together>,
    /// The worktrees that the session had when it went on; read once, when somebody asks.
    before: Mutex<Option<HashMap<AgentName, Record>>>,
}

/// An agent's place.
struct Opened {
    context: Arc<ToolContext>,
    tools: Arc<ToolSet>,
    worktree: Option<Worktree>,
    /// What the next report has to say of how it began.
    notes: Mutex<Vec<String>>,
    /// Its record, if it has yet to be made ready to work in.
    unready: Mutex<Option<Record>>,
    /// Whether nobody has been in its folder since git made the files there.
    is_as_made: AtomicBool,
    /// What its agent said last.
    last_words: Mutex<String>,
}

impl GitWorkplace {
    /// The places in `project`; worktrees lie in the folder `state`, which is made when it is
    /// needed. Commands get of our environment what is on a list, and what their reach names besides.
    pub fn new(
        project: impl Into<PathBuf>,
        state: impl Into<PathBuf>,
        session: &SessionId,
        place_of: impl Fn(&AgentName) -> AgentPlace + Send + Sync + 'static,
    ) -> Self {
        let (project, state) = (project.into(), state.into());
        programs::keep_out_of([&*project, &state]);
        Self {
            project,
            state,
            session: session.clone(),
            resumed: false,
            apart: false,
            place_of: Box::new(place_of),
            limits: Limits::default(),
            supervisor: Supervisor::ourselves().of_session(session),
            reach: Reach::default(),
            way_out: WayOut::default(),
            wishes: Wishes::default(),
            unread: Unread::default(),
            turns_kept: TURNS_KEPT,
            recorder: OnceLock::new(),
            layout: OnceCell::new(),
            folders: OnceLock::new(),
            mark: Mark::new(session.as_str(), Purpose::Git).ok(),
            starting: Starting::default(),
            merging: tokio::sync::Mutex::default(),
            opened: Mutex::default(),
            together: Arc::default(),
            before: Mutex::default(),
        }
    }

    /// Whether the session was there before: then its agents find their worktrees and branches
    /// again (semantics.md, section 9: a shutdown leaves every session resumable). The state
    /// folder has to be the same, and no other process may have the session.
    #[must_use]
    pub fn resumed(mut self, resumed: bool) -> Self {
        self.resumed = resumed;
        self
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With commands that run under these supervisors, who carry the session's mark, and in their
    /// sandbox; our own git commands too, where agents have worked. Without a sandbox commands can
    /// do all that we can, which is for tests.
    #[must_use]
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor.of_session(&self.session);
        self
    }

    /// With more, or less, that commands may touch.
    #[must_use]
    pub fn reach(mut self, reach: Reach) -> Self {
        programs::keep_out_of(reach.writable.iter().map(PathBuf::as_path));
        self.reach = reach;
        self
    }

    /// With files that rules deny to read: no search shows them.
    #[must_use]
    pub fn unread(mut self, unread: Unread) -> Self {
        self.unread = unread;
        self
    }

    /// The folder an agent works in, once its place is open.
    pub fn folder(&self, agent: &AgentName) -> Option<PathBuf> {
        self.opened.lock().get(agent).map(|opened| opened.context.root.path().to_owned())
    }

    async fn make(&self, agent: &AgentName) -> Result<Opened, ToolError> {
        let place = (self.place_of)(agent);
        // Before any agent works, so that nothing of theirs is taken for the repository.
        let layout = self.layout().await;
        let mut is_as_made = false;
        let (worktree, unready, notes) = match place.isolation {
            Isolation::None => (None, None, Vec::new()),
            Isolation::Worktree => match self.worktree(agent).await {
                Ok(Had { worktree, record, is_new, notes }) => {
                    is_as_made = is_new && !record.unready;
                    (Some(worktree), Some(record).filter(|record| record.unready), notes)
                }
                Err(NoWorktree::NotPossible(why)) => {
                    let folder = self.project.display();
                    let note =
                        format!("{agent} works in the folder {folder} itself, not in a worktree: {why}");
                    (None, None, vec![note])
                }
                Err(failed) => return Err(no_place(agent, &failed)),
            },
        };
        let layout = layout.ok();
        let context = self.context(agent, worktree.as_ref(), layout.as_deref());
        let mut context = context.map_err(|error| no_place(agent, &error))?;
        // Who has a worktree commits with git.
        if let (None, Some(layout)) = (&worktree, &layout)
            && names(place.tools.as_deref(), COMMIT)
        {
            let repository = self.repository().await.map_err(|error| no_place(agent, &error))?;
            let (agent, has_trailer) = (agent.to_string(), self.wishes.trailer);
            context.commits =
                Some(Arc::new(ByTool { repository, agent, has_trailer, is_kept: self.is_kept() }));
            if self.is_kept() && self.reach.git == GitAccess::Read {
                let mounts = self.supervisor.in_force().is_some_and(|sandbox| sandbox.mount_namespace);
                context.read_only_git = by_tool::read_only_git(layout, &self.project, mounts);
            }
        }
        let context = Arc::new(context);
        let mut tools = work_tools(&context, place.tools.as_deref());
        if let (None, Some(layout)) = (&worktree, layout)
            && let Some(recorder) = self.recorder(layout).map_err(|error| no_place(agent, &error))?
        {
            tools = undo::recorded(tools, &recorder);
        }
        let tools = Arc::new(ToolSet::new(tools));
        Ok(Opened {
            context,
            tools,
            worktree,
            notes: Mutex::new(notes),
            unready: Mutex::new(unready),
            is_as_made: is_as_made.into(),
            last_words: Mutex::default(),
        })
    }

    /// The session's own folders. What is left of temporary ones of a killed process is removed.
    fn folders(&self) -> std::io::Result<&Arc<SessionFolders>> {
        if let Some(folders) = self.folders.get() {
            return Ok(folders);
        }
        let mounts = self.supervisor.in_force().is_some_and(|sandbox| sandbox.mount_namespace);
        let session = worktree::part_of_branch(&self.session);
        let worktrees = folders::worktrees(&self.state, self.wishes.base.as_deref(), &session);
        let folders = SessionFolders::new(&self.state, worktrees, &session, mounts, self.reach.clone())?;
        let folders = if self.apart { folders.apart() } else { folders };
        Ok(self.folders.get_or_init(|| {
            folders.clean();
            Arc::new(folders)
        }))
    }

    /// Where the project's repository is. It is looked for again only where no agent could have
    /// made one meanwhile.
    async fn layout(&self) -> Result<Arc<RepositoryLayout>, NoWorktree> {
        let look = || async {
            match RepositoryLayout::of(&self.project, self.mark.as_ref()).await {
                Ok(layout) => Ok(Ok(Arc::new(layout))),
                Err(NoWorktree::NotPossible(why)) if self.is_kept() => Ok(Err(why)),
                Err(error) => Err(error),
            }
        };
        self.layout.get_or_try_init(look).await?.clone().map_err(NoWorktree::NotPossible)
    }

    /// Whether there is a sandbox that holds anything.
    fn is_kept(&self) -> bool {
        self.supervisor.in_force().is_some_and(|sandbox| sandbox.tier != Tier::None)
    }

    async fn repository(&self) -> Result<Repository, NoWorktree> {
        let layout = self.layout().await?;
        let open = || {
            let folders = self.folders()?;
            let keeper = || folders.keeper(&layout, &self.supervisor);
            std::fs::create_dir_all(&folders.worktrees)?;
            // As git will name it.
            let folder = folders.worktrees.canonicalize()?;
            Ok(Repository {
                layout: layout.clone(),
                state: folders.state.clone(),
                records: Records { folder, session: self.session.clone() },
                scratch: folders.scratch()?,
                mark: self.mark.clone(),
                keeper: self.is_kept().then(keeper).transpose()?,
                folders: folders.clone(),
                supervisor: self.is_kept().then(|| self.supervisor.clone()),
            })
        };
        open().map_err(|error| self.no_state(&error))
    }

    fn no_state(&self, error: &std::io::Error) -> NoWorktree {
        NoWorktree::Failed(format!("the state folder {} can't be used: {error}", self.state.display()))
    }

    /// What is remembered of an agent's worktree from before.
    fn record(&self, agent: &AgentName) -> std::io::Result<Option<Record>> {
        if !self.resumed {
            return Ok(None);
        }
        // Held while it is read: reading removes what a killed process left, once.
        let mut before = self.before.lock();
        if before.is_none() {
            let session = worktree::part_of_branch(&self.session);
            let folder = folders::worktrees(&self.state, self.wishes.base.as_deref(), &session);
            let records = Records { folder, session: self.session.clone() };
            *before = Some(if self.apart { records.look()? } else { records.load()? });
        }
        Ok(before.as_ref().and_then(|records| records.get(agent).cloned()))
    }

    fn opened(&self, agent: &AgentName) -> Option<Arc<Opened>> {
        self.opened.lock().get(agent).cloned()
    }

    /// The agent's worktree: the one it works in, or else the one it worked in before.
    async fn known(&self, agent: &AgentName) -> Result<Worktree, ToolError> {
        let failed = |error: &dyn std::fmt::Display| ToolError(format!("the branch of `{agent}`: {error}"));
        if let Some(opened) = self.opened(agent) {
            return opened.worktree.clone().ok_or_else(|| no_branch(agent));
        }
        let record = self.record(agent).map_err(|e| failed(&self.no_state(&e)))?.filter(|record| record.made);
        let record = record.ok_or_else(|| no_branch(agent))?;
        let repository = self.repository().await.map_err(|e| failed(&e))?;
        let worktree = repository.worktree(&record).map_err(|e| failed(&self.no_state(&e)))?;
        if worktree.folder_state() == FolderState::Linked {
            worktree.take_over_linked().await.map_err(|e| failed(&e))?;
        }
        Ok(worktree)
    }
}

impl Drop for GitWorkplace {
    fn drop(&mut self) {
        if let Some(folders) = self.folders.get() {
            folders.clean();
        }
    }
}

fn no_place(agent: &AgentName, why: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("{agent} has no place to work in: {why}"))
}

fn no_branch(agent: &AgentName) -> ToolError {
    ToolError(format!("`{agent}` has no branch of its own"))
}

/// A path of the work tree as seen from the folder `prefix` in it.
fn relative(prefix: &str, path: &str) -> String {
    let mut ups = String::new();
    let mut above = prefix;
    loop {
        if let Some(rest) = path.strip_prefix(above) {
            return ups + rest;
        }
        ups.push_str("../");
        let parent = above.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
        above = &above[..parent];
    }
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

    fn turn_ended(&self, agent: &AgentName, run: RunId, turn: TurnId) {
        if let Some(recorder) = self.recorder.get() {
            recorder.ended(agent, run, turn);
        }
    }

    async fn settle(&self, agent: &AgentName, cancel: &CancellationToken, output: &dyn OutputSink) -> String {
        self.settled(agent, cancel, output).await
    }

    fn last_words(&self, agent: &AgentName, words: &str) {
        if let Some(opened) = self.opened(agent) {
            words.clone_into(&mut opened.last_words.lock());
        }
    }

    async fn run_ended(&self, agent: &AgentName, run: RunId) -> Result<Changes, ToolError> {
        let opened =
            self.opened(agent).ok_or_else(|| ToolError(format!("no workplace was opened for {agent}")))?;
        let edited = opened.context.take_edited();
        let context = opened.context.clone();
        let at_the_end = move || context.confined.as_ref().map(Confined::run_ended).unwrap_or_default();
        let at_the_end = off_the_runtime(at_the_end).await;
        let at_the_end = at_the_end.map_err(|error| ToolError(format!("the run's end: {error}")))?;
        let mut changes = match &opened.worktree {
            Some(worktree) => {
                let said = std::mem::take(&mut *opened.last_words.lock());
                let message = message::of_run(&said, agent.as_str(), run, self.wishes.trailer);
                commit::commit(worktree, agent.as_str(), run, &message).await
            }
            None => Changes { files: edited, ..Changes::default() },
        };
        let not_kept = match self.recorder.get() {
            Some(recorder) => recorder.settle().await,
            None => None,
        };
        let before = std::mem::take(&mut *opened.notes.lock());
        changes.notes.splice(0..0, before.into_iter().chain(at_the_end).chain(not_kept));
        Ok(changes)
    }

    fn branch(&self, agent: &AgentName) -> Option<String> {
        match self.opened(agent) {
            Some(opened) => opened.worktree.as_ref().map(|worktree| worktree.branch.clone()),
            // What can't be read is told to whoever needs it: `diff`, `merge`, `open`.
            None => self.record(agent).ok()?.filter(|record| record.made).map(|record| record.branch),
        }
    }

    async fn diff(&self, agent: &AgentName) -> Result<Diff, ToolError> {
        if (self.place_of)(agent).isolation == Isolation::None {
            return self.diff_of_project(agent).await;
        }
        let worktree = self.known(agent).await?;
        let diff = diff::diff(&worktree).await;
        diff.map_err(|error| ToolError(format!("no diff of {}: {error}", worktree.branch)))
    }

    async fn merge(&self, agent: &AgentName) -> Result<Merge, ToolError> {
        self.merge_as(agent, None).await.map(|(merge, _)| merge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_as_the_agent_would_write_it() {
        let rows = [
            ("", "a/b", "a/b"),
            ("a/", "a/b", "b"),
            ("a/b/", "a/c", "../c"),
            ("a/b/", "x", "../../x"),
            ("a/", "ab/c", "../ab/c"),
        ];
        for (prefix, path, expected) in rows {
            assert_eq!(relative(prefix, path), expected, "{prefix} {path}");
        }
    }
}
