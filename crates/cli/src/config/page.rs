//! `[page]`: how a person's page in the browser behaves.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// So long a page that said it leaves may take to come back: it may only be loaded anew.
const BACK: Duration = Duration::from_secs(10);

/// How a person's page behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Page {
    /// What closing it does.
    pub(crate) on_leave: OnLeave,
}

/// What closing the page does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnLeave {
    /// Nothing: the agents go on.
    #[default]
    GoOn,
    /// It stops all agents of its session.
    Stop,
}

impl Page {
    /// After how long a session that its page has left is stopped, if it is.
    pub(crate) fn stops_when_left(&self) -> Option<Duration> {
        match self.on_leave {
            OnLeave::GoOn => None,
            OnLeave::Stop => Some(BACK),
        }
    }
}
