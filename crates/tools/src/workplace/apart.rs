//! For whoever comes by when no coordinator has the session, or beside one that has it (issue 14): what an agent
//! did is merged as one commit, or made ready to be pushed, by the same looks as a merge.

use midturn_core::engine::ports::{Merge, ToolError};
use midturn_core::rules::id::AgentName;

use super::GitWorkplace;
use super::git::GitError;
use super::merge::{Merging, Stop};
use super::worktree::Worktree;

/// A branch that has all of its agent's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It can be pushed: its name.
    Branch(String),
    /// It can't; why.
    Refused(String),
}

impl GitWorkplace {
    /// For somebody who works in none of the places: they are left as they are found, whoever is in them.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.resumed = true;
        self.apart = true;
        self
    }

    /// Merges all that an agent did as one commit with this message.
    ///
    /// # Errors
    /// There is no branch, or git fails.
    pub async fn merge_as_one(&self, agent: &AgentName, message: &str) -> Result<Merge, ToolError> {
        let (merge, worktree) = self.merge_as(agent, Some(message)).await?;
        if let Merge::Merged(_) = merge {
            let noted = self.note_squashed(agent, &worktree).await;
            noted.map_err(|error| {
                ToolError(format!("{} was merged, which was not noted: {error}", worktree.branch))
            })?;
        }
        Ok(merge)
    }

    pub(super) async fn merge_as(
        &self,
        agent: &AgentName,
        squash: Option<&str>,
    ) -> Result<(Merge, Worktree), ToolError> {
        let worktree = self.known(agent).await?;
        let _one_at_a_time = self.merging.lock().await;
        let merge = Merging { worktree: &worktree, agent: agent.as_str(), squash }.merge().await;
        let merge =
            merge.map_err(|error| ToolError(format!("{} was not merged: {error}", worktree.branch)))?;
        Ok((merge, worktree))
    }

    /// No branch of the project's has its commits: only the record says that their changes are in.
    async fn note_squashed(&self, agent: &AgentName, worktree: &Worktree) -> Result<(), GitError> {
        let squashed = worktree.repository.git().commit_at(&worktree.reference()).await?;
        let records = &worktree.repository.records;
        if let Some(mut record) = records.look()?.remove(agent) {
            record.squashed = squashed;
            records.save(&record)?;
        }
        Ok(())
    }

    /// Brings all that an agent committed to its branch in the project.
    ///
    /// # Errors
    /// There is no branch, or git fails.
    pub async fn ready(&self, agent: &AgentName) -> Result<Ready, ToolError> {
        let worktree = self.known(agent).await?;
        let merging = Merging { worktree: &worktree, agent: agent.as_str(), squash: None };
        match merging.tip(&worktree.repository.git(), "push").await {
            Ok(_) => Ok(Ready::Branch(worktree.branch.clone())),
            Err(Stop::Known(Merge::Refused(why)) | Stop::Git(GitError::Refused(why))) => {
                Ok(Ready::Refused(why))
            }
            Err(Stop::Known(other)) => Err(ToolError(format!("{}: {other:?}", worktree.branch))),
            Err(Stop::Git(error)) => Err(ToolError(format!("the branch of `{agent}`: {error}"))),
        }
    }
}
