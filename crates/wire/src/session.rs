//! Sessions.

use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::spent::Spent;
use crate::text::{Duration, Number, Text};

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id.
    pub session: String,
    /// The task, for people.
    pub title: String,
    /// The folder it works in.
    pub folder: String,
    /// When it began: seconds since 1970.
    #[schema(value_type = f64)]
    pub began_at: Micros,
    /// How often it was taken up: 1 when it was begun.
    pub epoch: u64,
    /// Whether it lives in this process; otherwise it is only stored.
    pub live: bool,
    /// The agent a person talks to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub lead: Option<AgentName>,
    /// How many agents it has.
    pub agents: u64,
    /// How many of them have a run under way; of a session that is only stored, one that was cut off.
    pub running: u64,
    /// Whether anything is at work here: a run, or the report on one that is on its way.
    pub busy: bool,
    /// The number of its last event.
    pub last_seq: u64,
    /// What its agents have used. Absent of a session that is only stored: its agents say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub spent: Option<Spent>,
    /// That its agents share a folder, and why: of one that lives, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub shared: Option<String>,
    /// The program that it runs in, if that is not Midturn: it has joined (docs/bridges.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub joined: Option<String>,
}

impl Session {
    /// Whether it lives in the process that is asked, and not in another program.
    pub fn lives_here(&self) -> bool {
        self.live && self.joined.is_none()
    }
}

impl From<SessionSummary> for Session {
    fn from(summary: SessionSummary) -> Self {
        Self {
            session: summary.record.id.to_string(),
            title: summary.record.title,
            folder: summary.record.folder,
            began_at: Micros(summary.record.began_at),
            epoch: summary.epoch,
            live: false,
            lead: None,
            agents: summary.agents,
            running: summary.running,
            busy: false,
            last_seq: summary.last_seq,
            spent: None,
            shared: None,
            joined: None,
        }
    }
}

/// Sessions: those that live first, then those that are only stored, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Sessions {
    /// The sessions.
    pub sessions: Vec<Session>,
}

/// What is to go of a session that is only stored, as somebody has looked at it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// How often it had been taken up.
    pub epoch: Number,
    /// The number of its last event: if another one is the last by now, nothing is removed.
    pub last_seq: Number,
    /// Also what is not merged, and what is on no branch.
    #[serde(default)]
    pub force: bool,
    /// Only what is done with: see there. Without it the session goes, and its merged branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prune: Option<Prune>,
}

/// What is done with: merged branches, and a session in which nothing is left to do or to merge.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    /// Since when nothing has happened in it, at least; of the session itself 30 days without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub older_than: Option<Duration>,
}

/// What was removed of a session.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    /// Whether what was recorded of it is gone.
    pub session: bool,
    /// How many branches.
    pub branches: usize,
    /// How many folders.
    pub folders: usize,
    /// How much room that was.
    pub bytes: u64,
}

/// A session somebody asks for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// What the lead is to do.
    pub task: Text,
    /// The folder to work in, an absolute path; the process's own without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Text>,
    /// The lead's model; the configured one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// Settings over the configured ones, each `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<Text>,
    /// Whether whoever asks for it follows its events with `answers=true` next: agents ask from
    /// their first call on.
    #[serde(default)]
    pub answers: bool,
}

/// How a session is taken up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Whether whoever takes it up follows its events with `answers=true` next.
    #[serde(default)]
    pub answers: bool,
}

/// Who goes on in a session that was taken up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// The agents that work now.
    pub resumed: Vec<String>,
}
