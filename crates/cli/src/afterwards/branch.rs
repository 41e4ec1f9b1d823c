//! `midturn diff` and `midturn merge` of a session that nobody carries, in the words of the interface.

use midturn_core::engine::ports::Workplace as _;
use midturn_core::rules::id::AgentName;
use midturn_wire::work::{Diff, Merge};

use super::Stored;
use crate::env::Env;
use crate::failure::Failure;
use crate::project::Project;

/// What an agent changed.
///
/// # Errors
/// [`Failure`]: there is no such session or agent, or git fails.
pub(crate) async fn diff(
    project: &Project,
    session: &str,
    agent: &AgentName,
    env: &Env,
) -> Result<Diff, Failure> {
    let stored = Stored::of(project, session, env).await?;
    stored.has(agent)?;
    stored.workplace.diff(agent).await.map(Diff::from).map_err(Failure::failed)
}

/// Merges an agent's branch; as one commit, if there is a message for it.
///
/// # Errors
/// [`Failure`]: there is no such session or branch, or git fails.
pub(crate) async fn merge(
    project: &Project,
    session: &str,
    agent: &AgentName,
    squash: Option<&str>,
    env: &Env,
) -> Result<Merge, Failure> {
    let stored = Stored::of(project, session, env).await?;
    stored.branch_of(agent)?;
    let merged = match squash {
        Some(message) => stored.workplace.merge_as_one(agent, message).await,
        None => stored.workplace.merge(agent).await,
    };
    merged.map(Merge::from).map_err(Failure::failed)
}
